"""Recency Bias: favour the samples whose recent predictions disagree."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from torch import Tensor

from carpediem.core.distribution import Distribution, Levels, Uniform
from carpediem.core.history import LabelHistory
from carpediem.core.pressure import pressure_schedule
from carpediem.core.uncertainty import index_level, pressed_weights
from carpediem.selectors.base import Selector, check_integer, check_lengths, check_number


class RecencyBias(Selector):
    """Draws by the entropy of each sample's last predictions, P ∝ s^(-Q(U)/N) (Eq. 8).

    Args:
        num_samples: N.
        num_classes: k.
        epochs: how many epochs will be trained, more than `warm_up`.
        window: q, how many predictions are kept, at most 32.
        pressure: s₀, how many times likelier than a settled sample an uncertain one may be.
        schedule: "decayed" lets the pressure fall to 1 in the last epoch (Eq. 9), "constant" keeps it.
        warm_up: γ, the uniform epochs at the start, at least `window`.
        window_start: what a window holds before a sample's first predictions: nothing ("empty"), so that it counts
            as wholly uncertain until then, or q times label 0 ("zeros"), as in the authors' released code.

    >>> selector = RecencyBias(num_samples=50_000, num_classes=10, epochs=100)
    >>> selector.window, selector.pressure, selector.warm_up
    (10, 100.0, 10)
    """

    keeps_repeats = True
    later: ClassVar = {"window_start": "empty"}

    def __init__(
        self,
        num_samples: int,
        num_classes: int,
        epochs: int,
        *,
        window: int = 10,
        pressure: float = 100.0,
        schedule: str = "decayed",
        warm_up: int = 10,
        window_start: Literal["empty", "zeros"] = "empty",
        **common: Any,
    ) -> None:
        window = check_integer("window", window, at_least=1)
        pressure = check_number("pressure", pressure)
        num_classes, epochs, warm_up = check_lengths(num_classes, epochs, warm_up)
        super().__init__(
            num_samples,
            num_classes,
            epochs,
            warm_up=warm_up,
            options={
                "window": window,
                "pressure": pressure,
                "schedule": schedule,
                "window_start": window_start,
            },
            **common,
        )
        if window_start not in ("empty", "zeros"):
            raise ValueError(f"window_start must be 'empty' or 'zeros', got {window_start!r}")
        self.history = LabelHistory(
            self.num_samples, num_classes, window, self.device, first=0 if window_start == "zeros" else None
        )
        if warm_up < window:
            raise ValueError(
                f"warm_up must be at least window = {window}, so that the windows fill before they count, "
                f"got {warm_up}; warm up longer or choose a smaller window"
            )
        self.window, self.pressure = window, pressure
        self._schedule = pressure_schedule(schedule, start=self.pressure, warm_up=warm_up, epochs=epochs)
        self.add_state("labels", self.history.labels)
        self.add_state("cursor", self.history.cursor)
        # 139 numbers for q = 10: Eq. 6 and 7 are evaluated once a level, here.
        self._index = index_level(self.history.shapes.uncertainties(num_classes), self.num_samples)

    def measure(self, logits: Tensor, targets: Tensor) -> Tensor:
        return logits.argmax(dim=1)

    def keep(self, indices: Tensor, values: Tensor) -> None:
        self.history.append(indices, values)

    def pressure_at(self, epoch: int) -> float | None:
        """The pressure s of an epoch; None during warm-up."""
        return None if epoch < self.warm_up else self._schedule(epoch)

    def build(self, epoch: int) -> Distribution:
        pressure = self._schedule(epoch)
        if pressure == 1:
            return Uniform(self.num_samples, self.device)
        return Levels(self.history.levels(), pressed_weights(self._index, self.num_samples, pressure))
