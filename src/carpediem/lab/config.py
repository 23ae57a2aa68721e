"""Everything that decides what a run computes."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

METHODS = {
    "random": "Random Batch",
    "online": "Online Batch",
    "active": "Active Bias",
    "recency": "Recency Bias",
}
# The settings of selection that each method reads; the others change nothing about its runs.
METHOD_OPTIONS: dict[str, tuple[str, ...]] = {
    "random": (),
    "online": ("pressure", "schedule", "losses", "pressure_lag"),
    "active": ("smoothness", "mode", "renewal"),
    "recency": ("window", "pressure", "schedule", "window_start"),
}
SELECTION_OPTIONS = (
    *("window", "pressure", "schedule", "smoothness", "mode", "losses"),
    *("window_start", "pressure_lag", "renewal"),
)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One training run. Two runs with equal configurations are the same run.

    A run shares its warm-up with every run that differs from it in `method` and SELECTION_OPTIONS alone.

    A field with a default came later than the first runs. Its default is what held before, for ever: the field is
    part of a run's name only where its value is another one, so that a new field renames no run.

    Args:
        net_fingerprint: the version of a user's own network; "" for the lab's networks.
        dropout_in_testing: whether dropout stays at work in tests and in evaluations of the training set.
        last_batch: "dropped" leaves out the samples beyond the last whole batch of an epoch; "filled" draws one more
            whole batch instead.
        window_start: "zeros" begins Recency Bias with windows full of label 0, "empty" with empty ones.
        pressure_lag: by how many epochs Online Batch's pressure comes late.
        renewal: of Active Bias's loss weights, before each "epoch" or each "step".
    """

    recipe: str
    data: str
    data_fingerprint: str
    image_size: int | None
    net: str
    net_fingerprint: str
    weights: str | None
    dropout: float
    optimizer: str
    momentum: float
    nesterov: bool
    weight_decay: float
    batch_size: int
    iterations: int
    learning_rate: float
    decay: str
    augmentation: str
    normalisation: str
    precision: str
    seed: int
    draws: str
    warm_up: int
    method: str
    window: int
    pressure: float
    schedule: str
    smoothness: float
    mode: str
    losses: str
    dropout_in_testing: bool = False
    last_batch: str = "dropped"
    window_start: str = "empty"
    pressure_lag: int = 0
    renewal: str = "epoch"

    def __post_init__(self) -> None:
        # 100 and 100.0 are equal, and so must be the hashes of their configurations.
        for one in fields(self):
            if one.type == "float":
                object.__setattr__(self, one.name, float(getattr(self, one.name)))
        choices = {
            "method": tuple(METHODS),
            "optimizer": ("momentum", "sgd"),
            "decay": ("step", "constant"),
            "precision": ("float32", "bf16"),
            "draws": ("independent", "systematic"),
            "weights": (None, "imagenet"),
            "schedule": ("decayed", "constant"),
            "mode": ("sample", "reweight"),
            "losses": ("observe", "evaluate"),
            "last_batch": ("dropped", "filled"),
            "window_start": ("empty", "zeros"),
            "pressure_lag": (0, 1),
            "renewal": ("epoch", "step"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                known = ", ".join("none" if value is None else str(value) for value in allowed)
                raise ValueError(f"{name} must be one of {known}, got {getattr(self, name)!r}")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed must be at least 0 and less than 2^63, got {self.seed}")
        for name in ("batch_size", "iterations"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be more than 0 and finite, got {self.learning_rate}")
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(f"weight_decay must be at least 0 and finite, got {self.weight_decay}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {self.dropout}")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must be in [0, 1), got {self.momentum}")
        if self.last_batch == "filled" and self.draws != "independent":
            raise ValueError(
                f"last_batch must be 'dropped' with {self.draws} draws, got 'filled'; ask for independent draws, or "
                "for 'dropped'"
            )
        if self.renewal == "step" and self.mode != "reweight":
            raise ValueError(
                f"renewal must be 'epoch' with mode {self.mode!r}, got 'step'; ask for 'epoch' too, or for mode "
                "'reweight'"
            )

    @property
    def hash(self) -> str:
        """Twelve hexadecimal digits that name this configuration."""
        return _name_of(self._told())

    @property
    def names(self) -> tuple[str, ...]:
        """All names under which the run may be found: its hash first.

        The earliest runs were named without `net_fingerprint`.
        """
        told = self._told()
        return (self.hash,) if told.pop("net_fingerprint") else (self.hash, _name_of(told))

    @property
    def warm_up_hash(self) -> str:
        """Names the warm-up, the same for every run that shares it."""
        shared = self._told()
        for name in ("method", *SELECTION_OPTIONS):
            shared.pop(name, None)
        return _name_of(shared)

    def _told(self) -> dict[str, Any]:
        """The fields that are part of the name."""
        return {n: v for n, v in asdict(self).items() if n not in LATER_FIELDS or v != LATER_FIELDS[n]}

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as JSON can hold them."""
        return asdict(self)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> RunConfig:
        """The configuration with these fields; those that came later may be absent.

        Raises:
            ValueError: a field is unknown or missing.
        """
        names = {f.name for f in fields(RunConfig)}
        if unknown := sorted(values.keys() - names):
            raise ValueError(f"the configuration has unknown fields: {', '.join(unknown)}")
        if missing := sorted(names - values.keys() - LATER_FIELDS.keys()):
            raise ValueError(f"the configuration lacks the fields: {', '.join(missing)}")
        return RunConfig(**values)

    def steps_per_epoch(self, num_samples: int) -> int:
        """Batches in an epoch, all of them whole: N/b, as in the paper's Algorithm 1, or one more."""
        return batches(num_samples, self.batch_size, self.last_batch)

    def epochs(self, num_samples: int) -> int:
        """Epochs that the iterations fill, the last one perhaps in part."""
        return math.ceil(self.iterations / self.steps_per_epoch(num_samples))

    def learning_rate_at(self, iteration: int) -> float:
        """The rate of a step: divided by 10 at 50% and at 75% of the iterations, or constant."""
        if self.decay == "constant":
            return self.learning_rate
        return self.learning_rate * 0.1 ** (
            (2 * iteration >= self.iterations) + (4 * iteration >= 3 * self.iterations)
        )


LATER_FIELDS: dict[str, Any] = {f.name: f.default for f in fields(RunConfig) if f.default is not MISSING}
"""What held before these fields were there, for records that lack them."""


def batches(num_samples: int, batch_size: int, last_batch: str) -> int:
    """How many batches make an epoch, all of them whole.

    >>> batches(50_000, 128, "dropped"), batches(50_000, 128, "filled")
    (390, 391)
    """
    if batch_size > num_samples:
        raise ValueError(
            f"batch_size must be at most the {num_samples} training samples, got {batch_size}; choose a smaller one"
        )
    whole, rest = divmod(num_samples, batch_size)
    return whole + (last_batch == "filled" and rest > 0)


def _name_of(values: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]
