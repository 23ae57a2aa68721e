"""A whole epoch in which every sample appears as often as expected, rounded up or down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from carpediem.core.arrays import index_dtype, uniform
from carpediem.core.distribution import Distribution
from carpediem.core.scattered import ScatteredEpoch, is_scattered
from carpediem.core.systematic_device import is_spread_easily, spread


def systematic_parts(
    distribution: Distribution, batch_size: int, generator: torch.Generator, *, position: int = 0
) -> Iterator[tuple[int, Tensor]]:
    """The epoch in parts of whole batches, each with where it starts; those that end before `position` are left out.

    On the host a large data set comes in many parts, so that the first batch is soon there and no memory is needed
    for N numbers; otherwise there is one.
    """
    distribution.check_batch_size(batch_size)
    groups = distribution.groups()
    if groups is None or generator.device.type != "cpu" or not is_scattered(distribution, batch_size):
        yield 0, systematic_epoch(distribution, batch_size, generator)
        return
    epoch = ScatteredEpoch(groups, batch_size, generator.initial_seed())
    start = 0
    for stop in epoch.ends():
        if stop > position:
            yield start, torch.from_numpy(epoch.part(start, stop))
        start = stop


def systematic_epoch(distribution: Distribution, batch_size: int, generator: torch.Generator) -> Tensor:
    """N draws in which sample i appears floor(N P_i) or ceil(N P_i) times, its copies in different batches.

    A comb with teeth one apart and a random offset is laid over the expected counts, one sample beside the
    other in random order; the teeth that fall on a sample are its copies. With equal probabilities this is a
    shuffle. A sample expected more often than there are batches appears in each, and what it cannot take is shared
    out among the others.

    On an accelerator nothing waits for the device, unless a sample is expected in more than half of the batches.

    Returns:
        int64, shape (N,): every run of `batch_size` is distinct.
    """
    n = distribution.num_samples
    if distribution.is_uniform:
        return torch.randperm(n, generator=generator, device=generator.device)
    easily = is_spread_easily(n, batch_size, distribution.largest_probability)
    if easily and generator.device.type != "cpu":
        return spread(distribution.probabilities(), batch_size, generator)
    host = torch.Generator().manual_seed(generator.initial_seed())
    expected = distribution.probabilities().cpu().numpy() * n
    full, tail = divmod(n, batch_size)
    order = torch.randperm(n, generator=host, dtype=index_dtype(n), device="cpu").numpy()
    if not easily:
        expected = _fitted(expected, full, tail)
        # Those that may be in every batch stand together, so that no more of them are than the short one holds.
        order = order[np.argsort(expected[order] <= full, kind="stable")]
    teeth = expected[order]
    np.cumsum(teeth, out=teeth)
    # The sum of many millions drifts from N; what it lacks would go to the last sample, even of weight 0. More than a
    # drift is missing where weights are too small for a number; the others have no room for that.
    if abs(teeth[-1] - n) < 0.5:
        teeth /= teeth[-1]
        teeth *= n
    teeth += uniform(1, host)
    ends = teeth.astype(np.int64).clip(max=n)
    ends[-1] = n
    counts = np.diff(ends, prepend=0)
    if not easily:
        # Each of those that are takes a round of its own; the others come in random order again.
        again = torch.randperm(n, generator=host, device="cpu").numpy()
        again = again[np.argsort(counts[again] <= full, kind="stable")]
        order, counts = order[again], counts[again]
    copies = np.repeat(order, counts)
    return torch.from_numpy(_dealt(copies, batch_size, easily, host)).to(generator.device)


def _fitted(expected: NDArray[np.float64], full: int, tail: int) -> NDArray[np.float64]:
    """Expected counts that the batches have room for: `full` whole ones and one of `tail` samples.

    No count is above the number of batches, and what is above that of the whole ones fits into the short one. What is
    cut off goes to the others in proportion.
    """
    fitted = _capped(expected, full + (tail > 0), float(len(expected)))
    heavy = fitted > full
    excess = (fitted[heavy] - full).sum()
    if excess > tail:
        fitted[heavy] = full + (fitted[heavy] - full) * (tail / excess)
        left = float(len(expected) - full * heavy.sum() - tail)
        fitted[~heavy] = _capped(_scaled(fitted[~heavy], left), full, left)
    return fitted


def _capped(expected: NDArray[np.float64], cap: int, total: float) -> NDArray[np.float64]:
    """`expected` with nothing above `cap` and the sum `total`, the others raised in proportion."""
    capped = np.zeros(len(expected), dtype=bool)
    while (over := (expected > cap) & ~capped).any():
        capped |= over
        expected = np.where(capped, float(cap), expected)
        expected[~capped] = _scaled(expected[~capped], total - cap * capped.sum())
    return expected


def _scaled(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """The values in proportion, with the sum `total`; nothing where there is nothing to share out."""
    largest = values.max(initial=0.0)
    if total <= 0 or largest <= 0:
        return np.zeros_like(values)
    shares = values / largest  # first, lest the tiniest add up to nothing
    return np.asarray(shares * (total / shares.sum()))


def _dealt(
    copies: NDArray[np.integer[Any]], batch_size: int, in_halves: bool, generator: torch.Generator
) -> NDArray[np.int64]:
    """The copies dealt to the batches like cards, a round at a time, each round in an order of its own.

    Args:
        copies: (N,), the copies of a sample side by side; samples that are needed in every batch, the short one too,
            stand at the beginning.
        in_halves: deal every round first to one half of the batches and then to the other (see `spread`), for which
            no sample may be needed in more than half of them; otherwise a round is put right where a sample that
            runs on from the round before would meet one of its batches again.
    """
    full, tail = divmod(len(copies), batch_size)
    batches = torch.randperm(full, generator=generator, device="cpu").numpy()
    first, second = np.split(batches, [full // 2 if in_halves else 0])
    out = np.empty(len(copies), dtype=np.int64)
    used, before = 0, batches[:0]
    for rounds, half in ((range(tail), np.append(second, full)), (range(tail, batch_size), second)):
        width = len(first) + len(half)
        if width == 0 or not rounds:
            continue
        deals = np.concatenate([_orders(part, len(rounds), generator) for part in (first, half)], axis=1)
        for number, behind, ahead in () if in_halves else _crossings(copies, used, width, len(rounds)):
            last = deals[number - 1] if number else before
            deals[number] = _avoiding(deals[number], last[len(last) - behind :], ahead)
        places = deals * batch_size + np.array(rounds)[:, None]
        out[places.ravel()] = copies[used : used + places.size]
        used, before = used + places.size, deals[-1]
    return out


def _orders(batches: NDArray[np.int64], rounds: int, generator: torch.Generator) -> NDArray[np.int64]:
    """The batches in an order of its own for every round, shape (rounds, batches)."""
    keys = torch.randint(2**31, (rounds, len(batches)), generator=generator, device="cpu").numpy()
    keys <<= 32
    keys |= batches
    keys.sort(axis=1)  # of numbers that carry the batch: several times as fast as an argsort
    keys &= 2**32 - 1
    return keys


def _crossings(
    copies: NDArray[np.integer[Any]], used: int, width: int, rounds: int
) -> Iterator[tuple[int, int, int]]:
    """The rounds that a sample runs on into, with how many of its copies are behind and how many ahead."""
    starts = used + width * np.arange(rounds)
    edges = np.concatenate(([0], np.flatnonzero(np.diff(copies)) + 1, [len(copies)]))
    run = np.searchsorted(edges, starts, side="right")
    behind, ahead = starts - edges[run - 1], edges[run] - starts
    crossing = np.flatnonzero(behind)
    return zip(crossing.tolist(), behind[crossing].tolist(), ahead[crossing].tolist(), strict=True)


def _avoiding(deal: NDArray[np.int64], taken: NDArray[np.int64], ahead: int) -> NDArray[np.int64]:
    """`deal` rearranged so that the first `ahead` of its batches are none of those taken."""
    # One more than the deal has: the short batch, of the largest number, may be among the taken alone.
    is_taken = np.zeros(int(deal.max()) + 2, dtype=bool)
    is_taken[taken] = True
    chosen = np.flatnonzero(~is_taken[deal])[:ahead]
    rest = np.ones(len(deal), dtype=bool)
    rest[chosen] = False
    return np.concatenate((deal[chosen], deal[rest]))
