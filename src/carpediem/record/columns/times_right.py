"""How often each sample's prediction was its given label."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from carpediem.record.column import UNLIMITED, Bounds, Column, refuse
from carpediem.record.observed import Observed


class TimesRight(Column):
    """How often the prediction of each sample was its given label.

    Score `times_right`; beside `TimesSeen` also `correctness`, the share of right predictions, NaN for a sample that
    was never seen.
    """

    name = "times_right"
    quantity = "right"
    initial, dtype = 0, torch.int32
    takes_repeats = True

    def keep(self, step: Observed) -> None:
        step.add(self.tensors["values"], step.values.int())

    def check(self, tensors: Mapping[str, Tensor], epoch: int) -> None:
        refuse(self, "counts of at least 0", tensors["values"] < 0)

    def bounds(self, tensors: Mapping[str, Tensor]) -> Bounds:
        right = tensors["values"]
        return {"seen": (right, UNLIMITED), "right": (right, right)}
