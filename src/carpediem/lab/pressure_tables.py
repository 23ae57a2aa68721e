"""Tables 6 and 7 and Figure 7: errors by selection pressure and window."""

from __future__ import annotations

from collections.abc import Iterable

from carpediem.lab.analysis import paper
from carpediem.lab.compared_cells import (
    CLASSIFIED,
    INTERVAL,
    Built,
    difference_columns,
    differences,
    left_out,
    one_setting,
    or_none,
    setting_key,
)
from carpediem.lab.config import METHODS
from carpediem.lab.results import (
    DEFAULTS,
    Cell,
    PairedDifference,
    method_name,
    paired_difference,
    without_warm_up,
)
from carpediem.lab.table import Column, Table, Value
from carpediem.lab.titles import recipe_title, setting_parts

_UNIFORM = Column("difference_uniform", "Difference to s₀ = 1", "difference")
_NO_NUMBERS = "The paper shows its grid search as a figure, without numbers."
_ON_UNIFORM = (
    " With s₀ = 1 every sample is as likely as any other, so that these runs are Random Batch's, whatever their "
    "window; the difference to them is taken seed by seed too."
)


def pressure_tables(cells: list[Cell]) -> list[Built]:
    """The ablation of the pressure and the grid search, each recipe and length in tables of its own."""
    ablations = [_pressure(*bucket) for bucket in _buckets(_pressure_cells(cells))]
    return [*ablations, *(_grid(*bucket) for bucket in _buckets(_grid_cells(cells), but=("warm_up",)))]


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


def _pressure_cells(cells: list[Cell]) -> list[Cell]:
    """What belongs to the ablation of the pressure: settings in which it takes more than one form."""

    def is_pressed(cell: Cell) -> bool:
        options = cell.options
        rest = {name: value for name, value in options.items() if name not in ("pressure", "schedule")}
        return "pressure" in options and all(
            value == DEFAULTS.get(name, value) for name, value in rest.items()
        )

    eligible = [cell for cell in cells if cell.config["data"] in CLASSIFIED]
    settings = {
        cell.setting for cell in eligible if is_pressed(cell) and cell.options["schedule"] != "decayed"
    }
    return [c for c in eligible if c.setting in settings and (is_pressed(c) or c.method == "random")]


def _pressure(recipe: str, iterations: int | None, cells: list[Cell]) -> Built:
    rows: list[tuple[Value, ...]] = []
    keys = sorted({setting_key(cell) for cell in cells})
    groups = [one_setting([cell for cell in cells if setting_key(cell) == key]) for key in keys]
    cells = [cell for group in groups for cell in group]
    compared_with = difference_columns(cells)
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
                    *differences(cell, found, compared_with),
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
                *[None] * len(compared_with),
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
        *(column for column, _ in compared_with),
    )
    note = f"{INTERVAL}{left_out(cells)}"
    title = f"Tables 6 and 7: best test error (%) by selection pressure{_where(recipe, iterations)}"
    return Built(Table(title, note, columns, rows, grouped=3), cells)


def _grid_cells(cells: list[Cell]) -> list[Cell]:
    """What belongs to the grid search: decayed Recency Bias, where the window or the pressure varies."""
    eligible = [
        cell
        for cell in cells
        if setting_key(cell) in {("resnet-50", data, "momentum") for data in ("cifar10", "cifar100")}
        and (cell.method == "random" or (cell.method == "recency" and cell.options["schedule"] == "decayed"))
    ]
    varied = {without_warm_up(cell) for cell in eligible if not cell.is_default}
    return [cell for cell in eligible if without_warm_up(cell) in varied]


def _grid(recipe: str, iterations: int | None, cells: list[Cell]) -> Built:
    data_sets = ("cifar10", "cifar100")
    groups = {d: one_setting([c for c in cells if c.config["data"] == d], without_warm_up) for d in data_sets}
    cells = [cell for group in groups.values() for cell in group]
    recency = [cell for cell in cells if cell.method == "recency"]
    points = {(float(pressure), window) for pressure in paper.GRID_PRESSURES for window in paper.GRID_WINDOWS}
    points |= {_point(cell) for cell in recency}
    compared_with = difference_columns(cells)
    has_uniform = any(cell.runs and _point(cell)[0] == 1 for cell in recency)
    rows: list[tuple[Value, ...]] = []
    for data, group in groups.items():
        for point in sorted(points):
            for cell in or_none(
                [cell for cell in group if cell.method == "recency" and _point(cell) == point]
            ):
                start = (paper.DATA[data], *point)
                if cell is None:
                    blank = [None] * (2 + len(compared_with) + has_uniform)
                    rows.append((*start, None, METHODS["recency"], *blank))
                    continue
                beside = [other for other in group if other.setting == cell.setting]
                measured = [cell.best_error, len(cell.runs), *differences(cell, beside, compared_with)]
                measured += [_difference_to_uniform(cell, beside)] * has_uniform
                rows.append((*start, cell.config.get("warm_up"), _plain_name(cell, recency), *measured))
    columns = (
        Column("data", "Data"),
        Column("pressure", "s₀", "count"),
        Column("window", "q", "count"),
        Column("warm_up", "γ", "count"),
        Column("method", "Method"),
        Column("ours", "Ours", "error"),
        Column("seeds", "Seeds", "count"),
        *(column for column, _ in compared_with),
        *[_UNIFORM] * has_uniform,
    )
    note = f"{_NO_NUMBERS} {INTERVAL}{_ON_UNIFORM * has_uniform}{left_out(cells)}"
    title = f"Figure 7: grid search, best test error (%), ResNet (L=50), momentum{_where(recipe, iterations)}"
    return Built(Table(title, note, columns, rows, grouped=2), recency)


def _difference_to_uniform(cell: Cell, beside: list[Cell]) -> PairedDifference | None:
    """To the cell that draws alike with the pressure of 1, whatever its window, and has the most of its seeds."""
    found = [c for c in beside if c.method == "recency" and c.draws == cell.draws and _point(c)[0] == 1]
    if _point(cell)[0] == 1:
        return None
    compared = [made for other in found if (made := paired_difference(cell, other)) is not None]
    return max(compared, key=lambda made: made.count, default=None)


def _point(cell: Cell) -> tuple[float, int]:
    return (float(cell.options["pressure"]), int(cell.options["window"]))


def _plain_name(cell: Cell, among: Iterable[Cell]) -> str:
    """The name without the options that have columns of their own."""
    plain = Cell(cell.setting, (), cell.runs, cell.unfinished)
    return method_name(plain, among)


def _where(recipe: str, iterations: int | None) -> str:
    return f", recipe {recipe}" + (f", {iterations:,} iterations" if iterations is not None else "")
