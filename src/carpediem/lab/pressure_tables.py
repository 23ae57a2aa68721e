"""Tables 6 and 7: Recency Bias with a pressure that decays and one that does not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from carpediem.lab.analysis import paper
from carpediem.lab.blocks import Block, blocks
from carpediem.lab.compared_cells import Built, left_out, trained_in
from carpediem.lab.records import RunRecord
from carpediem.lab.results import Cell, Estimate, estimate, paired_difference
from carpediem.lab.table import Column, Table, Value
from carpediem.lab.titles import network_title, optimizer_title
from carpediem.lab.versions import Version
from carpediem.lab.words import told

_BEST = paper.STRATEGIES[4]  # the paper's, in all of its other studies
_LEADING = (Column("data", "Data"), Column("strategy", "Strategy"))
_LOSS = (
    "Training loss: over the whole training set as it is, without augmentation, as tests are made, after the last "
    "epoch; mean ± standard error over the seeds that recorded it."
)
_ERROR = (
    "Best test error: the lowest of a run's evaluations, one an epoch; mean ± standard error over the seeds. "
    "Difference: best test error minus that with the pressure that falls from 100 to 1, seed by seed, with its 95% "
    "confidence interval (Student's t), which a single seed does not have; below 0 is better."
)


def pressure_tables(version: Version, *, whole: bool = False) -> list[Built]:
    """Tables 6 and 7 of a version of them; other pressures than the paper's have two tables each.

    Args:
        whole: also where nothing has been run.
    """
    own = [cell for cell in version.cells if strategy_of(cell) in paper.STRATEGIES.values()]
    others = [cell for cell in version.cells if strategy_of(cell) not in paper.STRATEGIES.values()]
    made = _both(replace(version, cells=own), (), whole=whole) if own or whole else []
    for pressure in sorted({cell.options["pressure"] for cell in others}):
        cells = [cell for cell in others if cell.options["pressure"] == pressure]
        made += _both(replace(version, cells=cells), (told("pressure", pressure),), whole=False)
    return made


def strategy_of(cell: Cell) -> tuple[float, str]:
    """The pressure at the start, and whether it decays."""
    return float(cell.options["pressure"]), str(cell.options["schedule"])


def _both(version: Version, more: tuple[str, ...], *, whole: bool) -> list[Built]:
    found = blocks(version, whole=whole)
    return [_losses(version, found, more), _errors(version, found, more)]


def _losses(version: Version, found: list[Block], more: tuple[str, ...]) -> Built:
    shown = [cell for cell in version.cells if _loss(cell) is not None]

    def columns_of(cell: Cell | None, block: Block) -> tuple[Value, ...]:
        loss = None if cell is None else _loss(cell)
        return loss, None if loss is None else loss.count

    rows = _rows(found, columns_of, paper.TRAINING_LOSSES)
    columns = (
        *_LEADING,
        Column("ours", "Ours", "training loss"),
        Column("seeds", "Seeds", "count"),
        Column("paper", "Paper", "training loss"),
    )
    title = version.title("Table 6", f"training loss at the end, {_where(version)}", more=more)
    note = f"{_LOSS}{trained_in(shown)}{left_out(version.cells)}"
    table = Table(title, note, columns, rows, grouped=1)
    return Built(table, shown, version.is_own and not more, is_news=bool(shown))


def _errors(version: Version, found: list[Block], more: tuple[str, ...]) -> Built:
    def columns_of(cell: Cell | None, block: Block) -> tuple[Value, ...]:
        if cell is None:
            return None, None, None
        best = next((other for other in block.cells if strategy_of(other) == _BEST), None)
        compared = None if best is None or best is cell else paired_difference(cell, best)
        return cell.best_error, len(cell.runs), compared

    rows = _rows(found, columns_of, paper.STRATEGY_ERRORS)
    columns = (
        *_LEADING,
        Column("ours", "Ours", "error"),
        Column("seeds", "Seeds", "count"),
        Column("difference", "Difference to s₀ = 100 → 1", "difference"),
        Column("paper", "Paper", "error"),
    )
    title = version.title("Table 7", f"best test error (%), {_where(version)}", more=more)
    note = f"{_ERROR}{trained_in(version.cells)}{left_out(version.cells)}"
    table = Table(title, note, columns, rows, grouped=1)
    # The fourth strategy alone is Recency Bias of Table 2.
    is_news = any(strategy_of(cell) != _BEST for cell in version.cells)
    return Built(table, version.cells, version.is_own and not more, is_news)


def _rows(
    found: list[Block],
    columns_of: Callable[[Cell | None, Block], tuple[Value, ...]],
    printed: dict[paper.Strategy, paper.Published],
) -> list[tuple[Value, ...]]:
    """A row for each strategy of the paper, then for any other: ours with the paper's number at the end."""
    rows: list[tuple[Value, ...]] = []
    for block in found:
        ours = {strategy_of(cell): cell for cell in block.cells}
        for strategy in dict.fromkeys([*paper.STRATEGIES.values(), *sorted(ours)]):
            labels = (block.labels[0], paper.strategy_name(strategy))
            number = printed.get((*strategy, block.printed_key[1]))
            rows.append((*labels, *columns_of(ours.get(strategy), block), number))
    return rows


def _loss(cell: Cell) -> Estimate | None:
    """The training loss after the last epoch, over the seeds that recorded it."""
    found = [loss for run in cell.runs if (loss := _last_loss(run)) is not None]
    if not all(map(math.isfinite, found)):  # a run diverged
        return Estimate(math.nan, None, len(found))
    return estimate(found) if found else None


def _last_loss(run: RunRecord) -> float | None:
    loss = run.epochs[-1].get("training_set_loss")
    return None if loss is None else float(loss)


def _where(version: Version) -> str:
    optimizer = version.cells[0].config["optimizer"] if version.cells else version.shape.optimizers[0]
    return f"Recency Bias, {network_title(version.net)}, {optimizer_title(optimizer)}"
