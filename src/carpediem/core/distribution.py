"""What an epoch is drawn from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from carpediem.core.alias import PieceTable
from carpediem.core.arrays import (
    BLOCK,
    Array,
    index_dtype,
    like,
    namespace,
    native,
    over_blocks,
    uniform,
    whole,
)
from carpediem.core.distinct import ROUNDS, distinct_on_host, first_distinct, race, spare_candidates

State = dict[str, Any]
# How many samples are equally likely, their weight, and the samples group by group (None: 0..N-1 as they are).
Groups = tuple[NDArray[np.int64], NDArray[np.float64], Array]
HEAVY = 1e-3  # P of a sample that a batch is likely to draw again


class Distribution(ABC):
    """Probabilities over N samples, and batches drawn from them.

    Subclasses keep positions grouped by equal (or equally bounded) weight: `_order` lists the samples group by
    group, None where the order is 0..N-1, and `_table` finds a position from a uniform number.

    Attributes:
        num_samples: N.
        support: how many samples can be drawn at all; a batch is at most that large.
        is_uniform: every sample is equally likely.
    """

    num_samples: int
    support: int
    is_uniform = False
    device: torch.device
    _order: Array = None
    _acceptance = 1.0
    _repeat_rate: float
    # Of the samples of a P up to HEAVY: their share of the mass, and the repeat rate among them.
    _light: tuple[float, float] = (0.0, 1.0)
    _table: PieceTable

    @abstractmethod
    def weights(self, indices: Tensor | None = None) -> Tensor:
        """What the probabilities are proportional to, float64; of all samples unless `indices` are given."""

    @abstractmethod
    def state_dict(self) -> State:
        """What rebuilds this distribution (see `distribution_from_state`)."""

    @property
    @abstractmethod
    def total(self) -> float:
        """Sum of the weights."""

    @property
    def largest_probability(self) -> float:
        """P of the likeliest sample."""
        return float(self.probabilities().max())

    def probabilities(self, indices: Tensor | None = None) -> Tensor:
        """P of the given samples, or of all, float64. Over all samples they sum to 1."""
        return self.weights(indices) / self.total

    def groups(self) -> Groups | None:
        """The samples by equal weight, for a distribution that has few of them; None for any other."""
        return None

    def check_batch_size(self, batch_size: int) -> None:
        """Refuse batches that cannot be filled with distinct samples."""
        if not 1 <= batch_size <= self.support:
            raise ValueError(
                f"batch_size must lie in [1, {self.support}], the number of samples that can be drawn, "
                f"got {batch_size}"
            )

    def draw(self, batches: int, batch_size: int, generator: torch.Generator) -> Tensor:
        """Batches of distinct samples, each drawn without replacement, independent of one another.

        Returns:
            int64, shape (batches, batch_size). On an accelerator nothing waits for the device.
        """
        self.check_batch_size(batch_size)
        if 8 * batch_size > self.support:
            return self._raced(batches, batch_size, generator)
        if self.device.type == "cpu":
            # A race costs a number for every sample: among many, thousands of redraws are the quicker way.
            rounds = max(ROUNDS, self.num_samples // (8 * batch_size))
            drawn = distinct_on_host(
                self._candidates, self.weights, batches, batch_size, generator, rounds=rounds
            )
            return torch.from_numpy(drawn)
        size = spare_candidates(batch_size, self._repeat_rate, self._acceptance)
        share, rate = self._light
        if size is None and share:  # a few heavy samples: enough of the others will do
            size = spare_candidates(batch_size, rate, self._acceptance * share)
        if size is None:
            return self._raced(batches, batch_size, generator)
        found, accepted = self._try(batches * size, generator)
        shape = (batches, size)
        return first_distinct(
            found.reshape(shape), None if accepted is None else accepted.reshape(shape), batch_size
        )

    def _raced(self, batches: int, batch_size: int, generator: torch.Generator) -> Tensor:
        """Batches drawn by a race of the samples that can be drawn."""
        weights = self.weights()
        if self.support == self.num_samples or self.device.type != "cpu":
            return race(weights, batches, batch_size, generator)
        possible = weights.nonzero().flatten()
        return possible[race(weights[possible], batches, batch_size, generator)]

    def _candidates(self, count: int, generator: torch.Generator) -> NDArray[np.integer[Any]]:
        """Independent draws on the host; rejected ones are drawn again."""
        found, accepted = self._try(count, generator)
        missing = np.arange(count)
        while accepted is not None and len(missing := missing[~accepted]):
            found[missing], accepted = self._try(len(missing), generator)
        return np.asarray(found)

    def _try(self, count: int, generator: torch.Generator) -> tuple[Array, Array | None]:
        """Independent candidates, and which of them are accepted (None: all)."""
        position = self._table.positions(uniform(count, generator))
        return position if self._order is None else self._order[position], None


class Uniform(Distribution):
    """Every sample equally likely."""

    is_uniform = True

    def __init__(self, num_samples: int, device: torch.device | str = "cpu") -> None:
        self.num_samples = self.support = num_samples
        self.device = torch.device(device)
        self._repeat_rate = 1 / num_samples

    @property
    def total(self) -> float:
        return float(self.num_samples)

    @property
    def largest_probability(self) -> float:
        return 1 / self.num_samples

    def weights(self, indices: Tensor | None = None) -> Tensor:
        size = (self.num_samples,) if indices is None else indices.shape
        return torch.ones(size, dtype=torch.float64, device=self.device)

    def groups(self) -> Groups:
        return np.array([self.num_samples]), np.ones(1), None

    def state_dict(self) -> State:
        return {"kind": "uniform"}

    def _try(self, count: int, generator: torch.Generator) -> tuple[Array, Array | None]:
        return whole(uniform(count, generator) * self.num_samples), None


class Levels(Distribution):
    """Samples of one level are equally likely.

    Args:
        levels: level of each sample, shape (N,), small integers. Kept as they are: write into a copy from then on.
        level_weights: weight of each level, at least 0; any real type, taken as float64.
    """

    def __init__(self, levels: Tensor, level_weights: NDArray[Any]) -> None:
        level_weights = np.asarray(level_weights, dtype=np.float64)
        if levels.is_floating_point() or levels.dtype == torch.bool:
            raise TypeError(
                f"levels must be integers, got {levels.dtype}; convert them with .to(torch.uint8)"
            )
        lowest, highest = (int(level) for level in levels.aminmax())
        if lowest < 0 or highest >= len(level_weights):
            raise ValueError(
                f"levels must lie in [0, {len(level_weights)}), as there are level_weights, got {lowest} to {highest}"
            )
        self.num_samples, self.device = len(levels), levels.device
        self.levels, self.level_weights = levels, level_weights
        self._weight_of_level = torch.from_numpy(level_weights).to(
            self.device
        )  # now, lest a draw wait for it
        order, counts = group_by_level(levels, len(level_weights))
        self._order, self._counts = native(order), counts
        mass = counts * level_weights
        self._total = float(mass.sum())
        if not ((level_weights >= 0).all() and 0 < self._total < math.inf):
            raise ValueError(
                "level_weights must be finite and at least 0, not 0 for all samples, got "
                f"{', '.join(format(weight, 'g') for weight in level_weights[:9])}{', …' * (len(level_weights) > 9)}"
            )
        self._repeat_rate = float((mass / self._total * (level_weights / self._total)).sum())
        self._light = _light(counts, level_weights / self._total, level_weights / self._total)
        self.support = int(counts[level_weights > 0].sum())
        self._largest = float(level_weights[counts > 0].max())
        self._table = PieceTable.build(counts, np.cumsum(counts) - counts, level_weights, self.device)

    @property
    def total(self) -> float:
        return self._total

    @property
    def largest_probability(self) -> float:
        return self._largest / self._total

    def weights(self, indices: Tensor | None = None) -> Tensor:
        levels = self.levels if indices is None else self.levels[indices]
        return self._weight_of_level[levels.long()]

    def groups(self) -> Groups:
        return self._counts, self.level_weights, self._order

    def state_dict(self) -> State:
        return {
            "kind": "levels",
            "levels": self.levels.clone(),
            "level_weights": torch.from_numpy(self.level_weights.copy()),
        }


class Weights(Distribution):
    """Samples drawn in proportion to weights of their own.

    Samples are grouped by the eighth of an octave that their weight lies in. A candidate is drawn by its
    group's upper bound and accepted with the share of it that its own weight is: at least 11 out of 12 are.
    No table of cumulated weights is searched and none is rounded, so N has no limit.

    Args:
        weights: shape (N,), finite, at least 0, not all 0; any real type, taken as float64. A tensor of float64 is
            kept as it is: write into a copy from then on.
    """

    _LEVELS = 255  # level 254 takes what is less likely than 2^-31 of the largest, level 255 the zeros

    def __init__(self, weights: Tensor) -> None:
        if not isinstance(weights, Tensor) or weights.dim() != 1 or not len(weights):
            got = f"shape {tuple(weights.shape)}" if isinstance(weights, Tensor) else repr(weights)[:80]
            raise TypeError(f"weights must be a tensor of shape (N,), one number a sample, got {got}")
        self.num_samples, self.device = len(weights), weights.device
        # Sums and bounds in float32 would be off by more than the bounds leave room for.
        self._weights = weights = weights.to(torch.float64)
        smallest, largest = (float(v) for v in weights.aminmax())
        self._total = float(weights.sum())
        # NaN is neither; an infinite weight makes an infinite sum.
        if not (smallest >= 0 and 0 < self._total < math.inf):
            raise ValueError(
                "weights must be finite and at least 0, not all 0 and of a finite sum, got values from "
                f"{smallest} to {largest} with sum {self._total}"
            )
        self._largest = largest
        top = math.log2(largest)
        levels = torch.empty(self.num_samples, dtype=torch.uint8, device=self.device)
        source, target = native(weights), native(levels)
        xp = namespace(source)
        block = BLOCK if xp is np else self.num_samples
        for start in range(0, self.num_samples, block):
            part = source[start : start + block]
            octaves = 8 * (top - xp.log2(xp.where(part > 0, part, largest)))
            level = xp.where(part > 0, octaves.clip(0, self._LEVELS - 1), float(self._LEVELS))
            target[start : start + block] = like(level, target)
        bounds = largest * np.exp2(-np.arange(self._LEVELS + 1) / 8)
        bounds[-1] = 0.0
        # log2 is rounded: a bound a little above lets every weight stay below the bound of its level.
        self._bounds = native(torch.from_numpy(bounds * (1 + 1e-9)).to(self.device))
        order, counts = group_by_level(levels, self._LEVELS + 1)
        self._order, self._levels = native(order), target
        self._acceptance = self._total / float((counts * bounds).sum() * (1 + 1e-9))
        self._repeat_rate = float((weights / self._total).square().sum())
        self._light = _light(counts, np.append(bounds[1:], 0.0) / self._total, bounds / self._total)
        self.support = int(counts[:-1].sum())
        self._table = PieceTable.build(counts, np.cumsum(counts) - counts, bounds, self.device)

    @property
    def total(self) -> float:
        return self._total

    @property
    def largest_probability(self) -> float:
        return self._largest / self._total

    def weights(self, indices: Tensor | None = None) -> Tensor:
        return self._weights.clone() if indices is None else self._weights[indices]

    def state_dict(self) -> State:
        return {"kind": "weights", "weights": self._weights.clone()}

    def _try(self, count: int, generator: torch.Generator) -> tuple[Array, Array | None]:
        found, _ = super()._try(count, generator)
        bound = self._bounds[whole(self._levels[found])]
        return found, uniform(count, generator) * bound < native(self._weights)[found]


def _light(
    counts: NDArray[np.int64], lowest: NDArray[np.float64], highest: NDArray[np.float64]
) -> tuple[float, float]:
    """At least which share of the mass samples of a P up to HEAVY have, and at most how often two of them are one.

    Args:
        counts: samples of each group.
        lowest, highest: between which their P lies.
    """
    is_light = highest <= HEAVY
    share = float((counts * lowest)[is_light].sum())
    pairs = float((counts * highest**2)[is_light].sum())
    return (share, pairs / share**2) if share > 0 else (0.0, 1.0)


def group_by_level(levels: Tensor, num_levels: int) -> tuple[Tensor, NDArray[np.int64]]:
    """The samples listed level by level, in the order of their indices inside each, and how many each has.

    >>> group_by_level(torch.tensor([2, 0, 2, 0], dtype=torch.uint8), 3)
    (tensor([1, 3, 0, 2], dtype=torch.int32), array([2, 0, 2]))
    """
    if levels.device.type != "cpu":
        order = levels.sort(stable=True).indices.to(index_dtype(len(levels)))
        return order, torch.bincount(levels, minlength=num_levels).cpu().numpy()
    source = levels.numpy()
    in_block = np.zeros((-(-len(source) // BLOCK), num_levels), dtype=np.int32)

    def count(start: int, stop: int) -> None:
        in_block[start // BLOCK] = np.bincount(source[start:stop], minlength=num_levels)

    over_blocks(len(source), count)
    counts = in_block.sum(axis=0, dtype=np.int64)
    # Where each block's samples of each level begin: behind the lower levels and behind the earlier blocks.
    begin = np.cumsum(in_block, axis=0, dtype=np.int64)
    begin -= in_block
    begin += np.cumsum(counts) - counts
    order = torch.empty(len(levels), dtype=index_dtype(len(levels)), device="cpu")
    target = order.numpy()

    # Block by block: a sort of the whole would need several times the memory, and miss the cache.
    def place(start: int, stop: int) -> None:
        found = np.argsort(source[start:stop], kind="stable")
        found += start
        block = start // BLOCK
        used = np.flatnonzero(in_block[block])
        sizes = in_block[block, used]
        ends = np.cumsum(sizes)
        for to, size, end in zip(begin[block, used].tolist(), sizes.tolist(), ends.tolist(), strict=True):
            target[to : to + size] = found[end - size : end]

    over_blocks(len(source), place)
    return order, counts


def distribution_from_state(state: State, num_samples: int, device: torch.device) -> Distribution:
    """The distribution that `state_dict` was taken from."""
    kind = state.get("kind")
    if kind == "uniform":
        return Uniform(num_samples, device)
    if kind not in ("levels", "weights"):
        raise ValueError(f"distribution must be one of uniform, levels, weights; the state holds {kind!r}")
    for name in ("levels", "level_weights") if kind == "levels" else ("weights",):
        if not isinstance(state.get(name), Tensor):
            raise ValueError(
                f"the state's distribution must hold {name!r}, a tensor, it holds {type(state.get(name)).__name__}"
            )
    values: Tensor = state[kind].to(device, copy=True)
    if len(values) != num_samples:
        raise ValueError(f"the state's distribution holds {len(values)} samples, this selector {num_samples}")
    return Weights(values) if kind == "weights" else Levels(values, state["level_weights"].cpu().numpy())
