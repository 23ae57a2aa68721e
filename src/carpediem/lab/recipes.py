"""Named recipes: every setting of a training but the data, the network and the method."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from carpediem.lab.config import SELECTION_OPTIONS

# The paper's words where it speaks: dropout 0.2, momentum 0.9, batch 128, 40,000 iterations at 0.1, divided by
# 10 at 50% and 75%, q = 10, s0 = 100. Where it does not, Nesterov, weight decay 5e-4 and independent draws for Random
# Batch too as in the released code, whose augmentation and networks the recipe `released` has.
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
    "dropout_in_testing": False,
    "last_batch": "dropped",
    "window_start": "empty",
    "pressure_lag": 0,
    "renewal": "epoch",
}

RECIPES: dict[str, dict[str, Any]] = {
    "paper": PAPER,
    # What a practitioner would do today: crop and flip, no dropout, and every epoch drawn systematically, which
    # for Random Batch is the usual shuffle.
    "modern": PAPER | {"dropout": 0.0, "augmentation": "crop-flip", "draws": "systematic"},
    # The paper's Task II: a network trained on ImageNet, its last layer replaced, 50 epochs at a constant rate. All
    # else is as in Task I.
    "fine-tuning": PAPER
    | {
        "batch_size": 32,
        "learning_rate": 2e-4,
        "decay": "constant",
        "weights": "imagenet",
        "normalisation": "imagenet",
        "image_size": 256,
    },
    # The authors' released code with the paper's depths (docs/paper_map.md): 391 batches an epoch for 100 epochs.
    "released": PAPER
    | {
        "dropout": 0.3,
        "iterations": 39_100,
        "last_batch": "filled",
        "window_start": "zeros",
        "losses": "evaluate",
        "pressure_lag": 1,
        "mode": "reweight",
        "renewal": "step",
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

# Every setting of a training but how batches are selected.
OPTIONS = tuple(name for name in PAPER if name not in SELECTION_OPTIONS)


@dataclass(frozen=True)
class Case:
    """What a recipe sets otherwise for some data sets, networks or methods, each given as a pattern of names."""

    settings: dict[str, Any]
    data: str = "*"
    net: str = "*"
    method: str = "*"

    def holds(self, data: str, net: str, method: str) -> bool:
        """Whether a run of these is meant."""
        return all(map(fnmatchcase, (data, net, method), (self.data, self.net, self.method)))


_CASES = {
    "fine-tuning": (
        Case({"iterations": 8_350}, data="mit67"),  # 50 epochs of Table 1's 5,360 images
        Case({"iterations": 10_900}, data="food100"),  # and of its 7,000
        Case({"iterations": 10_200, "image_size": 96}, data="flowers-102"),
        Case({"normalisation": "efficientnet"}, net="efficientnet-lite0"),
    ),
    "released": (
        Case(
            {"augmentation": "released-resnet", "normalisation": "unit", "dropout_in_testing": True},
            net="resnet-*",
        ),
        Case({"augmentation": "released-densenet", "normalisation": "per-image-unit"}, net="densenet-*"),
        Case({"weight_decay": 0.0}, net="densenet-*", method="active"),
    ),
}
_RELEASED = "-released"  # what the names of the authors' networks end in

EPOCHS = {"fine-tuning": 50}  # where a recipe's length is given in these: of any other data set too


def recipe(name: str, *, data: str = "", net: str = "", method: str = "") -> dict[str, Any]:
    """The settings called `name`, for a data set, a network and a method.

    >>> recipe("released", net="densenet-40-12-released")["weight_decay"]
    0.0005
    >>> recipe("released", net="densenet-40-12-released", method="active")["weight_decay"]
    0.0
    """
    if name not in RECIPES:
        raise ValueError(f"recipe must be one of {', '.join(RECIPES)}, got {name!r}")
    settings = dict(RECIPES[name])
    for case in _CASES.get(name, ()):
        if case.holds(data, net, method):
            settings |= case.settings
    return settings


def recipe_of(config: Mapping[str, Any], *, of_method: bool = True) -> dict[str, Any]:
    """The settings that a configuration's recipe has for its data, network and method; none if it is unknown.

    Args:
        of_method: False leaves out what the recipe sets for the method alone.
    """
    if config["recipe"] not in RECIPES:
        return {}
    method = str(config.get("method", "")) if of_method else ""
    return recipe(config["recipe"], data=config.get("data", ""), net=config.get("net", ""), method=method)


def network_of(recipe_name: str, net: str) -> str:
    """The network that a recipe trains where `net` is asked for: the recipe `released` has its own.

    >>> network_of("released", "resnet-50"), network_of("paper", "resnet-50")
    ('resnet-50-released', 'resnet-50')
    """
    if recipe_name != "released" or net.endswith(_RELEASED):
        return net
    if net != "resnet-50" and not re.fullmatch(r"densenet-\d+-\d+", net):
        raise ValueError(
            f"recipe must not be 'released' for {net}: the authors' code has resnet-50 and densenet-L-k alone; choose "
            "another recipe or one of these networks"
        )
    return net + _RELEASED


def plain_network(net: str) -> str:
    """The name of a network without what says that it is the released code's.

    >>> plain_network("resnet-50-released"), plain_network("resnet-50")
    ('resnet-50', 'resnet-50')
    """
    return net.removesuffix(_RELEASED)


def departures(config: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Those of these settings that a configuration has otherwise than its recipe.

    >>> departures({"recipe": "paper", "dropout": 0.0, "batch_size": 128}, ("dropout", "batch_size"))
    {'dropout': 0.0}
    """
    plain = recipe_of(config)
    return {n: config[n] for n in names if n in config and config[n] != plain.get(n)}
