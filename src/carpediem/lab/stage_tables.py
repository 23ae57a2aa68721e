"""How each method fared at each learning rate: the course of a training in a few lines."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from carpediem.lab.draws_tables import draws_tables
from carpediem.lab.dropout_tables import dropout_tables
from carpediem.lab.records import RunRecord
from carpediem.lab.results import (
    Cell,
    baseline_of,
    baselines,
    cells_by_setting,
    estimate,
    group_cells,
    method_name,
    paired_difference,
    time_on_mean_curves,
)
from carpediem.lab.stages import Stage, stages_of
from carpediem.lab.table import Column, Table, Value
from carpediem.lab.titles import setting_titles

_COLUMNS = (
    Column("stage", "Epochs"),
    Column("method", "Method"),
    Column("error", "Test error (%)", "error"),
    Column("seeds", "Seeds", "count"),
    Column("difference", "Difference to Random Batch", "difference"),
    Column("fewer_iterations", "Fewer iterations (%)", "percent"),
    Column("distinct", "Distinct samples (%)", "percent"),
    Column("loss", "Loss of the drawn", "loss"),
)
_NOTE = (
    "Means over the epochs and the seeds, from the warm-up on; best: the lowest of a run's evaluations. An epoch in "
    "which the learning rate falls counts for the new one. Difference: seed by seed, to Random Batch drawn alike where "
    "that was run, and of Random Batch to the draws of its recipe, with its 95% confidence interval (Student's t); "
    "below 0 is better. Fewer iterations: until the mean curve over the seeds that both have is as low as that Random "
    "Batch's ever was. Distinct samples: the share of the training set that an epoch's whole batches held; what does "
    "not fill one is left out. Loss of the drawn: as the batches had it, before each step."
)


def stage_tables(records: Iterable[RunRecord]) -> list[Table]:
    """For each setting of which runs have finished how each method fared, learning rate by learning rate.

    Where a method and Random Batch were run with both kinds of draws, a table takes the two apart; where runs were
    also tested with dropout left on, one shows both errors.
    """
    groups = cells_by_setting(cell for cell in group_cells(records) if cell.runs)
    titles = setting_titles([group[0] for group in groups])
    made = []
    for title, cells in sorted(zip(titles, groups, strict=True), key=lambda pair: pair[0]):
        made += [_table(title, cells), *draws_tables(title, cells), *dropout_tables(title, cells)]
    return made


def _table(title: str, cells: list[Cell]) -> Table:
    all_runs = [run for cell in cells for run in cell.runs]
    rows = [_row(stage, cell, cells) for stage in stages_of(all_runs) for cell in cells]
    return Table(f"Stages: {title}", _NOTE, _COLUMNS, rows, grouped=1)


def _row(stage: Stage, cell: Cell, cells: list[Cell]) -> tuple[Value, ...]:
    baseline = baseline_of(cell, baselines(cells)[:1] if cell.method == "random" else cells)
    difference: Value = None
    fewer: Value = None
    if baseline is not None and baseline is not cell:
        difference = paired_difference(cell, baseline, stage.error)
        if stage.epochs is None and (time := time_on_mean_curves(cell, baseline)) is not None:
            fewer = "never" if time.our_iterations is None else time.fewer_iterations
    distinct, loss = (
        _mean_over_seeds(stage, cell, name) if stage.is_of_one_rate else None
        for name in ("distinct", "train_loss")
    )
    seen = (None if distinct is None else 100 * distinct, loss)
    errors = estimate([stage.error(run) for run in cell.runs])
    return (stage.name, method_name(cell, cells), errors, len(cell.runs), difference, fewer, *seen)


def _mean_over_seeds(stage: Stage, cell: Cell, name: str) -> float | None:
    means = [mean for run in cell.runs if (mean := stage.mean(run, name)) is not None]
    return fmean(means) if len(means) == len(cell.runs) else None
