"""Convergence curves for a terminal: one line a method."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import fmean

from carpediem.lab.drawing import comparable
from carpediem.lab.records import RunRecord
from carpediem.lab.results import best_error, mean_curve, method_name
from carpediem.lab.titles import setting_title

_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII_BLOCKS = "_.-~=+*#"


def terminal_curves(records: Iterable[RunRecord], *, width: int = 48, ascii: bool = False) -> str:
    """Test error by epoch for a terminal: one line a method, on a scale that all of them share.

    The scale is logarithmic, and linear where an error is 0.

    Args:
        records: runs; those that have not finished are left out.
        width: the most characters a curve may take.
        ascii: whether the terminal shows only ASCII.
    """
    sections = []
    for cells in comparable(records):
        curves = [mean_curve(cell).test_error for cell in cells]
        low, high = min(map(min, curves)), max(map(max, curves))
        names = [method_name(cell, cells) for cell in cells]
        lines = [f"Test error by epoch: {setting_title(cells[0].config)}"]
        for cell, name, curve in zip(cells, names, curves, strict=True):
            drawn = sparkline(curve, width=width, low=low, high=high, ascii=ascii)
            best = fmean(best_error(run) for run in cell.runs)  # as in the tables: each seed's own best
            lines.append(f"  {name:<{max(map(len, names))}}  {drawn}  best {best:.2f}%")
        sections.append("\n".join(lines) + "\n")
    return "\n".join(sections)


def sparkline(
    values: Sequence[float],
    *,
    width: int,
    low: float | None = None,
    high: float | None = None,
    ascii: bool = False,
) -> str:
    """The values as at most `width` characters of eight heights, on a scale from `low` to `high`.

    The scale is logarithmic, and linear where `low` is 0, which has no logarithm.

    >>> sparkline([100, 50, 25, 12.5], width=4)
    '█▆▃▁'
    >>> sparkline([100, 50, 25, 0], width=4)
    '█▅▃▁'
    """
    if width < 1:
        raise ValueError(f"width must be at least 1, got {width}")
    if not values:
        return ""
    blocks = _ASCII_BLOCKS if ascii else _BLOCKS
    columns = min(width, len(values))
    edges = [index * len(values) // columns for index in range(columns + 1)]
    heights = [fmean(values[a:b]) for a, b in pairwise(edges)]
    bottom = low if low is not None else min(heights)
    top = high if high is not None else max(heights)
    if min(bottom, *heights) > 0:
        heights, bottom, top = [math.log(height) for height in heights], math.log(bottom), math.log(top)
    span = top - bottom or 1.0
    return "".join(
        blocks[round(max(0.0, min(1.0, (h - bottom) / span)) * (len(blocks) - 1))] for h in heights
    )
