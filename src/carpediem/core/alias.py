"""One uniform number to one position: a piecewise linear map with few pieces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from carpediem.core.arrays import Array, native, whole


@dataclass(frozen=True)
class PieceTable:
    """Walker's alias method over groups of equally likely positions.

    Group g holds the positions [starts_g, starts_g + counts_g), each of weight weights_g. The unit interval is
    cut into one column a group, each column into at most two pieces, each piece is mapped linearly onto the
    positions of one group: a uniform number picks a column, a piece and a position without any search.
    """

    cut: Array
    slope: Array
    start: Array

    @staticmethod
    def build(
        counts: NDArray[np.int64],
        starts: NDArray[np.int64],
        weights: NDArray[np.float64],
        device: torch.device,
    ) -> PieceTable:
        """The table of the groups with `counts` positions from `starts` on, each position of `weights`."""
        used = np.flatnonzero((counts > 0) & (weights > 0))
        counts, starts = counts[used], starts[used]
        cut, alias = _alias(counts * weights[used])
        # Piece 2c is column c's own, piece 2c + 1 its alias's.
        group = np.stack((np.arange(len(used)), alias), axis=1).ravel()
        width = np.stack((cut, 1 - cut), axis=1).ravel()
        # A hair less than the whole group, so that rounding cannot step over its end.
        slope = counts[group] * (1 - 1e-15) / np.where(width > 0, width, 1)
        return PieceTable(*(native(torch.from_numpy(a).to(device)) for a in (cut, slope, starts[group])))

    def positions(self, uniform: Array) -> Array:
        """The position that each uniform number in [0, 1) stands for, int64. `uniform` is used up."""
        uniform *= self.cut.shape[0]
        column = whole(uniform)
        uniform -= column
        cut = self.cut[column]
        other = uniform >= cut
        uniform -= cut * other
        piece = 2 * column + other
        uniform *= self.slope[piece]
        return whole(uniform) + self.start[piece]


def _alias(masses: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Share of each column that is its own, and whose the rest is (Vose's construction)."""
    share = (masses / masses.sum() * len(masses)).tolist()
    alias = list(range(len(share)))
    cut = [1.0] * len(share)
    small = [i for i, s in enumerate(share) if s < 1]
    large = [i for i, s in enumerate(share) if s >= 1]
    while small and large:
        less, more = small.pop(), large[-1]
        cut[less], alias[less] = share[less], more
        share[more] -= 1 - share[less]
        if share[more] < 1:
            small.append(large.pop())
    return np.array(cut), np.array(alias, dtype=np.int64)
