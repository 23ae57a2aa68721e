"""What an epoch is drawn from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from carpediem.core.arrays import native, over_blocks

State = dict[str, Any]
COUNTED = 1 << 18  # samples whose levels are counted at a time


# A way to draw an epoch (`carpediem.core.draws`), with the arguments of `Distribution.draw_epoch`.
EpochDraw = Callable[["Distribution", int, int, int], Iterator[tuple[int, Tensor]]]


class Distribution(ABC):
    """Probabilities over N samples.

    Attributes:
        num_samples: N.
        support: how many samples can be drawn at all; a batch is at most that large.
        total: sum of the weights.
        is_uniform: every sample is equally likely.
    """

    num_samples: int
    support: int
    total: float
    is_uniform = False
    device: torch.device

    @abstractmethod
    def weights(self, indices: Tensor | None = None) -> Tensor:
        """What the probabilities are proportional to, float64; of all samples unless `indices` are given.

        What is returned may be the distribution's own: do not write to it.
        """

    @abstractmethod
    def state_dict(self) -> State:
        """What rebuilds this distribution (see `distribution_from_state`)."""

    def probabilities(self, indices: Tensor | None = None) -> Tensor:
        """P of the given samples, or of all, float64. Over all samples they sum to 1."""
        return self.weights(indices) / self.total

    def check_batch_size(self, batch_size: int) -> None:
        """Refuse batches that cannot be filled with distinct samples."""
        if not 1 <= batch_size <= self.support:
            raise ValueError(
                f"batch_size must lie in [1, {self.support}], the number of samples that can be drawn, "
                f"got {batch_size}"
            )

    def draw_epoch(
        self, draw: EpochDraw, batch_size: int, seed: int, position: int = 0
    ) -> Iterator[tuple[int, Tensor]]:
        """The N indices of an epoch, in parts of whole batches, each with where it starts.

        To override by a distribution of your own that says itself how it is drawn, whatever the sampler was told.

        Args:
            draw: the way that the sampler was told to draw.
            batch_size: samples of a batch, which are to be distinct; the last batch may have fewer.
            seed: says, with the distribution, all that is drawn.
            position: parts that end before it are not asked for and may be left out.
        """
        return draw(self, batch_size, seed, position)


class Uniform(Distribution):
    """Every sample equally likely."""

    is_uniform = True

    def __init__(self, num_samples: int, device: torch.device | str = "cpu") -> None:
        self.num_samples = self.support = num_samples
        self.total = float(num_samples)
        self.device = torch.device(device)

    def weights(self, indices: Tensor | None = None) -> Tensor:
        size = (self.num_samples,) if indices is None else indices.shape
        return torch.ones(size, dtype=torch.float64, device=self.device)

    def state_dict(self) -> State:
        return {"kind": "uniform"}


class Levels(Distribution):
    """Samples of one level are equally likely.

    Args:
        levels: level of each sample, shape (N,), small integers. Kept as they are: write into a copy from then on.
        level_weights: weight of each level, at least 0; any real type, taken as float64.

    Attributes:
        largest_probability: P of the likeliest sample.
        block_counts: how many samples of each level each block of the levels has (see `count_levels`).
    """

    def __init__(self, levels: Tensor, level_weights: NDArray[Any]) -> None:
        level_weights = np.asarray(level_weights, dtype=np.float64)
        if levels.is_floating_point() or levels.dtype == torch.bool:
            raise TypeError(
                f"levels must be integers, got {levels.dtype}; convert them with .to(torch.uint8)"
            )
        lowest, highest = int(native(levels).min()), int(native(levels).max())
        if lowest < 0 or highest >= len(level_weights):
            raise ValueError(
                f"levels must lie in [0, {len(level_weights)}), as there are level_weights, got {lowest} to {highest}"
            )
        self.num_samples, self.device = len(levels), levels.device
        self.levels, self.level_weights = levels, level_weights
        self.block_counts = count_levels(levels, len(level_weights))
        counts = self.block_counts.sum(axis=0, dtype=np.int64)
        self.total = float((counts * level_weights).sum())
        if not ((level_weights >= 0).all() and 0 < self.total < math.inf):
            raise ValueError(
                "level_weights must be finite and at least 0, not 0 for all samples, got "
                f"{', '.join(format(weight, 'g') for weight in level_weights[:9])}{', …' * (len(level_weights) > 9)}"
            )
        self.support = int(counts[level_weights > 0].sum())
        self.largest_probability = float(level_weights[counts > 0].max()) / self.total

    def weights(self, indices: Tensor | None = None) -> Tensor:
        # On the host by numpy: torch would wake its threads, and wait for them on a busy machine.
        levels = native(self.levels) if indices is None else native(self.levels)[native(indices)]
        if isinstance(levels, Tensor):
            return torch.from_numpy(self.level_weights).to(levels.device, non_blocking=True)[levels.int()]
        return torch.from_numpy(np.asarray(np.take(self.level_weights, levels)))

    def state_dict(self) -> State:
        return {
            "kind": "levels",
            "levels": self.levels.clone(),
            "level_weights": torch.from_numpy(self.level_weights.copy()),
        }


class Weights(Distribution):
    """Samples drawn in proportion to weights of their own.

    Args:
        weights: shape (N,), finite, at least 0, not all 0; any real type, taken as float64. A tensor of float64 is
            kept as it is: write into a copy from then on.
    """

    def __init__(self, weights: Tensor) -> None:
        if not isinstance(weights, Tensor) or weights.dim() != 1 or not len(weights):
            got = f"shape {tuple(weights.shape)}" if isinstance(weights, Tensor) else repr(weights)[:80]
            raise TypeError(f"weights must be a tensor of shape (N,), one number a sample, got {got}")
        self.num_samples, self.device = len(weights), weights.device
        self._weights = weights = weights.to(torch.float64)
        smallest, largest = (float(v) for v in weights.aminmax())
        self.total = float(weights.sum())
        # NaN is neither; an infinite weight makes an infinite sum.
        if not (smallest >= 0 and 0 < self.total < math.inf):
            raise ValueError(
                "weights must be finite and at least 0, not all 0 and of a finite sum, got values from "
                f"{smallest} to {largest} with sum {self.total}"
            )
        self.support = int(weights.count_nonzero())

    def weights(self, indices: Tensor | None = None) -> Tensor:
        return self._weights if indices is None else self._weights[indices]

    def state_dict(self) -> State:
        return {"kind": "weights", "weights": self._weights.clone()}


def count_levels(levels: Tensor, num_levels: int) -> NDArray[np.int64]:
    """How many samples of each level each block of COUNTED samples has, shape (blocks, num_levels).

    >>> count_levels(torch.tensor([2, 0, 2, 0], dtype=torch.uint8), 3)
    array([[2, 0, 2]])
    """
    source = levels.cpu().numpy()
    counts = np.zeros((-(-len(source) // COUNTED), num_levels), dtype=np.int64)

    def count(start: int, stop: int) -> None:
        counts[start // COUNTED] = np.bincount(source[start:stop], minlength=num_levels)

    over_blocks(len(source), count, block=COUNTED)
    return counts


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
