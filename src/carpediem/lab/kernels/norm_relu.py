"""Batch norm, ReLU and what stands around them as four Triton kernels: two forward, two backward.

An image batch in channels-last layout is a matrix of M = b·h·w rows and C columns. Forward, the first kernel reads
the matrix once for the statistics of its columns (adding a second matrix on the way, where a residual branch joins),
the second writes the activations. Backward likewise: sums, then the gradient. ReLU and dropout are computed anew in
the backward pass from what the norm saw, so that no mask is kept.
"""

from __future__ import annotations

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
    corrections,
    drop_arguments,
    is_last,
    kept,
    leave_sums,
    move_running,
    packed,
    rows_of,
    salted,
    through_statistics,
)


@triton.jit
def _statistics(
    x,
    branch,
    total,
    parts,
    arrivals,
    mean,
    rstd,
    running_mean,
    running_var,
    M,
    C,
    eps,
    momentum,
    ADD: tl.constexpr,
    EVEN: tl.constexpr,
    PARTS: tl.constexpr,
    LANES: tl.constexpr,
    DEEP: tl.constexpr,
    STAGES: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    part = tl.program_id(0)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < C
    # Sums are of distances from a number near the mean, lest their squares swallow the variance.
    near = tl.load(running_mean + columns, inside, 0.0)
    sums = tl.zeros((LANES, COLUMNS), tl.float32)
    squares = tl.zeros((LANES, COLUMNS), tl.float32)
    for group in tl.range(part, tl.cdiv(M, LANES * DEEP), PARTS, num_stages=STAGES):
        rows = rows_of(group, LANES, DEEP)
        mask = None if EVEN else (rows < M) & inside[None, None, :]
        places = rows * C + columns[None, None, :]
        value = tl.load(x + places, mask).to(tl.float32)
        if ADD:
            value += tl.load(branch + places, mask).to(tl.float32)
            tl.store(total + places, value.to(total.dtype.element_ty), mask)
        value -= near[None, None, :]
        if not EVEN:
            value = tl.where(mask, value, 0.0)
        sums += tl.sum(value, 0)
        squares += tl.sum(value * value, 0)
    leave_sums(parts, part, sums, squares, columns, C, PARTS)
    if is_last(arrivals + tl.program_id(1), PARTS):
        middle, variance = all_moments(parts, columns, C, M, near, PARTS, COLUMNS)
        tl.store(mean + columns, middle, inside)
        tl.store(rstd + columns, 1 / tl.sqrt(variance + eps), inside)
        move_running(running_mean, running_var, columns, inside, near, middle, variance, M, momentum)
        tl.store(arrivals + tl.program_id(1), 0)


@triton.jit(do_not_specialize=["layer", "threshold"])
def _activations(
    x,
    y,
    mean,
    rstd,
    weight,
    bias,
    seed,
    M,
    C,
    area,
    eps,
    layer,
    threshold,
    scale,
    RUNNING: tl.constexpr,
    DROP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < C
    mask = (rows < M)[:, None] & inside[None, :]
    places = rows[:, None] * C + columns[None, :]
    value = tl.load(x + places, mask, 0.0).to(tl.float32)
    spread = tl.load(rstd + columns, inside, 0.0)
    if RUNNING:  # then the running variance stands in its place
        spread = 1 / tl.sqrt(spread + eps)
    value = (value - tl.load(mean + columns, inside, 0.0)[None, :]) * spread[None, :]
    weights = tl.load(weight + columns, inside, 0.0)[None, :]
    value = tl.maximum(value * weights + tl.load(bias + columns, inside, 0.0)[None, :], 0.0)
    if DROP:
        value = tl.where(
            kept(rows[:, None], columns[None, :], salted(seed, layer), threshold, C, area), value * scale, 0.0
        )
    tl.store(y + places, value.to(y.dtype.element_ty), mask)


@triton.jit(do_not_specialize=["layer", "threshold"])
def _gradient_sums(
    x,
    dy,
    parts,
    arrivals,
    mean,
    rstd,
    weight,
    bias,
    seed,
    dweight,
    dbias,
    M,
    C,
    area,
    layer,
    threshold,
    scale,
    DROP: tl.constexpr,
    EVEN: tl.constexpr,
    PARTS: tl.constexpr,
    LANES: tl.constexpr,
    DEEP: tl.constexpr,
    STAGES: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    part = tl.program_id(0)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < C
    middle, spread, slope, level = affine(mean, rstd, weight, bias, columns, inside)
    plain = tl.zeros((LANES, COLUMNS), tl.float32)
    product = tl.zeros((LANES, COLUMNS), tl.float32)
    if DROP:
        salt = salted(seed, layer)
    for group in tl.range(part, tl.cdiv(M, LANES * DEEP), PARTS, num_stages=STAGES):
        rows = rows_of(group, LANES, DEEP)
        mask = None if EVEN else (rows < M) & inside[None, None, :]
        places = rows * C + columns[None, None, :]
        value = tl.load(x + places, mask, None if EVEN else 0.0).to(tl.float32)
        gradient = tl.load(dy + places, mask, None if EVEN else 0.0).to(tl.float32)
        gradient = tl.where(value * slope[None, None, :] + level[None, None, :] > 0, gradient, 0.0)
        if DROP:
            stays = kept(rows, columns[None, None, :], salt, threshold, C, area)
            gradient = tl.where(stays, gradient * scale, 0.0)
        plain += tl.sum(gradient, 0)
        product += tl.sum(gradient * value, 0)
    leave_sums(parts, part, plain, product, columns, C, PARTS)
    if is_last(arrivals + tl.program_id(1), PARTS):
        sum_, weighted = all_sums(parts, columns, C, PARTS, COLUMNS)
        tl.store(dbias + columns, sum_, inside)
        tl.store(dweight + columns, (weighted - middle * sum_) * spread, inside)
        tl.store(arrivals + tl.program_id(1), 0)


@triton.jit(do_not_specialize=["layer", "threshold"])
def _gradient(
    x,
    dy,
    dtotal,
    dx,
    mean,
    rstd,
    weight,
    bias,
    seed,
    dweight,
    dbias,
    M,
    C,
    area,
    layer,
    threshold,
    scale,
    ADD: tl.constexpr,
    DROP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < C
    mask = (rows < M)[:, None] & inside[None, :]
    places = rows[:, None] * C + columns[None, :]
    value = tl.load(x + places, mask, 0.0).to(tl.float32)
    gradient = tl.load(dy + places, mask, 0.0).to(tl.float32)
    middle, spread, slope, level = affine(mean, rstd, weight, bias, columns, inside)
    gradient = tl.where(value * slope[None, :] + level[None, :] > 0, gradient, 0.0)
    if DROP:
        stays = kept(rows[:, None], columns[None, :], salted(seed, layer), threshold, C, area)
        gradient = tl.where(stays, gradient * scale, 0.0)
    constant, linear = corrections(dweight, dbias, middle, spread, slope, columns, inside, M)
    gradient = through_statistics(value, gradient, slope, constant, linear)
    if ADD:
        gradient += tl.load(dtotal + places, mask, 0.0).to(tl.float32)
    tl.store(dx + places, gradient.to(dx.dtype.element_ty), mask)


@dataclass(frozen=True)
class Norm:
    """What a batch norm is made of.

    Args:
        running_mean, running_var: moved in place.
        arrivals: counters, zero between two kernels, one for every 8 channels.
    """

    weight: Tensor
    bias: Tensor
    running_mean: Tensor
    running_var: Tensor
    arrivals: Tensor
    eps: float
    momentum: float


@dataclass(frozen=True)
class Statistics:
    """Of the batch that a norm saw: mean and 1/deviation of each channel."""

    mean: Tensor
    rstd: Tensor

    @staticmethod
    def empty(norm: Norm) -> Statistics:
        return Statistics(*torch.empty((2, len(norm.weight)), device=norm.weight.device))


def take_statistics(x: Tensor, branch: Tensor | None, norm: Norm) -> tuple[Tensor, Statistics]:
    """x + branch (x itself without one), and its statistics; moves the running ones."""
    cut = Cut.of(x)
    sums = cut.summing()
    total = x if branch is None else torch.empty_like(x)
    found = Statistics.empty(norm)
    _statistics[sums.programs](
        x,
        x if branch is None else branch,
        total,
        x.new_empty((2, sums.parts, cut.C), dtype=torch.float32),
        norm.arrivals,
        found.mean,
        found.rstd,
        norm.running_mean,
        norm.running_var,
        cut.M,
        cut.C,
        norm.eps,
        norm.momentum,
        ADD=branch is not None,
        EVEN=sums.is_even(cut),
        **sums.constants,
    )
    return total, found


def activate(x: Tensor, seen: Statistics | None, norm: Norm, drop: Drop | None) -> Tensor:
    """dropout(relu(batch norm)), by the running statistics where no others are given."""
    cut = Cut.of(x)
    y = torch.empty_like(x)
    seed, layer, threshold, scale = drop_arguments(drop, x)
    _activations[cut.programs](
        x,
        y,
        norm.running_mean if seen is None else seen.mean,
        norm.running_var if seen is None else seen.rstd,
        norm.weight,
        norm.bias,
        seed,
        cut.M,
        cut.C,
        cut.area,
        norm.eps,
        layer,
        threshold,
        scale,
        RUNNING=seen is None,
        DROP=drop is not None,
        ROWS=cut.rows,
        COLUMNS=cut.columns,
    )
    return y


def sum_gradients(
    x: Tensor, dy: Tensor, seen: Statistics, norm: Norm, drop: Drop | None
) -> tuple[Tensor, Tensor]:
    """The gradients of a norm's weight and bias, of that of its activations."""
    cut = Cut.of(x)
    sums = cut.summing()
    seed, layer, threshold, scale = drop_arguments(drop, x)
    dweight, dbias = x.new_empty((2, cut.C), dtype=torch.float32)
    _gradient_sums[sums.programs](
        x,
        dy,
        x.new_empty((2, sums.parts, cut.C), dtype=torch.float32),
        norm.arrivals,
        seen.mean,
        seen.rstd,
        norm.weight,
        norm.bias,
        seed,
        dweight,
        dbias,
        cut.M,
        cut.C,
        cut.area,
        layer,
        threshold,
        scale,
        DROP=drop is not None,
        EVEN=sums.is_even(cut),
        **sums.constants,
    )
    return dweight, dbias


def gradient(
    x: Tensor,
    dy: Tensor,
    dtotal: Tensor | None,
    seen: Statistics,
    norm: Norm,
    sums: tuple[Tensor, Tensor],
    drop: Drop | None,
) -> Tensor:
    """The gradient of what a norm saw, plus `dtotal`, of that of its activations or of what its ReLU saw.

    Args:
        sums: what `sum_gradients` gives.
    """
    cut = Cut.of(x)
    seed, layer, threshold, scale = drop_arguments(drop, x)
    dx = torch.empty_like(x)
    _gradient[cut.programs](
        x,
        dy,
        x if dtotal is None else dtotal,
        dx,
        seen.mean,
        seen.rstd,
        norm.weight,
        norm.bias,
        seed,
        *sums,
        cut.M,
        cut.C,
        cut.area,
        layer,
        threshold,
        scale,
        ADD=dtotal is not None,
        DROP=drop is not None,
        ROWS=cut.rows,
        COLUMNS=cut.columns,
    )
    return dx


class NormReLUFunction(torch.autograd.Function):
    """x, branch, … -> x + branch, and dropout(relu(batch norm)) of that sum; the latter alone where branch is None.

    The norm's weight and bias are named once more, for their gradients.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        branch: Tensor | None,
        weight: Tensor,
        bias: Tensor,
        norm: Norm,
        drop: Drop | None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        total, seen = take_statistics(x, branch, norm)
        # The weights too, so that autograd sees whether they were changed since.
        ctx.save_for_backward(total, weight, bias)
        ctx.seen, ctx.norm, ctx.drop, ctx.has_branch = seen, norm, drop, branch is not None
        ctx.set_materialize_grads(False)
        y = activate(total, seen, norm, drop)
        return y if branch is None else (total, y)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        *of_total, dy = (g if g is None else packed(g) for g in gradients)
        assert dy is not None
        (x, _, _), seen, norm, drop = ctx.saved_tensors, ctx.seen, ctx.norm, ctx.drop
        sums = sum_gradients(x, dy, seen, norm, drop)
        dx = gradient(x, dy, of_total[0] if of_total else None, seen, norm, sums, drop)
        return dx, dx if ctx.has_branch else None, *sums, None, None


def in_training(x: Tensor, norm: Norm, drop: Drop | None) -> Tensor:
    """dropout(relu(batch norm))."""
    active: Tensor = NormReLUFunction.apply(x, None, norm.weight, norm.bias, norm, drop)
    return active


def joined(x: Tensor, branch: Tensor, norm: Norm) -> tuple[Tensor, Tensor]:
    """x + branch, and relu(batch norm) of that."""
    total, active = NormReLUFunction.apply(x, branch, norm.weight, norm.bias, norm, None)
    return total, active


@torch.no_grad()
def in_testing(x: Tensor, norm: Norm, drop: Drop | None) -> Tensor:
    """dropout(relu(batch norm)) by the running statistics."""
    return activate(x, None, norm, drop)
