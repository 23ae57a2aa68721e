"""A norm's activations times a matrix, as two Triton kernels: forward and backward.

With rows for pixels, a 1×1 convolution after batch norm and ReLU is activations(x) @ weightᵀ. Forward, the activations
are made on the way into the product and never lie in memory, and the statistics that the next norm needs are taken on
the way out. Backward, one pass gives the gradient before the ReLU with the sums of its norm, and the gradient of the
matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from carpediem.lab.dropout import Drop
from carpediem.lab.kernels.norm_relu import Norm, Statistics
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
    salted,
    through_statistics,
)

ROWS = 64  # of the output that a program holds at once
ROOMY = 160 * 1024  # bytes that the threads of a program may share, for three stages of the largest product
ADDED, ADDED_AT_ONCE = 32, 64  # elements of a matrix that a program adds up, and parts that it reads at once


@dataclass(frozen=True)
class Plan:
    """How a kernel goes about a product.

    Args:
        columns: of the output that a program holds at most.
        programs: at most so many in all, each of which goes over many rows.
        warps: of a program.
    """

    columns: int
    programs: int
    warps: int

    def parts(self, rows: int, columns: int) -> tuple[int, int]:
        """Programs along the rows, a power of two of which none is without work, and along the columns."""
        blocks = columns // min(columns, self.columns)
        most = min(-(-rows // ROWS), self.programs // blocks)
        return 1 << (most.bit_length() - 1), blocks


def stages_on(device: torch.device) -> int:
    """One more than how many tiles are on their way at once: on a small device more would not fit."""
    return 3 if device.type != "cuda" or _shared_memory(device) >= ROOMY else 2


@cache
def _shared_memory(device: torch.device) -> int:
    index = torch.cuda.current_device() if device.index is None else device.index
    return int(triton.runtime.driver.active.utils.get_device_properties(index)["max_shared_mem"])


MANY_SMALL, FEW_LARGE = Plan(columns=128, programs=256, warps=4), Plan(columns=128, programs=128, warps=8)
MANY_NARROW = Plan(columns=64, programs=256, warps=4)


def forward_plan(channels: int) -> Plan:
    """For activations of so many channels: what was fastest on an H200, as for `backward_plan`."""
    return FEW_LARGE if channels > 128 else MANY_SMALL


def backward_plan(channels: int, outputs: int) -> Plan:
    """For the gradients of a product that had so many outputs."""
    return FEW_LARGE if outputs > channels else MANY_NARROW


@dataclass(frozen=True)
class Later:
    """A norm that a gradient has come through up to its activations.

    Args:
        x: what it saw.
        sums: the gradients of its weight and bias.
    """

    x: Tensor
    seen: Statistics
    norm: Norm
    sums: tuple[Tensor, Tensor]


@triton.jit
def by_thread(value, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Sums over those rows of a product that one thread holds, shape (32, COLUMNS): nothing is exchanged."""
    rows = tl.reshape(value, (ROWS // 64, 4, 2, 8, COLUMNS))
    return tl.reshape(tl.sum(tl.sum(rows, 2), 0), (32, COLUMNS))


@triton.jit(do_not_specialize=["layer", "threshold"])
def _product(
    x,
    weight,
    shortcut,
    out,
    mean,
    rstd,
    norm_weight,
    norm_bias,
    seed,
    parts,
    arrivals,
    out_mean,
    out_rstd,
    running_mean,
    running_var,
    M,
    N,
    area,
    layer,
    threshold,
    scale,
    eps,
    momentum,
    K: tl.constexpr,
    DROP: tl.constexpr,
    ADD: tl.constexpr,
    STATISTICS: tl.constexpr,
    EVEN: tl.constexpr,
    PARTS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
):
    """out = activations(x) @ weightᵀ, plus the shortcut, and its statistics."""
    part = tl.program_id(0)
    inner = tl.arange(0, K)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    _, _, slope, level = affine(mean, rstd, norm_weight, norm_bias, inner, inner < K)
    matrix = tl.load(weight + columns[None, :] * K + inner[:, None])
    if STATISTICS:
        near = tl.load(running_mean + columns)
    sums = tl.zeros((32, COLUMNS), tl.float32)
    squares = tl.zeros((32, COLUMNS), tl.float32)
    if DROP:
        salt = salted(seed, layer)
    for tile in tl.range(part, tl.cdiv(M, ROWS), PARTS, num_stages=STAGES):
        rows = (tile * ROWS + tl.arange(0, ROWS))[:, None]
        mask = None if EVEN else rows < M
        value = tl.load(x + rows * K + inner[None, :], mask, None if EVEN else 0.0).to(tl.float32)
        value = tl.maximum(value * slope[None, :] + level[None, :], 0.0)
        if DROP:
            value = tl.where(kept(rows, inner[None, :], salt, threshold, K, area), value * scale, 0.0)
        result = tl.dot(value.to(matrix.dtype), matrix)
        places = rows * N + columns[None, :]
        if ADD:
            result += tl.load(shortcut + places, mask, None if EVEN else 0.0).to(tl.float32)
        tl.store(out + places, result.to(out.dtype.element_ty), mask)
        if STATISTICS:
            result -= near[None, :]
            if not EVEN:
                result = tl.where(mask, result, 0.0)
            sums += by_thread(result, ROWS, COLUMNS)
            squares += by_thread(result * result, ROWS, COLUMNS)
    if STATISTICS:
        leave_sums(parts, part, sums, squares, columns, N, PARTS)
        if is_last(arrivals + tl.program_id(1), PARTS):
            middle, variance = all_moments(parts, columns, N, M, near, PARTS, COLUMNS)
            tl.store(out_mean + columns, middle)
            tl.store(out_rstd + columns, 1 / tl.sqrt(variance + eps))
            move_running(running_mean, running_var, columns, columns < N, near, middle, variance, M, momentum)
            tl.store(arrivals + tl.program_id(1), 0)


@triton.jit(do_not_specialize=["layer", "threshold"])
def _product_gradient(
    x,
    weight,
    dout,
    later,
    dactive,
    dx,
    mean,
    rstd,
    norm_weight,
    norm_bias,
    later_mean,
    later_rstd,
    later_weight,
    later_bias,
    later_dweight,
    later_dbias,
    seed,
    parts,
    arrivals,
    dweight,
    dbias,
    matrix_parts,
    M,
    N,
    area,
    side,
    few_area,
    few_side,
    layer,
    threshold,
    scale,
    K: tl.constexpr,
    THROUGH_NORM: tl.constexpr,
    STRIDE: tl.constexpr,
    DROP: tl.constexpr,
    EVEN: tl.constexpr,
    PARTS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Backward of `_product`: the gradient before the ReLU, the sums of its norm, parts of the matrix's gradient.

    With THROUGH_NORM, `dout` is of the activations of the norm that followed, which saw `later`; with a STRIDE, other
    gradients of the activations, `dactive`, are added at every so many rows and columns of an image. x has N columns
    here, the product K.
    """
    part = tl.program_id(0)
    inner = tl.arange(0, K)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    _, _, slope, level = affine(mean, rstd, norm_weight, norm_bias, columns, columns < N)
    if THROUGH_NORM:
        later_middle, later_spread, later_slope, later_level = affine(
            later_mean, later_rstd, later_weight, later_bias, inner, inner < K
        )
        constant, linear = corrections(
            later_dweight, later_dbias, later_middle, later_spread, later_slope, inner, inner < K, M
        )
    matrix = tl.load(weight + inner[:, None] * N + columns[None, :])
    sums = tl.zeros((32, COLUMNS), tl.float32)
    products = tl.zeros((32, COLUMNS), tl.float32)
    dmatrix = tl.zeros((K, COLUMNS), tl.float32)
    if DROP:
        salt = salted(seed, layer)
    for tile in tl.range(part, tl.cdiv(M, ROWS), PARTS, num_stages=STAGES):
        rows = (tile * ROWS + tl.arange(0, ROWS))[:, None]
        mask = None if EVEN else rows < M
        other = None if EVEN else 0.0
        upper = tl.load(dout + rows * K + inner[None, :], mask, other)
        if THROUGH_NORM:
            seen = tl.load(later + rows * K + inner[None, :], mask, other).to(tl.float32)
            gradient = tl.where(seen * later_slope[None, :] + later_level[None, :] > 0, upper, 0.0)
            gradient = through_statistics(seen, gradient.to(tl.float32), later_slope, constant, linear)
            if not EVEN:
                gradient = tl.where(mask, gradient, 0.0)
            upper = gradient.to(upper.dtype)
        places = rows * N + columns[None, :]
        value = tl.load(x + places, mask, other).to(tl.float32)
        active = value * slope[None, :] + level[None, :]
        stays = active > 0
        if DROP:
            stays = stays & kept(rows, columns[None, :], salt, threshold, N, area)
            active *= scale
        active = tl.where(stays, active, 0.0).to(upper.dtype)
        lower = tl.dot(upper, matrix)
        dmatrix = tl.dot(tl.trans(upper), active, dmatrix)
        if STRIDE > 0:
            down, right = (rows % area) // side, rows % side
            on = (down % STRIDE == 0) & (right % STRIDE == 0) & (rows < M)
            which = (rows // area) * few_area + (down // STRIDE) * few_side + right // STRIDE
            added = tl.load(dactive + which * N + columns[None, :], on, 0.0)
            lower += added.to(tl.float32)
        lower = tl.where(stays, lower, 0.0)
        if DROP:
            lower *= scale
        tl.store(dx + places, lower.to(dx.dtype.element_ty), mask)
        sums += by_thread(lower, ROWS, COLUMNS)
        products += by_thread(lower * value, ROWS, COLUMNS)
    places = (part * K + inner[:, None]) * N + columns[None, :]
    tl.store(matrix_parts + places, dmatrix.to(matrix_parts.dtype.element_ty))
    leave_sums(parts, part, sums, products, columns, N, PARTS)
    if is_last(arrivals + tl.program_id(1), PARTS):
        sum_, weighted = all_sums(parts, columns, N, PARTS, COLUMNS)
        middle, spread, _, _ = affine(mean, rstd, norm_weight, norm_bias, columns, columns < N)
        tl.store(dbias + columns, sum_)
        tl.store(dweight + columns, (weighted - middle * sum_) * spread)
        tl.store(arrivals + tl.program_id(1), 0)


@triton.jit
def _add_up(parts, total, size, PARTS: tl.constexpr, AT_ONCE: tl.constexpr, BLOCK: tl.constexpr):
    """Sums of the parts of a matrix, element by element."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = (places < size)[None, :]
    sums = tl.zeros((AT_ONCE, BLOCK), tl.float32)
    for first in range(0, PARTS, AT_ONCE):
        which = (first + tl.arange(0, AT_ONCE))[:, None]
        sums += tl.load(parts + which * size + places[None, :], inside, 0.0).to(tl.float32)
    tl.store(total + places, tl.sum(sums, 0).to(total.dtype.element_ty), places < size)


def multiply(
    x: Tensor,
    seen: Statistics,
    norm: Norm,
    drop: Drop | None,
    weight: Tensor,
    shortcut: Tensor | None,
    following: Norm | None,
) -> tuple[Tensor, Statistics | None]:
    """The 1×1 convolution of a norm's activations, plus the shortcut, and its statistics for the norm that follows.

    Args:
        x: what the norm sees, shape (b, c, h, w), with powers of two from 32 to 256 for channels.
        seen: its statistics.
        weight: shape (outputs, c, 1, 1).
        following: None where nobody asks for statistics; else its running ones are moved.
    """
    cut, outputs = Cut.of(x), weight.shape[0]
    plan = forward_plan(cut.C)
    programs, blocks = plan.parts(cut.M, outputs)
    out = x.new_empty((x.shape[0], *x.shape[2:], outputs)).permute(0, 3, 1, 2)
    found = None if following is None else Statistics.empty(following)
    kept_for = following or norm  # where nothing is kept, something must still be named
    after = found or seen
    seed, layer, threshold, scale = drop_arguments(drop, x)
    _product[(programs, blocks)](
        x,
        weight,
        x if shortcut is None else shortcut,
        out,
        seen.mean,
        seen.rstd,
        norm.weight,
        norm.bias,
        seed,
        seen.mean.new_empty((2, programs, outputs)),
        kept_for.arrivals,
        after.mean,
        after.rstd,
        kept_for.running_mean,
        kept_for.running_var,
        cut.M,
        outputs,
        cut.area,
        layer,
        threshold,
        scale,
        kept_for.eps,
        kept_for.momentum,
        K=cut.C,
        DROP=drop is not None,
        ADD=shortcut is not None,
        STATISTICS=following is not None,
        EVEN=cut.M % ROWS == 0,
        PARTS=programs,
        ROWS=ROWS,
        COLUMNS=outputs // blocks,
        STAGES=stages_on(x.device),
        num_warps=plan.warps,
    )
    return out, found


def multiply_backward(
    x: Tensor,
    seen: Statistics,
    norm: Norm,
    drop: Drop | None,
    weight: Tensor,
    dout: Tensor,
    later: Later | None = None,
    dactive: Tensor | None = None,
    stride: int = 1,
) -> tuple[Tensor, tuple[Tensor, Tensor], Tensor]:
    """The gradients of what the ReLU saw, of the norm's weight and bias, and of the matrix.

    Args:
        dout: the gradient of the product, or of the later norm's activations where one is given.
        later: the norm that followed.
        dactive: another gradient of the activations, of every `stride`-th row and column of an image.
    """
    cut, outputs = Cut.of(x), weight.shape[0]
    plan = backward_plan(cut.C, outputs)
    programs, blocks = plan.parts(cut.M, cut.C)
    dx = torch.empty_like(x)
    dweight, dbias = seen.mean.new_empty((2, cut.C))
    parts = weight.new_empty((programs, outputs, cut.C))
    after = later or Later(x, seen, norm, (dweight, dbias))
    few = x if dactive is None else dactive
    seed, layer, threshold, scale = drop_arguments(drop, x)
    _product_gradient[(programs, blocks)](
        x,
        weight,
        dout,
        after.x,
        few,
        dx,
        seen.mean,
        seen.rstd,
        norm.weight,
        norm.bias,
        after.seen.mean,
        after.seen.rstd,
        after.norm.weight,
        after.norm.bias,
        *after.sums,
        seed,
        seen.mean.new_empty((2, programs, cut.C)),
        norm.arrivals,
        dweight,
        dbias,
        parts,
        cut.M,
        cut.C,
        cut.area,
        x.shape[3],
        few.shape[2] * few.shape[3],
        few.shape[3],
        layer,
        threshold,
        scale,
        K=outputs,
        THROUGH_NORM=later is not None,
        STRIDE=0 if dactive is None else stride,
        DROP=drop is not None,
        EVEN=cut.M % ROWS == 0,
        PARTS=programs,
        ROWS=ROWS,
        COLUMNS=cut.C // blocks,
        STAGES=stages_on(x.device),
        num_warps=plan.warps,
    )
    dmatrix = torch.empty_like(weight)
    _add_up[(-(-weight.numel() // ADDED),)](
        parts, dmatrix, weight.numel(), PARTS=programs, AT_ONCE=min(programs, ADDED_AT_ONCE), BLOCK=ADDED
    )
    return dx, (dweight, dbias), dmatrix
