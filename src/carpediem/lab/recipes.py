"""Named recipes: every setting of a training but the data, the network and the method."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

# The paper's words where it speaks: dropout 0.2, momentum 0.9, batch 128, 40,000 iterations at 0.1, divided by
# 10 at 50% and 75%, q = 10, s0 = 100. The released code where it does not: flip and colour jitter, per-image
# standardisation, Nesterov, weight decay 5e-4, independent draws for Random Batch too.
PAPER: dict[str, Any] = {
    "dropout": 0.2,
    "momentum": 0.9,
    "nesterov": True,
    "weight_decay": 5e-4,
    "batch_size": 128,
    "iterations": 40_000,
    "learning_rate": 0.1,
    "decay": "step",
    "augmentation": "flip-jitter",
    "normalisation": "per-image",
    "draws": "independent",
    "warm_up": 10,
    "window": 10,
    "pressure": 100.0,
    "schedule": "decayed",
    "smoothness": 0.02,
    "mode": "sample",
    "losses": "observe",
    "weights": None,
    "image_size": None,
}

RECIPES: dict[str, dict[str, Any]] = {
    "paper": PAPER,
    # What a practitioner would do today: crop and flip, no dropout, and every epoch drawn systematically, which
    # for Random Batch is the usual shuffle.
    "modern": PAPER | {"dropout": 0.0, "augmentation": "crop-flip", "draws": "systematic"},
    # The paper's Task II: a network trained on ImageNet, its last layer replaced, 50 epochs at a constant rate.
    "fine-tuning": PAPER
    | {
        "dropout": 0.0,
        "batch_size": 32,
        "learning_rate": 2e-4,
        "decay": "constant",
        "augmentation": "none",
        "weights": "imagenet",
        "normalisation": "efficientnet",
        "image_size": 96,
    },
    # Small enough for two CPU cores and a minute or two.
    "demo": PAPER
    | {
        "dropout": 0.2,
        "batch_size": 64,
        "iterations": 672,  # 48 epochs of the digits
        "augmentation": "none",
        "draws": "systematic",
    },
}

# Settings that `carpediem compare` and `train` have an option for, but for how batches are selected.
OPTIONS = (
    "iterations",
    "batch_size",
    "learning_rate",
    "dropout",
    "augmentation",
    "weights",
    "image_size",
    "warm_up",
)
EPOCHS = {"fine-tuning": 50}  # where a recipe's length is given in these


def departures(config: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Those of these settings that a configuration has otherwise than its recipe.

    >>> departures({"recipe": "paper", "dropout": 0.0, "batch_size": 128}, ("dropout", "batch_size"))
    {'dropout': 0.0}
    """
    plain = RECIPES.get(config["recipe"], {})
    return {n: config[n] for n in names if config.get(n) is not None and config[n] != plain.get(n)}


def recipe(name: str) -> dict[str, Any]:
    """A copy of the settings called `name`."""
    if name not in RECIPES:
        raise ValueError(f"recipe must be one of {', '.join(RECIPES)}, got {name!r}")
    return dict(RECIPES[name])
