"""A systematic epoch made on an accelerator without a look at the data."""

from __future__ import annotations

import torch
from torch import Tensor


def is_spread_easily(num_samples: int, batch_size: int, largest_probability: float) -> bool:
    """Whether no sample is expected in more than half of the whole batches: `spread` needs that."""
    return largest_probability * num_samples + 1 <= num_samples // batch_size // 2


def spread(probabilities: Tensor, batch_size: int, generator: torch.Generator) -> Tensor:
    """N draws in which sample i appears floor(N P_i) or ceil(N P_i) times, its copies in different batches.

    As in `systematic_epoch`, a comb over the expected counts gives the copies, and they are dealt to the batches like
    cards, a round at a time. Here the batches are parted in two halves, and every round is dealt first to the one and
    then to the other, in an order of its own. A sample whose copies run on from one round into the next goes from the
    second half to the first and meets none of its batches again.

    Args:
        probabilities: P, float64, shape (N,), for which `is_spread_easily` holds.
        generator: on the same device.

    Returns:
        int64, shape (N,): every run of `batch_size` is distinct.
    """
    n, device = len(probabilities), probabilities.device
    full, tail = divmod(n, batch_size)
    order = torch.randperm(n, generator=generator, device=device)
    offset = torch.rand(1, dtype=torch.float64, generator=generator, device=device)
    sums = probabilities[order].cumsum(0)
    # Divided by their own end, so that a last sample of weight 0 gets nothing of what rounding left over.
    teeth = (sums / sums[-1:] * n + offset).floor().clamp_(max=n)
    teeth[-1:] = n
    # Summed in parallel, a later sum may come out below an earlier one by rounding.
    teeth = teeth.cummax(0).values.long()
    counts = teeth.diff(prepend=teeth.new_zeros(1))
    copies = torch.repeat_interleave(order, counts, output_size=n)

    batches = torch.randperm(full, generator=generator, device=device)
    first, second = batches[: full // 2], batches[full // 2 :]
    longer = torch.cat((second, second.new_full((1,), full)))  # with the last batch, which has `tail` places
    dealt = [
        torch.cat((_shuffled(first, rounds, generator), _shuffled(half, rounds, generator)), dim=1)
        for half, rounds in ((longer, tail), (second, batch_size - tail))
    ]
    place = torch.arange(batch_size, device=device)
    slots = [
        b * batch_size + p[:, None]
        for b, p in zip(dealt, place.split([tail, batch_size - tail]), strict=True)
    ]
    out = torch.empty(n, dtype=torch.int64, device=device)
    out[torch.cat([slot.flatten() for slot in slots])] = copies
    return out


def _shuffled(batches: Tensor, rounds: int, generator: torch.Generator) -> Tensor:
    """The batches in an order of its own for every round, shape (rounds, batches)."""
    keys = torch.rand(rounds, len(batches), generator=generator, dtype=torch.float32, device=batches.device)
    return batches[keys.argsort(dim=1)]
