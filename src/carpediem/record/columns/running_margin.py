"""The margin of each sample's given label, older steps counting less."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from carpediem.record.checks import number
from carpediem.record.column import Column, refuse
from carpediem.record.observed import Observed


class RunningMargin(Column):
    """The running mean of the margin, m <- d m + (1 - d) (p(given label) - the largest other probability).

    It begins at 0, which sides with nobody, and stays in [-1, 1]. Score `running_margin`.

    Args:
        decay: d, in [0, 1]: how much of the old value stays at each step.
    """

    name = "running_margin"
    quantity = "margins"
    takes_repeats = True
    needs_classes = True

    def __init__(self, decay: float = 0.7) -> None:
        self.decay = number("decay", decay, 0, 1)
        super().__init__(decay=self.decay)

    def keep(self, step: Observed) -> None:
        held, margins = self.tensors["values"], step.values.float()
        if step.repeats is None:
            self._mix(step, margins)
        elif held.device.type == "cpu":  # step by step, so that ranks come to one process's very bits
            for places, part in step.rounds():
                self._mix(part, margins[places])
        else:
            self._mix_at_once(step, margins)

    def _mix(self, step: Observed, margins: Tensor) -> None:
        held = self.tensors["values"]
        held.index_copy_(0, step.indices, held[step.indices].lerp(margins, 1 - self.decay))

    def _mix_at_once(self, step: Observed, margins: Tensor) -> None:
        """n steps of one sample in a closed form: m <- d^n m + sum_i (1 - d) d^(later steps than i) margin_i."""
        assert step.repeats is not None
        (earlier, later), held = step.repeats, self.tensors["values"]
        step.put(held, held[step.indices] * self.decay ** (earlier + 1))
        step.add(held, margins * (1 - self.decay) * self.decay**later)

    def check(self, tensors: Mapping[str, Tensor], epoch: int) -> None:
        refuse(self, "margins in [-1, 1]", ~(tensors["values"].abs() <= 1))
