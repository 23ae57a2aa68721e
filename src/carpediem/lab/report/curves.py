"""Convergence as the page carries it: training losses and test error, a line a method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from carpediem.lab.line_styles import line_style
from carpediem.lab.records import RunRecord
from carpediem.lab.results import Cell, method_name

from .numbers import short, shorts

_FIELDS = ("train_loss", "test_error")
_OF_TRAINING_SET = "training_set_loss"  # which not every run has, nor every epoch of a run


def lines(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """The methods of one setting: a key for the address, a name, and which colour and dashes they have."""
    return [
        {"key": _key(cell, cells), "name": method_name(cell, cells), "style": line_style(cell, cells)}
        for cell in cells
    ]


def convergence(cells: Sequence[Cell]) -> dict[str, Any]:
    """Losses and test error by epoch: mean and range over the finished runs, and each unfinished run.

    The loss over the whole training set is that of the epochs named in `evaluated`, by their place among all.
    """
    return {
        "warm_up": _warm_up(cells),
        "lines": [
            line
            | {"seeds": [run.config["seed"] for run in cell.runs]}
            | _mean(cell.runs)
            | {"unfinished": [_single(run) for run in cell.unfinished if run.epochs]}
            for line, cell in zip(lines(cells), cells, strict=True)
        ],
    }


def _mean(runs: Sequence[RunRecord]) -> dict[str, Any]:
    epochs = list(zip(*(run.epochs for run in runs), strict=False))
    curve: dict[str, Any] = {
        "iterations": [int(rows[0]["iteration"]) for rows in epochs],
        "seconds": shorts(fmean(row["seconds"] for row in rows) for rows in epochs),
    }
    at = _evaluated(runs)
    curve["evaluated"] = at
    curve[_OF_TRAINING_SET] = _spread([epochs[place] for place in at], _OF_TRAINING_SET)
    return curve | {field: _spread(epochs, field) for field in _FIELDS}


def _spread(epochs: Sequence[Sequence[dict[str, Any]]], field: str) -> dict[str, list[float | int | None]]:
    values = [[float(row[field]) for row in rows] for rows in epochs]
    # The mean of seeds one of which diverged is no number, and neither is their range.
    known = [row if all(map(math.isfinite, row)) else [math.nan] for row in values]
    return {
        "mean": shorts(map(fmean, known)),
        "low": shorts(map(min, known)),
        "high": shorts(map(max, known)),
    }


def _evaluated(runs: Sequence[RunRecord]) -> list[int]:
    """The epochs after which every run was evaluated on the whole training set."""
    epochs = zip(*(run.epochs for run in runs), strict=False)
    return [n for n, rows in enumerate(epochs) if all(row.get(_OF_TRAINING_SET) is not None for row in rows)]


def _single(run: RunRecord) -> dict[str, Any]:
    at = _evaluated([run])
    return {
        "seed": run.config["seed"],
        "iterations": [int(epoch["iteration"]) for epoch in run.epochs],
        "seconds": shorts(epoch["seconds"] for epoch in run.epochs),
        "evaluated": at,
        _OF_TRAINING_SET: shorts(float(run.epochs[place][_OF_TRAINING_SET]) for place in at),
    } | {field: shorts(float(epoch[field]) for epoch in run.epochs) for field in _FIELDS}


def _key(cell: Cell, cells: Sequence[Cell]) -> str:
    """Names the cell among those of its setting, and does not change when others are added."""
    options = [
        f"{name}-{value:g}" if isinstance(value, float) else f"{name}-{value}"
        for name, value in cell.selection
        if name != "method"
    ]
    return ".".join([cell.method, *options])


def _warm_up(cells: Sequence[Cell]) -> dict[str, float | int | None] | None:
    """Where the warm-up ends, by iteration and by seconds of the first run that went so far."""
    count = int(cells[0].config.get("warm_up") or 0)
    for cell in cells:
        for run in (*cell.runs, *cell.unfinished):
            if 0 < count <= len(run.epochs):
                end = run.epochs[count - 1]
                return {
                    "epochs": count,
                    "iterations": int(end["iteration"]),
                    "seconds": short(end["seconds"]),
                }
    return None
