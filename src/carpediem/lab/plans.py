"""The paper's studies by name: which runs each consists of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from carpediem.lab.analysis import paper
from carpediem.lab.augment import augmentation, normalisation
from carpediem.lab.config import LATER_FIELDS, METHOD_OPTIONS, METHODS, SELECTION_OPTIONS, RunConfig, batches
from carpediem.lab.data import (
    DataNotFoundError,
    FolderData,
    ImageData,
    normalisation_of_weights,
    open_data,
    plain_name,
)
from carpediem.lab.methods import build_selector
from carpediem.lab.networks import build, fingerprint, takes_dropout
from carpediem.lab.recipes import EPOCHS, network_of, recipe, recipe_of
from carpediem.lab.records import RunRecord

ALL_METHODS = ("random", "online", "active", "recency")
DRAW_SUFFIXES = {"-shuffle": "systematic", "-systematic": "systematic", "-independent": "independent"}


@dataclass(frozen=True)
class Plan:
    """A study of the paper.

    Attributes:
        shows: the tables and figures it belongs to.
        variations: settings that are tried one after the other; a single empty one for most studies.
    """

    shows: str
    net: str
    optimizer: str
    datasets: tuple[str, ...]
    recipe: str = "paper"
    methods: tuple[str, ...] = ALL_METHODS
    variations: tuple[dict[str, Any], ...] = ({},)

    @property
    def runs_per_seed(self) -> int:
        """How many runs the study has for one data set and one seed."""
        return sum(len(self.sets_of_options(method)) for method in self.methods)

    def sets_of_options(self, method: str) -> list[dict[str, Any]]:
        """The variations that differ for a method, which does not read every option of selection."""
        read = METHOD_OPTIONS.get(method, ())
        found: list[dict[str, Any]] = []
        for variation in self.variations:
            own = {n: v for n, v in variation.items() if n in read or n not in SELECTION_OPTIONS}
            if own not in found:
                found.append(own)
        return found


_SMALL_IMAGES = ("mnist", "cifar10", "cifar100")
# The paper asks for a warm-up of at least the window. A pressure of 1 draws uniformly, whatever the window.
_GRID = (
    {"window": 10, "pressure": 1.0},
    *(
        {"window": window, "pressure": pressure, "warm_up": max(10, window)}
        for window in (5, 10, 15)
        for pressure in (10.0, 100.0, 1000.0)
    ),
)
PLANS: dict[str, Plan] = {
    "densenet-momentum": Plan("Table 2, Figures 2 and 5", "densenet-40-12", "momentum", _SMALL_IMAGES),
    "densenet-sgd": Plan("Table 2, Figure 8", "densenet-40-12", "sgd", _SMALL_IMAGES),
    "resnet-momentum": Plan("Table 3, Figure 9", "resnet-50", "momentum", _SMALL_IMAGES),
    "resnet-sgd": Plan("Table 3, Figure 10", "resnet-50", "sgd", _SMALL_IMAGES),
    "fine-tuning": Plan(
        "Tables 4 and 5, Figure 6", "densenet-121", "momentum", ("mit67", "food100"), recipe="fine-tuning"
    ),
    "fine-tuning-flowers": Plan(
        "as Tables 4 and 5", "efficientnet-lite0", "momentum", ("flowers-102",), recipe="fine-tuning"
    ),
    "pressure-ablation": Plan(
        "Tables 6 and 7",
        "densenet-40-12",
        "momentum",
        ("cifar10", "cifar100"),
        methods=("recency",),
        variations=tuple(
            {"pressure": pressure, "schedule": schedule}
            for schedule in ("constant", "decayed")
            for pressure in (10.0, 100.0)
        ),
    ),
    "grid-search": Plan(
        "Figure 7",
        "resnet-50",
        "momentum",
        ("cifar10", "cifar100"),
        methods=("recency",),
        variations=_GRID,
    ),
    "loss-distribution": Plan("Figure 4", "densenet-40-12", "momentum", ("cifar10",)),
    "index-comparison": Plan("Figure 3", "densenet-40-12", "momentum", ("cifar100",), methods=("recency",)),
}


_TABLES_2_TO_5 = (
    *("densenet-momentum", "densenet-sgd", "resnet-momentum", "resnet-sgd"),
    *("fine-tuning", "fine-tuning-flowers"),
)


def plan_called(name: str) -> Plan:
    """The study called `name`."""
    if name not in PLANS:
        raise ValueError(f"NAME must be one of {', '.join(PLANS)}, got {name!r}")
    return PLANS[name]


def is_of_plan(run: RunRecord, plan: Plan) -> bool:
    """Whether a run, finished or not, is one of the study: its recipe, network, optimizer, length, all settings."""
    config = LATER_FIELDS | run.config
    settings = recipe_of(config) | {"recipe": plan.recipe, "net": plan.net, "optimizer": plan.optimizer}
    return config["method"] in plan.methods and any(
        all(config.get(name) == value for name, value in (settings | one).items())
        for one in plan.sets_of_options(config["method"])
    )


def is_of_tables(runs: Iterable[RunRecord]) -> bool:
    """Whether one of these runs is of the paper's Tables 2 to 5, so that their numbers may stand beside it."""
    return any(is_of_plan(run, PLANS[name]) for run in runs for name in _TABLES_2_TO_5)


def parse_method(text: str, draws: str, *, option: str = "method") -> dict[str, str]:
    """The method and draws that a name stands for: `recency`, or `random-shuffle` to say how it draws.

    Args:
        text: a method, perhaps with -shuffle, -systematic or -independent behind it.
        draws: what holds when nothing is said.
        option: what the user calls it.

    >>> parse_method("random-shuffle", "independent")
    {'method': 'random', 'draws': 'systematic'}
    """
    for suffix, chosen in DRAW_SUFFIXES.items():
        if text.endswith(suffix):
            text, draws = text.removesuffix(suffix), chosen
    if text not in METHODS:
        raise ValueError(
            f"{option} must be one of {', '.join(METHODS)}, perhaps with {', '.join(DRAW_SUFFIXES)} behind it, "
            f"got {text!r}"
        )
    return {"method": text, "draws": draws}


def run_configs(
    data_name: str,
    data: ImageData | FolderData | Size,
    *,
    recipe_name: str,
    net: str,
    optimizer: str,
    methods: Iterable[str],
    seeds: Iterable[int],
    precision: str,
    epochs: int | None = None,
    variations: Sequence[dict[str, Any]] = ({},),
    **changes: Any,
) -> list[RunConfig]:
    """One configuration for every seed, method and variation.

    Args:
        net: the network, or what the recipe has a network of its own for.
        epochs: sets the iterations by whole epochs. [default: the recipe's, where it has no iterations]
        changes: settings that differ from the recipe; None leaves the recipe's.
    """
    if changes.get("dropout") is not None and not takes_dropout(net):
        raise ValueError(
            f"dropout must be left out, since {net} takes none, got {changes['dropout']}; give the function a "
            "parameter called dropout"
        )
    net, data_name = network_of(recipe_name, net), plain_name(data_name)
    if ":" not in net:
        with torch.device("meta"):  # refuses an unknown name, and makes nothing
            build(net, num_classes=data.num_classes, in_channels=3, dropout=0.0)
    named = {"recipe": recipe_name, "data": data_name, "net": net}
    base = named | {
        "data_fingerprint": data.fingerprint(),
        "net_fingerprint": fingerprint(net),
        "optimizer": optimizer,
        "precision": precision,
    }
    changed = {name: value for name, value in changes.items() if value is not None}
    configs: dict[str, RunConfig] = {}
    for seed in seeds:
        for variation in variations:
            for text in methods:
                plain = recipe_of(named | parse_method(text, ""))
                settings = _with_weights(plain | changed, net, changes)
                settings["iterations"] = _length(settings, changes, epochs, recipe_name, data)
                chosen = parse_method(text, settings["draws"])
                unread = set(SELECTION_OPTIONS) - set(METHOD_OPTIONS[chosen["method"]])
                values = settings | base | chosen | variation | {name: plain[name] for name in unread}
                config = RunConfig.from_dict(values | {"seed": seed})
                # What cannot be trained is refused here, before anything is written.
                augmentation(config.augmentation)
                normalisation(config.normalisation)
                build_selector(config, data.num_samples, data.num_classes, "cpu")
                configs[config.hash] = config
    return list(configs.values())


def _with_weights(settings: dict[str, Any], net: str, changes: dict[str, Any]) -> dict[str, Any]:
    """The settings with the trained weights that are meant, and the normalisation that goes with these."""
    is_own = ":" in net and changes.get("weights") is None  # and brings weights of its own, if any
    if is_own or settings["weights"] == "none":
        settings = settings | {"weights": None}
    if settings["weights"] == "imagenet" and changes.get("normalisation") is None:
        settings = settings | {"normalisation": normalisation_of_weights(net)}
    return settings


def _length(
    settings: dict[str, Any],
    changes: dict[str, Any],
    epochs: int | None,
    recipe_name: str,
    data: ImageData | FolderData | Size,
) -> int:
    """The iterations of a run."""
    steps = batches(data.num_samples, settings["batch_size"], settings["last_batch"])
    if epochs is None and changes.get("iterations") is None:
        epochs = EPOCHS.get(recipe_name)
    iterations: int = settings["iterations"]
    return iterations if epochs is None else epochs * steps


def plan_configs(
    plan: Plan,
    *,
    datasets: Iterable[str] | None = None,
    seeds: Iterable[int] = range(3),
    methods: Iterable[str] | None = None,
    recipe_name: str | None = None,
    optimizer: str | None = None,
    precision: str = "float32",
    data_dir: Path | None = None,
    epochs: int | None = None,
    must_be_there: bool = True,
    **changes: Any,
) -> list[RunConfig]:
    """The runs of a study, of the part of it that is asked for, or of it with other settings.

    Args:
        must_be_there: False takes the known size of a data set that is not found, for a look at the settings alone.
    """
    chosen_seeds, chosen_methods = list(seeds), list(methods or plan.methods)
    chosen_recipe = recipe_name or plan.recipe
    configs: list[RunConfig] = []
    for name in datasets or plan.datasets:
        plain = recipe(chosen_recipe, data=name, net=network_of(chosen_recipe, plan.net))
        size = changes.get("image_size") or plain["image_size"]
        configs += run_configs(
            name,
            open_data(name, data_dir, image_size=size)
            if must_be_there
            else _data_or_size(name, data_dir, size),
            recipe_name=chosen_recipe,
            net=plan.net,
            optimizer=optimizer or plan.optimizer,
            methods=chosen_methods,
            seeds=chosen_seeds,
            precision=precision,
            epochs=epochs,
            variations=_not_changed(plan.variations, changes),
            **changes,
        )
    return configs


@dataclass(frozen=True)
class Size:
    """A data set of which no more is known than its size."""

    num_samples: int
    num_classes: int

    def fingerprint(self) -> str:
        """Nothing: the data is not there."""
        return ""


SIZES = {name: Size(one.training, one.classes) for name, one in paper.DATA_SETS.items()}
SIZES["flowers-102"] = Size(6_552, 102)


def _data_or_size(name: str, data_dir: Path | None, image_size: int | None) -> ImageData | FolderData | Size:
    """The data set, or its size where it is not found."""
    try:
        return open_data(name, data_dir, image_size=image_size)
    except DataNotFoundError:
        if name not in SIZES:
            raise
        return SIZES[name]


def _not_changed(variations: Sequence[dict[str, Any]], changes: dict[str, Any]) -> list[dict[str, Any]]:
    """The variations without what the caller sets otherwise for all of them; a warm-up goes with its window."""
    changed = {name for name, value in changes.items() if value is not None}
    changed |= {"warm_up"} if "window" in changed else set()
    return [{n: v for n, v in one.items() if n not in changed} for one in variations]
