"""How each method fared at each learning rate: the course of a training in a few lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from carpediem.lab.records import RunRecord
from carpediem.lab.results import (
    Cell,
    baseline_of,
    baselines,
    best_error,
    cells_by_setting,
    estimate,
    group_cells,
    method_name,
    paired_difference,
    time_to_error,
)
from carpediem.lab.table import Column, Table, Value
from carpediem.lab.tables import setting_titles

_COLUMNS = (
    Column("stage", "Epochs"),
    Column("method", "Method"),
    Column("error", "Test error (%)", "error"),
    Column("seeds", "Seeds", "count"),
    Column("difference", "Difference to Random Batch", "difference"),
    Column("fewer_iterations", "Fewer iterations (%)", "percent"),
    Column("distinct", "Distinct samples (%)", "percent"),
    Column("loss", "Loss of the drawn", "error"),
)
_NOTE = (
    "Means over the epochs and the seeds; best: the lowest of a run's evaluations. An epoch in which the learning rate "
    "falls counts for the new one. Difference: seed by seed, to Random Batch drawn alike where that was run, with its "
    "95% confidence interval (Student's t); below 0 is better. Fewer iterations: until the mean curve over the seeds "
    "is as low as that Random Batch's ever was. Distinct samples: the share of the training set that an epoch's "
    "batches held. Loss of the drawn: as the batches had it, before each step."
)


@dataclass(frozen=True)
class _Stage:
    """Some epochs of a run, or None for the best of all."""

    name: str
    epochs: range | None

    def error(self, run: RunRecord) -> float:
        return best_error(run) if self.epochs is None else self.mean(run, "test_error")

    def mean(self, run: RunRecord, name: str) -> float:
        return fmean(run.epochs[number][name] for number in self.epochs or ())


def stage_tables(records: Iterable[RunRecord]) -> list[Table]:
    """One table for each setting of which runs have finished: how each method fared, learning rate by learning rate."""
    groups = cells_by_setting(cell for cell in group_cells(records) if cell.runs)
    titles = setting_titles([group[0] for group in groups])
    return [_table(*pair) for pair in sorted(zip(titles, groups, strict=True), key=lambda pair: pair[0])]


def _table(title: str, cells: list[Cell]) -> Table:
    run = cells[0].runs[0]
    length = len(run.epochs)
    rows: list[tuple[Value, ...]] = []
    for stage in _by_rate(run):
        rows += [_row(stage, cell, cells, by_rate=True) for cell in cells]
    for last in (5, 1):
        stage = _Stage(_span(length - last, length), range(length - last, length))
        rows += [_row(stage, cell, cells) for cell in cells if length > last]
    rows += [_row(_Stage("best", None), cell, cells) for cell in cells]
    return Table(f"Stages: {title}", _NOTE, _COLUMNS, rows, grouped=1)


def _by_rate(run: RunRecord) -> list[_Stage]:
    """The epochs of each learning rate after the warm-up."""
    found = []
    selected = range(run.config.get("warm_up", 0), len(run.epochs))
    for rate, group in groupby(selected, key=lambda number: float(run.epochs[number]["learning_rate"])):
        numbers = list(group)
        epochs = range(numbers[0], numbers[-1] + 1)
        found.append(_Stage(f"{_span(epochs.start, epochs.stop)}, rate {rate:.4g}", epochs))
    return found


def _span(first: int, end: int) -> str:
    return f"{first + 1} to {end}" if end - first > 1 else f"{end}"


def _row(stage: _Stage, cell: Cell, cells: list[Cell], *, by_rate: bool = False) -> tuple[Value, ...]:
    baseline = baseline_of(cell, baselines(cells)[:1] if cell.method == "random" else cells)
    difference: Value = None
    fewer: Value = None
    if baseline is not None and baseline is not cell:
        difference = paired_difference(cell, baseline, stage.error)
        if stage.epochs is None and (time := time_to_error(cell, baseline)) is not None:
            fewer = "never" if time.our_iterations is None else time.fewer_iterations
    seen: list[Value] = [None, None]
    if by_rate:
        distinct, loss = (
            fmean(stage.mean(run, name) for run in cell.runs) for name in ("distinct", "train_loss")
        )
        seen = [100 * distinct, loss]
    errors = estimate([stage.error(run) for run in cell.runs])
    return (stage.name, method_name(cell, cells), errors, len(cell.runs), difference, fewer, *seen)
