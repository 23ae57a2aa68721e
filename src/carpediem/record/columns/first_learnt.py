"""The epoch in which each sample was first learnt."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from carpediem.record.column import UNLIMITED, Bounds, Column, refuse
from carpediem.record.observed import Observed

NEVER = torch.iinfo(torch.int32).max


class FirstLearnt(Column):
    """The first epoch, from 0, in which the prediction of each sample was its given label.

    Score `learnt_at`, -1 for a sample that was never right.
    """

    quantity = "right"
    initial, dtype = NEVER, torch.int32
    takes_repeats = True

    def keep(self, step: Observed) -> None:
        step.lower(self.tensors["values"], torch.where(step.values, step.epoch, NEVER).int())

    def scores(self) -> dict[str, Tensor]:
        return {"learnt_at": torch.where(self.values == NEVER, -1, self.values)}

    def check(self, tensors: Mapping[str, Tensor], epoch: int) -> None:
        learnt = tensors["values"]
        refuse(self, f"epochs up to {epoch}", ((learnt < 0) | (learnt > epoch)) & (learnt != NEVER))

    def bounds(self, tensors: Mapping[str, Tensor]) -> Bounds:
        learnt = tensors["values"] != NEVER
        return {"seen": (learnt.int(), UNLIMITED), "right": (learnt.int(), torch.where(learnt, UNLIMITED, 0))}
