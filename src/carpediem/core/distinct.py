"""Batches of distinct samples.

A batch is drawn one sample after another, and a sample that the batch already holds is drawn again. That is
drawing without replacement. Here all places of a batch are drawn at once, and only repeated ones again: a
place whose value a later place holds too. The outcome has the same law, because a value that was refused
once stays in the later places for good, so each place ends with the first of its own candidates that none
of them holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ROUNDS = 64  # redraws, at least, before the few unfinished batches are completed by a race

HostCandidates = Callable[[int, torch.Generator], NDArray[np.integer[Any]]]
Weights = Callable[[], Tensor]


def distinct_on_host(
    candidates: HostCandidates,
    weights: Weights,
    batches: int,
    batch_size: int,
    generator: torch.Generator,
    *,
    rounds: int = ROUNDS,
) -> NDArray[np.int64]:
    """Batches without repeats.

    Args:
        candidates: (count, generator) -> that many independent draws.
        weights: () -> the weight of every sample, float64, shape (N,); asked for only where redrawing would
            take too long.
        rounds: how often is redrawn before that.

    Returns:
        int64, shape (batches, batch_size).
    """
    rows = candidates(batches * batch_size, generator).reshape(batches, batch_size)
    open_rows = np.arange(batches)
    for _ in range(rounds):
        ordered = np.sort(rows[open_rows], axis=1)
        open_rows = open_rows[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)]
        if not len(open_rows):
            return rows.astype(np.int64)
        row, place = _repeated_places(rows[open_rows])
        # A value that occurs three times is found twice at the same first place: one redraw serves both.
        rows[open_rows[row], place] = candidates(len(row), generator)
    all_weights = weights()
    for number in open_rows:
        rows[number] = _completed(rows[number], all_weights, generator)
    return rows.astype(np.int64)


def _repeated_places(rows: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For every time that a value comes again in its row, the row, and the place where it stands first.

    >>> _repeated_places(np.array([[7, 3, 5, 3], [4, 2, 4, 4]]))
    (array([0, 1, 1]), array([1, 0, 0]))
    """
    keys = rows.astype(np.int64) << 32
    keys |= np.arange(rows.shape[1])
    keys.sort(axis=1)  # of numbers that carry the place: several times as fast as an argsort
    ordered = keys >> 32
    row, column = np.nonzero(ordered[:, 1:] == ordered[:, :-1])
    begins = np.append(True, (np.diff(row) != 0) | (np.diff(column) != 1))
    start = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    return row, keys[row, column[start]] & (2**32 - 1)


def _completed(
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


def spare_candidates(batch_size: int, repeat_rate: float, acceptance: float) -> int | None:
    """How many candidates a batch needs so that too few of them being good is out of the question.

    None where that would be too many, as where few samples hold much of the mass: the spare ones repeat them too.

    Args:
        repeat_rate: probability that two accepted candidates are the same sample, sum of P_i^2.
        acceptance: share of candidates that are not rejected outright.
    """
    size = math.ceil((batch_size + 40) / acceptance)
    mean = size * (1 - acceptance) + size * size / 2 * repeat_rate
    count = size + math.ceil(2 * mean) + 40
    while count <= 4 * batch_size + 200:
        if _good_at_least(count, repeat_rate, acceptance) >= batch_size:
            return count
        count += count // 4
    return None


def _good_at_least(count: int, repeat_rate: float, acceptance: float) -> float:
    """How many of so many candidates are accepted and distinct, but for once in 1e15 batches.

    The repeated ones are at most as many as the pairs of equal ones, which a Poisson law bounds.
    """
    accepted = count * acceptance
    pairs = accepted * accepted / 2 * repeat_rate
    return accepted - 8 * math.sqrt(accepted * (1 - acceptance)) - (pairs + 8 * math.sqrt(pairs) + 16)


def first_distinct(candidates: Tensor, accepted: Tensor | None, batch_size: int) -> Tensor:
    """The first `batch_size` distinct accepted candidates of each row, without a look at the data.

    Args:
        candidates: integers, shape (batches, m).
        accepted: bool, the same shape; None when all are.
    """
    candidates = candidates.long()
    batches, size = candidates.shape
    place = torch.arange(size, device=candidates.device)
    # A rejected candidate counts as a sample of its own beyond all others, so that it repeats nothing.
    apart = candidates if accepted is None else torch.where(accepted, candidates, (1 << 40) + place)
    keyed = apart * size + place
    ordered = keyed.sort(dim=1).values
    value, origin = ordered // size, ordered % size
    good = torch.ones_like(value, dtype=torch.bool)
    good[:, 1:] = value[:, 1:] != value[:, :-1]
    in_place = torch.zeros_like(good).scatter_(1, origin, good)
    if accepted is not None:
        in_place &= accepted
    rank = in_place.cumsum(dim=1) - 1
    target = torch.where(in_place & (rank < batch_size), rank, batch_size)
    out = torch.zeros(batches, batch_size + 1, dtype=torch.int64, device=candidates.device)
    return out.scatter_(1, target, candidates)[:, :batch_size]
