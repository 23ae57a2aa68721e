"""A whole epoch in which every sample appears as often as expected, rounded up or down."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from carpediem.core.arrays import uniform
from carpediem.core.distribution import Distribution
from carpediem.core.systematic_device import is_spread_easily, spread


def systematic_epoch(distribution: Distribution, batch_size: int, generator: torch.Generator) -> Tensor:
    """N draws in which sample i appears floor(N P_i) or ceil(N P_i) times, its copies in different batches.

    A comb with teeth one apart and a random offset is laid over the expected counts, one sample beside the
    other in random order; the teeth that fall on a sample are its copies. With equal probabilities this is a
    shuffle. A sample expected more often than there are whole batches appears as often as there are, and what it
    cannot take is shared out among the others.

    On an accelerator nothing waits for the device, unless a sample is expected in more than half of the batches.

    Returns:
        int64, shape (N,): every run of `batch_size` is distinct.
    """
    n = distribution.num_samples
    if distribution.is_uniform:
        return torch.randperm(n, generator=generator, device=generator.device)
    if generator.device.type != "cpu" and is_spread_easily(n, batch_size, distribution.largest_probability):
        return spread(distribution.probabilities(), batch_size, generator)
    host = torch.Generator().manual_seed(generator.initial_seed())
    full, tail = divmod(n, batch_size)
    columns = full + (tail > 0)
    # With a shorter last batch one column fewer is sure to be there in every round.
    expected = _capped(distribution.probabilities().cpu().numpy() * n, max(full, 1))
    order = torch.randperm(n, generator=host).numpy()
    teeth = np.floor(np.cumsum(expected[order]) + uniform(1, host)).clip(max=n).astype(np.int64)
    teeth[-1] = n
    copies = np.repeat(order, np.diff(teeth, prepend=0))
    stream = _dealt(copies, columns, batch_size, tail or batch_size, host)
    return torch.from_numpy(stream).to(generator.device)


def _capped(expected: NDArray[np.float64], cap: int) -> NDArray[np.float64]:
    """`expected` with nothing above `cap` and the same sum, the others raised in proportion."""
    total = float(len(expected))
    full = np.zeros(len(expected), dtype=bool)
    while (over := (expected > cap) & ~full).any():
        full |= over
        others = expected[~full].sum()
        left = total - cap * full.sum()
        if others <= 0 < left:
            raise ValueError(
                f"draws='systematic' cannot spread {len(expected)} draws over {int(full.sum())} samples of "
                f"positive weight that fit into {cap} batches once each; use draws='independent'"
            )
        expected = np.where(full, float(cap), expected * (left / others if left > 0 else 0.0))
    return expected


def _dealt(
    copies: NDArray[np.int64], columns: int, batch_size: int, tail: int, generator: torch.Generator
) -> NDArray[np.int64]:
    """The copies dealt to the batches like cards, a round at a time, each round in an order of its own.

    Args:
        copies: (N,), the copies of a sample side by side, each fewer than there are batches.
        columns: number of batches, the last of `tail` samples.
    """
    out = np.empty(columns * batch_size, dtype=np.int64)
    used, previous = 0, np.empty(0, dtype=np.int64)
    for rounds, width in ((tail, columns), (batch_size - tail, columns - 1)):
        if rounds == 0 or width == 0:
            continue
        first_round = 0 if used == 0 else tail
        deals = np.argsort(uniform(rounds * width, generator).reshape(rounds, width), axis=1)
        starts = used + width * np.arange(rounds)
        crossing = np.flatnonzero((starts > 0) & (copies[starts] == copies[starts - 1]))
        for number in crossing.tolist():
            before = deals[number - 1] if number else previous
            deals[number] = _avoiding(deals[number], before, copies, int(starts[number]))
        place = np.arange(first_round, first_round + rounds)[:, None]
        out[deals * batch_size + place] = copies[used : used + rounds * width].reshape(rounds, width)
        used, previous = used + rounds * width, deals[-1]
    return out[: len(copies)]


def _avoiding(
    deal: NDArray[np.int64], before: NDArray[np.int64], copies: NDArray[np.int64], start: int
) -> NDArray[np.int64]:
    """`deal` rearranged so that the sample that crosses into this round meets none of its batches again."""
    sample = copies[start]
    ahead = int(np.argmax(np.append(copies[start : start + len(deal)], -1) != sample))
    behind = int(np.argmax(np.append(copies[max(start - len(before), 0) : start][::-1], -1) != sample))
    free = ~np.isin(deal, before[len(before) - behind :])
    chosen = np.flatnonzero(free)[:ahead]
    return np.concatenate((deal[chosen], np.delete(deal, chosen)))
