"""A data set whose items say which they are."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Generic, TypeVar

from torch.utils.data import Dataset, IterableDataset

Item = TypeVar("Item", covariant=True)


class Indexed(Dataset[tuple[int, Item]], Generic[Item]):
    """Yields (index, item) for any map-style data set.

    With the default collation a loader over it gives `indices, batch`.

    >>> Indexed(["a", "b"])[1]
    (1, 'b')
    """

    def __init__(self, dataset: Dataset[Item] | Sequence[Item]) -> None:
        if isinstance(dataset, IterableDataset):
            raise TypeError(
                "dataset must be map-style (with __getitem__ and __len__), got the IterableDataset "
                f"{type(dataset).__name__}; samples of a stream have no index to select by"
            )
        if isinstance(dataset, Indexed):
            raise TypeError("dataset must not be Indexed already; wrap it once")
        if not (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")):
            raise TypeError(
                f"dataset must be map-style, with __getitem__ and __len__, got {type(dataset).__name__}"
            )
        self.dataset = dataset
        self._has_warned = False
        if len(self) == 0:
            raise ValueError("dataset must hold at least one sample, got an empty one")

    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> tuple[int, Item]:
        self._check([index])
        return index, self.dataset[index]

    def __getitems__(self, indices: list[int]) -> list[tuple[int, Item]]:
        """A whole batch at once, fetched at once where the data set can."""
        if isinstance(indices, int):
            raise TypeError(
                f"a loader must ask for a batch by a list of indices, got {indices!r}; give it the AdaptiveSampler as "
                "sampler=, with batch_size=, and not as batch_sampler="
            )
        self._check(indices)
        if not self._has_warned and len(set(indices)) < len(indices):
            self._has_warned = True  # in each worker once
            warnings.warn(
                "a batch holds the same sample twice, which an AdaptiveSampler never cuts; give the DataLoader its "
                "batch_size",
                stacklevel=2,
            )
        fetch = getattr(self.dataset, "__getitems__", None)
        items = fetch(indices) if fetch else [self.dataset[index] for index in indices]
        return list(zip(indices, items, strict=True))

    def _check(self, indices: list[int]) -> None:
        """Names the argument that asks for samples that there are none of."""
        if (first := min(indices, default=0)) < 0:
            raise IndexError(f"index must be at least 0, got {first}")
        if (last := max(indices, default=0)) >= len(self):
            raise IndexError(
                f"index must be less than the {len(self)} samples of the data set, got {last}; build the selector with "
                f"num_samples={len(self)}"
            )
