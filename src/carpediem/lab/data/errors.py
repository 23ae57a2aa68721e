"""The three ways in which data can fail, each with a message of one sentence that says what to do."""

from __future__ import annotations


class DataError(ValueError):
    """A data set is there but damaged or inconsistent."""


class DataNotFoundError(FileNotFoundError):
    """A data set is in none of the places where it was looked for."""


class FetchError(OSError):
    """A download did not arrive whole."""
