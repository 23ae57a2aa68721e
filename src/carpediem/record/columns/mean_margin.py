"""The mean margin of each sample's given label."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from carpediem.record.column import Bounds, Column, refuse
from carpediem.record.observed import Observed


class MeanMargin(Column):
    """The mean over all steps of p(given label) - the largest other probability; in [-1, 1].

    Below 0 the network has contradicted the label more than it agreed with it: `Record.suspects` goes by this, as the
    area under the margin of Pleiss et al. (2020) does with logits. Score `mean_margin`, NaN for a sample never seen.
    """

    name = "mean_margin"
    quantity = "margins"
    takes_repeats = True
    needs_classes = True

    def make(self, rows: int, device: torch.device) -> dict[str, Tensor]:
        return {
            "count": torch.zeros(rows, dtype=torch.int32, device=device),
            "sum": torch.zeros(rows, dtype=torch.float64, device=device),
        }

    @property
    def values(self) -> Tensor:
        """The mean of each sample, (N,), float64; NaN before its first step."""
        return self.tensors["sum"][: self.num_samples] / self.tensors["count"][: self.num_samples]

    def keep(self, step: Observed) -> None:
        step.add(self.tensors["count"], torch.ones_like(step.indices, dtype=torch.int32))
        step.add(self.tensors["sum"], step.values.double())

    def check(self, tensors: Mapping[str, Tensor], epoch: int) -> None:
        refuse(self, "counts of at least 0", tensors["count"] < 0)
        limit = tensors["count"] * (1 + 1e-9)
        refuse(self, "sums of margins in [-1, 1]", ~(tensors["sum"].abs() <= limit))

    def bounds(self, tensors: Mapping[str, Tensor]) -> Bounds:
        return {"seen": (tensors["count"], tensors["count"])}
