"""The last q predictions of every sample."""

from __future__ import annotations

import operator
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from carpediem.core.arrays import like, namespace, native, whole
from carpediem.core.shapes import window_shapes

# Up to so many indices are compared each with each: on an accelerator that is five kernels, and sorting many more.
FEW = 1024


class LabelHistory:
    """A sliding window over the labels predicted for each sample.

    Labels are kept column-major, q rows of N, one byte each for up to 255 classes. A sample costs q + 1
    bytes.

    Args:
        num_samples: N.
        num_classes: k.
        window: q, at most 32.
        device: where the tensors live.
        first: the label that fills every window at the start; None leaves them empty.

    >>> history = LabelHistory(num_samples=3, num_classes=10, window=2)
    >>> history.record(torch.tensor([0, 0, 0, 2]), torch.tensor([7, 8, 9, 4]))
    >>> [history.predictions(i) for i in range(3)]
    [[8, 9], [], [4]]
    """

    def __init__(
        self,
        num_samples: int,
        num_classes: int,
        window: int,
        device: torch.device | str = "cpu",
        *,
        first: int | None = None,
    ) -> None:
        self.num_samples, self.num_classes, self.window = num_samples, num_classes, window
        self.shapes = window_shapes(window)
        dtype = next(
            d
            for d in (torch.uint8, torch.int16, torch.int32, torch.int64)
            if num_classes <= torch.iinfo(d).max
        )
        # The free places hold the largest value of the type, which no label reaches. Column N takes what
        # must not be kept, so that nothing depends on the data when a step is captured into a graph.
        held, filled = (torch.iinfo(dtype).max, 0) if first is None else (first, window)
        self.labels = torch.full((window, num_samples + 1), held, dtype=dtype, device=device)
        # v < q: v predictions so far, the next goes to row v. v >= q: full, the next goes to row v - q.
        self.cursor = torch.full((num_samples + 1,), filled, dtype=torch.uint8, device=device)

    def record(self, indices: Tensor, labels: Tensor) -> None:
        """Append one prediction a sample; an index that occurs again is a later prediction of that sample.

        Args:
            indices: (b,), int64, in [0, N).
            labels: (b,), integers in [0, k).
        """
        for name, values, stop in (
            ("indices", indices, self.num_samples),
            ("labels", labels, self.num_classes),
        ):
            if len(values) and not 0 <= int(values.min()) <= int(values.max()) < stop:
                raise ValueError(
                    f"{name} must lie in [0, {stop}), got {int(values.min())} to {int(values.max())}"
                )
        self.append(indices, labels)

    def append(self, indices: Tensor, labels: Tensor) -> None:
        """`record` for what has been checked, without a look at the values; index N is dropped."""
        self.append_repeated(indices, labels, repeats_of(indices))

    def append_repeated(self, indices: Tensor, labels: Tensor, repeats: tuple[Tensor, Tensor] | None) -> None:
        """`append` where the indices' repeats are known, as `repeats_of` gives them."""
        index, window = native(indices), self.window
        rows, cursor = native(self.labels), native(self.cursor)
        new = native(labels.to(self.labels.dtype))
        places = whole(cursor[index])
        if repeats is None:
            kept = last = index
        else:
            earlier, later = repeats
            places += native(earlier)
            # Of more than q predictions of one sample the last q stay; its last one moves the cursor.
            kept = native(torch.where(later < window, indices, self.num_samples))
            last = native(torch.where(later == 0, indices, self.num_samples))
        rows[places % window, kept] = new
        places += 1
        cursor[last] = like(
            namespace(places).where(places < window, places, window + places % window), cursor
        )

    def levels(self) -> Tensor:
        """The level of every sample's window, shape (N,)."""
        out = torch.empty(self.num_samples, dtype=self.shapes.level_dtype, device=self.labels.device)
        columns = slice(0, self.num_samples)
        self.shapes.levels(native(self.labels)[:, columns], native(self.cursor)[columns], native(out))
        return out

    def uncertainty(self) -> Tensor:
        """U of every sample (Eq. 6), shape (N,), float64."""
        by_level = torch.from_numpy(self.shapes.uncertainties(self.num_classes)).to(self.labels.device)
        return by_level[self.levels().long()]

    def predictions(self, index: int) -> list[int]:
        """The kept predictions of one sample, oldest first.

        Args:
            index: in [0, N).
        """
        try:
            index = operator.index(index)
        except TypeError:
            raise TypeError(f"index must be an integer, got {index!r}") from None
        if not 0 <= index < self.num_samples:  # column N would be found, and holds nobody's predictions
            raise IndexError(
                f"index must lie in [0, {self.num_samples}), the history being of {self.num_samples} samples, got "
                f"{index}"
            )
        cursor, q = int(self.cursor[index]), self.window
        rows = range(cursor) if cursor < q else [(cursor + i) % q for i in range(q)]
        return [int(self.labels[row, index]) for row in rows]


def last_of_each(indices: Tensor, dropped: int) -> Tensor:
    """The indices, with `dropped` in place of those that occur again later.

    Writing to repeated indices leaves the outcome open: torch writes in any order.

    >>> last_of_each(torch.tensor([3, 5, 3]), dropped=9)
    tensor([9, 5, 3])
    """
    repeats = repeats_of(indices)
    return indices if repeats is None else torch.where(repeats[1] == 0, indices, dropped)


def rounds(indices: Tensor) -> Iterator[Tensor]:
    """Where the first occurrence of each index stands, then the second of those that have one, and so on.

    >>> [part.tolist() for part in rounds(torch.tensor([3, 5, 3]))]
    [[0, 1], [2]]
    """
    repeats = repeats_of(indices)
    before = torch.zeros_like(indices) if repeats is None else repeats[0]
    for number in range(int(before.max()) + 1 if len(before) else 0):
        yield (before == number).nonzero().flatten()


def repeats_of(indices: Tensor) -> tuple[Tensor, Tensor] | None:
    """How often each entry's index occurs before and after it; None where the host sees no repeat."""
    if indices.device.type == "cpu":
        values = indices.numpy()
        if len(values) > FEW:
            values = values.astype(
                np.int32
            )  # sorted in half the time; what looks like repeats is counted below
        ordered = np.sort(values)
        if not (ordered[1:] == ordered[:-1]).any():
            return None
    if len(indices) <= FEW:
        same = indices[:, None] == indices[None, :]
        return same.tril(-1).sum(dim=1), same.triu(1).sum(dim=1)
    ordered_indices, order = indices.sort(stable=True)
    position = torch.arange(len(indices), device=indices.device)
    first = torch.searchsorted(ordered_indices, ordered_indices)
    last = torch.searchsorted(ordered_indices, ordered_indices, right=True)
    earlier, later = torch.empty_like(position), torch.empty_like(position)
    earlier[order] = position - first
    later[order] = last - 1 - position
    return earlier, later
