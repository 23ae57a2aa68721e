"""A residual bottleneck as one function with a backward of its own, in Triton kernels around the 3×3 convolution.

What the 1×1 convolutions take in is never written down, and what they give has its statistics taken as it is written
(`product`). So the wide images, four times as many channels as the rest, cross the memory once or twice forward, not
six times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from carpediem.lab.dropout import Drop
from carpediem.lab.kernels.norm_relu import (
    Norm,
    Statistics,
    activate,
    gradient,
    sum_gradients,
    take_statistics,
)
from carpediem.lab.kernels.parts import convolution_with, packed
from carpediem.lab.kernels.product import Later, multiply, multiply_backward


@dataclass(frozen=True)
class Block:
    """A bottleneck besides its weights.

    Args:
        norms: before the three convolutions.
        drop: before the last convolution.
        stride: of the 3×3 convolution.
        following: the norm that the output meets next, or None where it takes its statistics itself.
    """

    norms: tuple[Norm, Norm, Norm]
    drop: Drop | None
    stride: int
    following: Norm | None


class BottleneckFunction(torch.autograd.Function):
    """x, its statistics, block, weight and bias of each norm, four convolutions -> the output, its statistics.

    The norms' weights are named once more, for their gradients; the last convolution is the shortcut's, or None.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, seen: Statistics | None, block: Block, *weights: Tensor | None) -> Any:
        *_, matrix1, kernel, matrix3, projection = weights
        assert matrix1 is not None
        assert kernel is not None
        assert matrix3 is not None
        first, second, third = block.norms
        if seen is None:
            _, seen = take_statistics(x, None, first)
        inside, inside_seen = multiply(x, seen, first, None, matrix1, None, second)
        assert inside_seen is not None
        active = activate(inside, inside_seen, second, None)
        spread = torch.ops.aten.convolution(active, kernel, None, *convolution_with(block.stride))
        _, spread_seen = take_statistics(spread, None, third)
        shortcut, corner = x, None
        if projection is not None:
            corner = activate(packed(x[:, :, :: block.stride, :: block.stride]), seen, first, None)
            shortcut = linear(_rows(corner), projection.flatten(1)).permute(0, 3, 1, 2)
        out, out_seen = multiply(spread, spread_seen, third, block.drop, matrix3, shortcut, block.following)
        # All the weights, so that autograd sees whether they were changed since.
        ctx.save_for_backward(x, inside, active, spread, corner, *weights)
        ctx.block, ctx.seen = block, (seen, inside_seen, spread_seen)
        return out, out_seen

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        x, inside, active, spread, corner, *weights = ctx.saved_tensors
        *_, matrix1, kernel, matrix3, projection = weights
        (first, second, third), (seen, inside_seen, spread_seen) = ctx.block.norms, ctx.seen
        dout = packed(dout)
        before, sums3, dmatrix3 = multiply_backward(spread, spread_seen, third, ctx.block.drop, matrix3, dout)
        dspread = gradient(spread, before, None, spread_seen, third, sums3, None)
        dactive, dkernel, _ = torch.ops.aten.convolution_backward(
            dspread, active, kernel, None, *convolution_with(ctx.block.stride), [True, True, False]
        )
        dactive = packed(dactive)
        sums2 = sum_gradients(inside, dactive, inside_seen, second, None)
        dcorner = dprojection = None
        if projection is not None:
            dprojection = (_rows(dout).flatten(0, 2).T @ _rows(corner).flatten(0, 2)).view_as(projection)
            dcorner = linear(_rows(dout), projection.flatten(1).T).permute(0, 3, 1, 2)
        later = Later(inside, inside_seen, second, sums2)
        before, sums1, dmatrix1 = multiply_backward(
            x, seen, first, None, matrix1, dactive, later, dcorner, ctx.block.stride
        )
        dx = gradient(x, before, dout if projection is None else None, seen, first, sums1, None)
        return dx, None, None, *sums1, *sums2, *sums3, dmatrix1, dkernel, dmatrix3, dprojection


def in_training(
    x: Tensor, seen: Statistics | None, block: Block, *convolutions: Tensor | None
) -> tuple[Tensor, Statistics | None]:
    """The output of a bottleneck with input `x`, and its statistics for the norm that follows.

    Args:
        seen: the statistics of `x`, where they are known.
        convolutions: the three, and the shortcut's or None.
    """
    norms = [tensor for norm in block.norms for tensor in (norm.weight, norm.bias)]
    out, out_seen = BottleneckFunction.apply(x, seen, block, *norms, *convolutions)
    return out, out_seen


def _rows(images: Tensor) -> Tensor:
    """Shape (b, h, w, c), of images in channels-last layout."""
    return images.permute(0, 2, 3, 1)
