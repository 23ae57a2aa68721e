"""Online Batch: favour the samples with the largest last loss (Loshchilov and Hutter, 2016)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from carpediem.core.distribution import Distribution, Uniform, Weights
from carpediem.core.history import last_of_each
from carpediem.core.pressure import pressure_schedule
from carpediem.core.uncertainty import pressed_weights
from carpediem.selectors.base import Selector, at_least_float32, check_lengths, check_number
from carpediem.selectors.values import placed_values


class OnlineBatch(Selector):
    """Draws by the rank r of each sample's last loss, the largest first, P ∝ s^(-r/N) (Eq. 1).

    Ties are broken by index; a sample without a loss counts as harder than all others.

    Args:
        num_samples: N.
        num_classes: k.
        epochs: how many epochs will be trained, more than `warm_up`.
        pressure: s₀, how many times likelier the hardest sample is than the easiest.
        schedule: "decayed" lets the pressure fall to 1 in the last epoch (Eq. 9), "constant" keeps it.
        warm_up: the uniform epochs at the start.
        losses: "observe" ranks by the losses of the training steps; "evaluate" by those of a pass over the
            whole training set before each epoch, handed in with `set_losses`, as the authors' released code does.
        pressure_lag: by how many epochs the pressure comes late: 1 gives the first selective epoch s₀ itself, as in
            the authors' released code, and the last one more than 1.
    """

    keeps_repeats = True
    later: ClassVar = {"pressure_lag": 0}

    def __init__(
        self,
        num_samples: int,
        num_classes: int,
        epochs: int,
        *,
        pressure: float = 100.0,
        schedule: str = "decayed",
        warm_up: int = 10,
        losses: Literal["observe", "evaluate"] = "observe",
        pressure_lag: int = 0,
        **common: Any,
    ) -> None:
        pressure = check_number("pressure", pressure)
        num_classes, epochs, warm_up = check_lengths(num_classes, epochs, warm_up)
        super().__init__(
            num_samples,
            num_classes,
            epochs,
            warm_up=warm_up,
            options={
                "pressure": pressure,
                "schedule": schedule,
                "losses": losses,
                "pressure_lag": pressure_lag,
            },
            **common,
        )
        if losses not in ("observe", "evaluate"):
            raise ValueError(f"losses must be 'observe' or 'evaluate', got {losses!r}")
        if pressure_lag not in (0, 1):
            raise ValueError(f"pressure_lag must be 0 or 1, got {pressure_lag!r}")
        self.losses, self.pressure_lag = losses, pressure_lag
        self.learns = losses == "observe"
        self._schedule = pressure_schedule(schedule, start=pressure, warm_up=warm_up, epochs=epochs)
        self._loss = torch.full((self.num_samples + 1,), torch.inf, dtype=torch.float32, device=self.device)
        self.add_state("loss", self._loss)

    def measure(self, logits: Tensor, targets: Tensor) -> Tensor | None:
        if self.losses == "evaluate":
            return None
        return cross_entropy(at_least_float32(logits), targets, reduction="none").float()

    def keep(self, indices: Tensor, values: Tensor) -> None:
        self._loss[last_of_each(indices, self.num_samples)] = values

    def set_losses(self, values: Tensor, indices: Tensor | None = None) -> None:
        """Losses of an evaluation pass, of the given samples or of all, in force from the next epoch.

        >>> selector = OnlineBatch(3, 2, 5, warm_up=0, losses="evaluate")
        >>> selector.set_losses(torch.tensor([0.1, 2.0, 0.5]))
        >>> selector.refresh(0)
        >>> selector.distribution.probabilities().argsort(descending=True)
        tensor([1, 2, 0])
        """
        if self.losses != "evaluate":
            raise ValueError(
                "set_losses needs losses='evaluate'; this selector takes the losses that it observes"
            )
        values, where = placed_values("values", values, indices, self.num_samples, self.device)
        self._loss[where] = values.float()

    def handed_in(self) -> Tensor | None:
        return self._loss[:-1] if self.losses == "evaluate" else None

    def pressure_at(self, epoch: int) -> float | None:
        """The pressure s of an epoch; None during warm-up."""
        return None if epoch < self.warm_up else self._schedule(epoch - self.pressure_lag)

    def build(self, epoch: int) -> Distribution:
        if self.losses == "evaluate" and bool(self._loss[:-1].isinf().all()):
            raise ValueError(f"losses='evaluate' needs set_losses before epoch {epoch}, none came")
        pressure = self._schedule(epoch - self.pressure_lag)
        if pressure == 1:
            return Uniform(self.num_samples, self.device)
        hardest_first = self._loss[:-1].sort(descending=True, stable=True).indices
        # The hardest sample has rank 1.
        by_rank = pressed_weights(np.arange(1, self.num_samples + 1), self.num_samples, pressure)
        weights = torch.empty(self.num_samples, dtype=torch.float64, device=self.device)
        weights[hardest_first] = torch.from_numpy(by_rank).to(self.device)
        return Weights(weights)
