"""The last loss of each sample."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from carpediem.record.column import UNLIMITED, Bounds, Column, refuse
from carpediem.record.observed import Observed


class LastLoss(Column):
    """The loss of each sample when it was trained on last, float32; NaN before. Score `last_loss`.

    The cross entropy of logits and targets, or what came as `losses=`. That of float32 logits far apart may be
    infinite.
    """

    initial = float("nan")
    name = "last_loss"
    quantity = "losses"
    takes_repeats = True

    def keep(self, step: Observed) -> None:
        step.put(self.tensors["values"], step.values.float())

    def check(self, tensors: Mapping[str, Tensor], epoch: int) -> None:
        refuse(self, "losses above -inf", tensors["values"] == -torch.inf)

    def bounds(self, tensors: Mapping[str, Tensor]) -> Bounds:
        seen = ~tensors["values"].isnan()
        return {"seen": (seen.int(), torch.where(seen, UNLIMITED, 0))}
