"""The numbers of the paper's Tables 1 to 7 as data, digits kept as they were printed."""

from __future__ import annotations

from dataclasses import dataclass

from carpediem.lab.results import relative_reduction

DATA = {
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "mit67": "MIT-67",
    "food100": "FOOD-100",
    "flowers-102": "Flowers-102",  # not the paper's, nor is the network for it
}
NETWORKS = {
    "densenet-40-12": "DenseNet (L=40, k=12)",
    "resnet-50": "ResNet (L=50)",
    "densenet-121": "DenseNet (L=121, k=32)",
    "efficientnet-lite0": "EfficientNet-Lite0",
}
OPTIMIZERS = {"momentum": "momentum", "sgd": "SGD"}
TABLE_OF_NETWORK = {"densenet-40-12": 2, "resnet-50": 3, "densenet-121": 4}
CLASSIFIED = ("mnist", "cifar10", "cifar100")
FINE_TUNED = ("mit67", "food100")
ABLATED = ("cifar10", "cifar100")
RIVALS = ("random", "online", "active")
ITERATIONS = 40_000
GRID_PRESSURES = (1, 10, 100, 1000)
GRID_WINDOWS = (5, 10, 15)


@dataclass(frozen=True)
class Published:
    """A number as it was printed, so that its digits are kept: `value` ± `error`."""

    value: str
    error: str | None = None

    @property
    def mean(self) -> float:
        """The value as a number."""
        return float(self.value)

    @property
    def standard_error(self) -> float | None:
        """The error as a number."""
        return None if self.error is None else float(self.error)

    def __str__(self) -> str:
        return self.value if self.error is None else f"{self.value} ± {self.error}"


@dataclass(frozen=True)
class PublishedTime:
    """Seconds until the rival's best error: the rival's own, and Recency Bias's; and the saving as printed."""

    rival: int
    ours: int
    printed: str

    @property
    def reduction(self) -> float:
        """The share of the time saved, in percent."""
        reduction = relative_reduction(ours=self.ours, rival=self.rival)
        assert reduction is not None
        return reduction


@dataclass(frozen=True)
class DataSet:
    """A data set as the paper used it; `resolution` is the side of its square images."""

    training: int
    testing: int
    classes: int
    resolution: int


DATA_SETS = {
    "mnist": DataSet(60_000, 10_000, 10, 28),
    "cifar10": DataSet(50_000, 10_000, 10, 32),
    "cifar100": DataSet(50_000, 10_000, 100, 32),
    "mit67": DataSet(5_360, 1_340, 67, 256),
    "food100": DataSet(7_000, 3_000, 100, 256),
}
"""Table 1."""

Key = tuple[str, str, str, str]
_METHODS = (*RIVALS, "recency")
_COLUMNS = [(optimizer, data) for optimizer in OPTIMIZERS for data in CLASSIFIED]
# A row a method, in the order of _METHODS; a column an optimizer and data set, in the order of _COLUMNS.
_ERRORS = {
    "densenet-40-12": """
        0.53 0.03 | 7.33 0.09 | 27.95 0.16 | 1.23 0.03 | 14.86 0.09 | 40.15 0.06
        0.51 0.01 | 7.00 0.10 | 28.39 0.25 | 0.77 0.02 | 13.52 0.02 | 40.72 0.12
        0.62 0.03 | 7.07 0.04 | 27.87 0.11 | 0.68 0.02 | 14.21 0.25 | 42.87 0.05
        0.49 0.02 | 6.60 0.02 | 27.05 0.19 | 0.99 0.06 | 13.18 0.11 | 38.65 0.11
    """,
    "resnet-50": """
        0.64 0.04 | 10.22 0.12 | 33.20 0.07 | 1.16 0.03 | 12.73 0.09 | 40.07 0.16
        0.67 0.05 | 10.06 0.05 | 33.38 0.01 | 0.89 0.03 | 12.18 0.08 | 40.69 0.09
        0.61 0.04 | 10.55 0.08 | 34.19 0.07 | 0.80 0.01 | 13.51 0.07 | 45.62 0.07
        0.61 0.01 | 9.79 0.04  | 32.43 0.04 | 0.97 0.03 | 11.63 0.09 | 38.94 0.14
    """,
}
# The same for Table 4: a column a data set.
_FINE_TUNING_ERRORS = """
    28.85 0.26 | 33.07 0.60
    28.87 0.55 | 34.54 0.24
    30.46 0.31 | 36.35 0.47
    28.02 0.32 | 32.47 0.61
"""


def _cells(text: str) -> list[list[Published]]:
    return [[Published(*cell.split()) for cell in line.split("|")] for line in text.strip().splitlines()]


def _read_errors() -> dict[Key, Published]:
    blocks = [(net, _COLUMNS, text) for net, text in _ERRORS.items()]
    blocks.append(("densenet-121", [("momentum", data) for data in FINE_TUNED], _FINE_TUNING_ERRORS))
    return {
        (net, data, optimizer, method): number
        for net, columns, text in blocks
        for method, numbers in zip(_METHODS, _cells(text), strict=True)
        for (optimizer, data), number in zip(columns, numbers, strict=True)
    }


BEST_ERRORS = _read_errors()
"""Best test error in percent by (network, data, optimizer, method): Tables 2, 3 and 4."""

TIMES = {
    ("mit67", "random"): PublishedTime(5218, 3936, "24.57"),
    ("mit67", "online"): PublishedTime(6079, 3823, "37.11"),
    ("mit67", "active"): PublishedTime(5738, 3032, "47.16"),
    ("food100", "random"): PublishedTime(7263, 5365, "26.13"),
    ("food100", "online"): PublishedTime(8333, 3685, "55.78"),
    ("food100", "active"): PublishedTime(7933, 3227, "59.32"),
}
"""Table 5, by (data, rival)."""

STRATEGIES = {1: (10.0, "constant"), 2: (100.0, "constant"), 3: (10.0, "decayed"), 4: (100.0, "decayed")}
"""Pressure at the start and schedule of the four strategies of Tables 6 and 7, by number."""

Strategy = tuple[float, str, str]
# A row a strategy, in the order of STRATEGIES; a column a data set.
_TRAINING_LOSSES = """
    0.0059 | 0.2172
    0.0036 | 0.1757
    0.0120 | 0.2539
    0.0060 | 0.2207
"""
_STRATEGY_ERRORS = """
    6.81 0.02 | 27.84 0.17
    6.62 0.04 | 28.19 0.15
    7.13 0.03 | 27.47 0.22
    6.60 0.02 | 27.05 0.19
"""


def _read_strategies(text: str) -> dict[Strategy, Published]:
    return {
        (*strategy, data): number
        for strategy, numbers in zip(STRATEGIES.values(), _cells(text), strict=True)
        for data, number in zip(ABLATED, numbers, strict=True)
    }


TRAINING_LOSSES = _read_strategies(_TRAINING_LOSSES)
"""Converged training loss by (pressure, schedule, data): Table 6."""
STRATEGY_ERRORS = _read_strategies(_STRATEGY_ERRORS)
"""Best test error in percent by (pressure, schedule, data): Table 7."""


def best_error(net: str, data: str, optimizer: str, method: str) -> Published | None:
    """The paper's best test error in percent, or None where it has none.

    >>> str(best_error("resnet-50", "cifar10", "momentum", "recency"))
    '9.79 ± 0.04'
    """
    return BEST_ERRORS.get((net, data, optimizer, method))


def error_reduction(net: str, data: str, optimizer: str, rival: str) -> float | None:
    """How much lower the paper's error of Recency Bias is than the rival's, in percent of the rival's.

    >>> round(error_reduction("densenet-40-12", "mnist", "momentum", "active"), 2)
    20.97
    """
    ours, theirs = best_error(net, data, optimizer, "recency"), best_error(net, data, optimizer, rival)
    return None if ours is None or theirs is None else relative_reduction(ours=ours.mean, rival=theirs.mean)


def strategy_name(strategy: tuple[float, str]) -> str:
    """A pressure at the start and a schedule, with the number that Tables 6 and 7 have for them.

    >>> strategy_name((10.0, "decayed")), strategy_name((7.0, "constant"))
    ('3: s₀ = 10 → 1', 's₀ = 7')
    """
    pressure, schedule = strategy
    name = f"s₀ = {pressure:g}" + (" → 1" if schedule == "decayed" else "")
    number = next((number for number, one in STRATEGIES.items() if one == strategy), None)
    return name if number is None else f"{number}: {name}"
