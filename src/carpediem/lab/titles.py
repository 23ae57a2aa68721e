"""What experiments are called: in titles for people, in the names of files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from carpediem.lab.analysis import paper
from carpediem.lab.config import SELECTION_OPTIONS
from carpediem.lab.recipes import RECIPES, departures
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
    settings = [key for key in RECIPES.get(name, {}) if key not in passed]
    changed = [told(key, value) for key, value in departures(config, settings).items()]
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
    title = f"{setting_title(config)}, recipe {recipe_title(config, but=but)}"
    length = _own_length(config)
    return title if length is None else f"{title}, {length:,} iteration{'s' if length > 1 else ''}"


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
    parts = [*(str(config[name]) for name in ("data", "net", "optimizer")), recipe_title(config)]
    length = _own_length(config)
    parts += [] if length is None else [f"{length} iterations"]
    return "_".join(re.sub(r"[^\w.-]+", "-", part).strip("-.") for part in parts)


def _own_length(config: dict[str, Any]) -> int | None:
    """The iterations, where they are known and not those of the recipe."""
    is_open = "iterations" in _OPEN.get(str(config["recipe"]), ())
    return None if is_open else departures(config, ["iterations"]).get("iterations")
