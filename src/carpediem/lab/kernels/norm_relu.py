"""Batch norm, ReLU and what stands around them as four Triton kernels: two forward, two backward.

An image batch in channels-last layout is a matrix of M = b·h·w rows and C columns. Forward, the first kernel reads
the matrix once for the statistics of its columns (adding a second matrix on the way, where a residual branch joins),
the second writes the activations. Backward likewise: sums, then the gradient. ReLU and dropout are computed anew in
the backward pass from what the norm saw, so that no mask is kept.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from carpediem.lab.dropout import Drop
from carpediem.lab.kernels.parts import (
    Cut,
    affine,
    all_moments,
    all_sums,
    drop_arguments,
    is_last,
    kept,
    leave_sums,
    rows_of,
)

# Rows that a thread of a program with sums reads at once: as many as its registers hold without driving others out.
DEEP, DEEP_WITH_DROPOUT = 4, 2


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
    COLUMNS: tl.constexpr,
):
    part = tl.program_id(0)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < C
    # Sums are of distances from a number near the mean, lest their squares swallow the variance.
    near = tl.load(running_mean + columns, inside, 0.0)
    sums = tl.zeros((LANES, COLUMNS), tl.float32)
    squares = tl.zeros((LANES, COLUMNS), tl.float32)
    for group in range(part, tl.cdiv(M, LANES * DEEP), PARTS):
        rows = rows_of(group, LANES, DEEP)
        mask = None if EVEN else (rows < M) & inside[None, None, :]
        places = rows * C + columns[None, None, :]
        value = tl.load(x + places, mask).to(tl.float32)
        if ADD:
            value += tl.load(branch + places, mask).to(tl.float32)
            rounded = value.to(total.dtype.element_ty)
            tl.store(total + places, rounded, mask)
            value = rounded.to(tl.float32)
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
        tl.store(running_mean + columns, near + momentum * (middle - near), inside)
        old = tl.load(running_var + columns, inside, 0.0)
        tl.store(running_var + columns, old + momentum * (variance * (M / (M - 1)) - old), inside)
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
            kept(rows[:, None], columns[None, :], seed, layer, threshold, C, area), value * scale, 0.0
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
    COLUMNS: tl.constexpr,
):
    part = tl.program_id(0)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < C
    middle, spread, slope, level = affine(mean, rstd, weight, bias, columns, inside)
    plain = tl.zeros((LANES, COLUMNS), tl.float32)
    product = tl.zeros((LANES, COLUMNS), tl.float32)
    for group in range(part, tl.cdiv(M, LANES * DEEP), PARTS):
        rows = rows_of(group, LANES, DEEP)
        mask = None if EVEN else (rows < M) & inside[None, None, :]
        places = rows * C + columns[None, None, :]
        value = tl.load(x + places, mask, None if EVEN else 0.0).to(tl.float32)
        gradient = tl.load(dy + places, mask, None if EVEN else 0.0).to(tl.float32)
        gradient = tl.where(value * slope[None, None, :] + level[None, None, :] > 0, gradient, 0.0)
        if DROP:
            stays = kept(rows, columns[None, None, :], seed, layer, threshold, C, area)
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
        stays = kept(rows[:, None], columns[None, :], seed, layer, threshold, C, area)
        gradient = tl.where(stays, gradient * scale, 0.0)
    # Batch statistics depend on the values: the mean takes its part back, the deviation its own.
    gradient -= (tl.load(dbias + columns, inside, 0.0) / M)[None, :]
    gradient -= (value - middle[None, :]) * (spread * tl.load(dweight + columns, inside, 0.0) / M)[None, :]
    gradient *= slope[None, :]
    if ADD:
        gradient += tl.load(dtotal + places, mask, 0.0).to(tl.float32)
    tl.store(dx + places, gradient.to(dx.dtype.element_ty), mask)


class NormReLUFunction(torch.autograd.Function):
    """x, branch, … -> x + branch, and dropout(relu(batch norm)) of that sum; the latter alone where branch is None."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        branch: Tensor | None,
        weight: Tensor,
        bias: Tensor,
        running_mean: Tensor,
        running_var: Tensor,
        arrivals: Tensor,
        eps: float,
        momentum: float,
        drop: Drop | None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        cut = Cut.of(x)
        sums = cut.summing(DEEP)
        total = x if branch is None else torch.empty_like(x)
        parts = x.new_empty((2, sums.parts, cut.C), dtype=torch.float32)
        mean, rstd = x.new_empty((2, cut.C), dtype=torch.float32)
        _statistics[sums.programs](
            x,
            x if branch is None else branch,
            total,
            parts,
            arrivals,
            mean,
            rstd,
            running_mean,
            running_var,
            cut.M,
            cut.C,
            eps,
            momentum,
            ADD=branch is not None,
            EVEN=sums.is_even(cut),
            **sums.constants,
        )
        y = _activated(total, mean, rstd, weight, bias, eps, drop, running=False)
        ctx.save_for_backward(total, mean, rstd, weight, bias, arrivals)
        ctx.drop, ctx.has_branch = drop, branch is not None
        ctx.set_materialize_grads(False)
        return y if branch is None else (total, y)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        *of_total, dy = gradients
        dtotal = of_total[0] if of_total else None
        assert dy is not None
        x, mean, rstd, weight, bias, arrivals = ctx.saved_tensors
        cut = Cut.of(x)
        sums = cut.summing(DEEP if ctx.drop is None else DEEP_WITH_DROPOUT)
        seed, layer, threshold, scale = drop_arguments(ctx.drop, mean)
        dropping = ctx.drop is not None
        dy = dy.contiguous(memory_format=torch.channels_last)
        parts = x.new_empty((2, sums.parts, cut.C), dtype=torch.float32)
        dweight, dbias = x.new_empty((2, cut.C), dtype=torch.float32)
        _gradient_sums[sums.programs](
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
            cut.M,
            cut.C,
            cut.area,
            layer,
            threshold,
            scale,
            DROP=dropping,
            EVEN=sums.is_even(cut),
            **sums.constants,
        )
        dx = torch.empty_like(x)
        if dtotal is not None:
            dtotal = dtotal.contiguous(memory_format=torch.channels_last)
        _gradient[cut.programs](
            x,
            dy,
            x if dtotal is None else dtotal,
            dx,
            mean,
            rstd,
            weight,
            bias,
            seed,
            dweight,
            dbias,
            cut.M,
            cut.C,
            cut.area,
            layer,
            threshold,
            scale,
            ADD=dtotal is not None,
            DROP=dropping,
            ROWS=cut.rows,
            COLUMNS=cut.columns,
        )
        return dx, dx if ctx.has_branch else None, dweight, dbias, None, None, None, None, None, None


def _activated(
    x: Tensor,
    mean: Tensor,
    spread: Tensor,
    weight: Tensor,
    bias: Tensor,
    eps: float,
    drop: Drop | None,
    *,
    running: bool,
) -> Tensor:
    cut = Cut.of(x)
    y = torch.empty_like(x)
    seed, layer, threshold, scale = drop_arguments(drop, mean)
    _activations[cut.programs](
        x,
        y,
        mean,
        spread,
        weight,
        bias,
        seed,
        cut.M,
        cut.C,
        cut.area,
        eps,
        layer,
        threshold,
        scale,
        RUNNING=running,
        DROP=drop is not None,
        ROWS=cut.rows,
        COLUMNS=cut.columns,
    )
    return y


def in_training(x: Tensor, *arguments: Any) -> Tensor:
    """dropout(relu(batch norm)); takes what `NormReLUFunction` does, but for the branch."""
    active: Tensor = NormReLUFunction.apply(x, None, *arguments)
    return active


def joined(x: Tensor, branch: Tensor, *arguments: Any) -> tuple[Tensor, Tensor]:
    """x + branch, and dropout(relu(batch norm)) of that; takes what `NormReLUFunction` does."""
    total, active = NormReLUFunction.apply(x, branch, *arguments)
    return total, active


@torch.no_grad()
def in_testing(
    x: Tensor, running_mean: Tensor, running_var: Tensor, weight: Tensor, bias: Tensor, eps: float
) -> Tensor:
    """relu(batch norm) by the running statistics."""
    return _activated(x, running_mean, running_var, weight, bias, eps, None, running=True)
