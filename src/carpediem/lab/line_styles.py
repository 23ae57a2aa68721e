"""Which colour and dashes stand for a method, in figures and on the report's page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from carpediem.lab.config import METHODS
from carpediem.lab.results import Cell

OWN = tuple(METHODS)
SPARE = ("spare0", "spare1", "spare2", "spare3")
KINDS_OF_DASHES = 4


class LineStyle(NamedTuple):
    """The name of a colour, a method's or a spare one, and the number of a kind of dashes: 0 is a solid line."""

    colour: str
    dashes: int


def line_style(cell: Cell, cells: Sequence[Cell]) -> LineStyle:
    """A method's own colour and dashes for its first cell, spare ones in turn for any further cell.

    Where two options of one method vary, as in a grid search, a colour stands for a value of one of them and dashes
    for a value of the other, as far as there are enough.
    """
    found = _in_grid(cell, cells)
    if found is not None:
        return found
    before = [other.method for other in takewhile(lambda other: other is not cell, cells)]
    if cell.method in OWN and cell.method not in before:
        return LineStyle(cell.method, OWN.index(cell.method))
    spare = len(before) - len(set(before) & set(OWN))
    return LineStyle(SPARE[spare % len(SPARE)], spare // len(SPARE) % KINDS_OF_DASHES)


def _in_grid(cell: Cell, cells: Sequence[Cell]) -> LineStyle | None:
    alike = [other for other in cells if other.method == cell.method]
    options = {name: list(dict.fromkeys(other.options[name] for other in alike)) for name in cell.options}
    varied = [(cell.options[name], values) for name, values in options.items() if len(values) > 1]
    others = [other.method for other in cells if other.method != cell.method]
    # The others keep to their own colours, so that the spare ones are free.
    if len(varied) != 2 or len(set(others)) < len(others) or not {cell.method, *others} <= set(OWN):
        return None
    # The method's own colour for the first value, which is the paper's where its point was run.
    palette = (cell.method, *SPARE)
    for (dashed, dashes), (coloured, colours) in (varied, varied[::-1]):
        if len(dashes) <= KINDS_OF_DASHES and len(colours) <= len(palette):
            return LineStyle(palette[colours.index(coloured)], dashes.index(dashed))
    return None
