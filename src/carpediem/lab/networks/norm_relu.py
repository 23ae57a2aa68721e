"""Batch norm and the ReLU after it as one layer, which a CUDA device runs as kernels of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from carpediem.lab.dropout import CountedDropout
from carpediem.lab.kernel_use import takes_kernels

if TYPE_CHECKING:
    from carpediem.lab.kernels.norm_relu import Norm

COLUMNS = 8  # that a program of the kernels takes at least, unless there are fewer


class NormReLU(nn.BatchNorm2d):
    """Batch norm, ReLU, and dropout where one is given; a residual branch may join before.

    Attributes:
        arrivals: counters of the kernels' programs, zero between two calls.
    """

    arrivals: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        blocks = -(-channels // COLUMNS)
        self.register_buffer("arrivals", torch.zeros(blocks, dtype=torch.int32), persistent=False)

    def forward(self, x: Tensor, dropout: nn.Module | None = None) -> Tensor:
        """The activations, shape of `x`."""
        counted = dropout if isinstance(dropout, CountedDropout) else None
        if takes_kernels(x, training=self.training):
            active = self._by_kernels(x, counted)
            rest = None if dropout is counted else dropout
        else:
            active, rest = torch.relu(super().forward(x)), dropout
        return active if rest is None else rest(active)

    def join(self, x: Tensor, branch: Tensor) -> tuple[Tensor, Tensor]:
        """x + branch, and its activations."""
        if self.training and takes_kernels(x):
            from carpediem.lab.kernels import norm_relu as kernels

            return kernels.joined(x, branch, self.for_kernels())
        total = x + branch
        return total, self(total)

    def _by_kernels(self, x: Tensor, dropout: CountedDropout | None) -> Tensor:
        from carpediem.lab.kernels import norm_relu as kernels  # not before: it needs Triton

        drop = None if dropout is None else dropout.now()
        return (kernels.in_training if self.training else kernels.in_testing)(x, self.for_kernels(), drop)

    def for_kernels(self) -> Norm:
        """As the kernels know it."""
        from carpediem.lab.kernels.norm_relu import Norm

        assert self.momentum is not None
        return Norm(self.weight, self.bias, *self.statistics(), self.arrivals, self.eps, self.momentum)

    def statistics(self) -> tuple[Tensor, Tensor]:
        """The running mean and variance."""
        assert self.running_mean is not None
        assert self.running_var is not None
        return self.running_mean, self.running_var
