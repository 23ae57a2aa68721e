"""Scores that a training program hands in."""

from __future__ import annotations

import torch
from torch import Tensor

from carpediem.core.history import last_of_each
from carpediem.selectors.base import check_range


def placed_values(
    name: str, values: Tensor, indices: Tensor | None, num_samples: int, device: torch.device
) -> tuple[Tensor, Tensor | slice]:
    """The values and where they go, both on `device`.

    Raises:
        TypeError, ValueError: a value is negative or not finite, an index lies outside [0, N), or the numbers of
            both differ.
    """
    try:
        values = torch.as_tensor(values, device=device).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name} must be a tensor of numbers, got {values!r}") from error
    if values.is_complex() or values.dtype == torch.bool:
        raise TypeError(f"{name} must be real numbers, got {values.dtype}")
    if indices is None:
        where: Tensor | slice = slice(0, num_samples)
        expected = num_samples
    else:
        where = torch.as_tensor(indices, device=device)
        if where.is_floating_point() or where.dtype == torch.bool:
            raise TypeError(f"indices must be integers, got {where.dtype}")
        if where.dim() != 1:
            raise ValueError(f"indices must have one dimension, got shape {tuple(where.shape)}")
        where = where.long()
        expected = where.numel()
        if expected:
            check_range("indices", where, num_samples, "num_samples")
            if values.shape == where.shape:
                last = last_of_each(where, dropped=num_samples) < num_samples
                where, values = where[last], values[last]
                expected = where.numel()
    if values.shape != (expected,):
        raise ValueError(f"{name} must have shape ({expected},), one a sample, got {tuple(values.shape)}")
    good = values.isfinite() & (values >= 0)
    if not bool(good.all()):
        raise ValueError(f"{name} must be finite and at least 0, got {values[~good][0].item()}")
    return values, where
