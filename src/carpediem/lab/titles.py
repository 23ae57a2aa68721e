"""What experiments are called: in titles for people, in the names of files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from carpediem.lab.analysis import paper
from carpediem.lab.config import SELECTION_OPTIONS
from carpediem.lab.recipes import departures, plain_network, recipe_of
from carpediem.lab.results import Cell
from carpediem.lab.words import joined, told

_TOLD_ELSEWHERE = ("iterations", "draws", *SELECTION_OPTIONS)


def recipe_title(config: dict[str, Any], *, but: Iterable[str] = ()) -> str:
    """The recipe, with what differs from it but for the length and how batches are selected.

    Args:
        but: settings to pass over.

    >>> recipe_title({"recipe": "paper", "dropout": 0.2}), recipe_title({"recipe": "paper", "dropout": 0.0})
    ('paper', 'paper with dropout 0')
    """
    name = str(config["recipe"])
    settings = [key for key in recipe_of(config) if key not in {*_TOLD_ELSEWHERE, *but}]
    changed = [told(key, value) for key, value in departures(config, settings).items()]
    return f"{name} with {joined(changed)}" if changed else name


def data_title(name: str) -> str:
    """The data set as the paper writes it."""
    return paper.DATA.get(name, name)


def network_title(name: str) -> str:
    """The network as the paper writes it, and whether it is that of the authors' code.

    >>> network_title("resnet-50"), network_title("resnet-50-released")
    ('ResNet (L=50)', 'ResNet (L=50), released code')
    """
    plain = plain_network(name)
    return paper.NETWORKS.get(plain, plain) + (", released code" if plain != name else "")


def optimizer_title(name: str) -> str:
    """The optimizer as the paper writes it."""
    return paper.OPTIMIZERS.get(name, name)


def setting_parts(config: dict[str, Any]) -> tuple[str, str, str]:
    """Data, network and optimizer, each as the paper writes it."""
    return data_title(config["data"]), network_title(config["net"]), optimizer_title(config["optimizer"])


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
    return departures(config, ["iterations"]).get("iterations") if recipe_of(config) else None
