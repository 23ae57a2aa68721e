"""The paper's tables, and one for any other set of runs, built from records.

Every number comes from a record or from `analysis.paper`; what has not been run is a dash. Runs with the paper's own
settings make its tables, runs that differ make tables of the same shape that are titled by what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from carpediem.lab.compared_cells import Built
from carpediem.lab.epoch_tables import drawn_losses_table, index_table
from carpediem.lab.error_tables import error_table
from carpediem.lab.grid_tables import grid_tables
from carpediem.lab.plans import Plan
from carpediem.lab.pressure_tables import pressure_tables
from carpediem.lab.records import RunRecord
from carpediem.lab.results import Cell, group_cells
from carpediem.lab.summaries import summaries
from carpediem.lab.table import Table
from carpediem.lab.time_tables import time_table
from carpediem.lab.versions import (
    ABLATION,
    FIGURE_3,
    FIGURE_4,
    GRID,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    Shape,
    Version,
    own_version,
    versions,
)

_RECIPES = ("paper", "fine-tuning", "released")  # those of the paper and its code; others have summaries
Tables = Callable[[Version, bool], list[Built]]
"""The tables of a version: with all rows of the paper, or those of what was run."""


def _of_errors(version: Version, whole: bool) -> list[Built]:
    times = [time_table(version, whole=whole)] if version.shape is TABLE_4 else []
    return [error_table(version, whole=whole), *times]


_STUDIES: dict[str, tuple[Shape, Tables]] = {
    "Table 2": (TABLE_2, _of_errors),
    "Table 3": (TABLE_3, _of_errors),
    "Tables 4 and 5": (TABLE_4, _of_errors),
    "as Tables 4 and 5": (TABLE_4, _of_errors),
    "Tables 6 and 7": (ABLATION, lambda one, whole: pressure_tables(one, whole=whole)),
    "Figure 7": (GRID, lambda one, whole: grid_tables(one, whole=whole)),
    "Figure 4": (FIGURE_4, lambda one, _: [drawn_losses_table(one)]),
    "Figure 3": (FIGURE_3, lambda one, _: [index_table(one)]),
}
"""By what a plan says first that it shows."""


def study_tables(plan: Plan, records: Iterable[RunRecord]) -> list[Table]:
    """The tables of a study of the paper, ours beside the paper's numbers, as far as it was run.

    What was trained beside it and has no place in them is summarised.
    """
    cells = group_cells(records)
    shape, tables = _STUDIES[plan.shows.partition(",")[0]]
    found = versions(filter(shape.takes, cells), shape)
    built = [one for version in found for one in tables(version, False)]
    return [one.table for one in built] + summaries(cells, _not_shown(cells, built))


def all_tables(records: Iterable[RunRecord], *, empty: bool = False) -> list[Table]:
    """The paper's tables and others of their shape, then a summary of every setting that they do not show in full.

    Args:
        empty: also give the tables of the paper for which nothing has been run, at the end.
    """
    cells = group_cells(records)
    eligible = [cell for cell in cells if cell.config["recipe"] in _RECIPES]
    searches = [one for name in ("Tables 6 and 7", "Figure 7") for one in _made(eligible, name)]
    searched = {id(cell) for one in searches if one.is_news for cell in one.shown}
    errors = [
        one for name in ("Table 2", "Table 3", "Tables 4 and 5") for one in _made(eligible, name, searched)
    ]
    built = [one for one in errors + searches if one.is_news]
    unrun = [one for one in errors + searches if one.is_own and not one.is_news]
    left = summaries(cells, _not_shown(cells, built))
    return [one.table for one in built] + left + [one.table for one in unrun if empty]


def summary_tables(records: Iterable[RunRecord]) -> list[Table]:
    """One summary for each set of runs that can be compared: same recipe, data, network, optimizer and so on."""
    cells = group_cells(records)
    return summaries(cells, {cell.setting for cell in cells})


def _made(cells: list[Cell], name: str, searched: Container[int] = ()) -> list[Built]:
    """The tables of one kind: the paper's own, run or not, then those of runs that differ.

    Args:
        searched: cells that an ablation or a grid search shows, and which need no table of their own.
    """
    shape, tables = _STUDIES[name]
    found = versions(filter(shape.holds, cells), shape)
    if not any(version.is_own for version in found):
        found = [own_version(shape), *found]
    return [
        one
        for version in found
        if version.is_own or any(id(cell) not in searched for cell in version.telling)
        for one in tables(version, version.is_own)
    ]


def _not_shown(cells: list[Cell], built: list[Built]) -> set[str]:
    """The settings of which a cell stands in none of these tables."""
    shown = {id(cell) for one in built for cell in one.shown}
    return {cell.setting for cell in cells if id(cell) not in shown}
