"""How often each sample was forgotten."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from carpediem.record.column import UNLIMITED, Bounds, Column, refuse
from carpediem.record.observed import Observed


class Forgetting(Column):
    """Forgetting events (Toneva et al. 2019): how often a right prediction was followed by a wrong one.

    Score `forgotten`; 0 for a sample that was never right, which `learnt_at` tells apart.
    """

    name = "forgotten"
    quantity = "right"
    takes_repeats = True

    def make(self, rows: int, device: torch.device) -> dict[str, Tensor]:
        return {
            "values": torch.zeros(rows, dtype=torch.int32, device=device),
            "right": torch.zeros(rows, dtype=torch.bool, device=device),
        }

    def keep(self, step: Observed) -> None:
        was_right = step.before(self.tensors["right"], step.values)
        step.add(self.tensors["values"], (was_right & ~step.values).int())
        step.put(self.tensors["right"], step.values)

    def check(self, tensors: Mapping[str, Tensor], epoch: int) -> None:
        refuse(self, "counts of at least 0", tensors["values"] < 0)

    def bounds(self, tensors: Mapping[str, Tensor]) -> Bounds:
        forgotten, last = tensors["values"].long(), tensors["right"].long()
        right = forgotten + last
        most = torch.where(right > 0, UNLIMITED, 0)
        return {"seen": (forgotten + right, UNLIMITED), "right": (right, most), "right at last": (last, last)}
