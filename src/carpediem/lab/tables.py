"""The paper's tables, and one for any other set of runs, built from records.

Every number comes from a record or from `paper`; what has not been run is a dash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from carpediem.lab import paper
from carpediem.lab.config import METHODS
from carpediem.lab.plans import is_of_tables
from carpediem.lab.records import RunRecord
from carpediem.lab.results import (
    DEFAULTS,
    Cell,
    baselines,
    cells_by_setting,
    estimate,
    group_cells,
    method_name,
    paired_difference,
    relative_reduction,
    shared_means,
    time_to_error,
    without_warm_up,
)
from carpediem.lab.table import Column, Table, Value
from carpediem.lab.titles import data_title, network_title, recipe_title, setting_parts, setting_titles

_CLASSIFIED = ("mnist", "cifar10", "cifar100")
_FINE_TUNED = ("densenet-121", "efficientnet-lite0")
_INTERVAL = (
    "Best test error: the lowest of a run's evaluations, one an epoch; mean ± standard error over the seeds. "
    "Difference: best test error minus that of Random Batch, seed by seed, with its 95% confidence interval "
    "(Student's t), which a single seed does not have, nor seeds that all differ by the same; below 0 is better than "
    "Random Batch."
)


def all_tables(records: Iterable[RunRecord], *, empty: bool = False) -> list[Table]:
    """The paper's tables, then a summary of every setting that they do not show in full.

    Args:
        empty: also give the tables of the paper for which nothing has been run, at the end.
    """
    cells = group_cells(records)
    built = _paper_tables(cells)
    shown = {id(cell) for one in built for cell in one.shown}
    left = {cell.setting for cell in cells if id(cell) not in shown}
    unrun = [one.table for one in built if empty and not one.shown]
    return [one.table for one in built if one.shown] + _summaries(cells, left) + unrun


def paper_tables(records: Iterable[RunRecord]) -> list[Table]:
    """Every table of the paper and its grid search, with a dash for what has not been run.

    Tables 2 to 5 hold what was trained with the paper's own settings; ablations and searches with others have tables
    of their own.
    """
    return [one.table for one in _paper_tables(group_cells(records))]


def summary_tables(records: Iterable[RunRecord]) -> list[Table]:
    """One summary for each set of runs that can be compared: same recipe, data, network, optimizer and so on."""
    cells = group_cells(records)
    return _summaries(cells, {cell.setting for cell in cells})


def summary_table(records: Iterable[RunRecord]) -> Table:
    """The methods side by side: best test error, time to Random Batch's best, time of a run.

    Raises:
        ValueError: the runs cannot all be compared with each other; `summary_tables` makes a table for each set.
    """
    tables = summary_tables(records)
    if len(tables) != 1:
        raise ValueError(f"records must share one setting, got {len(tables)}; use summary_tables")
    return tables[0]


# --- the paper's tables


@dataclass
class _Built:
    table: Table
    shown: list[Cell]


@dataclass
class _Block:
    """Cells of one setting, for the rows that begin with `labels`."""

    labels: tuple[Value, ...]
    key: tuple[str, str, str]  # network, data, optimizer: where to find the paper's numbers
    cells: list[Cell] = field(default_factory=list)

    def of(self, method: str) -> list[Cell]:
        return [cell for cell in self.cells if cell.method == method]

    def recency_beside(self, rival: Cell) -> Cell | None:
        """Recency Bias to compare the rival with: drawn as the rival is, where it has been run so."""
        finished = [cell for cell in self.of("recency") if cell.runs]
        return _first([cell for cell in finished if cell.draws == rival.draws] or finished)


def _paper_tables(cells: list[Cell]) -> list[_Built]:
    own = [
        cell
        for group in cells_by_setting(cells)
        if is_of_tables(run for cell in group for run in (*cell.runs, *cell.unfinished))
        for cell in group
        if cell.is_default
    ]
    tables = [
        _classification(net, [cell for cell in own if cell.config["net"] == net])
        for net in ("densenet-40-12", "resnet-50")
    ]
    fine_tuned = [cell for cell in own if cell.config["net"] in _FINE_TUNED]
    tables += [_fine_tuning(fine_tuned), _times(fine_tuned)]
    tables += [_pressure(*bucket) for bucket in _buckets(_pressure_cells(cells))]
    tables += [_grid(*bucket) for bucket in _buckets(_grid_cells(cells), but=("warm_up",))]
    return tables


def _buckets(cells: list[Cell], *, but: Iterable[str] = ()) -> list[tuple[str, int | None, list[Cell]]]:
    """(recipe, iterations, cells): one a table; where there is nothing, the paper's own, empty.

    Args:
        but: settings in which the cells of a table may differ.
    """
    found: dict[tuple[str, int | None], list[Cell]] = {}
    for cell in cells:
        key = (recipe_title(cell.config, but=but), cell.config.get("iterations"))
        found.setdefault(key, []).append(cell)
    own = ("paper", paper.ITERATIONS)
    order = sorted(found, key=lambda key: (key != own, key[0], -(key[1] or 0)))
    return [(*key, found[key]) for key in order] or [(*own, [])]


def _classification(net: str, cells: list[Cell]) -> _Built:
    blocks = []
    for optimizer, optimizer_name in paper.OPTIMIZERS.items():
        for data in _CLASSIFIED:
            block = _Block((optimizer_name, paper.DATA[data]), (net, data, optimizer))
            block.cells = _one_setting([c for c in cells if _key(c) == block.key])
            blocks.append(block)
    name, number = paper.NETWORKS[net], paper.TABLE_OF_NETWORK[net]
    title = f"Table {number}: best test error (%), {name}, recipe paper, {paper.ITERATIONS:,} iterations"
    leading = (Column("optimizer", "Optimizer"), Column("data", "Data"))
    return _errors(title, leading, blocks, sources=[f"Paper: {paper.ICLR}."])


def _fine_tuning(cells: list[Cell]) -> _Built:
    title = "Table 4: best test error (%), fine-tuning, recipe fine-tuning"
    leading = (Column("data", "Data"), Column("network", "Network"))
    return _errors(title, leading, _fine_tuning_blocks(cells), sources=[paper.MISSING[4]])


def _fine_tuning_blocks(cells: list[Cell]) -> list[_Block]:
    keys = [("densenet-121", data, "momentum") for data in ("mit67", "food100")]
    keys += sorted({_key(cell) for cell in cells} - set(keys))
    return [
        _Block(
            (data_title(data), network_title(net)), key, _one_setting([c for c in cells if _key(c) == key])
        )
        for key in keys
        for net, data, _ in [key]
    ]


def _times(cells: list[Cell]) -> _Built:
    blocks = _fine_tuning_blocks(cells)
    shown = [cell for block in blocks for cell in block.cells]
    rows: list[tuple[Value, ...]] = []
    for block in blocks:
        net, data, _ = block.key
        for rival in ("random", "online", "active"):
            known = paper.TIMES.get((data, rival)) if net == "densenet-121" else None
            published: Sequence[Value] = (known.rival, known.ours, known.reduction) if known else (None,) * 3
            for cell in _or_none(block.of(rival)):
                name = METHODS[rival] if cell is None else method_name(cell, shown)
                ours = None if cell is None else block.recency_beside(cell)
                measured: Sequence[Value] = (None,) * 6
                if cell is not None and ours is not None and (time := time_to_error(ours, cell)) is not None:
                    reached = "never" if time.ours is None else time.ours
                    seeds = min(len(cell.runs), len(ours.runs))
                    saved = (time.reduction, time.fewer_iterations)
                    measured = (time.error, time.rival, reached, *saved, seeds)
                rows.append((*block.labels, name, *measured, *published))
    columns = (
        Column("data", "Data"),
        Column("network", "Network"),
        Column("rival", "Rival"),
        Column("target", "Best of the rival's mean curve (%)", "error"),
        Column("rival_seconds", "Rival (s)", "seconds"),
        Column("ours_seconds", "Recency Bias (s)", "seconds"),
        Column("reduction", "Less time (%)", "percent"),
        Column("fewer_iterations", "Fewer iterations (%)", "percent"),
        Column("seeds", "Seeds", "count"),
        Column("paper_rival_seconds", "Paper: rival (s)", "seconds"),
        Column("paper_ours_seconds", "Paper: Recency Bias (s)", "seconds"),
        Column("paper_reduction", "Paper: less time (%)", "percent"),
    )
    note = (
        "Training until the mean curve over the seeds reaches the lowest point of the rival's, which is no lower "
        "than the mean of the seeds' own best errors; evaluation is not counted. "
        "Seconds depend on what else the machine did, iterations do not. "
        f"Paper: {paper.ICLR}.{_unfinished(shown)}"
    )
    title = "Table 5: time of Recency Bias to the rival's best error, recipe fine-tuning"
    return _Built(Table(title, note, columns, rows, grouped=2), shown)


def _pressure_cells(cells: list[Cell]) -> list[Cell]:
    """What belongs to the ablation of the pressure: settings in which it takes more than one form."""

    def is_pressed(cell: Cell) -> bool:
        options = cell.options
        rest = {name: value for name, value in options.items() if name not in ("pressure", "schedule")}
        return "pressure" in options and all(
            value == DEFAULTS.get(name, value) for name, value in rest.items()
        )

    eligible = [cell for cell in cells if _is_classified(cell)]
    settings = {
        cell.setting for cell in eligible if is_pressed(cell) and cell.options["schedule"] != "decayed"
    }
    return [c for c in eligible if c.setting in settings and (is_pressed(c) or c.method == "random")]


def _pressure(recipe: str, iterations: int | None, cells: list[Cell]) -> _Built:
    rows: list[tuple[Value, ...]] = []
    keys = sorted({_key(cell) for cell in cells})
    groups = [_one_setting([cell for cell in cells if _key(cell) == key]) for key in keys]
    cells = [cell for group in groups for cell in group]
    differences = _difference_columns(cells)
    for found in groups:
        for cell in found:
            options = cell.options
            rows.append(
                (
                    *setting_parts(cell.config),
                    _plain_name(cell, cells),
                    options.get("schedule"),
                    options.get("pressure"),
                    cell.best_error,
                    len(cell.runs),
                    None,
                    *_differences(cell, found, differences),
                )
            )
    if not rows:
        rows = [
            (
                None,
                None,
                None,
                METHODS["recency"],
                "constant",
                None,
                None,
                None,
                None,
                *[None] * len(differences),
            )
        ]
    columns = (
        Column("data", "Data"),
        Column("network", "Network"),
        Column("optimizer", "Optimizer"),
        Column("method", "Method"),
        Column("schedule", "Schedule"),
        Column("pressure", "s₀", "count"),
        Column("ours", "Ours", "error"),
        Column("seeds", "Seeds", "count"),
        Column("paper", "Paper", "error"),
        *(column for column, _ in differences),
    )
    note = f"{paper.MISSING[6]} {_INTERVAL}{_unfinished(cells)}"
    title = f"Tables 6 and 7: best test error (%) by selection pressure{_where(recipe, iterations)}"
    return _Built(Table(title, note, columns, rows, grouped=3), cells)


def _grid_cells(cells: list[Cell]) -> list[Cell]:
    """What belongs to the grid search: decayed Recency Bias, where the window or the pressure varies."""
    eligible = [
        cell
        for cell in cells
        if _key(cell) in {("resnet-50", data, "momentum") for data in ("cifar10", "cifar100")}
        and (cell.method == "random" or (cell.method == "recency" and cell.options["schedule"] == "decayed"))
    ]
    varied = {without_warm_up(cell) for cell in eligible if not cell.is_default}
    return [cell for cell in eligible if without_warm_up(cell) in varied]


def _grid(recipe: str, iterations: int | None, cells: list[Cell]) -> _Built:
    data_sets = ("cifar10", "cifar100")
    groups = {
        d: _one_setting([c for c in cells if c.config["data"] == d], without_warm_up) for d in data_sets
    }
    cells = [cell for group in groups.values() for cell in group]
    recency = [cell for cell in cells if cell.method == "recency"]
    points = {(float(pressure), window) for pressure in paper.GRID_PRESSURES for window in paper.GRID_WINDOWS}
    points |= {_point(cell) for cell in recency}
    differences = _difference_columns(cells)
    rows: list[tuple[Value, ...]] = []
    for data, group in groups.items():
        for point in sorted(points):
            for cell in _or_none(
                [cell for cell in group if cell.method == "recency" and _point(cell) == point]
            ):
                start = (paper.DATA[data], *point)
                if cell is None:
                    rows.append((*start, None, METHODS["recency"], None, None, *[None] * len(differences)))
                    continue
                beside = [other for other in group if other.setting == cell.setting]
                measured = (cell.best_error, len(cell.runs), *_differences(cell, beside, differences))
                rows.append((*start, cell.config.get("warm_up"), _plain_name(cell, recency), *measured))
    columns = (
        Column("data", "Data"),
        Column("pressure", "s₀", "count"),
        Column("window", "q", "count"),
        Column("warm_up", "γ", "count"),
        Column("method", "Method"),
        Column("ours", "Ours", "error"),
        Column("seeds", "Seeds", "count"),
        *(column for column, _ in differences),
    )
    note = f"{paper.MISSING[7]} {_INTERVAL}{_unfinished(cells)}"
    title = f"Figure 7: grid search, best test error (%), ResNet (L=50), momentum{_where(recipe, iterations)}"
    return _Built(Table(title, note, columns, rows, grouped=2), recency)


def _point(cell: Cell) -> tuple[float, int]:
    return (float(cell.options["pressure"]), int(cell.options["window"]))


def _errors(title: str, leading: tuple[Column, ...], blocks: list[_Block], *, sources: list[str]) -> _Built:
    shown = [cell for block in blocks for cell in block.cells]
    differences = _difference_columns(shown)
    rows: list[tuple[Value, ...]] = []
    for block in blocks:
        for method, name in METHODS.items():
            published = paper.best_error(*block.key, method)
            theirs = None if method == "recency" else paper.error_reduction(*block.key, method)
            for cell in _or_none(block.of(method)):
                if cell is None:
                    compared: Sequence[Value] = [None] * len(differences)
                    rows.append((*block.labels, name, None, None, published, *compared, None, theirs))
                    continue
                compared = _differences(cell, block.cells, differences)
                lower = None if method == "recency" else _reduction(block, cell)
                label = method_name(cell, shown)
                seeds = len(cell.runs)
                rows.append(
                    (*block.labels, label, cell.best_error, seeds, published, *compared, lower, theirs)
                )
    columns = (
        *leading,
        Column("method", "Method"),
        Column("ours", "Ours", "error"),
        Column("seeds", "Seeds", "count"),
        Column("paper", "Paper", "error"),
        *(column for column, _ in differences),
        Column("reduction", "Recency Bias lower by (%)", "percent"),
        Column("paper_reduction", "Paper: lower by (%)", "percent"),
    )
    note = f"{' '.join(sources)} {_INTERVAL}{_unfinished(shown)}"
    return _Built(Table(title, note, columns, rows, grouped=len(leading)), shown)


def _reduction(block: _Block, rival: Cell) -> float | None:
    ours = block.recency_beside(rival)
    means = None if ours is None else shared_means(ours, rival)
    return None if means is None else relative_reduction(ours=means[0], rival=means[1])


# --- the table for anything else


def _summaries(cells: list[Cell], settings: set[str]) -> list[Table]:
    groups = cells_by_setting(cell for cell in cells if cell.setting in settings)
    titles = setting_titles([group[0] for group in groups])
    order = sorted(range(len(groups)), key=titles.__getitem__)
    return [_summary(titles[index], groups[index]) for index in order]


def _summary(title: str, cells: list[Cell]) -> Table:
    differences = _difference_columns(cells)
    baseline = _first([cell for cell in baselines(cells) if cell.runs])
    rows: list[tuple[Value, ...]] = []
    for cell in cells:
        time = None if baseline is None else time_to_error(cell, baseline)
        reached: Sequence[Value] = (None, None)
        if time is not None:
            reached = (
                "never" if time.ours is None else time.ours,
                None if cell is baseline else time.fewer_iterations,
            )
        seconds = estimate([run.epochs[-1]["seconds"] for run in cell.runs]).mean if cell.runs else None
        compared = _differences(cell, cells, differences)
        rows.append((method_name(cell, cells), cell.best_error, len(cell.runs), *compared, *reached, seconds))
    columns = (
        Column("method", "Method"),
        Column("best_error", "Best test error (%)", "error"),
        Column("seeds", "Seeds", "count"),
        *(column for column, _ in differences),
        Column("seconds_to_baseline", "Time to Random Batch's best (s)", "seconds"),
        Column("fewer_iterations", "Fewer iterations (%)", "percent"),
        Column("seconds", "Seconds a run", "seconds"),
    )
    if baseline is None:
        note = "No finished run of Random Batch to compare with."
    else:
        name = method_name(baseline, cells)
        note = (
            f"{_INTERVAL} Time and iterations until the mean curve over the seeds reaches the lowest point of "
            f"{name}'s, which is no lower than the mean of the seeds' own best errors, so that a method with the lower "
            "best error may yet never be there; without evaluation. Seconds depend on what else the machine did."
        )
    return Table(title, note + _unfinished(cells), columns, rows)


# --- shared by all


def _difference_columns(cells: list[Cell]) -> list[tuple[Column, str | None]]:
    """One column for each kind of draws that Random Batch was run with, and which kind it is."""
    kinds = list(dict.fromkeys(cell.draws for cell in baselines(cells)))
    if len(kinds) < 2:
        return [
            (Column("difference", "Difference to Random Batch", "difference"), kind)
            for kind in kinds or [None]
        ]
    words = {"systematic": "shuffle", "independent": "independent draws"}
    return [
        (
            Column(
                f"difference_{kind}",
                f"Difference to Random Batch ({words.get(str(kind), kind)})",
                "difference",
            ),
            kind,
        )
        for kind in kinds
    ]


def _differences(cell: Cell, beside: list[Cell], columns: list[tuple[Column, str | None]]) -> list[Value]:
    found: list[Value] = []
    for _, draws in columns:
        baseline = _first([other for other in baselines(beside) if other.draws == draws])
        found.append(None if baseline is None or baseline is cell else paired_difference(cell, baseline))
    return found


def _one_setting(cells: list[Cell], setting: Callable[[Cell], str] = lambda cell: cell.setting) -> list[Cell]:
    """Of several settings, the one with the most finished runs: the others get a summary."""
    finished: dict[str, int] = {}
    for cell in cells:
        finished[setting(cell)] = finished.get(setting(cell), 0) + len(cell.runs)
    chosen = max(sorted(finished), key=finished.__getitem__, default=None)
    return [cell for cell in cells if setting(cell) == chosen]


def _is_classified(cell: Cell) -> bool:
    return cell.config["data"] in _CLASSIFIED


def _key(cell: Cell) -> tuple[str, str, str]:
    return (cell.config["net"], cell.config["data"], cell.config["optimizer"])


def _plain_name(cell: Cell, among: Iterable[Cell]) -> str:
    """The name without the options that have columns of their own."""
    plain = Cell(cell.setting, (), cell.runs, cell.unfinished)
    return method_name(plain, among)


def _or_none(cells: list[Cell]) -> list[Cell | None]:
    """The cells, or a single None, which makes a row of dashes."""
    return [*cells] or [None]


def _first(cells: list[Cell]) -> Cell | None:
    return cells[0] if cells else None


def _where(recipe: str, iterations: int | None) -> str:
    return f", recipe {recipe}" + (f", {iterations:,} iterations" if iterations is not None else "")


def _unfinished(cells: Iterable[Cell]) -> str:
    runs = [run for cell in cells for run in cell.unfinished]
    if not runs:
        return ""
    return f" Left out: {len(runs)} unfinished {'run' if len(runs) == 1 else 'runs'}."
