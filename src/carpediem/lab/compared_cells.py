"""What the tables of errors have in common: how cells are chosen, compared and told of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from carpediem.lab.results import Cell, baselines, draws_name, paired_difference
from carpediem.lab.table import Column, Table, Value

CLASSIFIED = ("mnist", "cifar10", "cifar100")
INTERVAL = (
    "Best test error: the lowest of a run's evaluations, one an epoch; mean ± standard error over the seeds. "
    "Difference: best test error minus that of Random Batch, seed by seed, with its 95% confidence interval "
    "(Student's t), which a single seed does not have, nor seeds that all differ by the same; below 0 is better than "
    "Random Batch."
)


@dataclass
class Built:
    """A table and the cells that it shows."""

    table: Table
    shown: list[Cell]


def difference_columns(cells: list[Cell]) -> list[tuple[Column, str | None]]:
    """One column for each kind of draws that Random Batch was run with, and which kind it is."""
    kinds = list(dict.fromkeys(cell.draws for cell in baselines(cells)))
    if len(kinds) < 2:
        return [
            (Column("difference", "Difference to Random Batch", "difference"), kind)
            for kind in kinds or [None]
        ]
    return [
        (
            Column(
                f"difference_{kind}",
                f"Difference to Random Batch ({draws_name('random', kind)})",
                "difference",
            ),
            kind,
        )
        for kind in kinds
    ]


def differences(cell: Cell, beside: list[Cell], columns: list[tuple[Column, str | None]]) -> list[Value]:
    """The cell's difference to each kind of Random Batch among those beside it."""
    found: list[Value] = []
    for _, draws in columns:
        baseline = first([other for other in baselines(beside) if other.draws == draws])
        found.append(None if baseline is None or baseline is cell else paired_difference(cell, baseline))
    return found


def one_setting(cells: list[Cell], setting: Callable[[Cell], str] = lambda cell: cell.setting) -> list[Cell]:
    """Of several settings, the one with the most finished runs: the others get a summary."""
    finished: dict[str, int] = {}
    for cell in cells:
        finished[setting(cell)] = finished.get(setting(cell), 0) + len(cell.runs)
    chosen = max(sorted(finished), key=finished.__getitem__, default=None)
    return [cell for cell in cells if setting(cell) == chosen]


def setting_key(cell: Cell) -> tuple[str, str, str]:
    """Network, data and optimizer: where to find the paper's numbers."""
    return (cell.config["net"], cell.config["data"], cell.config["optimizer"])


def or_none(cells: list[Cell]) -> list[Cell | None]:
    """The cells, or a single None, which makes a row of dashes."""
    return [*cells] or [None]


def first(cells: list[Cell]) -> Cell | None:
    """The first cell, where there is one."""
    return cells[0] if cells else None


def left_out(cells: Iterable[Cell]) -> str:
    """A sentence on the runs that have not finished, where there are any."""
    runs = [run for cell in cells for run in cell.unfinished]
    if not runs:
        return ""
    return f" Left out: {len(runs)} unfinished {'run' if len(runs) == 1 else 'runs'}."
