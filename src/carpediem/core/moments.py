"""Running moments of the probability of the true label, for Active Bias (Eq. 2)."""

from __future__ import annotations

import torch
from torch import Tensor


class RunningMoments:
    """Count, sum and sum of squares of what each sample was given so far: a growing window without a list.

    >>> moments = RunningMoments(num_samples=2)
    >>> moments.record(torch.tensor([0, 0]), torch.tensor([0.25, 0.75]))
    >>> moments.deviation()
    tensor([0.2577, 0.0000], dtype=torch.float64)
    """

    def __init__(self, num_samples: int, device: torch.device | str = "cpu") -> None:
        self.num_samples = num_samples
        # Row N takes what must not be kept, as in LabelHistory.
        self.count = torch.zeros(num_samples + 1, dtype=torch.int32, device=device)
        self.sums = torch.zeros(2, num_samples + 1, dtype=torch.float64, device=device)

    def record(self, indices: Tensor, values: Tensor) -> None:
        """Take in one value a sample; an index may repeat.

        Args:
            indices: (b,), int64, in [0, N]; N is dropped.
            values: (b,), probabilities in [0, 1].
        """
        values = values.to(torch.float64)
        self.count.index_add_(0, indices, torch.ones_like(indices, dtype=torch.int32))
        self.sums.index_add_(1, indices, torch.stack((values, values * values)))

    def deviation(self, indices: Tensor | None = None) -> Tensor:
        """Estimated deviation of each of these samples, or of all, float64.

            std = sqrt(var + var^2 / (n - 1))          (Eq. 2)

        0 for a sample seen at most once.
        """
        chosen = slice(self.num_samples) if indices is None else indices
        n = self.count[chosen].to(torch.float64)
        mean, square = self.sums[:, chosen] / n.clamp(min=1)
        variance = (square - mean * mean).clamp(min=0)
        return torch.where(n > 1, (variance + variance * variance / (n - 1).clamp(min=1)).sqrt(), 0.0)
