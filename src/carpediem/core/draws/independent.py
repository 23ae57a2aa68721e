"""Independent draws: each batch anew, by successive draws without replacement."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from carpediem.core.distribution import Distribution
from carpediem.core.draws.candidates import Candidates
from carpediem.core.draws.distinct import completed, race, repeated_places

ROUNDS = 64  # redraws, at least, before the few unfinished batches are completed by a race
# Draws made at a time: few at first, so that an epoch starts soon.
FIRST_CHUNK, LARGEST_CHUNK = 1 << 12, 1 << 16


def independent_epoch(
    distribution: Distribution, batch_size: int, seed: int, position: int = 0
) -> Iterator[tuple[int, Tensor]]:
    """An epoch of independent batches; see `Distribution.draw_epoch`."""
    draws = IndependentDraws(distribution)
    for number, (start, stop) in enumerate(chunks(distribution.num_samples, batch_size)):
        if stop > position:
            generator = torch.Generator().manual_seed((seed + number) % 2**63)
            size = min(batch_size, stop - start)
            yield start, draws.batches((stop - start) // size, size, generator).flatten()


def chunks(draws: int, batch_size: int) -> Iterator[tuple[int, int]]:
    """Where the chunks handled at a time begin and end: whole batches, more and more, a short last one alone."""
    full = draws - draws % batch_size
    start, most = 0, FIRST_CHUNK
    while start < full:
        end = min(start + max(most // batch_size, 1) * batch_size, full)
        yield start, end
        start, most = end, min(4 * most, LARGEST_CHUNK)
    if full < draws:
        yield full, draws


class IndependentDraws:
    """Batches of distinct samples, each drawn without replacement, independent of one another.

    They are made on the host, and so are the tables that they need, when they are first needed.
    """

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution

    @cached_property
    def _candidates(self) -> Candidates:
        return Candidates(self._distribution)

    @cached_property
    def _weights(self) -> Tensor:
        return self._distribution.weights().cpu()

    def batches(self, count: int, batch_size: int, generator: torch.Generator) -> Tensor:
        """That many batches, int64, shape (count, batch_size), from a generator of the host."""
        distribution = self._distribution
        distribution.check_batch_size(batch_size)
        if 8 * batch_size <= distribution.support:
            return torch.from_numpy(self._redrawn(count, batch_size, generator))
        if distribution.support == distribution.num_samples:
            return race(self._weights, count, batch_size, generator)
        possible = self._weights.nonzero().flatten()
        return possible[race(self._weights[possible], count, batch_size, generator)]

    def _redrawn(self, count: int, batch_size: int, generator: torch.Generator) -> NDArray[np.int64]:
        """Batches whose repeated places are drawn again until there are none."""
        draw = self._candidates.accepted
        rows = draw(count * batch_size, generator).reshape(count, batch_size)
        open_rows = np.arange(count)
        # A race costs a number for every sample: among many, thousands of redraws are the quicker way.
        for _ in range(max(ROUNDS, self._distribution.num_samples // (8 * batch_size))):
            row, place = repeated_places(rows[open_rows])
            if not len(row):
                return rows.astype(np.int64)
            row = open_rows[row]
            # A value that occurs three times is found twice at the same first place: one redraw serves both.
            rows[row, place] = draw(len(row), generator)
            open_rows = np.unique(row)
        for number in open_rows:
            rows[number] = completed(rows[number], self._weights, generator)
        return rows.astype(np.int64)
