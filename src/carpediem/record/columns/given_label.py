"""The label that the data set gives each sample."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from carpediem.record.column import UNLIMITED, Bounds, Column, refuse
from carpediem.record.observed import Observed


class GivenLabel(Column):
    """The first label seen of each sample, or the one that `Record.set_labels` gave; -1 before. It never changes.

    Score `label`.
    """

    name = "label"
    quantity = "targets"
    initial, dtype = -1, torch.int32
    takes_repeats = True
    needs_classes = True

    def contradicted(self, step: Observed) -> Tensor:
        """Whether each entry's label is another than its sample has, or had before in this step, (b,), bool."""
        before = step.before(self._tensors["values"], step.values)
        return (before != step.values) & (before >= 0) & (step.indices < self.num_samples)

    def take(self, step: Observed, *, name: str = "targets") -> None:
        """Keep the labels, or refuse, by ValueError, another one than a sample has."""
        stored, new = self._tensors["values"], step.values.int()
        if torch.equal(stored.index_select(0, step.indices), new):  # as it is from the second epoch on
            return
        wrong = self.contradicted(step).nonzero()
        if len(wrong):
            entry = int(wrong[0])
            raise ValueError(
                f"{name} must be the labels that the data set gives, which stay; sample {int(step.indices[entry])} has "
                f"label {int(step.before(stored, new)[entry])}, got {int(new[entry])}; hand in the data set's own "
                "labels, not those that a rule trains on"
            )
        self.keep(step)

    def keep(self, step: Observed) -> None:
        step.put(self._tensors["values"], step.values.to(torch.int32))

    def check(self, tensors: Mapping[str, Tensor], epoch: int) -> None:
        label = tensors["values"]
        refuse(
            self,
            f"labels in [0, {self.num_classes}) or -1",
            (label < -1) | (label >= (self.num_classes or 0)),
        )

    def bounds(self, tensors: Mapping[str, Tensor]) -> Bounds:
        return {"seen": (0, torch.where(tensors["values"] < 0, 0, UNLIMITED))}
