"""A systematic epoch of a large data set, made part by part: no part needs the others, nor memory for N numbers."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from carpediem.core.apart import Stream, put_apart
from carpediem.core.arrays import over_blocks, uniform
from carpediem.core.distribution import Distribution, Groups
from carpediem.core.scramble import Scrambles

PART = 1 << 20  # draws made at a time
LARGEST_BATCH = 1 << 12  # beyond that nearly every batch has copies to be put apart
LIKELIEST = 0.25  # how often a sample may be expected in a batch
_BLOCK = 1 << 18  # of many short passes: in larger blocks than usual, threads get less into each other's way
_BUCKETS = 1 << 14
_STEPS = 8  # levels that are gone through one by one, before those far behind are searched for


def part_size(batch_size: int) -> int:
    """Draws of a part: whole batches."""
    return PART // batch_size * batch_size


def is_scattered(distribution: Distribution, batch_size: int) -> bool:
    """Whether there is enough for a part, and copies of a sample seldom meet in a batch."""
    if batch_size > LARGEST_BATCH or distribution.num_samples < part_size(batch_size):
        return False
    return batch_size * distribution.largest_probability <= LIKELIEST


class ScatteredEpoch:
    """N draws in which sample i appears floor(N P_i) or ceil(N P_i) times, its copies in different batches.

    The draws are numbered level by level. Those of one level go round its samples; where the last round does not
    close, a permutation of the level says who is in it. A permutation of all N numbers says which draw stands where
    in the epoch. Both are looked up and not kept. Where copies of a sample meet in one batch, which in an epoch of
    many batches is rare, one of them changes places with another sample of the same part.

    Args:
        groups: those of a distribution for which `is_scattered` holds.
        seed: says all of it, with the groups.
    """

    def __init__(self, groups: Groups, batch_size: int, seed: int) -> None:
        counts, weights, self._order = groups
        self._num_samples, self._batch_size, self._seed = int(counts.sum()), batch_size, seed
        offset = uniform(1, torch.Generator().manual_seed(seed))
        share = np.cumsum(counts * weights)
        ends = np.floor(share / share[-1] * self._num_samples + offset).astype(np.int64)
        ends[share == share[-1]] = self._num_samples
        self._ends, self._starts = ends, np.append(0, ends[:-1])
        self._first, self._counts = np.cumsum(counts) - counts, counts.clip(min=1)
        self._closed = (ends - self._starts) // self._counts * self._counts  # draws in rounds that close
        self._permuted = Scrambles(np.append(self._counts, self._num_samples), self._seed)
        # The level of the first draw of each bucket: from there the right one is near.
        self._shift = max(self._num_samples.bit_length() - _BUCKETS.bit_length(), 0)
        buckets = np.arange((self._num_samples >> self._shift) + 1) << self._shift
        self._level_of_bucket = np.searchsorted(ends, buckets, side="right")

    def ends(self) -> list[int]:
        """Where the parts end; the last one holds what is left over too."""
        size = part_size(self._batch_size)
        return [*range(size, self._num_samples - size + 1, size), self._num_samples]

    def part(self, start: int, stop: int) -> NDArray[np.int64]:
        """The draws from `start` to `stop`, which are the ends of two parts."""
        drawn = np.empty(stop - start, dtype=np.int64 if self._order is None else self._order.dtype)

        def fill(begin: int, end: int) -> None:
            drawn[begin:end] = self._samples(start + begin, start + end)

        over_blocks(len(drawn), fill, block=_BLOCK)
        if self._order is not None:
            put_apart(drawn, self._batch_size, torch.Generator().manual_seed((self._seed + stop) % 2**63))
        return drawn.astype(np.int64, copy=False)

    def _samples(self, start: int, stop: int) -> Stream:
        number = self._permuted(np.arange(start, stop), np.array([len(self._counts)]))
        if self._order is None:
            return number
        level = self._levels(number)
        place = number - self._starts[level]
        last = np.flatnonzero(place >= self._closed[level])
        place %= self._counts[level]
        place[last] = self._permuted(place[last], level[last])
        found: Stream = self._order[self._first[level] + place]
        return found

    def _levels(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The level that each draw is of, found in a tenth of the time of `searchsorted`."""
        level: NDArray[np.int64] = self._level_of_bucket[numbers >> self._shift]
        behind = np.flatnonzero(numbers >= self._ends[level])
        for _ in range(_STEPS):
            level[behind] += 1
            behind = behind[numbers[behind] >= self._ends[level[behind]]]
        level[behind] = np.searchsorted(self._ends, numbers[behind], side="right")
        return level
