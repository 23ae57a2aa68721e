"""The last q labels predicted for each sample."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from carpediem.core.history import LabelHistory
from carpediem.core.shapes import MAX_WINDOW, WindowShapes
from carpediem.record.checks import integer
from carpediem.record.column import UNLIMITED, Bounds, Column, refuse
from carpediem.record.observed import Observed


class LastLabels(Column):
    """The window of Recency Bias: the last q predictions of each sample, and how inconsistent they are (Eq. 5 and 6).

    Scores `majority`, the label that the window holds most often, the newest of several, -1 where it is empty, and
    `uncertainty`, U of Eq. 6, 1 where it is empty.

    Args:
        window: q, at most 32.
        first: the label that fills every window at the start; None leaves them empty.
    """

    quantity = "predictions"
    takes_repeats = True
    needs_classes = True

    def __init__(self, window: int = 10, *, first: int | None = None) -> None:
        self.window = integer("window", window, at_least=1, at_most=MAX_WINDOW)
        self.first = None if first is None else integer("first", first, at_least=0)
        super().__init__(window=self.window, **({} if first is None else {"first": self.first}))

    def make(self, rows: int, device: torch.device) -> dict[str, Tensor]:
        assert self.num_classes is not None
        if self.first is not None and self.first >= self.num_classes:
            raise ValueError(
                f"first must be a label below num_classes = {self.num_classes}, got {self.first}"
            )
        self._history = LabelHistory(rows - 1, self.num_classes, self.window, device, first=self.first)
        return {"labels": self._history.labels, "cursor": self._history.cursor}

    @property
    def history(self) -> LabelHistory:
        """The windows, every step observed so far taken in."""
        self._settle()
        return self._history

    @property
    def shapes(self) -> WindowShapes:
        """The shapes that a window can have, one a level."""
        return self.history.shapes

    @property
    def values(self) -> Tensor:
        """The kept predictions, (q, N), in no order; free places hold the largest value of their type."""
        return self.history.labels[:, : self.num_samples]

    def keep(self, step: Observed) -> None:
        self.history.append_repeated(step.indices, step.values, step.repeats)

    def levels(self) -> Tensor:
        """The level of every sample's window, (N,)."""
        return self.history.levels()

    def uncertainty(self) -> Tensor:
        """U of every sample (Eq. 6), (N,), float64."""
        return self.history.uncertainty()

    def filled(self) -> Tensor:
        """How many predictions each window holds, (N,), int64."""
        return self.history.cursor[: self.num_samples].long().clamp(max=self.window)

    def share_of(self, labels: Tensor) -> Tensor:
        """The share of each window that equals its sample's label, (N,), float64; NaN where the window is empty."""
        held = (self.values == labels).sum(dim=0)
        return held.double() / self.filled()

    def majority(self) -> Tensor:
        """The label that each window holds most often, the newest of several, (N,), int64; -1 where it is empty."""
        cursor, filled = self.history.cursor[: self.num_samples].long(), self.filled()
        best = torch.full_like(cursor, -1)
        most = torch.zeros_like(cursor)
        for age in range(self.window):  # from the newest on, which an older one must outnumber
            label = self.values.gather(0, ((cursor - 1 - age) % self.window)[None])[0]
            count = torch.where(age < filled, (self.values == label).sum(dim=0), 0)
            best, most = torch.where(count > most, label.long(), best), most.maximum(count)
        return best

    def scores(self) -> dict[str, Tensor]:
        return {"majority": self.majority(), "uncertainty": self.uncertainty()}

    def check(self, tensors: Mapping[str, Tensor], epoch: int) -> None:
        labels, cursor = tensors["labels"], tensors["cursor"].long()
        refuse(self, f"cursors below {2 * self.window}", (cursor >= 2 * self.window)[None])
        places = torch.arange(self.window, device=cursor.device)[:, None]
        free = labels == torch.iinfo(labels.dtype).max
        refuse(self, "as many labels as its cursor says", free != (places >= cursor))
        outside = (labels < 0) | (labels >= self.history.num_classes)
        refuse(self, f"labels in [0, {self.num_classes})", outside & ~free)

    def bounds(self, tensors: Mapping[str, Tensor]) -> Bounds:
        if self.first is not None:
            return {}
        cursor = tensors["cursor"].long()
        full = cursor >= self.window
        return {"seen": (cursor.clamp(max=self.window), torch.where(full, UNLIMITED, cursor))}
