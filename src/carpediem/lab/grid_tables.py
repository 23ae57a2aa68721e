"""Figure 7 as a table: Recency Bias by pressure and window."""

from __future__ import annotations

from carpediem.lab.analysis import paper
from carpediem.lab.blocks import Block, blocks
from carpediem.lab.compared_cells import INTERVAL, Built, left_out, trained_in
from carpediem.lab.config import METHODS
from carpediem.lab.grid_data import LEAST, GridSearch, Point, grid_searches, warm_up_of
from carpediem.lab.recipes import recipe
from carpediem.lab.results import Cell, PairedDifference, paired_difference
from carpediem.lab.table import Column, Table, Value
from carpediem.lab.titles import network_title, optimizer_title
from carpediem.lab.versions import Version
from carpediem.lab.words import told

_NOTE = (
    "The paper shows its grid search as a figure, without numbers. With s₀ = 1 every sample is as likely as any other, "
    "whatever the window and the warm-up: what was trained once stands at every window, and the difference to it is "
    "taken seed by seed too. "
)
_COLUMNS = (
    Column("data", "Data"),
    Column("pressure", "s₀", "count"),
    Column("window", "q", "count"),
    Column("warm_up", "γ", "count"),
    Column("method", "Method"),
    Column("ours", "Ours", "error"),
    Column("seeds", "Seeds", "count"),
    Column("difference", "Difference to Random Batch", "difference"),
    Column("difference_uniform", "Difference to s₀ = 1", "difference"),
)
_PAPERS_POINTS = [(float(s), q) for s in paper.GRID_PRESSURES for q in paper.GRID_WINDOWS]


def grid_tables(version: Version, *, whole: bool = False) -> list[Built]:
    """Figure 7 of a version of it, one table for each warm-up.

    Args:
        whole: also where nothing has been run.
    """
    usual = recipe(version.recipe, net=version.net)["warm_up"]
    by_warm_up: dict[int, list[tuple[Block, GridSearch]]] = {usual: []} if whole else {}
    found = blocks(version, whole=whole)
    for block in found:
        for search in grid_searches(block.cells, least=0):
            by_warm_up.setdefault(search.warm_up, []).append((block, search))
    return [
        _table(version, searches, found if whole and warm_up == usual else [], warm_up, usual)
        for warm_up, searches in by_warm_up.items()
    ]


def _table(
    version: Version, searches: list[tuple[Block, GridSearch]], also: list[Block], warm_up: int, usual: int
) -> Built:
    rows: list[tuple[Value, ...]] = []
    shown: list[Cell] = []
    for block, search in searches:
        rows += _rows(block.labels[0], search)
        shown += [*search.cells.values(), *([search.random] if search.random else [])]
    searched = [block.key for block, _ in searches]
    for block in also:
        if block.key not in searched:
            rows += [(block.labels[0], *point, *[None] * 6) for point in _PAPERS_POINTS]
    optimizer = shown[0].config["optimizer"] if shown else version.shape.optimizers[0]
    what = f"grid search, best test error (%), {network_title(version.net)}, {optimizer_title(optimizer)}"
    more: tuple[str, ...] = () if warm_up == usual else (told("warm_up", warm_up),)
    if any(point not in _PAPERS_POINTS for _, search in searches for point in search.points):
        more += ("points that the paper has not",)
    title = version.title("Figure 7", what, more=more)
    note = f"{_NOTE}{INTERVAL}{trained_in(shown)}{left_out(shown)}"
    table = Table(title, note, _COLUMNS, rows, grouped=2)
    is_search = any(search.others >= LEAST for _, search in searches)
    return Built(table, shown, version.is_own and not more, is_search)


def _rows(data: str, search: GridSearch) -> list[tuple[Value, ...]]:
    rows: list[tuple[Value, ...]] = []
    if (random := search.random) is not None:
        ours = (METHODS["random"], random.best_error, len(random.runs))
        rows.append((data, None, None, warm_up_of(random), *ours, None, _difference(random, search.uniform)))
    for point in sorted({*_PAPERS_POINTS, *search.points}):
        rows.append((data, *point, *_measured(search, point)))
    return rows


def _measured(search: GridSearch, point: Point) -> tuple[Value, ...]:
    cell = search.points.get(point)
    if cell is None:
        return (None,) * 6
    uniform = None if point[0] == 1 else search.uniform
    ours = (warm_up_of(cell), METHODS["recency"], cell.best_error, len(cell.runs))
    return *ours, _difference(cell, search.random), _difference(cell, uniform)


def _difference(cell: Cell, other: Cell | None) -> PairedDifference | None:
    return None if other is None else paired_difference(cell, other)
