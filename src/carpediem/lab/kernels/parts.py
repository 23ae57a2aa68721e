"""What the lab's Triton kernels share: how a batch is cut up, sums over programs, and which activations dropout keeps.

A batch of images in channels-last layout is a matrix of M = b·h·w rows and C columns.

Sums are of the same parts in the same order whatever else the device does: each program leaves its part, and the
last one to finish adds them up. A run therefore gives the same numbers alone and beside others.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from carpediem.lab.dropout import Drop

TILE = 4096  # elements that a program without sums holds at once
LANE_TILE = (
    1024  # elements of a sum that a program keeps: eight a thread, which is also what a thread reads at once
)
MOST_PARTS = 256  # of a column's sum: one program adds them up, and the others wait for it
SUMS_AT_ONCE = tl.constexpr(4096)  # that it reads, and of a column not fewer than 64
DEEP = (
    2  # rows that a thread of a program with sums reads at once: more take registers that other programs need
)
ENOUGH_PROGRAMS = 512  # with sums, to keep a large device busy: more would not fit on it at once


@triton.jit
def mixed(value):
    """`lab.dropout.mixed`, on uint32."""
    value = (value ^ (value >> 16)) * 0x85EBCA6B
    value = (value ^ (value >> 13)) * 0xC2B2AE35
    return value ^ (value >> 16)


@triton.jit
def salted(seed, layer):
    """What a layer's dropout in this step is made from: the same for all places."""
    return mixed((tl.load(seed) + layer).to(tl.uint32, bitcast=True))


@triton.jit
def kept(rows, columns, salt, threshold, C, area):
    """Which activations dropout keeps: `lab.dropout.CountedDropout`, whose places count as (b, c, h, w)."""
    place = ((rows // area) * C + columns) * area + rows % area
    bits = mixed(place.to(tl.uint32, bitcast=True) ^ salt)
    return (bits & 0x7FFFFFFF).to(tl.int32) >= threshold


@triton.jit
def is_last(arrivals, PARTS: tl.constexpr):
    """Whether this program is the last of PARTS to come here; then all that the others wrote can be read."""
    tl.debug_barrier()
    before = tl.atomic_add(arrivals, 1, sem="acq_rel")
    tl.debug_barrier()
    return before == PARTS - 1


@triton.jit
def rows_of(group, LANES: tl.constexpr, DEEP: tl.constexpr):
    """The rows of one pass of a program with sums, shape (DEEP, LANES, 1): a thread keeps one sum for DEEP rows."""
    deep = tl.arange(0, DEEP)[:, None, None]
    return (group * DEEP + deep) * LANES + tl.arange(0, LANES)[None, :, None]


@triton.jit
def affine(mean, rstd, weight, bias, columns, inside):
    """Of a norm: mean, 1/deviation, and the slope and level of the line that takes a value to what ReLU sees."""
    middle = tl.load(mean + columns, inside, 0.0)
    spread = tl.load(rstd + columns, inside, 0.0)
    slope = tl.load(weight + columns, inside, 0.0) * spread
    return middle, spread, slope, tl.load(bias + columns, inside, 0.0) - middle * slope


@triton.jit
def corrections(dweight, dbias, middle, spread, slope, columns, inside, M):
    """What `through_statistics` adds: batch statistics depend on the values, the mean as the deviation."""
    turned = slope * spread * tl.load(dweight + columns, inside, 0.0) / M
    return middle * turned - slope * tl.load(dbias + columns, inside, 0.0) / M, -turned


@triton.jit
def through_statistics(value, gradient, slope, constant, linear):
    """The gradient of what a norm saw, of that of what its ReLU saw."""
    return gradient * slope[None, :] + (constant[None, :] + value * linear[None, :])


@triton.jit
def move_running(running_mean, running_var, columns, inside, old_mean, mean, variance, M, momentum):
    """Takes a batch's mean and variance into the running ones."""
    tl.store(running_mean + columns, old_mean + momentum * (mean - old_mean), inside)
    old = tl.load(running_var + columns, inside, 0.0)
    tl.store(running_var + columns, old + momentum * (variance * (M / (M - 1)) - old), inside)


@triton.jit
def leave_sums(parts, part, one, other, columns, C, PARTS: tl.constexpr):
    """Writes a program's two sums, each a (lanes, columns) block of which the lanes are still to be added up."""
    inside = columns < C
    tl.store(parts + part * C + columns, tl.sum(one, 0), inside)
    tl.store(parts + (PARTS + part) * C + columns, tl.sum(other, 0), inside)


@triton.jit
def all_sums(parts, columns, C, PARTS: tl.constexpr, COLUMNS: tl.constexpr):
    """The two sums over all programs, for the last one."""
    CHUNK: tl.constexpr = max(SUMS_AT_ONCE // COLUMNS, 64)
    one = tl.zeros((CHUNK, COLUMNS), tl.float32)
    other = tl.zeros((CHUNK, COLUMNS), tl.float32)
    for first in range(0, PARTS, CHUNK):
        which = (first + tl.arange(0, CHUNK))[:, None]
        places = which * C + columns[None, :]
        there = (which < PARTS) & (columns < C)[None, :]
        one += tl.load(parts + places, there, 0.0, cache_modifier=".cg")
        other += tl.load(parts + PARTS * C + places, there, 0.0, cache_modifier=".cg")
    return tl.sum(one, 0), tl.sum(other, 0)


@triton.jit
def all_moments(parts, columns, C, M, near, PARTS: tl.constexpr, COLUMNS: tl.constexpr):
    """Mean and variance of M values, whose distances from `near` and their squares the programs have summed up."""
    distance, square = all_sums(parts, columns, C, PARTS, COLUMNS)
    distance = distance / M
    return near + distance, tl.maximum(square / M - distance * distance, 0.0)


@dataclass(frozen=True)
class Cut:
    """How a matrix of M rows and C columns is cut up."""

    M: int
    C: int
    area: int

    @staticmethod
    def of(x: Tensor) -> Cut:
        """The matrix of a batch of images, shape (b, c, h, w)."""
        batch, channels, height, width = x.shape
        return Cut(batch * height * width, channels, height * width)

    @property
    def columns(self) -> int:
        """Of a program without sums."""
        return min(_power_of_two_from(self.C), 64)

    @property
    def rows(self) -> int:
        return TILE // self.columns

    @property
    def programs(self) -> tuple[int, int]:
        """As many as it takes without sums."""
        return -(-self.M // self.rows), -(-self.C // self.columns)

    def summing(self, stages: int = 1) -> Summing:
        """The same for a program with sums.

        Args:
            stages: one more than how many tiles are on their way while a program adds one to its sums. With more than
                one stage half the programs are enough.
        """
        columns = 32 if self.C > 32 else min(_power_of_two_from(self.C), 16)
        lanes = LANE_TILE // columns
        blocks = -(-self.C // columns)
        groups = -(-self.M // (lanes * DEEP))
        enough = ENOUGH_PROGRAMS if stages == 1 else ENOUGH_PROGRAMS // 2
        parts = max(min(groups, MOST_PARTS, enough // blocks), 1)
        return Summing(parts, blocks, lanes, columns, stages)


@dataclass(frozen=True)
class Summing:
    """Programs with sums: how many parts a sum has, and what each program takes."""

    parts: int
    column_blocks: int
    lanes: int
    columns: int
    stages: int

    @property
    def programs(self) -> tuple[int, int]:
        return self.parts, self.column_blocks

    def is_even(self, cut: Cut) -> bool:
        """Whether nothing lies outside the matrix."""
        return cut.M % (self.lanes * DEEP) == 0 and cut.C % self.columns == 0

    @property
    def constants(self) -> dict[str, int]:
        return {
            "PARTS": self.parts,
            "LANES": self.lanes,
            "DEEP": DEEP,
            "STAGES": self.stages,
            "COLUMNS": self.columns,
        }


def _power_of_two_from(number: int) -> int:
    return 1 << (number - 1).bit_length()


def drop_arguments(drop: Drop | None, anything: Tensor) -> tuple[Tensor, int, int, float]:
    """seed, layer, threshold, scale."""
    if drop is None:
        return anything, 0, 0, 1.0
    salt = drop.layer * 0x3C6EF35F % 2**31
    return drop.seed, salt, int(drop.rate * 2**31), 1 / (1 - drop.rate)


def packed(images: Tensor) -> Tensor:
    """In the layout that the kernels want."""
    return images.contiguous(memory_format=torch.channels_last)


def convolution_with(stride: int) -> tuple[object, ...]:
    """What torch's own 3×3 convolution and its backward take: stride, padding, dilation, transposed, …, groups."""
    return [stride, stride], [1, 1], [1, 1], False, [0, 0], 1
