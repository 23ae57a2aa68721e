"""What has been measured so far, at a glance: for each experiment a line for each kind of draws, and the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from carpediem.lab.analysis import paper
from carpediem.lab.compared_cells import setting_key
from carpediem.lab.config import METHODS
from carpediem.lab.plans import is_of_tables
from carpediem.lab.recipes import RECIPES
from carpediem.lab.records import RunRecord
from carpediem.lab.results import (
    Cell,
    PairedDifference,
    cells_by_setting,
    group_cells,
    method_name,
    paired_difference,
)
from carpediem.lab.table import Column, Table, Value
from carpediem.lab.titles import setting_titles

_DIFFERENCE = Column("difference", "Recency − Random", "difference")
_NOTE = (
    "Best test error in percent, mean ± standard error (number of seeds). Systematic draws: every sample as often an "
    "epoch as its probability asks, so that Random Batch is the usual shuffle. Recency − Random: the paired difference "
    "to Random Batch that draws alike, with its 95% confidence interval; below 0 Recency Bias is better. "
    "Paper: its Tables 2 to 4."
)

_TWO_SEEDS = " Of two seeds an interval rests on one degree of freedom, and may be narrow by accident."
_NAMED = 3  # sets of options of one method that the note names one by one
_OTHER_SEEDS = " Where the numbers of seeds differ, means are not to be subtracted from each other."


def overview_table(folders: Mapping[str, Iterable[RunRecord]], *, links: bool = False) -> Table:
    """One table of all folders' experiments, the paper's own data first and in its order.

    A method that was not run has a dash. Of several sets of options that a method was run with the paper's is shown;
    the note tells what is left out, and which options shown are not the paper's.

    Args:
        folders: the runs of each, by its name.
        links: whether an experiment's name is a Markdown link to its folder.
    """
    experiments = [
        (name, own)
        for name, records in folders.items()
        for own in cells_by_setting(cell for cell in group_cells(records) if _is_shown(cell))
    ]
    experiments.sort(key=lambda experiment: _order(experiment[1][0].config))
    everything = [cell for _, own in experiments for cell in own]
    called = dict(zip((cell.setting for cell in everything), setting_titles(everything), strict=True))
    settings = [own[0].setting for _, own in experiments]
    methods = [name for name in METHODS if any(cell.method == name for cell in everything)]
    rows: list[tuple[Value, ...]] = []
    standing: list[Cell] = []
    for name, own in experiments:
        title = called[own[0].setting]
        if settings.count(own[0].setting) > 1:
            title = f"{title}, {name}"
        shown = f"[{title}]({name}/)" if links else title
        for draws, cells in _by_draws(own).items():
            standing += cells.values()
            errors = [cells[method].best_error if method in cells else None for method in methods]
            rows.append((shown, "ours", draws, *errors, _difference(cells)))
            shown = "" if links else title
        if is_of_tables(run for cell in own for run in cell.runs):
            published = [paper.best_error(*setting_key(own[0]), method) for method in methods]
            if any(published):
                rows.append((shown, "paper", None, *published, None))
    heading = (Column("experiment", "Experiment"), Column("whose", "Whose"), Column("draws", "Draws"))
    columns = [Column(method, METHODS[method], "error of seeds") for method in methods]
    note = _NOTE + _on_seeds(standing) + _on_options(everything, standing)
    return Table("Best test error (%)", note, (*heading, *columns, _DIFFERENCE), rows, grouped=1)


def _is_shown(cell: Cell) -> bool:
    return bool(cell.runs) and cell.method in METHODS


def _order(config: dict[str, Any]) -> list[tuple[int, str]]:
    known = (
        (paper.DATA, "data"),
        (paper.NETWORKS, "net"),
        (paper.OPTIMIZERS, "optimizer"),
        (RECIPES, "recipe"),
    )
    return [([*names, config[key]].index(config[key]), config[key]) for names, key in known]


def _by_draws(own: list[Cell]) -> dict[str | None, dict[str, Cell]]:
    """The cells that stand for an experiment by draws and method, independent draws first, those not known last."""
    found: dict[str | None, dict[str, Cell]] = {}
    for cell in sorted(own, key=lambda cell: (cell.draws is None, cell.draws or "")):
        alike = [other for other in own if (other.draws, other.method) == (cell.draws, cell.method)]
        # Of several sets of options only the paper's can stand for the others.
        if cell.is_default or len(alike) == 1:
            found.setdefault(cell.draws, {})[cell.method] = cell
    return found


def _on_seeds(shown: list[Cell]) -> str:
    """A word on experiments of two seeds, and on methods of one experiment that have not as many as each other."""
    two = any(cell.method == "recency" and len(cell.runs) == 2 for cell in shown)
    lines = {(cell.setting, cell.draws): set[int]() for cell in shown}
    for cell in shown:
        lines[cell.setting, cell.draws].add(len(cell.runs))
    uneven = any(len(counts) > 1 for counts in lines.values())
    return _TWO_SEEDS * two + _OTHER_SEEDS * uneven


def _on_options(cells: list[Cell], shown: list[Cell]) -> str:
    """Sentences on the cells whose options are not the paper's."""
    standing = {id(cell) for cell in shown}
    odd = [cell for cell in cells if not cell.is_default]
    told = (
        ("Not with the paper's options", [cell for cell in odd if id(cell) in standing], ""),
        (
            "Left out",
            [cell for cell in odd if id(cell) not in standing],
            "; carpediem tables without --overview shows them",
        ),
    )
    return "".join(f" {what}: {', '.join(_names(found))}{more}." for what, found, more in told if found)


def _names(cells: list[Cell]) -> list[str]:
    """By name, and of a method with many sets of options, such as a grid search's, how many."""
    by_method: dict[str, list[str]] = {}
    for cell in cells:
        names = by_method.setdefault(cell.method, [])
        if (name := method_name(cell, [cell], with_draws=False)) not in names:
            names.append(name)
    return [
        told
        for method, names in by_method.items()
        for told in (
            names if len(names) <= _NAMED else [f"{METHODS[method]} with {len(names)} other sets of options"]
        )
    ]


def _difference(cells: dict[str, Cell]) -> PairedDifference | None:
    """Of Recency Bias to Random Batch that draws alike."""
    if "recency" not in cells or "random" not in cells:
        return None
    return paired_difference(cells["recency"], cells["random"])
