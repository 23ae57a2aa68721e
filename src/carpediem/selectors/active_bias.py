"""Active Bias: favour the samples whose confidence varied (Chang, Learned-Miller and McCallum, 2017)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from carpediem.core.distribution import Distribution, Uniform, Weights
from carpediem.core.moments import RunningMoments
from carpediem.selectors.base import (
    Selector,
    at_least_float32,
    check_column,
    check_lengths,
    check_number,
    check_range,
)


class ActiveBias(Selector):
    """Draws by the deviation of the true label's probability over all past steps, P ∝ std + ε (Eq. 2).

    Args:
        num_samples: N.
        num_classes: k.
        epochs: how many epochs will be trained.
        smoothness: ε, more than 0, so that no sample is lost for good.
        warm_up: the uniform epochs at the start, fewer than `epochs`.
        mode: "sample" draws by Eq. 2; "reweight" draws uniformly and weights the loss by Eq. 2 instead (see
            `loss_weights`), as the authors' released code does.
        renewal: with mode="reweight", whether the weights are those of the epoch's start ("epoch") or go by all steps
            before the one they are asked for ("step"), as in the authors' released code. Ranks exchange what they
            observed once an epoch, so that "step" is for one process.
    """

    keeps_repeats = True
    later: ClassVar = {"renewal": "epoch"}

    def __init__(
        self,
        num_samples: int,
        num_classes: int,
        epochs: int,
        *,
        smoothness: float = 0.02,
        warm_up: int = 10,
        mode: Literal["sample", "reweight"] = "sample",
        renewal: Literal["epoch", "step"] = "epoch",
        **common: Any,
    ) -> None:
        smoothness = check_number("smoothness", smoothness)
        num_classes, epochs, warm_up = check_lengths(num_classes, epochs, warm_up)
        super().__init__(
            num_samples,
            num_classes,
            epochs,
            warm_up=warm_up,
            options={"smoothness": smoothness, "mode": mode, "renewal": renewal},
            **common,
        )
        if not 0 < smoothness < float("inf"):
            raise ValueError(f"smoothness must be more than 0 and finite, got {smoothness}")
        if mode not in ("sample", "reweight"):
            raise ValueError(f"mode must be 'sample' or 'reweight', got {mode!r}")
        if renewal not in ("epoch", "step") or (renewal == "step" and mode != "reweight"):
            rule = "'epoch' or, with mode='reweight', 'step'"
            raise ValueError(f"renewal must be {rule}, got {renewal!r} with mode={mode!r}")
        if epochs <= warm_up:
            raise ValueError(
                f"epochs must exceed warm_up = {warm_up} (nothing is selected during warm-up), got {epochs}; "
                "train longer or warm up less"
            )
        self.smoothness, self.mode, self.renewal = smoothness, mode, renewal
        self.moments = RunningMoments(self.num_samples, self.device)
        self.add_state("count", self.moments.count)
        self.add_state("sums", self.moments.sums)
        self._loss_weights = torch.ones(self.num_samples, dtype=torch.float64, device=self.device)
        self.add_state("loss_weights", self._loss_weights)
        # Renewed at each step: 1 from the first selective epoch on. A tensor, since a captured step reads it.
        self._selects = torch.zeros(1, dtype=torch.float64, device=self.device)
        if renewal == "step":
            self.add_state("selects", self._selects)

    def measure(self, logits: Tensor, targets: Tensor) -> Tensor:
        return at_least_float32(logits).softmax(dim=1).gather(1, targets[:, None])[:, 0]

    def keep(self, indices: Tensor, values: Tensor) -> None:
        self.moments.record(indices, values)

    def build(self, epoch: int) -> Distribution:
        if self.mode == "sample":
            return Weights(self.moments.deviation() + self.smoothness)
        if self.renewal == "epoch":
            self._loss_weights.copy_(self.moments.deviation() + self.smoothness)
        else:
            self._selects.fill_(1)
        return Uniform(self.num_samples, self.device)

    def check_shared(self) -> None:
        if self.renewal == "step":
            raise ValueError(
                "renewal must be 'epoch' where ranks are synchronised, got 'step'; they exchange what they observed "
                "once an epoch"
            )

    def loss_weights(self, indices: Tensor) -> Tensor | None:
        """With mode="reweight": the weight of each sample of the batch, 1 on average; 1 during warm-up."""
        if self.mode != "reweight":
            return None
        indices = check_column("indices", indices).to(self.device)
        if self.device.type == "cpu" and len(indices):
            check_range("indices", indices, self.num_samples, "num_samples")
        if self.renewal == "epoch":
            weights = self._loss_weights[indices]
        else:
            weights = torch.lerp(
                torch.ones((), dtype=torch.float64, device=self.device),
                self.moments.deviation(indices) + self.smoothness,
                self._selects,
            )
        return (weights / weights.mean()).float()
