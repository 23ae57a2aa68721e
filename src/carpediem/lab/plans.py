"""The paper's studies by name: which runs each consists of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from carpediem.lab.config import METHOD_OPTIONS, METHODS, SELECTION_OPTIONS, RunConfig
from carpediem.lab.data import FolderData, ImageData, normalisation_of_weights, open_data, plain_name
from carpediem.lab.methods import build_selector
from carpediem.lab.networks import fingerprint, takes_dropout
from carpediem.lab.recipes import EPOCHS, recipe
from carpediem.lab.records import RunRecord

ALL_METHODS = ("random", "online", "active", "recency")
DRAW_SUFFIXES = {"-shuffle": "systematic", "-systematic": "systematic", "-independent": "independent"}


@dataclass(frozen=True)
class Plan:
    """A study of the paper.

    Attributes:
        shows: the tables and figures it belongs to.
        net: the network, or "" where `by_data` says.
        epochs: how long to train, where that is not given in iterations.
        variations: settings of the method, one run each; a single empty one for most studies.
        settings: what differs from the recipe.
        by_data: settings that go with a data set.
    """

    shows: str
    net: str
    optimizer: str
    datasets: tuple[str, ...]
    recipe: str = "paper"
    methods: tuple[str, ...] = ALL_METHODS
    epochs: int | None = None
    variations: tuple[dict[str, Any], ...] = ({},)
    settings: dict[str, Any] = field(default_factory=dict)
    by_data: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def runs_per_seed(self) -> int:
        """How many runs the study has for one data set and one seed."""
        return sum(map(self.sets_of_options, self.methods))

    def sets_of_options(self, method: str) -> int:
        """How many of the variations differ for a method, which does not read every option."""
        options = METHOD_OPTIONS.get(method, ())
        return len({tuple(variation.get(name) for name in options) for variation in self.variations})


_SMALL_IMAGES = ("mnist", "cifar10", "cifar100")
_DENSENET_121 = {
    "net": "densenet-121",
    "normalisation": normalisation_of_weights("densenet-121"),
    "image_size": 224,
}
PLANS: dict[str, Plan] = {
    "densenet-momentum": Plan("Table 2, Figure 5", "densenet-40-12", "momentum", _SMALL_IMAGES),
    "densenet-sgd": Plan("Table 2, Figure 8", "densenet-40-12", "sgd", _SMALL_IMAGES),
    "resnet-momentum": Plan("Table 3, Figure 9", "resnet-50", "momentum", _SMALL_IMAGES),
    "resnet-sgd": Plan("Table 3, Figure 10", "resnet-50", "sgd", _SMALL_IMAGES),
    "fine-tuning": Plan(
        "Tables 4 and 5, Figure 6",
        "",
        "momentum",
        ("mit67", "food100", "flowers-102"),
        recipe="fine-tuning",
        epochs=EPOCHS["fine-tuning"],
        by_data={
            "mit67": _DENSENET_121,
            "food100": _DENSENET_121,
            "flowers-102": {"net": "efficientnet-lite0"},
        },
    ),
    "pressure-ablation": Plan(
        "Tables 6 and 7",
        "resnet-50",
        "momentum",
        ("cifar10", "cifar100"),
        variations=({"schedule": "decayed"}, {"schedule": "constant"}),
    ),
    # Windows of 15 need a warm-up of 15, and every point of the grid the same one.
    "grid-search": Plan(
        "Figure 7",
        "resnet-50",
        "momentum",
        ("cifar10", "cifar100"),
        methods=("recency",),
        settings={"warm_up": 15},
        variations=tuple(
            {"window": window, "pressure": pressure}
            for window in (5, 10, 15)
            for pressure in (1.0, 10.0, 100.0, 1000.0)
        ),
    ),
    "loss-distribution": Plan("Figure 4", "densenet-40-12", "momentum", ("cifar10",)),
    "index-comparison": Plan("Figure 3", "densenet-40-12", "momentum", ("cifar10",), methods=("recency",)),
}


_TABLES_2_TO_5 = ("densenet-momentum", "densenet-sgd", "resnet-momentum", "resnet-sgd", "fine-tuning")


def plan_called(name: str) -> Plan:
    """The study called `name`."""
    if name not in PLANS:
        raise ValueError(f"NAME must be one of {', '.join(PLANS)}, got {name!r}")
    return PLANS[name]


def is_of_plan(run: RunRecord, plan: Plan) -> bool:
    """Whether a run, finished or not, is one of the study: its recipe, network, optimizer, length, all settings."""
    config, method = run.config, run.config["method"]
    settings = {"net": plan.net} | recipe(plan.recipe) | plan.settings | plan.by_data.get(config["data"], {})
    settings |= {"recipe": plan.recipe, "optimizer": plan.optimizer}
    if plan.epochs is not None:
        # The length of an epoch is known once there has been one.
        settings["iterations"] = (
            plan.epochs * run.epochs[0]["iteration"] if run.epochs else config["iterations"]
        )
    options = {name: settings.pop(name) for name in SELECTION_OPTIONS}
    wanted = [
        options | {n: v for n, v in one.items() if n in METHOD_OPTIONS.get(method, ())}
        for one in plan.variations
    ]
    return (
        method in plan.methods
        and all(config.get(name) == value for name, value in settings.items())
        and any(all(config.get(name) == value for name, value in one.items()) for one in wanted)
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
    data: ImageData | FolderData,
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
        epochs: sets the iterations by whole epochs. [default: the recipe's, where it has no iterations]
        changes: settings that differ from the recipe; None leaves the recipe's.
    """
    if changes.get("dropout") is not None and not takes_dropout(net):
        raise ValueError(
            f"--dropout must be left out, since {net} takes none, got {changes['dropout']}; give the function a "
            "parameter called dropout"
        )
    plain = recipe(recipe_name)
    settings = plain | {name: value for name, value in changes.items() if value is not None}
    is_own = ":" in net and changes.get("weights") is None  # and brings weights of its own, if any
    if is_own or settings["weights"] == "none":
        settings["weights"] = None
    if settings["weights"] == "imagenet" and changes.get("normalisation") is None:
        settings["normalisation"] = normalisation_of_weights(net)
    if settings["batch_size"] > data.num_samples:
        raise ValueError(
            f"batch_size must be at most the {data.num_samples} training samples of {data_name}, "
            f"got {settings['batch_size']}; choose a smaller --batch-size"
        )
    if epochs is None and changes.get("iterations") is None:
        epochs = EPOCHS.get(recipe_name)
    if epochs is not None:
        settings["iterations"] = epochs * (data.num_samples // settings["batch_size"])
    base = {
        "recipe": recipe_name,
        "data": plain_name(data_name),
        "data_fingerprint": data.fingerprint(),
        "net": net,
        "net_fingerprint": fingerprint(net),
        "optimizer": optimizer,
        "precision": precision,
    }
    configs: dict[str, RunConfig] = {}
    for seed in seeds:
        for variation in variations:
            for text in methods:
                chosen = parse_method(text, settings["draws"])
                unread = {
                    name: plain[name]
                    for name in set(SELECTION_OPTIONS) - set(METHOD_OPTIONS[chosen["method"]])
                }
                config = RunConfig.from_dict(
                    {**settings, **base, "seed": seed, **chosen, **variation, **unread}
                )
                # What cannot be trained is refused here, before anything is written.
                build_selector(config, data.num_samples, data.num_classes, "cpu")
                configs[config.hash] = config
    return list(configs.values())


def plan_configs(
    plan: Plan,
    *,
    datasets: Iterable[str] | None = None,
    seeds: Iterable[int] = range(3),
    methods: Iterable[str] | None = None,
    precision: str = "float32",
    data_dir: Path | None = None,
    **changes: Any,
) -> list[RunConfig]:
    """The runs of a study, or of the part of it that is asked for."""
    configs: list[RunConfig] = []
    chosen_seeds, chosen_methods = list(seeds), list(methods or plan.methods)
    for name in datasets or plan.datasets:
        if not plan.net and name not in plan.by_data:
            raise ValueError(f"datasets of this study must be among {', '.join(plan.by_data)}, got {name!r}")
        settings = recipe(plan.recipe) | plan.settings | plan.by_data.get(name, {}) | changes
        net = settings.pop("net", plan.net)
        configs += run_configs(
            name,
            open_data(name, data_dir, image_size=settings["image_size"]),
            recipe_name=plan.recipe,
            net=net,
            optimizer=plan.optimizer,
            methods=chosen_methods,
            seeds=chosen_seeds,
            precision=precision,
            epochs=plan.epochs if changes.get("iterations") is None else None,
            variations=plan.variations,
            **settings,
        )
    return configs
