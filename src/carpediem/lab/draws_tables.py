"""Method and draws taken apart: what each is worth, and whether one depends on the other."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

from carpediem.lab.results import Cell, mean_difference, method_name
from carpediem.lab.stages import stages_of
from carpediem.lab.table import Column, Table, Value

_NOTE = (
    "Differences of the test error in points, over the seeds that all four have run, with their 95% confidence "
    "interval (Student's t); below 0 is better. Both: the mean of the two lines above, taken seed by seed. The last "
    "line is the difference between the method's two differences: 0 where draws and method add up."
)


def draws_tables(title: str, cells: list[Cell]) -> list[Table]:
    """One table for each method that, like Random Batch, was run with both kinds of draws.

    Args:
        title: what the setting is called.
        cells: its cells, all with finished runs.
    """
    kinds: dict[tuple[str, ...], dict[str, Cell]] = {}
    for cell in cells:
        kinds.setdefault(_kind(cell), {})[str(cell.draws)] = cell
    baseline = kinds.pop(("method=random",), {})
    tables = [_table(title, pair, baseline) for pair in kinds.values() if len(pair) == len(baseline) == 2]
    return [table for table in tables if table is not None]


def _kind(cell: Cell) -> tuple[str, ...]:
    """How the cell selects, but for its draws."""
    return tuple(f"{name}={value}" for name, value in cell.selection if name != "draws")


def _table(title: str, method: dict[str, Cell], baseline: dict[str, Cell]) -> Table | None:
    four = [cell for pair in (method, baseline) for cell in (pair["independent"], pair["systematic"])]
    seeds = sorted(set.intersection(*({run.config["seed"] for run in cell.runs} for cell in four)))
    if not seeds:
        return None
    stages = stages_of(four[0].runs[0])
    by_seed = [[{run.config["seed"]: run for run in cell.runs}[seed] for cell in four] for seed in seeds]
    name, other = (method_name(cell, [cell]) for cell in (four[0], four[2]))
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
    columns = [Column(stage.key, stage.name, "difference") for stage in stages]
    heading = (Column("what", "Difference"), Column("of", "Of"), Column("seeds", "Seeds", "count"))
    return Table(f"Draws and {name}: {title}", _NOTE, (*heading, *columns), rows, grouped=1)
