"""Figures 3, 4 and 7 as the page carries them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from carpediem.lab.figure_data import index_comparison, index_epochs, loss_distributions
from carpediem.lab.grid_data import grid_searches
from carpediem.lab.results import Cell, cells_by_setting, method_name
from carpediem.lab.titles import config_title

from .curves import lines
from .numbers import short, shorts


def losses(cells: Sequence[Cell]) -> dict[str, Any]:
    """Figure 4: the losses of what each method drew, epoch by epoch."""
    begun = [_begun(cell) for cell in cells]
    found = {id(one.cell): one for one in loss_distributions(begun)}
    edges = next((one.edges_log10.tolist() for one in found.values()), None)
    shown = [
        line
        | {
            "shares": [shorts((100 * row).tolist(), 4) for row in one.shares],
            "quantiles": [_quantiles(rows) for rows in epochs],
            "distinct": [short(_mean(row.get("distinct") for row in rows)) for rows in epochs],
            "pressure": [short(_mean(row.get("pressure") for row in rows)) for rows in epochs],
        }
        for line, cell in zip(lines(cells), begun, strict=True)
        # Runs of a version with other bins cannot stand on the same axis.
        if (one := found.get(id(cell))) is not None and one.edges_log10.tolist() == edges
        for epochs in [list(zip(*(run.epochs[: one.epochs] for run in cell.runs), strict=True))]
    ]
    if not shown:
        return {
            "missing": "No epoch with a histogram of losses is recorded yet; runs of this version write one an epoch."
        }
    return {"edges": shorts(edges or [], 6), "lines": shown}


def indices(cells: Sequence[Cell]) -> dict[str, Any]:
    """Figure 3: of the first seed of each cell of Recency Bias, the two indices in every epoch."""
    shown = []
    for line, cell in zip(lines(cells), cells, strict=True):
        run = next((run for run in (*cell.runs, *cell.unfinished) if index_epochs(run)), None)
        if run is None:
            continue
        epochs = []
        for number in index_epochs(run):
            one = index_comparison(run, number)
            assert one is not None
            points = zip(
                shorts(one.uncertainty.tolist()),
                one.count.tolist(),
                map(round, one.quantised.tolist()),
                one.first_rank.tolist(),
                one.last_rank.tolist(),
                strict=True,
            )
            epochs.append(
                {"epoch": number, "pressure": short(one.pressure), "points": list(map(list, points))}
            )
            samples = one.num_samples
        shown.append(line | {"seed": run.config["seed"], "samples": samples, "epochs": epochs})
    if not shown:
        return {
            "missing": "No run of Recency Bias here records how many samples have which uncertainty; "
            "carpediem compare --methods recency trains one that does."
        }
    return {"runs": shown}


def grids(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """Figure 7: the best test error by pressure and window, for every setting in which they vary."""
    searches = grid_searches(cell for cell in cells if cell.runs)
    return [
        {
            "title": search.title,
            "pressures": shorts(search.pressures),
            "windows": list(search.windows),
            "points": [
                [short(pressure), window, short(error.mean), short(error.error), error.count]
                for (pressure, window), error in search.errors.items()
            ],
            "random": short(random.mean) if random else None,
        }
        for search in searches
        for random in [search.random.best_error if search.random else None]
    ]


def ablations(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """The best test error by pressure, as in Table 7, for every setting with a pressure that does not decay."""
    groups = cells_by_setting(cell for cell in cells if cell.runs and "schedule" in cell.options)
    found: list[dict[str, Any]] = []
    for group in groups:
        if len({cell.options["schedule"] for cell in group}) < 2:
            continue
        points: list[list[Any]] = []
        pressures: dict[str, tuple[bool, float]] = {}
        for cell in group:
            best = cell.best_error
            assert best is not None
            others = {name: value for name, value in cell.selection if name not in ("schedule", "pressure")}
            name = method_name(replace(cell, selection=tuple(others.items())), group)
            pressure = f"{cell.options['schedule']}, s₀ = {cell.options['pressure']:g}"
            pressures[pressure] = (cell.options["schedule"] != "decayed", cell.options["pressure"])
            points.append([pressure, name, short(best.mean), short(best.error), best.count])
        found.append(
            {
                "title": config_title(group[0].config),
                "pressures": sorted(pressures, key=pressures.__getitem__),
                "points": points,
            }
        )
    return found


def _begun(cell: Cell) -> Cell:
    """The cell, with its unfinished runs where none has finished."""
    return cell if cell.runs else replace(cell, runs=tuple(run for run in cell.unfinished if run.epochs))


def _quantiles(epoch: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    names = epoch[0].get("loss_quantiles") or {}
    return {
        name: short(_mean((row.get("loss_quantiles") or {}).get(name) for row in epoch)) for name in names
    }


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
