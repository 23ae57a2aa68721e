"""Numbers as a page carries them: short, and null where JSON has no number."""

from __future__ import annotations

import math
from collections.abc import Iterable


def short(value: float | None, digits: int = 5) -> float | int | None:
    """The number with so many significant digits, or None where it is not finite.

    >>> short(0.123456789), short(2.0), short(math.nan), short(1_281_167)
    (0.12346, 2, None, 1281167)
    """
    if value is None or not math.isfinite(value):
        return None
    if isinstance(value, int):
        return value
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() else rounded


def shorts(values: Iterable[float | None], digits: int = 5) -> list[float | int | None]:
    """The numbers, each made short."""
    return [short(value, digits) for value in values]
