"""Independent draws from a distribution, each in a time that does not grow with N."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from carpediem.core.arrays import index_dtype, over_blocks, uniform
from carpediem.core.distribution import COUNTED, Distribution, Levels, count_levels

Samples = NDArray[np.integer[Any]]
Pieces = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]
_OCTAVES = 255  # level 254 takes what is less likely than 2^-31 of the largest weight, level 255 the zeros


class Candidates:
    """The tables to draw single samples with: one uniform number picks a level and a place in it.

    Samples that have weights of their own are grouped by the eighth of an octave that the weight lies in. A candidate
    is drawn by its level's upper bound and accepted with the share of it that its own weight is: at least 11 out of 12
    are. No table of cumulated weights is searched and none is rounded, so N has no limit.
    """

    def __init__(self, distribution: Distribution) -> None:
        self._num_samples, self._is_uniform = distribution.num_samples, distribution.is_uniform
        self._weights: NDArray[np.float64] | None = None
        if isinstance(distribution, Levels):
            levels, bounds = distribution.levels.cpu(), distribution.level_weights
            in_block = distribution.block_counts
        elif not distribution.is_uniform:
            weights = distribution.weights().cpu()
            levels, bounds = _by_octaves(weights)
            in_block = count_levels(levels, len(bounds))
            # log2 is rounded: a bound a little above lets every weight stay below the bound of its level.
            self._weights, self._levels, self._bounds = weights.numpy(), levels.numpy(), bounds * (1 + 1e-9)
        if not self._is_uniform:
            self._order = order_by_level(levels, in_block).numpy()
            self._pieces = _pieces(in_block.sum(axis=0), bounds)

    def draw(self, count: int, generator: torch.Generator) -> tuple[Samples, NDArray[np.bool_] | None]:
        """That many candidates, and which of them are accepted (None: all)."""
        numbers = uniform(count, generator)
        if self._is_uniform:
            return (numbers * self._num_samples).astype(np.int64), None
        found = self._order[_positions(self._pieces, numbers)]
        if self._weights is None:
            return found, None
        return found, uniform(count, generator) * self._bounds[self._levels[found]] < self._weights[found]

    def accepted(self, count: int, generator: torch.Generator) -> Samples:
        """That many independent draws; what is rejected is drawn again."""
        found, accepted = self.draw(count, generator)
        missing = np.arange(count)
        while accepted is not None and len(missing := missing[~accepted]):
            found[missing], accepted = self.draw(len(missing), generator)
        return found


def _by_octaves(weights: Tensor) -> tuple[Tensor, NDArray[np.float64]]:
    """The level of each weight, uint8, and the upper bound of each level."""
    levels, largest = torch.empty(len(weights), dtype=torch.uint8, device="cpu"), float(weights.max())
    source, target, top = weights.numpy(), levels.numpy(), math.log2(largest)

    def fill(start: int, stop: int) -> None:
        part = source[start:stop]
        octaves = 8 * (top - np.log2(np.where(part > 0, part, largest)))
        target[start:stop] = np.where(part > 0, octaves.clip(0, _OCTAVES - 1), _OCTAVES)

    over_blocks(len(source), fill)
    bounds = largest * np.exp2(-np.arange(_OCTAVES + 1) / 8)
    bounds[-1] = 0.0
    return levels, bounds


def order_by_level(levels: Tensor, in_block: NDArray[np.int64]) -> Tensor:
    """The samples listed level by level, in the order of their indices inside each.

    Args:
        levels: shape (N,), on the host.
        in_block: `count_levels` of them.

    >>> order_by_level(torch.tensor([2, 0, 2, 0], dtype=torch.uint8), np.array([[2, 0, 2]]))
    tensor([1, 3, 0, 2], dtype=torch.int32)
    """
    source, counts = levels.numpy(), in_block.sum(axis=0)
    # Where each block's samples of each level begin: behind the lower levels and behind the earlier blocks.
    begin = np.cumsum(in_block, axis=0) - in_block + np.cumsum(counts) - counts
    order = torch.empty(len(levels), dtype=index_dtype(len(levels)), device="cpu")
    target = order.numpy()

    # Block by block: a sort of the whole would need several times the memory, and miss the cache.
    def place(start: int, stop: int) -> None:
        found = np.argsort(source[start:stop], kind="stable")
        found += start
        block = start // COUNTED
        used = np.flatnonzero(in_block[block])
        sizes = in_block[block, used]
        ends = np.cumsum(sizes)
        for to, size, end in zip(begin[block, used].tolist(), sizes.tolist(), ends.tolist(), strict=True):
            target[to : to + size] = found[end - size : end]

    over_blocks(len(source), place, block=COUNTED)
    return order


def _pieces(counts: NDArray[np.int64], weights: NDArray[np.float64]) -> Pieces:
    """Cuts, slopes and starts of Walker's alias method over groups of equally likely positions.

    Each position of group g, which has counts_g of them, is of weights_g. The unit interval is cut into one column a
    group, each column into at most two pieces, each piece is mapped linearly onto the positions of one group: a
    uniform number picks a column, a piece and a position without any search.
    """
    used = np.flatnonzero((counts > 0) & (weights > 0))
    starts, counts = (np.cumsum(counts) - counts)[used], counts[used]
    masses = counts * weights[used]
    # Vose's construction: the share of each column that is its own, and whose the rest is.
    share = (masses / masses.sum() * len(masses)).tolist()
    cut, alias = [1.0] * len(share), list(range(len(share)))
    small = [i for i, s in enumerate(share) if s < 1]
    large = [i for i, s in enumerate(share) if s >= 1]
    while small and large:
        less, more = small.pop(), large[-1]
        cut[less], alias[less] = share[less], more
        share[more] -= 1 - share[less]
        if share[more] < 1:
            small.append(large.pop())
    # Piece 2c is column c's own, piece 2c + 1 its alias's.
    group = np.stack((np.arange(len(used)), alias), axis=1).ravel()
    width = np.stack((cut, np.subtract(1, cut)), axis=1).ravel()
    # A hair less than the whole group, so that rounding cannot step over its end.
    slope = counts[group] * (1 - 1e-15) / np.where(width > 0, width, 1)
    return np.array(cut), slope, starts[group]


def _positions(pieces: Pieces, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """The position that each uniform number in [0, 1) stands for. The numbers are used up."""
    cuts, slopes, starts = pieces
    numbers *= len(cuts)
    column = numbers.astype(np.int64)
    numbers -= column
    cut = cuts[column]
    other = numbers >= cut
    numbers -= cut * other
    piece = 2 * column + other
    numbers *= slopes[piece]
    return numbers.astype(np.int64) + starts[piece]
