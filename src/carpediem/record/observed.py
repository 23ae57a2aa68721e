"""What was measured of a step, where the record lies, and the ways to write it into a column's storage."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import torch
from torch import Tensor

from carpediem.core.history import repeats_of, rounds


class Observed:
    """One or more steps in their order, ready to be kept. No method waits for an accelerator but `rounds`.

    >>> held = torch.zeros(4)  # of three samples, and a row for what must be dropped
    >>> Observed(torch.tensor([2, 0, 2]), 3, epoch=0).put(held, torch.tensor([5.0, 6.0, 7.0]))
    >>> held[:3]
    tensor([6., 0., 7.])

    Args:
        indices: (b,), int64, in [0, N]; N is dropped. A sample that occurs again is a later step of it.
        num_samples: N. Storage has N + 1 rows.
        epoch: of all entries, or of each, (b,).

    Attributes:
        values: (b,), what the column measured that is asked to keep it.
    """

    values: Tensor

    def __init__(self, indices: Tensor, num_samples: int, epoch: int | Tensor) -> None:
        self.indices, self.num_samples, self.epoch = indices, num_samples, epoch

    @cached_property
    def repeats(self) -> tuple[Tensor, Tensor] | None:
        """How often each entry's sample occurs before and after it; None where the host sees no repeat."""
        return repeats_of(self.indices)

    @cached_property
    def last(self) -> Tensor:
        """The indices, N in place of those that occur again."""
        if self.repeats is None:
            return self.indices
        return torch.where(self.repeats[1] == 0, self.indices, self.num_samples)

    def add(self, storage: Tensor, values: Tensor) -> None:
        """Add each entry's value to its sample's."""
        storage.index_add_(0, self.indices, values)

    def put(self, storage: Tensor, values: Tensor) -> None:
        """Set each sample's value to its last entry's."""
        storage.index_copy_(0, self.last, values)

    def lower(self, storage: Tensor, values: Tensor) -> None:
        """Lower each sample's value to its entries' where these are less."""
        storage.scatter_reduce_(0, self.indices, values, "amin")

    def lift(self, storage: Tensor, values: Tensor) -> None:
        """Raise each sample's value to its entries' where these are more."""
        storage.scatter_reduce_(0, self.indices, values, "amax")

    def before(self, storage: Tensor, values: Tensor) -> Tensor:
        """What each entry's sample had before it: its earlier entry's value, else the stored one, (b,)."""
        held = storage.index_select(0, self.indices)
        if self.repeats is None:
            return held
        return torch.where(self._previous < 0, held, values[self._previous])

    def rounds(self) -> Iterator[tuple[Tensor, Observed]]:
        """Parts in which each sample occurs once, in the order of the steps, and where their entries stand."""
        for places in rounds(self.indices):
            kept = places[self.indices[places] < self.num_samples]
            epoch = self.epoch
            if isinstance(epoch, Tensor) and epoch.dim():
                epoch = epoch[kept]
            part = Observed(self.indices[kept], self.num_samples, epoch)
            part.__dict__["repeats"] = None
            yield kept, part

    @cached_property
    def _previous(self) -> Tensor:
        """Where the entry before of the same sample stands; -1 where there is none."""
        ordered, order = self.indices.sort(stable=True)
        before = torch.where(ordered[1:] == ordered[:-1], order[:-1], -1)
        return torch.full_like(order, -1).index_copy_(0, order[1:], before)
