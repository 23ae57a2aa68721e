"""Weighted Batch: the user's own scores."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from carpediem.core.distribution import Distribution, Uniform, Weights
from carpediem.selectors.base import Draws, Selector
from carpediem.selectors.values import placed_values


class WeightedBatch(Selector):
    """Draws in proportion to weights that may be set at any time, as far as a batch holds a sample once.

    A sample is in a batch or not, so that it is drawn at most as often an epoch as there are batches: of weights that
    ask for more, as those of few samples against many do, what is too much goes to the others.

    Takes the place of `torch.utils.data.WeightedRandomSampler` where the weights change, where batches must
    not hold a sample twice, or where there are more than 2^24 samples. It needs no logits: `observe` may be
    called, and does nothing. Unless the sampler is told otherwise its draws are independent, as torch's are.

    Args:
        num_samples: N.
        epochs: how many epochs will be trained, if that is known.

    >>> selector = WeightedBatch(num_samples=4)
    >>> selector.set_weights(torch.tensor([0.0, 3.0]), indices=torch.tensor([0, 1]))
    >>> selector.refresh(0)
    >>> selector.distribution.probabilities()
    tensor([0.0000, 0.6000, 0.2000, 0.2000], dtype=torch.float64)
    """

    draws: Draws = "independent"  # as torch's
    learns = False

    def __init__(self, num_samples: int, epochs: int | None = None, **common: Any) -> None:
        if "num_classes" in common:
            raise TypeError("WeightedBatch takes no num_classes, since it reads no logits; leave it out")
        super().__init__(num_samples, None, epochs, **common)
        self._weights = torch.ones(self.num_samples, dtype=torch.float64, device=self.device)
        self.add_state("weights", self._weights)

    def set_weights(self, values: Tensor, indices: Tensor | None = None) -> None:
        """Set the weights of the given samples, or of all, from the next epoch on.

        Args:
            values: finite numbers of at least 0; a sample of weight 0 is never drawn.
            indices: (n,), integers in [0, N); where one occurs twice the last value counts.
        """
        values, where = placed_values("values", values, indices, self.num_samples, self.device)
        values = values.to(torch.float64)
        largest = float(values.max()) if len(values) else 0.0
        # Then something can be drawn, and the sum, which was finite, stays so: no look at all N is needed.
        if indices is not None and 0 < largest < 1e280:
            self._weights[where] = values
            return
        new = self._weights.clone()
        new[where] = values
        total = float(new.sum())
        if not 0 < total < float("inf"):
            raise ValueError(
                "values must leave a finite sum of weights above 0, so that something can be drawn, "
                f"got {total}"
            )
        self._weights.copy_(new)

    def handed_in(self) -> Tensor:
        return self._weights

    def measure(self, logits: Tensor, targets: Tensor) -> None:
        """The weights come from the user alone."""

    def keep(self, indices: Tensor, values: Tensor) -> None:
        """Nothing comes."""

    def build(self, epoch: int) -> Distribution:
        low, high = self._weights.aminmax()
        return Uniform(self.num_samples, self.device) if bool(low == high) else Weights(self._weights.clone())
