"""The table for runs that are none of the paper's: the methods of one setting side by side."""

from __future__ import annotations

from collections.abc import Sequence

from carpediem.lab.compared_cells import INTERVAL, difference_columns, differences, first, left_out
from carpediem.lab.records import RunRecord
from carpediem.lab.results import (
    Cell,
    baselines,
    best_error,
    cells_by_setting,
    estimate,
    method_name,
    time_on_mean_curves,
)
from carpediem.lab.table import Column, Table, Value
from carpediem.lab.titles import setting_titles


def summaries(cells: list[Cell], settings: set[str]) -> list[Table]:
    """One for each of these settings."""
    groups = cells_by_setting(cell for cell in cells if cell.setting in settings)
    titles = setting_titles([group[0] for group in groups])
    order = sorted(range(len(groups)), key=titles.__getitem__)
    return [_summary(titles[index], groups[index]) for index in order]


def _summary(title: str, cells: list[Cell]) -> Table:
    compared_with = difference_columns(cells)
    baseline = first([cell for cell in baselines(cells) if cell.runs])
    rows: list[tuple[Value, ...]] = []
    for cell in cells:
        time = None if baseline is None else time_on_mean_curves(cell, baseline)
        reached: Sequence[Value] = (None, None)
        if time is not None:
            reached = (
                "never" if time.ours is None else time.ours,
                None if cell is baseline else time.fewer_iterations,
            )
        seconds = estimate([run.epochs[-1]["seconds"] for run in cell.runs]).mean if cell.runs else None
        compared = differences(cell, cells, compared_with)
        rows.append((method_name(cell, cells), cell.best_error, len(cell.runs), *compared, *reached, seconds))
    columns = (
        Column("method", "Method"),
        Column("best_error", "Best test error (%)", "error"),
        Column("seeds", "Seeds", "count"),
        *(column for column, _ in compared_with),
        Column("seconds_to_baseline", "Time to Random Batch's best (s)", "seconds"),
        Column("fewer_iterations", "Fewer iterations (%)", "percent"),
        Column("seconds", "Seconds a run", "seconds"),
    )
    if baseline is None:
        note = "No finished run of Random Batch among these to compare with."
    else:
        name = method_name(baseline, cells)
        note = (
            f"{INTERVAL} Time and iterations until the mean curve over the seeds that both have reaches the lowest "
            f"point of {name}'s, which is no lower than the mean of the seeds' own best errors, so that a method with "
            "the lower best error may yet never be there; without evaluation. Seconds depend on what else the machine "
            "did."
        )
    return Table(title, note + _of_the_warm_up(cells) + left_out(cells), columns, rows)


def _of_the_warm_up(cells: list[Cell]) -> str:
    """A sentence on runs that were best before their method began to select, where there are any."""
    counts = [sum(map(_was_best_in_warm_up, cell.runs)) for cell in cells]
    names = [method_name(cell, cells) for cell, count in zip(cells, counts, strict=True) if count]
    if not names:
        return ""
    runs = f"{sum(counts)} {'run' if sum(counts) == 1 else 'runs'} ({', '.join(names)})"
    return f" In {runs} the best error is one of the warm-up's, in which no method selects yet."


def _was_best_in_warm_up(run: RunRecord) -> bool:
    warm_up = 0 if run.config["method"] == "random" else run.config.get("warm_up", 0)
    later = [epoch["test_error"] for epoch in run.epochs[warm_up:]]
    return bool(later) and min(later) > best_error(run)
