"""The `carpediem` command."""

import sys


def main() -> None:
    """Runs the command, or says what to install for it."""
    try:
        from carpediem.cli import app
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("carpediem"):
            raise
        sys.exit(
            f"error: the carpediem command needs {missing.name}, of the extra lab: pip install '.[lab]' in the clone"
        )
    app()


if __name__ == "__main__":
    main()
