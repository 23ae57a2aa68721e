"""Whose line a warning is about."""

from __future__ import annotations

import sys

BETWEEN = ("carpediem", "torch", "torchdata", "multiprocessing")


def loop_level() -> int:
    """The `stacklevel` at which the caller warns of the user's line, which our and torch's frames lie between."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in BETWEEN:
        frame, level = frame.f_back, level + 1
    return level
