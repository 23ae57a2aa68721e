"""Files that are written whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_whole(path: str | Path, content: str | bytes) -> None:
    """The file with this content, or as it was before: never a part of it. Makes its folder where needed."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = part_of(path)
    try:
        with beside.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        if error.filename is None and error.errno is not None:  # as where the disk is full
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        beside.unlink(missing_ok=True)


def part_of(path: Path) -> Path:
    """A place beside a file or folder for what will take its name.

    Not named by the process alone: other machines may write the same, on a disk that they share.
    """
    return path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")


def write_json(path: str | Path, value: object) -> None:
    """A JSON file, written whole."""
    write_whole(path, json.dumps(value, indent=2) + "\n")


@contextmanager
def writing_out(out: str | Path) -> Iterator[None]:
    """Around what writes to a place that the user chose: where that fails, one sentence names it, and the remedy."""
    try:
        yield
    except OSError as error:
        if error.strerror is None:  # has its sentence already
            raise
        raise OSError(f"{out} cannot be written: {error.strerror}; choose another --out") from error
