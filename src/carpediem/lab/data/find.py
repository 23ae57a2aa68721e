"""Where data is looked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from .errors import DataNotFoundError

VARIABLE = "CARPEDIEM_DATA"


def places(data_dir: Path | None = None) -> list[Path]:
    """The folders that may hold data, in order.

    `data_dir` alone if it is given: an explicit folder is never passed over in silence. Else the folder
    that the environment variable CARPEDIEM_DATA names, if it is set, and the user's cache folder.
    """
    if data_dir is not None:
        return [Path(data_dir).expanduser()]
    try:
        from platformdirs import user_cache_dir
    except ImportError as error:
        raise ImportError("the lab's data need platformdirs: pip install platformdirs") from error
    named = [Path(os.environ[VARIABLE]).expanduser()] if os.environ.get(VARIABLE) else []
    return [*named, Path(user_cache_dir("carpediem", appauthor=False))]


def find_data(
    name: str,
    locate: Callable[[Path], Path | None],
    *,
    expected: str,
    downloadable: bool,
    data_dir: Path | None = None,
) -> Path:
    """Where the set is, in the first of the places that has it.

    Args:
        locate: from a folder to the set in it, or None.
        expected: the files that would have been found, for the message.
        downloadable: whether `carpediem data fetch` gets it.
    """
    searched = places(data_dir)
    for folder in searched:
        path = locate(folder)
        if path is not None:
            return path
    remedy = f"run `carpediem data fetch {name}`, or set" if downloadable else "put it there, or set"
    raise DataNotFoundError(
        f"{name} ({expected}) is not in {' nor in '.join(map(str, searched))}; "
        f"{remedy} --data-dir or {VARIABLE} to the folder that holds it"
    )
