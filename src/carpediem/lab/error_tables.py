"""Tables 2 to 4: our best test errors beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence

from carpediem.lab.analysis import paper
from carpediem.lab.blocks import Block, blocks
from carpediem.lab.compared_cells import (
    INTERVAL,
    Built,
    difference_columns,
    differences,
    left_out,
    trained_in,
)
from carpediem.lab.config import METHODS
from carpediem.lab.results import Cell, method_name, relative_reduction, shared_means
from carpediem.lab.table import Column, Table, Value
from carpediem.lab.titles import network_title
from carpediem.lab.versions import Version

_OPTIMIZER, _DATA = Column("optimizer", "Optimizer"), Column("data", "Data")
_NETWORK = Column("network", "Network")


def error_table(version: Version, *, whole: bool = False) -> Built:
    """Table 2, 3 or 4 of a version of it.

    Args:
        whole: also the rows of the paper of which nothing has been run.
    """
    number = paper.TABLE_OF_NETWORK[version.shape.net]
    what = "fine-tuning" if number == 4 else network_title(version.net)
    leading = (_DATA, _NETWORK) if number == 4 else (_OPTIMIZER, _DATA)
    title = version.title(f"Table {number}", f"best test error (%), {what}")
    table = _errors(title, leading, blocks(version, whole=whole))
    return Built(table, version.cells, version.is_own, bool(version.cells))


def _errors(title: str, leading: tuple[Column, ...], found: list[Block]) -> Table:
    shown = [cell for block in found for cell in block.cells]
    compared_with = difference_columns([cell for block in found for cell in (*block.cells, *block.beside)])
    rows: list[tuple[Value, ...]] = []
    for block in found:
        named = dict(zip(("data", "network", "optimizer"), block.labels, strict=True))
        labels = [named[column.key] for column in leading]
        for method, name in METHODS.items():
            cell = block.of(method)
            printed = paper.best_error(*block.printed_key, method)
            theirs = None if method == "recency" else paper.error_reduction(*block.printed_key, method)
            if cell is None:
                unrun: Sequence[Value] = [None] * len(compared_with)
                rows.append((*labels, name, None, None, printed, *unrun, None, theirs))
                continue
            compared = differences(cell, [*block.cells, *block.beside], compared_with)
            lower = None if method == "recency" else _reduction(block.of("recency"), cell)
            ours = (method_name(cell, shown), cell.best_error, len(cell.runs))
            rows.append((*labels, *ours, printed, *compared, lower, theirs))
    columns = (
        *leading,
        Column("method", "Method"),
        Column("ours", "Ours", "error"),
        Column("seeds", "Seeds", "count"),
        Column("paper", "Paper", "error"),
        *(column for column, _ in compared_with),
        Column("reduction", "Recency Bias lower by (%)", "percent"),
        Column("paper_reduction", "Paper: lower by (%)", "percent"),
    )
    note = f"{INTERVAL}{trained_in(shown)}{left_out(shown)}"
    return Table(title, note, columns, rows, grouped=len(leading))


def _reduction(ours: Cell | None, rival: Cell) -> float | None:
    means = None if ours is None else shared_means(ours, rival)
    return None if means is None else relative_reduction(ours=means[0], rival=means[1])
