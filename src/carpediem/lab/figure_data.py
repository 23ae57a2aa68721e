"""From records to the numbers that figures show: pure functions, shared by the report and the static figures.

convergence (Figures 5, 6, 8 to 10)   `results.mean_curve`
Figure 2, growing against sliding      `telling_trails` of `samples.read_trails`
Figure 3, index comparison             `index_epochs`, `index_comparison`
Figure 4, loss of what was drawn       `loss_distributions`
Figure 7, grid search                  `grid_searches` of `grid_data`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carpediem.core.uncertainty import index_level
from carpediem.lab.records import RunRecord
from carpediem.lab.results import Cell, method_name
from carpediem.lab.samples import Trails

# Records hold twelve digits of an uncertainty. Where (1 - U) N is a whole number, what they lack makes its index one
# too high; no other window comes so near to a whole number.
_ROUNDED = 5e-13


@dataclass(frozen=True, eq=False)
class LossDistribution:
    """How the losses of a method's drawn samples were distributed in each epoch (Figure 4): the mean over its seeds.

    Args:
        cell: whose runs these are.
        name: the method as tables print it.
        edges_log10: (bins + 1,), of the logarithm to base 10 of the loss; the outer bins hold what lies beyond.
        shares: (epochs, bins), the share of the draws in each bin; a line sums to 1.
    """

    cell: Cell
    name: str
    edges_log10: NDArray[np.float64]
    shares: NDArray[np.float64]

    @property
    def epochs(self) -> int:
        """How many epochs all seeds have."""
        return len(self.shares)


@dataclass(frozen=True, eq=False)
class IndexComparison:
    """Each uncertainty that occurred after an epoch, beside the two indices that it might be given (Figure 3).

    Args:
        epoch: from 0.
        num_samples: N.
        pressure: s of that epoch, None during the warm-up.
        uncertainty: (m,), descending.
        count: (m,), how many samples have it.
        quantised: (m,), the index Q(U) of Eq. 7, the same for all of them, in [0, N].
        first_rank, last_rank: (m,), the rank-based indices that they are spread over, in [1, N], though they are equal.
    """

    epoch: int
    num_samples: int
    pressure: float | None
    uncertainty: NDArray[np.float64]
    count: NDArray[np.int64]
    quantised: NDArray[np.float64]
    first_rank: NDArray[np.int64]
    last_rank: NDArray[np.int64]


def loss_distributions(cells: Sequence[Cell]) -> list[LossDistribution]:
    """One a cell, as far as all its finished runs went; cells whose records lack histograms are left out."""
    found = []
    for cell in cells:
        epochs = min((_with(run, "loss_histogram") for run in cell.runs), default=0)
        if epochs == 0:
            continue
        rows = [run.epochs[:epochs] for run in cell.runs]
        counts = np.array([[e["loss_histogram"]["counts"] for e in run] for run in rows], dtype=np.float64)
        shares = counts / counts.sum(axis=2, keepdims=True).clip(min=1)
        found.append(
            LossDistribution(
                cell,
                method_name(cell, cells),
                np.array(rows[0][0]["loss_histogram"]["edges_log10"], dtype=np.float64),
                shares.mean(axis=0),
            )
        )
    return found


def index_epochs(run: RunRecord) -> list[int]:
    """The epochs for which `index_comparison` has something to compare: none but for Recency Bias."""
    return [int(epoch["epoch"]) for epoch in run.epochs if epoch.get("uncertainty_counts")]


def index_comparison(run: RunRecord, epoch: int) -> IndexComparison | None:
    """The two indices after `epoch`, or None where the run's record of it does not say."""
    record = run.epochs[epoch] if 0 <= epoch < len(run.epochs) else {}
    if not record.get("uncertainty_counts"):
        return None
    pairs = sorted(record["uncertainty_counts"], reverse=True)
    uncertainty = np.array([value for value, _ in pairs], dtype=np.float64)
    count = np.array([number for _, number in pairs], dtype=np.int64)
    last = count.cumsum()
    total = int(count.sum())
    return IndexComparison(
        epoch=epoch,
        num_samples=total,
        pressure=record.get("pressure"),
        uncertainty=uncertainty,
        count=count,
        quantised=index_level(uncertainty + _ROUNDED, total),
        first_rank=last - count + 1,
        last_rank=last,
    )


def telling_trails(trails: Trails, count: int = 4) -> NDArray[np.int64]:
    """Columns of samples on which the growing and the sliding window differ, and of some that are still uncertain.

    Half of them changed their prediction and have settled since, the largest deviation first: what Active Bias still
    holds against them, Recency Bias has forgotten. The others are the most uncertain at the end.
    """
    if trails.epochs == 0:
        return np.arange(0)
    settled = trails.uncertainty[-1] == 0
    restless = np.flatnonzero(~settled & (trails.drawn.sum(axis=0) > 0))
    calm = np.flatnonzero(settled)
    by_deviation = calm[np.argsort(-trails.deviation[-1, calm], kind="stable")]
    by_uncertainty = restless[np.argsort(-trails.uncertainty[-1, restless], kind="stable")]
    few = min(len(by_uncertainty), count - min(len(by_deviation), (count + 1) // 2))
    return np.concatenate((by_deviation[: count - few], by_uncertainty[:few])).astype(np.int64)


def _with(run: RunRecord, field: str) -> int:
    """How many epochs from the first on have the field."""
    return next((n for n, epoch in enumerate(run.epochs) if not epoch.get(field)), len(run.epochs))
