"""Systematic draws: every sample appears in an epoch as often as expected, rounded up or down."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from carpediem.core.arrays import index_dtype, uniform
from carpediem.core.distribution import Distribution
from carpediem.core.draws.candidates import Samples
from carpediem.core.draws.lookup import LookedUpEpoch, is_looked_up


def systematic_epoch(
    distribution: Distribution, batch_size: int, seed: int, position: int = 0
) -> Iterator[tuple[int, Tensor]]:
    """An epoch in which sample i appears floor(N P_i) or ceil(N P_i) times; see `Distribution.draw_epoch`.

    With equal probabilities it is a shuffle; any other is made on the host. That of a large data set comes in many
    parts, so that the first batch is soon there and no memory is needed for N numbers.
    """
    distribution.check_batch_size(batch_size)
    if is_looked_up(distribution, batch_size):
        yield from LookedUpEpoch(distribution, batch_size, seed).parts(position)
    elif distribution.is_uniform:
        device = distribution.device
        generator = torch.Generator(device).manual_seed(seed)
        yield 0, torch.randperm(distribution.num_samples, generator=generator, device=device)
    else:
        yield 0, _dealt_epoch(distribution, batch_size, torch.Generator().manual_seed(seed))


def _dealt_epoch(distribution: Distribution, batch_size: int, generator: torch.Generator) -> Tensor:
    """All N draws of an epoch.

    A comb with teeth one apart and a random offset is laid over the expected counts, one sample beside the other in
    random order; the teeth that fall on a sample are its copies, which are dealt to the batches like cards. A sample
    expected more often than there are batches appears in each, and the others share what it cannot take.
    """
    n = distribution.num_samples
    full, tail = divmod(n, batch_size)
    samples = torch.randperm(n, generator=generator, dtype=index_dtype(n), device="cpu")
    expected = distribution.weights(samples.to(distribution.device, non_blocking=True)).cpu().numpy()
    order = samples.numpy()
    is_crowded = expected.max() / expected.sum() * n >= full
    if is_crowded:
        expected = _fitted(expected, full, tail)
        # Those that may be in every batch stand together, so that no more of them are than the short one holds.
        heavy = np.flatnonzero(expected > full)
        far, free = heavy[heavy >= len(heavy)], np.setdiff1d(np.arange(len(heavy)), heavy)
        for values in (order, expected):
            values[far], values[free] = values[free], values[far]
    # Divided by their own end, so that a last sample of weight 0 gets nothing of what rounding left over.
    teeth = torch.from_numpy(expected).cumsum_(0).numpy()
    teeth /= teeth[-1]
    teeth *= n
    teeth += uniform(1, generator)
    counts = np.diff(np.minimum(teeth, n, out=teeth).astype(np.int64), prepend=0)
    drawn = np.flatnonzero(counts)
    order, counts = order[drawn], counts[drawn]
    if is_crowded:
        # Each of those that are in every batch takes a round of its own; the others begin anywhere among themselves.
        turn = int(torch.randint(len(drawn), (), generator=generator, device="cpu"))
        others = np.roll(np.flatnonzero(counts <= full), turn)
        first = np.append(np.flatnonzero(counts > full), others)
        order, counts = order[first], counts[first]
    return torch.from_numpy(_dealt(np.repeat(order, counts), batch_size, generator))


def _dealt(copies: Samples, batch_size: int, generator: torch.Generator) -> NDArray[np.int64]:
    """The copies dealt to the batches like cards, round by round in one random order, the short batch last.

    So the copies of a sample, which stand side by side, go to batches that follow each other in that order, and no
    sample that has at most as many as there are whole batches meets itself. One that the short batch needs too does not
    if it begins in a round in which that is dealt to.
    """
    full, tail = divmod(len(copies), batch_size)
    batches = torch.randperm(full, generator=generator, device="cpu").numpy()
    wide, narrow = np.split(copies, [tail * (full + 1)])
    wide = wide.reshape(tail, full + 1)
    rounds = np.concatenate((wide[:, :full], narrow.reshape(batch_size - tail, full)))
    return np.concatenate((rounds.T[batches].ravel(), wide[:, full]), dtype=np.int64)


def _fitted(weights: NDArray[np.float64], full: int, tail: int) -> NDArray[np.float64]:
    """Expected counts that the batches have room for: `full` whole ones and one of `tail` samples.

    No count is above the number of batches, and what is above that of the whole ones fits into the short one. What is
    cut off goes to the others in proportion.
    """
    fitted = _capped(weights, full + (tail > 0), len(weights))
    heavy = fitted > full
    excess = (fitted[heavy] - full).sum()
    if excess > tail:
        fitted[heavy] = full + (fitted[heavy] - full) * (tail / excess)
        fitted[~heavy] = _capped(weights[~heavy], full, len(weights) - full * int(heavy.sum()) - tail)
    return fitted


def _capped(weights: NDArray[np.float64], cap: int, total: int) -> NDArray[np.float64]:
    """The weights in proportion, with the sum `total` and nothing above `cap`: what is goes to the others."""
    rest, capped = weights.copy(), np.zeros(len(weights), dtype=bool)
    while True:
        rest /= max(rest.max(initial=0.0), 5e-324)  # first, lest the tiniest add up to nothing
        left = total - cap * np.count_nonzero(capped)
        scaled: NDArray[np.float64] = rest * (left / max(rest.sum(), 1.0))
        if not (over := scaled > cap).any():
            scaled[capped] = cap
            return scaled
        capped |= over
        rest[over] = 0.0
