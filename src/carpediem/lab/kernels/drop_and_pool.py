"""Dropout and the 2×2 average pool after it as one Triton kernel each way."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from carpediem.lab.dropout import Drop
from carpediem.lab.kernels.parts import Cut, drop_arguments, kept, packed, salted


@triton.jit(do_not_specialize=["layer", "threshold"])
def _pooled(
    x,
    y,
    seed,
    M,
    C,
    height,
    width,
    layer,
    threshold,
    scale,
    DROP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Rows are the places of the pooled images, height and width those of the images before."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (rows < M)[:, None] & (columns < C)[None, :]
    across, down = rows % (width // 2), rows // (width // 2) % (height // 2)
    corner = rows // (width // 2 * (height // 2)) * height * width + 2 * down * width + 2 * across
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for place in tl.static_range(4):
        row = corner + place // 2 * width + place % 2
        value = tl.load(x + row[:, None] * C + columns[None, :], mask, 0.0).to(tl.float32)
        if DROP:
            stays = kept(row[:, None], columns[None, :], salted(seed, layer), threshold, C, height * width)
            value = tl.where(stays, value * scale, 0.0)
        total += value
    tl.store(y + rows[:, None] * C + columns[None, :], (total / 4).to(y.dtype.element_ty), mask)


@triton.jit(do_not_specialize=["layer", "threshold"])
def _spread(
    dy,
    dx,
    seed,
    M,
    C,
    height,
    width,
    layer,
    threshold,
    scale,
    DROP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """The gradient of `_pooled`; rows are the places of the images before. Of an odd side the last line gets none."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (rows < M)[:, None] & (columns < C)[None, :]
    across, down = rows % width // 2, rows // width % height // 2
    pooled = (rows // (width * height) * (height // 2) + down) * (width // 2) + across
    counts = (across < width // 2) & (down < height // 2)
    gradient = (
        tl.load(dy + pooled[:, None] * C + columns[None, :], mask & counts[:, None], 0.0).to(tl.float32) / 4
    )
    if DROP:
        stays = kept(rows[:, None], columns[None, :], salted(seed, layer), threshold, C, height * width)
        gradient = tl.where(stays, gradient * scale, 0.0)
    tl.store(dx + rows[:, None] * C + columns[None, :], gradient.to(dx.dtype.element_ty), mask)


class DropAndPoolFunction(torch.autograd.Function):
    """`pooled`, with its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, drop: Drop | None) -> Tensor:
        batch, channels, height, width = x.shape
        shape = (batch, channels, height // 2, width // 2)
        y = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)
        ctx.shape, ctx.drop = x.shape, drop
        _launch(_pooled, Cut.of(y), x, y, (height, width), drop)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None]:
        dy = packed(dy)
        dx = torch.empty(ctx.shape, dtype=dy.dtype, device=dy.device, memory_format=torch.channels_last)
        _launch(_spread, Cut.of(dx), dy, dx, ctx.shape[2:], ctx.drop)
        return dx, None


def pooled(x: Tensor, drop: Drop | None) -> Tensor:
    """Dropout, then the mean of every 2×2 pixels, of images in channels-last layout."""
    images: Tensor = DropAndPoolFunction.apply(x, drop)
    return images


def _launch(
    kernel: Any, cut: Cut, source: Tensor, target: Tensor, sides: tuple[int, int], drop: Drop | None
) -> None:
    seed, layer, threshold, scale = drop_arguments(drop, source)
    kernel[cut.programs](
        source,
        target,
        seed,
        cut.M,
        cut.C,
        *sides,
        layer,
        threshold,
        scale,
        DROP=drop is not None,
        ROWS=cut.rows,
        COLUMNS=cut.columns,
    )
