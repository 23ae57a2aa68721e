"""Count, sum and sum of squares of the probability of each sample's given label."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from carpediem.core.moments import RunningMoments
from carpediem.record.column import Bounds, Column, refuse
from carpediem.record.observed import Observed


class Moments(Column):
    """Running moments of the given label's probability over all steps: what Active Bias and the data map go by.

        confidence  = mean of p(given label)
        variability = sqrt(mean of (p(given label) - confidence)^2)     the population's deviation

    as Swayamdipta et al. (2020) define them, over the times that a sample was trained on instead of epochs. Scores
    `confidence` and `variability`, NaN for a sample that was never seen.
    """

    quantity = "true_probability"
    takes_repeats = True
    needs_classes = True

    def make(self, rows: int, device: torch.device) -> dict[str, Tensor]:
        self._moments = RunningMoments(rows - 1, device)
        return {"count": self._moments.count, "sums": self._moments.sums}

    @property
    def moments(self) -> RunningMoments:
        """Counts and sums, every step observed so far taken in."""
        self._settle()
        return self._moments

    @property
    def values(self) -> Tensor:
        """The mean of each sample, (N,), float64; NaN before its first step."""
        return self.moments.sums[0, : self.num_samples] / self.moments.count[: self.num_samples]

    def keep(self, step: Observed) -> None:
        self.moments.record(step.indices, step.values)

    def deviation(self, indices: Tensor | None = None) -> Tensor:
        """Estimated deviation of these samples, or of all, float64 (Eq. 2)."""
        return self.moments.deviation(indices)

    def scores(self) -> dict[str, Tensor]:
        confidence = self.values
        square = self.moments.sums[1, : self.num_samples] / self.moments.count[: self.num_samples]
        return {
            "confidence": confidence,
            "variability": (square - confidence * confidence).clamp(min=0).sqrt(),
        }

    def check(self, tensors: Mapping[str, Tensor], epoch: int) -> None:
        count, (total, squares) = tensors["count"], tensors["sums"]
        room = 1e-9 * count  # more than the rounding of so many sums
        refuse(self, "counts of at least 0", count < 0)
        # A comparison with NaN is false: each rule is stated as what must hold.
        refuse(self, "sums of probabilities", ~((total >= 0) & (total <= count + room)))
        possible = (squares <= total + room) & (squares * count >= total * total - room * count)
        refuse(self, "sums of squares that fit them", ~(possible & (squares >= 0)))

    def bounds(self, tensors: Mapping[str, Tensor]) -> Bounds:
        return {"seen": (tensors["count"], tensors["count"])}
