"""Figures 3 and 4 as tables: what they show at 30% and at 70% of the epochs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from carpediem.lab.analysis.measures import EARLY, LATE, epoch_at
from carpediem.lab.blocks import Block, blocks
from carpediem.lab.compared_cells import Built, left_out, trained_in
from carpediem.lab.figure_data import IndexComparison, index_comparison
from carpediem.lab.records import RunRecord
from carpediem.lab.results import method_name
from carpediem.lab.table import Column, Table, Value
from carpediem.lab.titles import network_title, optimizer_title
from carpediem.lab.versions import Version

_LEADING = (Column("data", "Data"), Column("epoch", "Epoch"), Column("method", "Method"))
_QUANTILES = ("0.05", "0.5", "0.95")  # as the records name them
_DRAWN = (
    "The paper shows distributions, without numbers. Loss: of every sample as an epoch's mini-batches held it, before "
    "the step; means over the seeds. 5%, median, 95%: so many of the draws have a lower loss."
)
_INDICES = (
    "The paper shows points, without numbers. A low index is drawn the likeliest. Mean index, as a share of all "
    "samples: by rank it is a half whatever the uncertainties are; quantised (Eq. 7) it follows them. Means over the "
    "seeds."
)


def drawn_losses_table(version: Version) -> Built:
    """Figure 4 of a version of it: the losses of what each method drew."""
    columns = (
        *_LEADING,
        Column("seeds", "Seeds", "count"),
        Column("loss", "Mean loss", "loss"),
        Column("low", "5%", "loss"),
        Column("median", "Median", "loss"),
        Column("high", "95%", "loss"),
        Column("distinct", "Distinct samples (%)", "percent"),
    )
    return _table(version, "Figure 4", "losses of the drawn samples", columns, _drawn, _DRAWN)


def index_table(version: Version) -> Built:
    """Figure 3 of a version of it: what quantisation makes of the uncertainties."""
    columns = (
        *_LEADING,
        Column("seeds", "Seeds", "count"),
        Column("pressure", "Pressure", "loss"),
        Column("uncertainty", "Mean uncertainty", "loss"),
        Column("settled", "Uncertainty 0 (%)", "percent"),
        Column("rank", "Mean index by rank (%)", "percent"),
        Column("quantised", "Mean quantised index (%)", "percent"),
    )
    return _table(version, "Figure 3", "uncertainties and their indices", columns, _compared, _INDICES)


def _table(
    version: Version,
    name: str,
    what: str,
    columns: tuple[Column, ...],
    numbers: Callable[[Sequence[RunRecord], float], tuple[Value, ...]],
    note: str,
) -> Built:
    rows: list[tuple[Value, ...]] = []
    for block in blocks(version, whole=False):
        for share in (EARLY, LATE):
            for cell in block.cells:
                measured = (
                    numbers(cell.runs, share) if cell.runs else (None,) * (len(columns) - len(_LEADING))
                )
                rows.append(
                    (block.labels[0], _epoch(block, share), method_name(cell, version.cells), *measured)
                )
    optimizer = optimizer_title(version.cells[0].config["optimizer"])
    title = version.title(name, f"{what}, {network_title(version.net)}, {optimizer}")
    note = f"{note}{trained_in(version.cells)}{left_out(version.cells)}"
    table = Table(title, note, columns, rows, grouped=2)
    return Built(table, version.cells, version.is_own, is_news=True)


def _epoch(block: Block, share: float) -> str:
    """The epoch that ends a share of all.

    Runs of one setting are equally long.
    """
    runs = [run for cell in block.cells for run in cell.runs]
    if not runs:
        return f"{share:.0%}"
    epochs = max(len(run.epochs) for run in runs)
    return f"{epoch_at(epochs, share) + 1} ({share:.0%})"


def _drawn(runs: Sequence[RunRecord], share: float) -> tuple[Value, ...]:
    epochs = [run.epochs[epoch_at(len(run.epochs), share)] for run in runs]
    quantiles = [[(one.get("loss_quantiles") or {}).get(name) for one in epochs] for name in _QUANTILES]
    distinct = _mean([one.get("distinct") for one in epochs])
    return (
        len(runs),
        _mean([one["train_loss"] for one in epochs]),
        *map(_mean, quantiles),
        None if distinct is None else 100 * distinct,
    )


def _compared(runs: Sequence[RunRecord], share: float) -> tuple[Value, ...]:
    found = [
        one for run in runs if (one := index_comparison(run, epoch_at(len(run.epochs), share))) is not None
    ]
    return (
        len(found) or None,
        _mean([one.pressure for one in found]),
        _mean([float(one.uncertainty @ one.count) / one.num_samples for one in found]),
        _mean([100 * float(one.count[one.uncertainty == 0].sum()) / one.num_samples for one in found]),
        _mean([_share((one.first_rank + one.last_rank) / 2, one) for one in found]),
        _mean([_share(one.quantised, one) for one in found]),
    )


def _share(index: NDArray[np.float64], one: IndexComparison) -> float:
    """The mean index over the samples, in percent of their number."""
    return 100 * float(index @ one.count) / one.num_samples**2


def _mean(values: Sequence[float | None]) -> float | None:
    """Of all, where all are known."""
    known = [float(value) for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None
