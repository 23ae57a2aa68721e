"""What experiments are called: in titles for people, in the names of files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from carpediem.lab import paper
from carpediem.lab.config import SELECTION_OPTIONS
from carpediem.lab.recipes import RECIPES
from carpediem.lab.results import Cell, in_words

_TOLD_ELSEWHERE = ("iterations", "draws", *SELECTION_OPTIONS)
# What goes with the data and the network there.
_OPEN = {"fine-tuning": ("iterations", "weights", "image_size", "normalisation")}
_WORDS = {"warm_up": "warm-up"}


def recipe_title(config: dict[str, Any], *, but: Iterable[str] = ()) -> str:
    """The recipe, with what differs from it but for the length and how batches are selected.

    Args:
        but: settings to pass over.

    >>> recipe_title({"recipe": "paper", "dropout": 0.2}), recipe_title({"recipe": "paper", "dropout": 0.0})
    ('paper', 'paper with dropout 0')
    """
    name = str(config["recipe"])
    passed = {*_TOLD_ELSEWHERE, *_OPEN.get(name, ()), *but}
    changed = [
        told(key, config[key])
        for key, value in RECIPES.get(name, {}).items()
        if key not in passed and config.get(key, value) != value
    ]
    if not changed:
        return name
    *others, last = changed
    return f"{name} with {', '.join(others)} and {last}" if others else f"{name} with {last}"


def told(key: str, value: Any) -> str:
    """A setting and its value.

    >>> told("batch_size", 64), told("warm_up", 15)
    ('batch size 64', 'warm-up 15')
    """
    return f"{_WORDS.get(key, key.replace('_', ' '))} {in_words(value)}"


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


def config_title(config: dict[str, Any], *, but: Iterable[str] = ()) -> str:
    """Data, network, optimizer and recipe, and the length where it is not the recipe's.

    Args:
        but: settings of the recipe to pass over.
    """
    return f"{setting_title(config)}, recipe {recipe_title(config, but=but)}" + "".join(
        f", {length:,} iteration{'s' if length > 1 else ''}" for length in _own_length(config)
    )


def setting_titles(cells: list[Cell]) -> list[str]:
    """What to call the setting of each cell, so that no two settings are called the same."""
    return [_setting_title(cell, cells) for cell in cells]


def _setting_title(cell: Cell, others: list[Cell]) -> str:
    title = config_title(cell.config)
    same = [json.loads(other.setting) for other in others if config_title(other.config) == title]
    own = json.loads(cell.setting)
    differing = [name for name in own if any(other.get(name) != own[name] for other in same)]
    return ", ".join([title, *(told(name, own[name]) for name in differing)])


def setting_name(config: dict[str, Any]) -> str:
    """Data, network, optimizer, recipe and length as a part of a file's name."""
    parts = [str(config[name]) for name in ("data", "net", "optimizer")]
    parts += [recipe_title(config), *(f"{length} iterations" for length in _own_length(config))]
    return "_".join(re.sub(r"[^\w.-]+", "-", part).strip("-.") for part in parts)


def _own_length(config: dict[str, Any]) -> list[int]:
    """The iterations, where they are known and not those of the recipe."""
    recipe, length = str(config["recipe"]), config.get("iterations")
    usual = RECIPES.get(recipe, {}).get("iterations")
    is_usual = length in (None, usual) or "iterations" in _OPEN.get(recipe, ())
    return [] if is_usual else [int(config["iterations"])]
