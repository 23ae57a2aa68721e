"""What the lab's Triton kernels share: how a batch is cut up, sums over programs, and which activations dropout keeps.

A batch of images in channels-last layout is a matrix of M = b·h·w rows and C columns.

Sums are of the same parts in the same order whatever else the device does: each program leaves its part, and the
last one to finish adds them up. A run therefore gives the same numbers alone and beside others.
"""

from __future__ import annotations

from dataclasses import dataclass

import triton
import triton.language as tl
from torch import Tensor

from carpediem.lab.dropout import Drop

TILE = 4096  # elements that a program without sums holds at once
LANE_TILE = (
    1024  # elements of a sum that a program keeps: eight a thread, which is also what a thread reads at once
)
MOST_PARTS = 256  # of a column's sum: one program adds them up, and the others wait for it
PARTS_AT_ONCE = tl.constexpr(128)  # that it holds
ENOUGH_PROGRAMS = 512  # with sums, to keep a large device busy: more would each have too little to do


@triton.jit
def mixed(value):
    """`lab.dropout.mixed`, on uint32."""
    value = (value ^ (value >> 16)) * 0x85EBCA6B
    value = (value ^ (value >> 13)) * 0xC2B2AE35
    return value ^ (value >> 16)


@triton.jit
def kept(rows, columns, seed, layer, threshold, C, area):
    """Which activations dropout keeps: `lab.dropout.CountedDropout`, whose places count as (b, c, h, w)."""
    place = ((rows // area) * C + columns) * area + rows % area
    salt = mixed((tl.load(seed) + layer).to(tl.uint32, bitcast=True))
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
def leave_sums(parts, part, one, other, columns, C, PARTS: tl.constexpr):
    """Writes a program's two sums, each a (lanes, columns) block of which the lanes are still to be added up."""
    inside = columns < C
    tl.store(parts + part * C + columns, tl.sum(one, 0), inside)
    tl.store(parts + (PARTS + part) * C + columns, tl.sum(other, 0), inside)


@triton.jit
def all_sums(parts, columns, C, PARTS: tl.constexpr, COLUMNS: tl.constexpr):
    """The two sums over all programs, for the last one."""
    CHUNK: tl.constexpr = min(PARTS, PARTS_AT_ONCE)
    one = tl.zeros((CHUNK, COLUMNS), tl.float32)
    other = tl.zeros((CHUNK, COLUMNS), tl.float32)
    inside = (columns < C)[None, :]
    for first in tl.static_range(0, PARTS, CHUNK):
        places = (first + tl.arange(0, CHUNK))[:, None] * C + columns[None, :]
        one += tl.load(parts + places, inside, 0.0, cache_modifier=".cg")
        other += tl.load(parts + PARTS * C + places, inside, 0.0, cache_modifier=".cg")
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

    def summing(self, deep: int) -> Summing:
        """The same for a program with sums that reads `deep` rows before it adds them to its sums."""
        columns = 32 if self.C > 32 else min(_power_of_two_from(self.C), 16)
        lanes = LANE_TILE // columns
        blocks = -(-self.C // columns)
        groups = -(-self.M // (lanes * deep))
        parts = max(min(groups, MOST_PARTS, ENOUGH_PROGRAMS // blocks), 1)
        return Summing(1 << (parts.bit_length() - 1), blocks, lanes, deep, columns)


@dataclass(frozen=True)
class Summing:
    """Programs with sums: how many parts a sum has, and what each program takes."""

    parts: int
    column_blocks: int
    lanes: int
    deep: int
    columns: int

    @property
    def programs(self) -> tuple[int, int]:
        return self.parts, self.column_blocks

    def is_even(self, cut: Cut) -> bool:
        """Whether nothing lies outside the matrix."""
        return cut.M % (self.lanes * self.deep) == 0 and cut.C % self.columns == 0

    @property
    def constants(self) -> dict[str, int]:
        return {"PARTS": self.parts, "LANES": self.lanes, "DEEP": self.deep, "COLUMNS": self.columns}


def _power_of_two_from(number: int) -> int:
    return 1 << (number - 1).bit_length()


def drop_arguments(drop: Drop | None, anything: Tensor) -> tuple[Tensor, int, int, float]:
    """seed, layer, threshold, scale."""
    if drop is None:
        return anything, 0, 0, 1.0
    salt = drop.layer * 0x3C6EF35F % 2**31
    return drop.seed, salt, int(drop.rate * 2**31), 1 / (1 - drop.rate)
