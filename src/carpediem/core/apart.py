"""Copies of one sample kept out of each other's batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from carpediem.core.arrays import BLOCK, uniform

Stream = NDArray[np.integer[Any]]

_AT_A_TIME = 1 << 9  # changes tried in one go


def put_apart(drawn: Stream, batch_size: int, generator: torch.Generator) -> None:
    """Lets samples that stand twice in a batch change places with others, until no batch holds a sample twice.

    Args:
        drawn: batches in a row, the last one maybe shorter; no sample occurs more often than half of them. Changed in
            place.
    """
    places = _repeats(drawn, batch_size)
    while len(places):
        now, places = places[:_AT_A_TIME], places[_AT_A_TIME:]
        others = (uniform(len(now), generator) * len(drawn)).astype(np.int64)
        fits = ~(
            _holds(drawn, now, drawn[others], batch_size) | _holds(drawn, others, drawn[now], batch_size)
        )
        changed: set[int] = set()
        for number in np.flatnonzero(fits).tolist():
            here, there = int(now[number]), int(others[number])
            pair = {here // batch_size, there // batch_size}
            fits[number] = not pair & changed  # what was looked at must still hold
            if fits[number]:
                changed |= pair
                drawn[here], drawn[there] = drawn[there], drawn[here]
        places = np.concatenate((now[~fits], places))


def _repeats(drawn: Stream, batch_size: int) -> NDArray[np.int64]:
    """The places whose sample the same batch has further ahead."""
    rows = drawn[: len(drawn) - len(drawn) % batch_size].reshape(-1, batch_size)
    step = max(BLOCK // batch_size, 1)
    # Where the batches begin in which to look: the short one, and those with a repeat.
    starts = [len(rows) * batch_size]
    for first in range(0, len(rows), step):
        ordered = np.sort(rows[first : first + step], axis=1)
        found = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        starts += ((first + found) * batch_size).tolist()
    places = [np.empty(0, dtype=np.int64)]
    for start in starts:
        batch = drawn[start : start + batch_size]
        by_sample = np.argsort(batch, kind="stable")
        again = np.flatnonzero(batch[by_sample[1:]] == batch[by_sample[:-1]]) + 1
        places.append(start + by_sample[again])
    return np.concatenate(places)


def _holds(drawn: Stream, places: NDArray[np.int64], samples: Stream, batch_size: int) -> NDArray[np.bool_]:
    """Whether the batch of each place holds the sample given for it."""
    members = (places // batch_size * batch_size)[:, None] + np.arange(batch_size)
    inside = members < len(drawn)
    same = (drawn[np.where(inside, members, 0)] == samples[:, None]) & inside
    return np.asarray(same.any(axis=1))
