"""Tables 2 to 5: our errors and times beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from carpediem.lab.analysis import paper
from carpediem.lab.compared_cells import (
    CLASSIFIED,
    INTERVAL,
    Built,
    difference_columns,
    differences,
    first,
    left_out,
    one_setting,
    or_none,
    setting_key,
)
from carpediem.lab.config import METHODS
from carpediem.lab.recipes import PAPER
from carpediem.lab.results import Cell, method_name, relative_reduction, shared_means, time_to_error
from carpediem.lab.table import Column, Table, Value
from carpediem.lab.titles import data_title, network_title

_FINE_TUNED = ("densenet-121", "efficientnet-lite0")


def error_tables(cells: list[Cell]) -> list[Built]:
    """Tables 2 to 5 of cells that were trained with the paper's own settings."""
    tables = [
        _classification(net, [cell for cell in cells if cell.config["net"] == net])
        for net in ("densenet-40-12", "resnet-50")
    ]
    fine_tuned = [cell for cell in cells if cell.config["net"] in _FINE_TUNED]
    return [*tables, _fine_tuning(fine_tuned), _times(fine_tuned)]


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
        return first([cell for cell in finished if cell.draws == rival.draws] or finished)


def _classification(net: str, cells: list[Cell]) -> Built:
    blocks = []
    for optimizer, optimizer_name in paper.OPTIMIZERS.items():
        for data in CLASSIFIED:
            block = _Block((optimizer_name, paper.DATA[data]), (net, data, optimizer))
            block.cells = one_setting([c for c in cells if setting_key(c) == block.key])
            blocks.append(block)
    name, number = paper.NETWORKS[net], paper.TABLE_OF_NETWORK[net]
    title = f"Table {number}: best test error (%), {name}, recipe paper, {paper.ITERATIONS:,} iterations"
    leading = (Column("optimizer", "Optimizer"), Column("data", "Data"))
    return _errors(title, leading, blocks)


def _fine_tuning(cells: list[Cell]) -> Built:
    title = "Table 4: best test error (%), fine-tuning, recipe fine-tuning"
    leading = (Column("data", "Data"), Column("network", "Network"))
    return _errors(title, leading, _fine_tuning_blocks(cells))


def _fine_tuning_blocks(cells: list[Cell]) -> list[_Block]:
    keys = [("densenet-121", data, "momentum") for data in ("mit67", "food100")]
    keys += sorted({setting_key(cell) for cell in cells} - set(keys))
    return [
        _Block(
            (data_title(data), network_title(net)),
            key,
            one_setting([c for c in cells if setting_key(c) == key]),
        )
        for key in keys
        for net, data, _ in [key]
    ]


def _times(cells: list[Cell]) -> Built:
    blocks = _fine_tuning_blocks(cells)
    shown = [cell for block in blocks for cell in block.cells]
    rows: list[tuple[Value, ...]] = []
    compared: list[Cell] = []
    for block in blocks:
        net, data, _ = block.key
        for rival in ("random", "online", "active"):
            known = paper.TIMES.get((data, rival)) if net == "densenet-121" else None
            times: Sequence[Value] = (known.rival, known.ours, known.reduction) if known else (None,) * 3
            for cell in or_none(block.of(rival)):
                published = times if cell is None or _draws_as_the_paper(cell) else (None,) * 3
                name = METHODS[rival] if cell is None else method_name(cell, shown)
                ours = None if cell is None else block.recency_beside(cell)
                measured: Sequence[Value] = (None,) * 6
                if cell is not None and ours is not None and (time := time_to_error(ours, cell)) is not None:
                    reached = f"not reached ({time.missed} of {time.seeds})" if time.missed else time.ours
                    saved = (time.reduction, time.fewer_iterations)
                    measured = (time.error, time.rival, reached, *saved, time.seeds)
                    compared += [ours, cell]
                rows.append((*block.labels, name, *measured, *published))
    columns = (
        Column("data", "Data"),
        Column("network", "Network"),
        Column("rival", "Rival"),
        Column("target", "Rival's best error (%)", "error"),
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
        "Rival's best error: of each run its best, mean over the seeds. Rival: seconds at each run's best epoch, mean "
        "over the seeds. Recency Bias: seconds at each run's first epoch with at most the rival's best error, mean "
        "over the seeds. Not reached (k of n): k of the n seeds never had it. Fewer iterations: in the same way. Only "
        "seeds that both have count. Evaluation is not counted. Seconds compare runs that are trained one at a time, "
        f"iterations compare all.{_at_once(compared)}{left_out(shown)}"
    )
    title = "Table 5: time of Recency Bias to the rival's best error, recipe fine-tuning"
    return Built(Table(title, note, columns, rows, grouped=2), shown)


def _at_once(cells: list[Cell]) -> str:
    """A sentence on runs that trained side by side, where there are any."""
    most = max(
        (e.get("side_by_side", 1) for cell in cells for run in cell.runs for e in run.epochs), default=1
    )
    if most == 1:
        return ""
    return f" Up to {most} of these runs were trained at once: their seconds are not those of a run alone."


def _errors(title: str, leading: tuple[Column, ...], blocks: list[_Block]) -> Built:
    shown = [cell for block in blocks for cell in block.cells]
    compared_with = difference_columns(shown)
    rows: list[tuple[Value, ...]] = []
    for block in blocks:
        for method, name in METHODS.items():
            published = paper.best_error(*block.key, method)
            theirs = None if method == "recency" else paper.error_reduction(*block.key, method)
            found = block.of(method)
            # The paper's numbers stand beside what draws as its released code does, or beside a dash.
            if not any(_draws_as_the_paper(cell) for cell in found):
                unrun: Sequence[Value] = [None] * len(compared_with)
                rows.append((*block.labels, name, None, None, published, *unrun, None, theirs))
            for cell in found:
                beside = (published, theirs) if _draws_as_the_paper(cell) else (None, None)
                compared = differences(cell, block.cells, compared_with)
                lower = None if method == "recency" else _reduction(block, cell)
                ours = (method_name(cell, shown), cell.best_error, len(cell.runs))
                rows.append((*block.labels, *ours, beside[0], *compared, lower, beside[1]))
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
    note = f"{INTERVAL}{left_out(shown)}"
    return Built(Table(title, note, columns, rows, grouped=len(leading)), shown)


def _draws_as_the_paper(cell: Cell) -> bool:
    return cell.draws in (None, PAPER["draws"])


def _reduction(block: _Block, rival: Cell) -> float | None:
    ours = block.recency_beside(rival)
    means = None if ours is None else shared_means(ours, rival)
    return None if means is None else relative_reduction(ours=means[0], rival=means[1])
