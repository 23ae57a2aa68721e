"""Copies of one sample kept out of each other's batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from carpediem.core.arrays import BLOCK, uniform

Stream = NDArray[np.integer[Any]]


def put_apart(drawn: Stream, batch_size: int, generator: torch.Generator) -> None:
    """Lets samples that stand twice in a batch change places with others, until no batch holds a sample twice.

    Args:
        drawn: batches in a row, the last one maybe shorter; of the places of a batch, no sample has more than a quarter
            of one to expect, or it takes long. Changed in place.
    """
    batches = np.arange(-(-len(drawn) // batch_size))
    while len(places := _repeats(drawn, batch_size, batches)):
        others = (uniform(len(places), generator) * len(drawn)).astype(np.int64)
        batches = np.unique(np.concatenate((places, others)) // batch_size)
        # A place changes once at a time; what has to wait is found again.
        others, first = np.unique(others, return_index=True)
        free = ~np.isin(others, places)
        here, there = places[first[free]], others[free]
        drawn[here], drawn[there] = drawn[there], drawn[here]


def _repeats(drawn: Stream, batch_size: int, batches: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places in these batches whose sample the same batch has further ahead."""
    rows = drawn[: len(drawn) - len(drawn) % batch_size].reshape(-1, batch_size)
    step = max(BLOCK // batch_size, 1)
    whole = batches[batches < len(rows)]
    # Where the batches begin that are looked at more closely: the short one, and those with a repeat.
    starts = [len(rows) * batch_size] if len(whole) < len(batches) else []
    for first in range(0, len(whole), step):
        ordered = np.sort(rows[whole[first : first + step]], axis=1)
        found = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        starts += (whole[first + found] * batch_size).tolist()
    places = [np.empty(0, dtype=np.int64)]
    for start in starts:
        batch = drawn[start : start + batch_size]
        by_sample = np.argsort(batch, kind="stable")
        again = np.flatnonzero(batch[by_sample[1:]] == batch[by_sample[:-1]]) + 1
        places.append(start + by_sample[again])
    return np.concatenate(places)
