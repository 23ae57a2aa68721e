"""A data set whose items say which they are."""

from __future__ import annotations

import mmap
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset

from carpediem.core.caller import loop_level

Item = TypeVar("Item", covariant=True)
Batch = TypeVar("Batch")


class Indexed(Dataset[tuple[int, Item]], Generic[Item]):
    """Yields (index, item) for any map-style data set.

    With the default collation a loader over it gives `indices, batch`. A `collate_fn` of your own would be given
    those pairs; wrapped in `Indexed.collate` it is given the items.

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
        # Memory that forked workers share, and torch hands on to spawned ones: what is said in one is said for all.
        self._has_warned = torch.frombuffer(mmap.mmap(-1, 1), dtype=torch.bool)
        if len(self) == 0:
            raise ValueError("dataset must hold at least one sample, got an empty one")

    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> tuple[int, Item]:
        if isinstance(index, list | tuple):
            raise TypeError(
                f"a loader must ask for one sample by one index, got {repr(index)[:80]}; give it the AdaptiveSampler "
                "as sampler=, with batch_size=, and not inside a BatchSampler"
            )
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
            self._has_warned.fill_(True)
            warnings.warn(
                "a batch holds the same sample twice, which an AdaptiveSampler never cuts; give the DataLoader its "
                "batch_size",
                stacklevel=loop_level(),
            )
        fetch = getattr(self.dataset, "__getitems__", None)
        items = fetch(indices) if fetch else [self.dataset[index] for index in indices]
        return list(zip(indices, items, strict=True))

    @staticmethod
    def collate(fn: Callable[[list[Any]], Batch]) -> Collate[Batch]:
        """A `collate_fn` for a loader over an `Indexed` data set, which gives `indices, fn(items)`.

        It can be pickled if `fn` can, as spawned workers ask for.

        Args:
            fn: what the loader over the data set itself would take: a list of items -> a batch.

        >>> Indexed.collate("-".join)([(3, "a"), (1, "b")])
        (tensor([3, 1]), 'a-b')
        """
        return Collate(fn)

    def _check(self, indices: list[int]) -> None:
        """Names the argument that asks for samples that there are none of."""
        if (first := min(indices, default=0)) < 0:
            raise IndexError(f"index must be at least 0, got {first}")
        if (last := max(indices, default=0)) >= len(self):
            raise IndexError(
                f"index must be less than the {len(self)} samples of the data set, got {last}; build the selector with "
                f"num_samples={len(self)}"
            )


class Collate(Generic[Batch]):
    """What `Indexed.collate` returns; a class, since a function inside a function cannot be pickled."""

    def __init__(self, fn: Callable[[list[Any]], Batch]) -> None:
        if not callable(fn):
            raise TypeError(
                f"fn must be a function of a list of items, got {type(fn).__name__}; give the loader "
                "collate_fn=Indexed.collate(fn)"
            )
        self.fn = fn

    def __call__(self, indexed: list[tuple[int, Any]]) -> tuple[Tensor, Batch]:
        if not all(_is_indexed(pair) for pair in indexed):
            raise TypeError(
                f"Indexed.collate must be given (index, item) pairs, got {repr(indexed[0])[:80]}; give the loader "
                "Indexed(dataset)"
            )
        indices, items = zip(*indexed, strict=True)
        return torch.tensor(indices), self.fn(list(items))


def _is_indexed(pair: object) -> bool:
    """Whether it is an integer, of whatever kind, and an item."""
    if not (isinstance(pair, tuple | list) and len(pair) == 2):
        return False
    try:
        operator.index(pair[0])
    except (TypeError, ValueError):
        return False
    return True
