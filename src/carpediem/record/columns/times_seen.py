"""How often each sample was trained on."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from carpediem.record.column import Bounds, Column, refuse
from carpediem.record.observed import Observed


class TimesSeen(Column):
    """How often each sample was observed. Score `times_seen`."""

    name = "times_seen"
    initial, dtype = 0, torch.int32
    takes_repeats = True

    def keep(self, step: Observed) -> None:
        step.add(self.tensors["values"], torch.ones_like(step.indices, dtype=torch.int32))

    def check(self, tensors: Mapping[str, Tensor], epoch: int) -> None:
        refuse(self, "counts of at least 0", tensors["values"] < 0)

    def bounds(self, tensors: Mapping[str, Tensor]) -> Bounds:
        return {"seen": (tensors["values"], tensors["values"])}
