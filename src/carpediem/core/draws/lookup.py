"""A systematic epoch of a large data set, made part by part: no part needs the others, nor memory for N numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from carpediem.core.arrays import over_blocks, uniform
from carpediem.core.distribution import Distribution, Levels
from carpediem.core.draws.candidates import Samples, order_by_level
from carpediem.core.draws.distinct import repeated_places
from carpediem.core.draws.permutation import Permutations

PART = 1 << 20  # draws made at a time, and a quarter of it first, so that an epoch starts soon
FEWEST_PARTS = 4  # of fewer draws, where they are not a shuffle, the whole epoch is as soon there
LARGEST_BATCH = 1 << 12  # beyond that nearly every batch has copies to be put apart
LIKELIEST = 0.25  # how often a sample may be expected in a batch
_BLOCK = 1 << 18  # of many short passes: in larger blocks than usual, threads get less into each other's way
_BUCKETS = 1 << 14


def is_looked_up(distribution: Distribution, batch_size: int) -> bool:
    """Whether the data set is large, its levels are few, and copies of a sample seldom meet in a batch."""
    n = distribution.num_samples
    if batch_size > LARGEST_BATCH or n < PART // batch_size * batch_size:
        return False
    if distribution.is_uniform:
        return distribution.device.type == "cpu"  # elsewhere a whole shuffle is soon there
    if not isinstance(distribution, Levels) or n < FEWEST_PARTS * PART:
        return False
    return batch_size * distribution.largest_probability <= LIKELIEST


class LookedUpEpoch:
    """N draws in which sample i appears floor(N P_i) or ceil(N P_i) times, its copies in different batches.

    The draws are numbered level by level. Those of one level go round its samples; where the last round does not
    close, a permutation of the level says who is in it. A permutation of all N numbers says which draw stands where
    in the epoch. Both are looked up and not kept. Where copies of a sample meet in one batch, which in an epoch of
    many batches is rare, one of them changes places with another sample of the same part.

    Args:
        distribution: one that `is_looked_up`.
        seed: says all of it, with the distribution.
    """

    def __init__(self, distribution: Distribution, batch_size: int, seed: int) -> None:
        self._num_samples, self._batch_size, self._seed = distribution.num_samples, batch_size, seed
        self._order: Samples | None = None
        counts, weights = np.array([self._num_samples]), np.ones(1)
        if isinstance(distribution, Levels):
            counts, weights = distribution.block_counts.sum(axis=0), distribution.level_weights
            self._order = order_by_level(distribution.levels.cpu(), distribution.block_counts).numpy()
        offset = uniform(1, torch.Generator().manual_seed(seed))
        share = np.cumsum(counts * weights)
        ends = np.floor(share / share[-1] * self._num_samples + offset).astype(np.int64)
        ends[share == share[-1]] = self._num_samples
        self._ends, self._starts = ends, np.append(0, ends[:-1])
        self._first, self._counts = np.cumsum(counts) - counts, counts.clip(min=1)
        self._closed = (ends - self._starts) // self._counts * self._counts  # draws in rounds that close
        self._permuted = Permutations(np.append(self._counts, self._num_samples), seed)
        # The level of the first draw of each bucket: from there the right one is near.
        self._shift = max(self._num_samples.bit_length() - _BUCKETS.bit_length(), 0)
        buckets = np.arange((self._num_samples >> self._shift) + 1) << self._shift
        self._level_of_bucket = np.searchsorted(ends, buckets, side="right")

    def parts(self, position: int = 0) -> Iterator[tuple[int, Tensor]]:
        """The parts of the epoch that end behind `position`, each with where it starts."""
        size = PART // self._batch_size * self._batch_size
        first = PART // 4 // self._batch_size * self._batch_size
        ends = [first, *range(size, self._num_samples - size + 1, size), self._num_samples]
        for start, stop in zip([0, *ends], ends, strict=False):
            if stop > position:
                yield start, torch.from_numpy(self._part(start, stop))

    def _part(self, start: int, stop: int) -> NDArray[np.int64]:
        drawn = np.empty(stop - start, dtype=np.int64 if self._order is None else self._order.dtype)

        def fill(begin: int, end: int) -> None:
            drawn[begin:end] = self._samples(start + begin, start + end)

        over_blocks(len(drawn), fill, block=_BLOCK)
        if self._order is not None:
            _put_apart(drawn, self._batch_size, torch.Generator().manual_seed((self._seed + stop) % 2**63))
        return drawn.astype(np.int64, copy=False)

    def _samples(self, start: int, stop: int) -> Samples:
        number = self._permuted(np.arange(start, stop), np.array([len(self._counts)]))
        if self._order is None:
            return number
        level = self._levels(number)
        place = number - self._starts[level]
        last = np.flatnonzero(place >= self._closed[level])
        place %= self._counts[level]
        place[last] = self._permuted(place[last], level[last])
        found: Samples = self._order[self._first[level] + place]
        return found

    def _levels(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The level that each draw is of, searched for where a bucket holds the end of one alone."""
        level: NDArray[np.int64] = self._level_of_bucket[numbers >> self._shift]
        behind = np.flatnonzero(numbers >= self._ends[level])
        level[behind] = np.searchsorted(self._ends, numbers[behind], side="right")
        return level


def _put_apart(drawn: Samples, batch_size: int, generator: torch.Generator) -> None:
    """Lets samples that stand twice in a batch change places with others, until no batch holds a sample twice."""
    full = len(drawn) // batch_size
    rows, short = drawn[: full * batch_size].reshape(full, batch_size), drawn[None, full * batch_size :]
    batches = np.arange(full)
    while True:
        row, place = repeated_places(rows[batches])
        places = np.append(batches[row] * batch_size + place, full * batch_size + repeated_places(short)[1])
        if not len(places):
            return
        places = np.unique(places)
        others = (uniform(len(places), generator) * len(drawn)).astype(np.int64)
        batches = np.unique(np.append(places, others) // batch_size)
        batches = batches[batches < full]
        # A place changes once at a time; what has to wait is found again.
        others, first = np.unique(others, return_index=True)
        free = ~np.isin(others, places)
        here, there = places[first[free]], others[free]
        drawn[here], drawn[there] = drawn[there], drawn[here]
