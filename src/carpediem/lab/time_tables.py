"""Table 5: how soon Recency Bias had each rival's best error."""

from __future__ import annotations

from collections.abc import Sequence

from carpediem.lab.analysis import paper
from carpediem.lab.blocks import blocks
from carpediem.lab.compared_cells import Built, left_out, trained_in
from carpediem.lab.config import METHODS
from carpediem.lab.results import Cell, method_name, time_to_error
from carpediem.lab.table import Column, Table, Value
from carpediem.lab.versions import Version


def time_table(version: Version, *, whole: bool = False) -> Built:
    """Table 5 of a version of Table 4.

    Args:
        whole: also the rows of the paper of which nothing has been run.
    """
    found = blocks(version, whole=whole)
    shown = [cell for block in found for cell in block.cells]
    rows: list[tuple[Value, ...]] = []
    compared: list[Cell] = []
    for block in found:
        data, network, _ = block.labels
        for rival in paper.RIVALS:
            cell, ours = block.of(rival), block.of("recency")
            known = paper.TIMES.get((block.printed_key[1], rival))
            printed: Sequence[Value] = (known.rival, known.ours, known.reduction) if known else (None,) * 3
            name = METHODS[rival] if cell is None else method_name(cell, shown)
            measured: Sequence[Value] = (None,) * 6
            if cell is not None and ours is not None and (time := time_to_error(ours, cell)) is not None:
                reached = f"not reached ({time.missed} of {time.seeds})" if time.missed else time.ours
                saved = (time.reduction, time.fewer_iterations)
                measured = (time.error, time.rival, reached, *saved, time.seeds)
                compared += [ours, cell]
            rows.append((data, network, name, *measured, *printed))
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
        f"iterations compare all.{_at_once(compared)}{trained_in(shown)}{left_out(shown)}"
    )
    title = version.title("Table 5", "time of Recency Bias to the rival's best error")
    table = Table(title, note, columns, rows, grouped=2)
    return Built(table, shown, version.is_own, is_news=bool(compared))


def _at_once(cells: list[Cell]) -> str:
    """A sentence on runs that trained side by side, where there are any."""
    most = max(
        (e.get("side_by_side", 1) for cell in cells for run in cell.runs for e in run.epochs), default=1
    )
    if most == 1:
        return ""
    return f" Up to {most} of these runs were trained at once: their seconds are not those of a run alone."
