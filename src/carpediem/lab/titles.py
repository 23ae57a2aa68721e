"""What experiments are called: in titles for people, in the names of files."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any

from carpediem.lab import paper
from carpediem.lab.config import SELECTION_OPTIONS
from carpediem.lab.recipes import RECIPES
from carpediem.lab.results import in_words

# These have a place of their own in titles and tables, or go with the data and the network.
_TOLD_ELSEWHERE = ("iterations", "draws", *SELECTION_OPTIONS, "weights", "image_size", "normalisation")
_WORDS = {"warm_up": "warm-up"}


def recipe_title(config: dict[str, Any], *, but: Container[str] = ()) -> str:
    """The recipe, with what differs from it: none of a recipe's numbers may stand for a training that is not its own.

    Args:
        but: settings to pass over.

    >>> recipe_title({"recipe": "paper", "dropout": 0.2}), recipe_title({"recipe": "paper", "dropout": 0.0})
    ('paper', 'paper with dropout 0')
    """
    name = str(config["recipe"])
    changed = [
        f"{_WORDS.get(key, key.replace('_', ' '))} {in_words(config[key])}"
        for key, value in RECIPES.get(name, {}).items()
        if key not in _TOLD_ELSEWHERE and key not in but and config.get(key, value) != value
    ]
    if not changed:
        return name
    *others, last = changed
    return f"{name} with {', '.join(others)} and {last}" if others else f"{name} with {last}"


def data_title(name: str) -> str:
    """The data set as the paper writes it."""
    return paper.DATA.get(name, name)


def network_title(name: str) -> str:
    """The network as the paper writes it."""
    return paper.NETWORKS.get(name, name)


def setting_parts(config: dict[str, Any]) -> tuple[str, str, str]:
    """Data, network and optimizer, each as the paper writes it."""
    optimizer = config["optimizer"]
    return (
        data_title(config["data"]),
        network_title(config["net"]),
        paper.OPTIMIZERS.get(optimizer, optimizer),
    )


def setting_title(config: dict[str, Any]) -> str:
    """Data, network and optimizer."""
    return ", ".join(setting_parts(config))


def config_title(config: dict[str, Any]) -> str:
    """Data, network, optimizer and recipe."""
    return f"{setting_title(config)}, recipe {recipe_title(config)}"


def setting_name(config: dict[str, Any]) -> str:
    """Data, network, optimizer and recipe as a part of a file's name."""
    parts = [str(config[name]) for name in ("data", "net", "optimizer", "recipe")]
    return "_".join(re.sub(r"[^\w.-]+", "-", part).strip("-.") for part in parts)
