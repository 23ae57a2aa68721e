"""Random Batch: the baseline."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from carpediem.core.distribution import Distribution, Uniform
from carpediem.selectors.base import DRAWS, Draws, Selector


class RandomBatch(Selector):
    """Every sample equally likely.

    Args:
        num_samples: N.
        num_classes, epochs: as the other methods take them; of no use to this one.
        draws: "systematic" is the usual shuffle, each sample once an epoch; "independent" draws each batch anew,
            as the authors' released code does, which reaches about 63% of the samples in an epoch.

    >>> RandomBatch(num_samples=4, num_classes=2, epochs=1).distribution.probabilities()
    tensor([0.2500, 0.2500, 0.2500, 0.2500], dtype=torch.float64)
    """

    learns = False

    def __init__(
        self,
        num_samples: int,
        num_classes: int | None = None,
        epochs: int | None = None,
        *,
        draws: Draws = "systematic",
        **common: Any,
    ) -> None:
        if draws not in DRAWS:
            raise ValueError(f"draws must be one of {', '.join(DRAWS)}, got {draws!r}")
        super().__init__(num_samples, num_classes, epochs, options={"draws": draws}, **common)
        self.draws = draws

    def measure(self, logits: Tensor, targets: Tensor) -> None:
        """Nothing is remembered."""

    def keep(self, indices: Tensor, values: Tensor) -> None:
        """Nothing comes."""

    def build(self, epoch: int) -> Distribution:
        return Uniform(self.num_samples, self.device)
