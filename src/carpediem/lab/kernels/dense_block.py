"""A block of dense layers as one function with a backward of its own, in Triton kernels around the convolutions.

Every layer of the block standardises the same columns, the block's input and what earlier layers appended, with the
same batch statistics. So the block is one matrix that each layer writes its columns into, and the statistics of a
column are taken once, when it is written. Backward, each layer adds its share to one matrix of gradients, in the pass
that also sums up what its norm's own gradients need; that batch statistics depend on the values is put right once for
each column, when all the shares are there.

Convolutions get matrices whose widths are multiples of 8, filled up with zeros, as the tensor cores want them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from carpediem.lab.dropout import Drop
from carpediem.lab.kernels.parts import (
    Cut,
    affine,
    all_moments,
    all_sums,
    convolution_with,
    drop_arguments,
    is_last,
    kept,
    leave_sums,
    packed,
    rows_of,
    salted,
)

STAGES = 3  # of the programs with sums


@triton.jit(do_not_specialize=["layer", "threshold"])
def _append(
    source,
    block,
    parts,
    arrivals,
    mean,
    rstd,
    seed,
    M,
    first,
    units,
    width,
    source_width,
    area,
    eps,
    layer,
    threshold,
    scale,
    UNIT: tl.constexpr,
    DROP: tl.constexpr,
    PARTS: tl.constexpr,
    LANES: tl.constexpr,
    DEEP: tl.constexpr,
    STAGES: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Writes columns of `source` into the block, through dropout, and takes their statistics.

    Where they begin and how many they are is counted in units, so that the compiler sees how far it may read at once.
    """
    C = units * UNIT
    part = tl.program_id(0)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < C
    # Sums are of distances from a number of the column, lest their squares swallow the variance.
    near = tl.load(source + columns, inside, 0.0).to(tl.float32)
    sums = tl.zeros((LANES, COLUMNS), tl.float32)
    squares = tl.zeros((LANES, COLUMNS), tl.float32)
    if DROP:
        salt = salted(seed, layer)
    for group in tl.range(part, tl.cdiv(M, LANES * DEEP), PARTS, num_stages=STAGES):
        rows = rows_of(group, LANES, DEEP)
        mask = (rows < M) & inside[None, None, :]
        value = tl.load(source + rows * source_width + columns[None, None, :], mask, 0.0).to(tl.float32)
        if DROP:
            stays = kept(rows, columns[None, None, :], salt, threshold, C, area)
            value = tl.where(stays, value * scale, 0.0)
        places = rows * width + (first * UNIT + columns)[None, None, :]
        tl.store(block + places, value.to(block.dtype.element_ty), mask)
        value = tl.where(mask, value - near[None, None, :], 0.0)
        sums += tl.sum(value, 0)
        squares += tl.sum(value * value, 0)
    leave_sums(parts, part, sums, squares, columns, C, PARTS)
    if is_last(arrivals + tl.program_id(1), PARTS):
        middle, variance = all_moments(parts, columns, C, M, near, PARTS, COLUMNS)
        tl.store(mean + columns, middle, inside)
        tl.store(rstd + columns, 1 / tl.sqrt(variance + eps), inside)
        tl.store(arrivals + tl.program_id(1), 0)


@triton.jit
def _activate(
    block,
    active,
    mean,
    rstd,
    weight,
    bias,
    running_mean,
    running_var,
    M,
    C,
    eighths,
    width,
    eps,
    momentum,
    TESTING: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """relu(batch norm) of the block's first C columns, zeros up to 8·eighths.

    Testing goes by the running statistics; training moves them.
    """
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < C
    mask = (rows < M)[:, None] & (columns < eighths * 8)[None, :]
    if TESTING:
        middle = tl.load(running_mean + columns, inside, 0.0)
        slope = 1 / tl.sqrt(tl.load(running_var + columns, inside, 1.0) + eps)
    else:
        middle = tl.load(mean + columns, inside, 0.0)
        slope = tl.load(rstd + columns, inside, 1.0)
    value = tl.load(block + rows[:, None] * width + columns[None, :], mask, 0.0).to(tl.float32)
    value = (value - middle[None, :]) * slope[None, :]
    value *= tl.load(weight + columns, inside, 0.0)[None, :]
    value = tl.maximum(value + tl.load(bias + columns, inside, 0.0)[None, :], 0.0)
    value = tl.where(inside[None, :], value, 0.0)
    places = rows[:, None] * (eighths * 8) + columns[None, :]
    tl.store(active + places, value.to(active.dtype.element_ty), mask)
    if not TESTING and tl.program_id(0) == 0:
        old = tl.load(running_mean + columns, inside, 0.0)
        tl.store(running_mean + columns, old + momentum * (middle - old), inside)
        old = tl.load(running_var + columns, inside, 0.0)
        variance = (1 / (slope * slope) - eps) * (M / (M - 1))
        tl.store(running_var + columns, old + momentum * (variance - old), inside)


@triton.jit
def _add_share(
    block,
    dactive,
    dblock,
    parts,
    arrivals,
    mean,
    rstd,
    weight,
    bias,
    dweight,
    dbias,
    plain,
    product,
    M,
    C,
    eighths,
    width,
    PARTS: tl.constexpr,
    LANES: tl.constexpr,
    DEEP: tl.constexpr,
    STAGES: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Adds one layer's share to the block's gradients, as if its statistics were constants; sums what is missing."""
    part = tl.program_id(0)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < C
    middle, spread, slope, level = affine(mean, rstd, weight, bias, columns, inside)
    sums = tl.zeros((LANES, COLUMNS), tl.float32)
    products = tl.zeros((LANES, COLUMNS), tl.float32)
    for group in tl.range(part, tl.cdiv(M, LANES * DEEP), PARTS, num_stages=STAGES):
        rows = rows_of(group, LANES, DEEP)
        mask = (rows < M) & (columns < eighths * 8)[None, None, :]
        places = rows * width + columns[None, None, :]
        value = tl.load(block + places, mask, 0.0).to(tl.float32)
        gradient = tl.load(dactive + rows * (eighths * 8) + columns[None, None, :], mask, 0.0).to(tl.float32)
        before = tl.load(dblock + places, mask, 0.0).to(tl.float32)
        gradient = tl.where(value * slope[None, None, :] + level[None, None, :] > 0, gradient, 0.0)
        sums += tl.sum(gradient, 0)
        products += tl.sum(gradient * value, 0)
        shared = before + gradient * slope[None, None, :]
        tl.store(dblock + places, shared.to(dblock.dtype.element_ty), mask)
    leave_sums(parts, part, sums, products, columns, C, PARTS)
    if is_last(arrivals + tl.program_id(1), PARTS):
        sum_, weighted = all_sums(parts, columns, C, PARTS, COLUMNS)
        weighted = (weighted - middle * sum_) * spread
        tl.store(dbias + columns, sum_, inside)
        tl.store(dweight + columns, weighted, inside)
        old = tl.load(plain + columns, inside, 0.0)
        tl.store(plain + columns, old + slope * sum_ / M, inside)
        old = tl.load(product + columns, inside, 0.0)
        tl.store(product + columns, old + slope * weighted / M, inside)
        tl.store(arrivals + tl.program_id(1), 0)


@triton.jit(do_not_specialize=["layer", "threshold"])
def _finish(
    block,
    dblock,
    dsource,
    mean,
    rstd,
    plain,
    product,
    seed,
    M,
    first,
    units,
    width,
    source_width,
    area,
    layer,
    threshold,
    scale,
    UNIT: tl.constexpr,
    DROP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """The gradient of what `_append` wrote, with what the statistics' own dependence adds; zeros beyond it."""
    C = units * UNIT
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < C
    mask = (rows < M)[:, None] & inside[None, :]
    places = rows[:, None] * width + (first * UNIT + columns)[None, :]
    value = tl.load(block + places, mask, 0.0).to(tl.float32)
    value -= tl.load(mean + columns, inside, 0.0)[None, :]
    value *= tl.load(rstd + columns, inside, 0.0)[None, :]
    gradient = tl.load(dblock + places, mask, 0.0).to(tl.float32)
    gradient -= tl.load(plain + columns, inside, 0.0)[None, :]
    gradient -= value * tl.load(product + columns, inside, 0.0)[None, :]
    if DROP:
        stays = kept(rows[:, None], columns[None, :], salted(seed, layer), threshold, C, area)
        gradient = tl.where(stays, gradient * scale, 0.0)
    mask = (rows < M)[:, None] & (columns < source_width)[None, :]
    places = rows[:, None] * source_width + columns[None, :]
    tl.store(dsource + places, tl.where(inside[None, :], gradient, 0.0).to(dsource.dtype.element_ty), mask)


@dataclass(frozen=True)
class Layer:
    """What a dense layer is made of besides its weights.

    Args:
        running_mean, running_var: of its norm; moved in place.
        drop: the dropout after its convolution.
    """

    running_mean: Tensor
    running_var: Tensor
    drop: Drop | None


@dataclass(frozen=True)
class _Slice:
    """Columns `first` to `first + count` of a block, and the dropout they went through."""

    first: int
    count: int
    drop: Drop | None

    @property
    def unit(self) -> int:
        return math.gcd(self.first, self.count, 8)


class DenseBlockFunction(torch.autograd.Function):
    """x, layers, arrivals, eps, momentum, (norm weight, norm bias, convolution) of each layer -> the block."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        layers: Sequence[Layer],
        arrivals: Tensor,
        eps: float,
        momentum: float,
        *weights: Tensor,
    ) -> Tensor:
        run = _run(x, layers, arrivals, eps, momentum, weights, testing=False)
        ctx.save_for_backward(run.block, run.mean, run.rstd, arrivals, *weights, *run.actives, *run.kernels)
        ctx.slices = run.slices
        return run.block

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dblock: Tensor) -> tuple[Tensor | None, ...]:
        block, mean, rstd, arrivals, *saved = ctx.saved_tensors
        count = len(ctx.slices) - 1
        weights, actives, kernels = saved[: 3 * count], saved[3 * count : 4 * count], saved[4 * count :]
        dblock = dblock.clone(memory_format=torch.channels_last)
        missing = torch.zeros((2, block.shape[1]), device=block.device)
        found: list[Tensor] = []
        for number in reversed(range(count)):
            weight, bias, convolution = weights[3 * number : 3 * number + 3]
            active, kernel = actives[number], kernels[number]
            dnew = _finished(block, dblock, mean, rstd, missing, ctx.slices[number + 1], kernel.shape[0])
            dactive, dkernel, _ = torch.ops.aten.convolution_backward(
                dnew, active, kernel, None, *convolution_with(1), [True, True, False]
            )
            dactive = packed(dactive)
            dweight, dbias = torch.empty((2, len(weight)), device=block.device)
            cut = Cut.of(active)
            sums = cut.summing(STAGES)
            parts = block.new_empty((2, sums.parts, len(weight)), dtype=torch.float32)
            _add_share[sums.programs](
                block,
                dactive,
                dblock,
                parts,
                arrivals,
                mean,
                rstd,
                weight,
                bias,
                dweight,
                dbias,
                missing[0],
                missing[1],
                cut.M,
                len(weight),
                active.shape[1] // 8,
                block.shape[1],
                **sums.constants,
            )
            found = [dweight, dbias, dkernel[: convolution.shape[0], : convolution.shape[1]], *found]
        dx = _finished(block, dblock, mean, rstd, missing, ctx.slices[0], ctx.slices[0].count)
        return dx, None, None, None, None, *found


def in_training(
    x: Tensor,
    layers: Sequence[Layer],
    arrivals: Tensor,
    eps: float,
    momentum: float | None,
    weights: Sequence[Tensor],
) -> Tensor:
    """The block of dense layers that begins with the images `x`.

    Args:
        arrivals: counters, zero, one for every 64 channels of the block.
        weights: norm weight, norm bias and convolution of each layer.
    """
    block: Tensor = DenseBlockFunction.apply(x, layers, arrivals, eps, momentum, *weights)
    return block


@torch.no_grad()
def in_testing(
    x: Tensor, layers: Sequence[Layer], arrivals: Tensor, eps: float, weights: Sequence[Tensor]
) -> Tensor:
    """The same by the running statistics, without dropout."""
    return _run(x, layers, arrivals, eps, 0.0, weights, testing=True).block


@dataclass(frozen=True)
class _Run:
    """A block that was computed, and what its backward pass needs."""

    block: Tensor
    mean: Tensor
    rstd: Tensor
    slices: list[_Slice]
    actives: list[Tensor]
    kernels: list[Tensor]


def _run(
    x: Tensor,
    layers: Sequence[Layer],
    arrivals: Tensor,
    eps: float,
    momentum: float,
    weights: Sequence[Tensor],
    *,
    testing: bool,
) -> _Run:
    growth, start = weights[2].shape[0], x.shape[1]
    block = _images(x, start + growth * len(layers))
    mean, rstd = x.new_empty((2, block.shape[1]), dtype=torch.float32)
    slices = [_Slice(0, start, None)]
    _appended(x, slices[0], block, mean, rstd, arrivals, eps)
    actives, kernels = [], _padded(weights[2::3])
    for number, layer in enumerate(layers):
        channels, kernel = start + growth * number, kernels[number]
        active = _images(x, kernel.shape[1])
        cut = Cut.of(active)
        _activate[cut.programs](
            block,
            active,
            mean,
            rstd,
            weights[3 * number],
            weights[3 * number + 1],
            layer.running_mean,
            layer.running_var,
            cut.M,
            channels,
            active.shape[1] // 8,
            block.shape[1],
            eps,
            momentum,
            TESTING=testing,
            ROWS=cut.rows,
            COLUMNS=cut.columns,
        )
        new = torch.ops.aten.convolution(active, kernel, None, *convolution_with(1))
        slices.append(_Slice(channels, growth, None if testing else layer.drop))
        _appended(new, slices[-1], block, mean, rstd, arrivals, eps)
        actives.append(active)
    return _Run(block, mean, rstd, slices, actives, kernels)


def _images(like: Tensor, channels: int) -> Tensor:
    """An empty batch in channels-last layout."""
    shape = (like.shape[0], channels, *like.shape[2:])
    return torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=torch.channels_last)


def _padded(convolutions: Sequence[Tensor]) -> list[Tensor]:
    """The kernels with outputs and inputs filled up with zeros to multiples of 8."""
    shapes = [(-(-k.shape[0] // 8) * 8, *k.shape[2:], -(-k.shape[1] // 8) * 8) for k in convolutions]
    sizes = [a * b * c * d for a, b, c, d in shapes]
    room = torch.zeros(sum(sizes), dtype=convolutions[0].dtype, device=convolutions[0].device)
    kernels = []
    for kernel, shape, own in zip(convolutions, shapes, room.split(sizes), strict=True):
        padded = own.view(shape).permute(0, 3, 1, 2)
        padded[: kernel.shape[0], : kernel.shape[1]] = kernel
        kernels.append(padded)
    return kernels


def _appended(
    source: Tensor, place: _Slice, block: Tensor, mean: Tensor, rstd: Tensor, arrivals: Tensor, eps: float
) -> None:
    source = packed(source)
    cut = Cut.of(source[:, : place.count])
    sums = cut.summing(STAGES)
    parts = source.new_empty((2, sums.parts, cut.C), dtype=torch.float32)
    own = slice(place.first, place.first + place.count)
    seed, layer, threshold, scale = drop_arguments(place.drop, mean)
    _append[sums.programs](
        source,
        block,
        parts,
        arrivals,
        mean[own],
        rstd[own],
        seed,
        cut.M,
        place.first // place.unit,
        place.count // place.unit,
        block.shape[1],
        source.shape[1],
        cut.area,
        eps,
        layer,
        threshold,
        scale,
        UNIT=place.unit,
        DROP=place.drop is not None,
        **sums.constants,
    )


def _finished(
    block: Tensor, dblock: Tensor, mean: Tensor, rstd: Tensor, missing: Tensor, place: _Slice, width: int
) -> Tensor:
    gradient = _images(block, width)
    cut = Cut.of(gradient)
    own = slice(place.first, place.first + place.count)
    seed, layer, threshold, scale = drop_arguments(place.drop, mean)
    _finish[cut.programs](
        block,
        dblock,
        gradient,
        mean[own],
        rstd[own],
        missing[0, own],
        missing[1, own],
        seed,
        cut.M,
        place.first // place.unit,
        place.count // place.unit,
        block.shape[1],
        width,
        cut.area,
        layer,
        threshold,
        scale,
        UNIT=place.unit,
        DROP=place.drop is not None,
        ROWS=cut.rows,
        COLUMNS=cut.columns,
    )
    return gradient
