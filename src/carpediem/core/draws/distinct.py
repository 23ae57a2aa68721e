"""Repeats in batches, and draws without them.

A batch is drawn one sample after another, and a sample that the batch already holds is drawn again. That is
drawing without replacement. Here all places of a batch are drawn at once, and only repeated ones again: a
place whose value a later place holds too. The outcome has the same law, because a value that was refused
once stays in the later places for good, so each place ends with the first of its own candidates that none
of them holds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def repeated_places(rows: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For every time that a value comes again in its row, the row, and the place where it stands first.

    >>> repeated_places(np.array([[7, 3, 5, 3], [4, 2, 4, 4]]))
    (array([0, 1, 1]), array([1, 0, 0]))
    """
    ordered = np.sort(rows, axis=1)  # most rows have no repeats, and this is the quickest way to know
    open_rows = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    keys = rows[open_rows].astype(np.int64) << 32
    keys |= np.arange(rows.shape[1])
    keys.sort(axis=1)  # of numbers that carry the place: several times as fast as an argsort
    ordered = keys >> 32
    row, column = np.nonzero(ordered[:, 1:] == ordered[:, :-1])
    begins = np.append(True, (np.diff(row) != 0) | (np.diff(column) != 1))[: len(row)]
    start = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    return open_rows[row], keys[row, column[start]] & (2**32 - 1)


def completed(
    row: NDArray[np.integer[Any]], weights: Tensor, generator: torch.Generator
) -> NDArray[np.integer[Any]]:
    """The row with its undecided places drawn anew, each from the samples that the decided ones leave."""
    # The last places are decided: from the end up to the first value that stands again behind it.
    backwards = row[::-1]
    _, first_seen = np.unique(backwards, return_index=True)
    repeated = np.setdiff1d(np.arange(len(row)), first_seen)
    decided = int(repeated[0]) if len(repeated) else len(row)
    rest = weights.clone()
    rest[torch.from_numpy(backwards[:decided].copy())] = 0
    drawn = race(rest, 1, len(row) - decided, generator).numpy()[0]
    return np.concatenate((backwards[:decided], drawn))[::-1]


def race(weights: Tensor, batches: int, batch_size: int, generator: torch.Generator) -> Tensor:
    """Batches drawn without replacement by letting all samples race.

    Sample i arrives after an exponential time of rate w_i; the first `batch_size` arrivals, in their order,
    are distributed as successive draws without replacement. Costs N numbers a batch, whatever the weights.
    """
    out = torch.empty(batches, batch_size, dtype=torch.int64, device=weights.device)
    for batch in range(batches):
        time = torch.empty_like(weights).exponential_(generator=generator).div_(weights)
        # The tiniest weights overflow too, but a sample of weight 0 must not arrive before them.
        time.clamp_(max=torch.finfo(time.dtype).max).masked_fill_(weights == 0, math.inf)
        out[batch] = time.topk(batch_size, largest=False, sorted=True).indices
    return out
