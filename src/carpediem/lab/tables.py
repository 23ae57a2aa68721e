"""The paper's tables, and one for any other set of runs, built from records.

Every number comes from a record or from `paper`; what has not been run is a dash.
"""

from __future__ import annotations

from collections.abc import Iterable

from carpediem.lab.compared_cells import Built
from carpediem.lab.error_tables import error_tables
from carpediem.lab.plans import is_of_tables
from carpediem.lab.pressure_tables import pressure_tables
from carpediem.lab.records import RunRecord
from carpediem.lab.results import Cell, cells_by_setting, group_cells
from carpediem.lab.summaries import summaries
from carpediem.lab.table import Table


def all_tables(records: Iterable[RunRecord], *, empty: bool = False) -> list[Table]:
    """The paper's tables, then a summary of every setting that they do not show in full.

    Args:
        empty: also give the tables of the paper for which nothing has been run, at the end.
    """
    cells = group_cells(records)
    built = _paper_tables(cells)
    shown = {id(cell) for one in built for cell in one.shown}
    left = {cell.setting for cell in cells if id(cell) not in shown}
    unrun = [one.table for one in built if empty and not one.shown]
    return [one.table for one in built if one.shown] + summaries(cells, left) + unrun


def summary_tables(records: Iterable[RunRecord]) -> list[Table]:
    """One summary for each set of runs that can be compared: same recipe, data, network, optimizer and so on."""
    cells = group_cells(records)
    return summaries(cells, {cell.setting for cell in cells})


def _paper_tables(cells: list[Cell]) -> list[Built]:
    """Every table of the paper and its grid search, with a dash for what has not been run.

    Tables 2 to 5 hold what was trained with the paper's own settings; ablations and searches with others have tables
    of their own.
    """
    own = [
        cell
        for group in cells_by_setting(cells)
        if is_of_tables(run for cell in group for run in (*cell.runs, *cell.unfinished))
        for cell in group
        if cell.is_default
    ]
    return error_tables(own) + pressure_tables(cells)
