"""The epoch in which each sample's prediction last turned."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from carpediem.record.column import UNLIMITED, Bounds, Column, refuse
from carpediem.record.observed import Observed


class LastTurn(Column):
    """The last epoch in which the prediction changed between agreeing with the given label and contradicting it.

    A change counts in the epoch of the later of two steps of a sample that follow each other. Score `turned_at`, -1
    for a sample that never turned.
    """

    name = "turned_at"
    quantity = "right"
    takes_repeats = True

    def make(self, rows: int, device: torch.device) -> dict[str, Tensor]:
        return {
            "values": torch.full((rows,), -1, dtype=torch.int32, device=device),
            "right": torch.full((rows,), -1, dtype=torch.int8, device=device),  # -1: no step yet
        }

    def keep(self, step: Observed) -> None:
        right = step.values.to(torch.int8)
        before = step.before(self.tensors["right"], right)
        turned = (before != right) & (before >= 0)
        step.lift(self.tensors["values"], torch.where(turned, step.epoch, -1).int())
        step.put(self.tensors["right"], right)

    def check(self, tensors: Mapping[str, Tensor], epoch: int) -> None:
        right, turned = tensors["right"], tensors["values"]
        refuse(self, "1, 0 or -1 for right, wrong or never seen", (right < -1) | (right > 1))
        refuse(self, f"epochs in [-1, {epoch}]", (turned < -1) | (turned > epoch))
        refuse(self, "no turn of samples never seen", (turned >= 0) & (right < 0))

    def bounds(self, tensors: Mapping[str, Tensor]) -> Bounds:
        seen, turned, last = (
            tensors["right"] >= 0,
            tensors["values"] >= 0,
            tensors["right"].int().clamp(min=0),
        )
        right = turned | (last > 0)
        return {
            "seen": (seen.int() + turned.int(), torch.where(seen, UNLIMITED, 0)),
            "right": (right.int(), torch.where(right, UNLIMITED, 0)),
            "right at last": (last, last),
        }
