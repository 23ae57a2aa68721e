"""Everything that decides what a run computes."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, fields
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
    "online": ("pressure", "schedule", "losses"),
    "active": ("smoothness", "mode"),
    "recency": ("window", "pressure", "schedule"),
}
SELECTION_OPTIONS = ("window", "pressure", "schedule", "smoothness", "mode", "losses")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One training run. Two runs with equal configurations are the same run.

    The fields from `method` to `losses` say how batches are selected; a run shares its warm-up with every run
    that differs from it in these alone. `net_fingerprint` is "" but for a user's own network, where it names the
    version of the code.
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
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                known = ", ".join("none" if value is None else value for value in allowed)
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
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must be in [0, 1), got {self.momentum}")

    @property
    def hash(self) -> str:
        """Twelve hexadecimal digits that name this configuration."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def warm_up_hash(self) -> str:
        """Names the warm-up, the same for every run that shares it."""
        shared = asdict(self)
        for name in ("method", *SELECTION_OPTIONS):
            del shared[name]
        return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()[:12]

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as JSON can hold them."""
        return asdict(self)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> RunConfig:
        """The configuration with these fields.

        Raises:
            ValueError: a field is unknown or missing.
        """
        names = {f.name for f in fields(RunConfig)}
        if unknown := sorted(values.keys() - names):
            raise ValueError(f"the configuration has unknown fields: {', '.join(unknown)}")
        if missing := sorted(names - values.keys()):
            raise ValueError(f"the configuration lacks the fields: {', '.join(missing)}")
        return RunConfig(**values)

    def steps_per_epoch(self, num_samples: int) -> int:
        """Whole batches in an epoch: N/b, as in the paper's Algorithm 1."""
        if self.batch_size > num_samples:
            raise ValueError(
                f"batch_size must be at most the {num_samples} training samples, got {self.batch_size}"
            )
        return num_samples // self.batch_size

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
