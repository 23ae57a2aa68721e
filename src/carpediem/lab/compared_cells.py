"""What the tables of errors have in common: how cells are chosen, compared and told of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from carpediem.lab.results import Cell, baselines, draws_name, paired_difference
from carpediem.lab.table import Column, Table, Value
from carpediem.lab.titles import data_title

INTERVAL = (
    "Best test error: the lowest of a run's evaluations, one an epoch; mean ± standard error over the seeds. "
    "Difference: best test error minus that of Random Batch, seed by seed, with its 95% confidence interval "
    "(Student's t), which a single seed does not have, nor seeds that all differ by the same; below 0 is better than "
    "Random Batch."
)


@dataclass
class Built:
    """A table and the cells that it shows.

    Args:
        is_own: whether it is the paper's own.
        is_news: whether it shows what no other table does.
    """

    table: Table
    shown: list[Cell]
    is_own: bool
    is_news: bool


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


def setting_key(cell: Cell) -> tuple[str, str, str]:
    """Network, data and optimizer: where to find the paper's numbers."""
    return (cell.config["net"], cell.config["data"], cell.config["optimizer"])


def first(cells: list[Cell]) -> Cell | None:
    """The first cell, where there is one."""
    return cells[0] if cells else None


def left_out(cells: Iterable[Cell]) -> str:
    """A sentence on the runs that have not finished, where there are any."""
    runs = [run for cell in cells for run in cell.unfinished]
    if not runs:
        return ""
    return f" Left out: {len(runs)} unfinished {'run' if len(runs) == 1 else 'runs'}."


def trained_in(cells: Iterable[Cell]) -> str:
    """A sentence on the precision that the runs were trained in, beside the paper's."""
    found: dict[str, list[str]] = {}
    for cell in cells:
        if (precision := cell.config.get("precision")) is not None:
            found.setdefault(precision, []).append(data_title(cell.config["data"]))
    if not found:
        return ""
    if len(found) == 1:
        told = next(iter(found))
    else:
        told = " and ".join(
            f"{name} ({', '.join(dict.fromkeys(data))})" for name, data in sorted(found.items())
        )
    return (
        " Trained in float32, as in the paper."
        if told == "float32"
        else f" Trained in {told}; the paper: in float32."
    )
