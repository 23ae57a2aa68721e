"""Method and draws taken apart: what each is worth, and whether one depends on the other."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

from carpediem.lab.results import Cell, mean_difference, method_name
from carpediem.lab.stages import stages_of
from carpediem.lab.table import Column, Table, Value

_NOTE = (
    "Differences of the test error in points, over the seeds that all four have run, with their 95% confidence "
    "interval (Student's t); below 0 is better. Best: the lowest of a run's evaluations. Both: the mean of the two "
    "lines above, taken seed by seed. The last line is the method's difference with systematic draws minus that with "
    "independent ones: 0 where draws and method add up, below 0 where the method gains more with systematic draws."
)


def draws_tables(title: str, cells: list[Cell]) -> list[Table]:
    """One table for each method that, like Random Batch, was run with both kinds of draws.

    Args:
        title: what the setting is called.
        cells: its cells, all with finished runs.
    """
    kinds: dict[tuple[tuple[str, Any], ...], dict[str | None, Cell]] = {}
    for cell in cells:
        kind = tuple(pair for pair in cell.selection if pair[0] != "draws")
        kinds.setdefault(kind, {})[cell.draws] = cell
    both = [pair for pair in kinds.values() if {"independent", "systematic"} <= pair.keys()]
    baseline = next((pair for pair in both if pair["systematic"].method == "random"), None)
    if baseline is None:
        return []
    tables = [_table(title, pair, baseline) for pair in both if pair is not baseline]
    return [table for table in tables if table is not None]


def _table(title: str, method: dict[str | None, Cell], baseline: dict[str | None, Cell]) -> Table | None:
    four = [cell for pair in (method, baseline) for cell in (pair["independent"], pair["systematic"])]
    seeds = sorted(set.intersection(*({run.config["seed"] for run in cell.runs} for cell in four)))
    if not seeds:
        return None
    stages = stages_of(run for cell in four for run in cell.runs)
    by_seed = [[{run.config["seed"]: run for run in cell.runs}[seed] for cell in four] for seed in seeds]
    name, other = (method_name(cell, [cell], with_draws=False) for cell in (four[0], four[2]))
    # A seed's four errors: the method's with independent and systematic draws, then Random Batch's.
    lines: list[tuple[str, str, Callable[[list[float]], float]]] = [
        (f"{name} − {other}", "independent draws", lambda e: e[0] - e[2]),
        (f"{name} − {other}", "systematic draws", lambda e: e[1] - e[3]),
        (f"{name} − {other}", "both", lambda e: fmean((e[0] - e[2], e[1] - e[3]))),
        ("systematic − independent", other, lambda e: e[3] - e[2]),
        ("systematic − independent", name, lambda e: e[1] - e[0]),
        ("systematic − independent", "both", lambda e: fmean((e[3] - e[2], e[1] - e[0]))),
        ("difference of differences", "", lambda e: (e[1] - e[3]) - (e[0] - e[2])),
    ]
    rows: list[tuple[Value, ...]] = []
    for what, where, of in lines:
        differences = [
            mean_difference([of([stage.error(run) for run in runs]) for runs in by_seed]) for stage in stages
        ]
        rows.append((what, where, len(seeds), *differences))
    columns = [Column(stage.key, stage.title, "difference") for stage in stages]
    heading = (Column("what", "Difference"), Column("of", "Of"), Column("seeds", "Seeds", "count"))
    return Table(f"Draws and {name}: {title}", _NOTE, (*heading, *columns), rows, grouped=1)
