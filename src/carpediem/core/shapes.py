"""The shapes a window can have.

Eq. 6 depends only on how often each label occurs in a window, that is on an integer partition of the
window's length: 139 of them for q = 10, the empty window included. The number of a window's partition is
its *level*. A refresh finds the level of every window and evaluates Eq. 6 to 8 once a level.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from carpediem.core.arrays import Array, like, namespace, native, over_blocks, whole
from carpediem.core.uncertainty import window_uncertainty

MAX_WINDOW = 32


def partitions(total: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """Ways to write `total` as a sum of positive integers, largest first.

    >>> list(partitions(4))
    [(4,), (3, 1), (2, 2), (2, 1, 1), (1, 1, 1, 1)]
    """
    if total == 0:
        yield ()
        return
    for part in range(min(total, total if largest is None else largest), 0, -1):
        for rest in partitions(total - part, part):
            yield (part, *rest)


def sorting_network(length: int) -> list[tuple[int, int]]:
    """Compare-exchange pairs (i, j), i < j, that sort any sequence of `length` values (Batcher's merge).

    >>> sorting_network(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    pairs, size = [], 1 << max(length - 1, 0).bit_length()
    p = 1
    while p < size:
        k = p
        while k >= 1:
            for j in range(k % p, size - k, 2 * k):
                for i in range(min(k, size - j - k)):
                    low, high = i + j, i + j + k
                    # A pair that touches the padding beyond `length` would leave it in place.
                    if low // (2 * p) == high // (2 * p) and high < length:
                        pairs.append((low, high))
            k //= 2
        p *= 2
    return pairs


class WindowShapes:
    """Numbers the shapes of windows of up to `window` predictions. Use `window_shapes`, which keeps them.

    A window is recognised by a key. In the sorted window, r counts along each run of equal labels,
    r <- r * A * [same label as before] + 1, and the key is the sum of r over the window plus C times its
    length, in wrapping integer arithmetic. The multipliers are searched until all shapes differ, so equal
    keys mean equal shapes: nothing is left to chance.
    """

    def __init__(self, window: int) -> None:
        if not 1 <= window <= MAX_WINDOW:
            raise ValueError(f"window must lie in [1, {MAX_WINDOW}] predictions, got {window}")
        self.window = window
        self.counts = [shape for length in range(window + 1) for shape in partitions(length)]
        self.network = sorting_network(window)
        # Up to q = 15 a 16-bit key can tell all shapes apart, and a table of 2^16 entries turns it into the level.
        self.key_dtype: np.dtype[np.int16 | np.int32] = np.dtype(np.int16 if window <= 15 else np.int32)
        self.level_dtype = torch.uint8 if len(self.counts) <= 256 else torch.int32
        self._multiplier, self._length_factor, keys = self._separating_constants()
        self._order = np.argsort(keys)
        self._sorted_keys = keys[self._order]

    def __len__(self) -> int:
        return len(self.counts)

    def uncertainties(self, num_classes: int) -> NDArray[np.float64]:
        """U of each level (Eq. 6), float64."""
        return np.array([window_uncertainty(shape, num_classes) for shape in self.counts])

    def levels(self, labels: Array, filled: Array, out: Array) -> None:
        """Writes the level of each window into `out`.

        Args:
            labels: (q, n), a column a window. Free places hold a value larger than every label.
            filled: (n,), how many places of each window are taken; more than q means all.
            out: (n,), of `level_dtype`.
        """

        def fill(start: int, stop: int) -> None:
            out[start:stop] = self._lookup(self._keys(labels[:, start:stop], filled[start:stop]))

        if namespace(labels) is np:
            over_blocks(out.shape[0], fill)
        else:
            fill(0, out.shape[0])

    def _keys(self, labels: Array, filled: Array) -> Array:
        xp = namespace(labels)
        rows = list(labels)
        for i, j in self.network:
            rows[i], rows[j] = xp.minimum(rows[i], rows[j]), xp.maximum(rows[i], rows[j])
        dtype = self.key_dtype if xp is np else getattr(torch, self.key_dtype.name)
        key = like(filled.clip(max=self.window), xp.empty(0, dtype=dtype))
        key *= self._length_factor
        key += 1
        run = xp.ones_like(key)
        for before, after in pairwise(rows):
            run *= before == after
            run *= self._multiplier
            run += 1
            key += run
        return key

    def _lookup(self, key: Array) -> Array:
        if isinstance(key, np.ndarray):
            if self.key_dtype.itemsize == 2:
                return np.take(self._table, key.view(np.uint16))
            return self._order[np.searchsorted(self._sorted_keys, key)]
        keys, order = (torch.from_numpy(a).to(key.device) for a in (self._sorted_keys, self._order))
        return order[torch.searchsorted(keys, key)].to(self.level_dtype)

    @cached_property
    def _table(self) -> NDArray[np.generic]:
        table = np.zeros(1 << 16, dtype=native(torch.empty(0, dtype=self.level_dtype, device="cpu")).dtype)
        table[self._sorted_keys.view(np.uint16)] = self._order
        return table

    def _separating_constants(self) -> tuple[int, int, NDArray[np.generic]]:
        window, dtype = self.window, self.key_dtype
        # How many runs of each length a window has; its free places are a run too.
        runs = np.zeros((len(self.counts), window + 1), dtype=np.int64)
        for level, shape in enumerate(self.counts):
            for part in (*shape, window - sum(shape)):
                runs[level, part] += 1
        lengths = np.array([sum(shape) for shape in self.counts], dtype=np.int64)
        random = np.random.default_rng(window)
        while True:
            multiplier, length_factor = (int(v) for v in random.integers(3, 2 ** (8 * dtype.itemsize - 1), 2))
            run, total, sums = 1, 0, [0]
            for _ in range(window):
                total += run
                run = (run * multiplier + 1) % 2**32
                sums.append(total % 2**32)
            keys = (whole(runs @ np.array(sums)) + length_factor * lengths).astype(dtype)
            if len(np.unique(keys)) == len(keys):
                return multiplier, length_factor, keys


@cache
def window_shapes(window: int) -> WindowShapes:
    """The shapes of windows of up to `window` predictions.

    >>> len(window_shapes(10))
    139
    """
    return WindowShapes(window)
