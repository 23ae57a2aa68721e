"""Errors of networks that were also tested with their dropout left on, as the released code's ResNet is."""

from __future__ import annotations

from functools import partial

from carpediem.lab.records import RunRecord
from carpediem.lab.results import Cell, baseline_of, estimate, method_name, paired_difference
from carpediem.lab.table import Column, Table, Value

_FIELD = "test_error_dropout"
_COLUMNS = (
    Column("method", "Method"),
    Column("best_error", "Best test error (%)", "error"),
    Column("difference", "Difference to Random Batch", "difference"),
    Column("best_error_dropout", "With dropout left on (%)", "error"),
    Column("difference_dropout", "Difference with dropout left on", "difference"),
    Column("seeds", "Seeds", "count"),
)
_NOTE = (
    "The same trainings, tested twice after an epoch: as usual, and with activations dropped as in training. Best: the "
    "lowest of a run's tests of that kind, over the epochs with both. Differences: seed by seed, to Random Batch drawn "
    "alike where that was run, with their 95% confidence interval (Student's t); below 0 is better."
)


def dropout_tables(title: str, cells: list[Cell]) -> list[Table]:
    """One table where runs were tested in both ways, else none.

    Args:
        title: what the setting is called.
        cells: its cells, all with finished runs.
    """
    tested = [
        Cell(cell.setting, cell.selection, runs, ())
        for cell in cells
        if (runs := tuple(run for run in cell.runs if is_tested_with_dropout(run)))
    ]
    rows = [_row(cell, tested) for cell in tested]
    return [Table(f"Dropout left on: {title}", _NOTE, _COLUMNS, rows)] if rows else []


def is_tested_with_dropout(run: RunRecord) -> bool:
    """Whether its last epoch was tested in both ways."""
    return _FIELD in run.epochs[-1]


def _row(cell: Cell, cells: list[Cell]) -> tuple[Value, ...]:
    baseline = baseline_of(cell, cells)
    found: list[Value] = []
    for name in ("test_error", _FIELD):
        measure = partial(_best, name=name)
        difference = None if baseline in (None, cell) else paired_difference(cell, baseline, measure)
        found += [estimate([measure(run) for run in cell.runs]), difference]
    return (method_name(cell, cells), *found, len(cell.runs))


def _best(run: RunRecord, name: str) -> float:
    """The lowest error of that kind; epochs that were tested in one way alone, before a stop, are passed over."""
    return min(float(epoch[name]) for epoch in run.epochs if _FIELD in epoch)
