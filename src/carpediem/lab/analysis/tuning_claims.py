"""The claims of Sections 4.3 to 4.5: fine-tuning, and the choice of pressure and window."""

from __future__ import annotations

from collections.abc import Iterable

from carpediem.lab.analysis import paper
from carpediem.lab.analysis.claims import Claim
from carpediem.lab.analysis.comparisons import Below, Comparison
from carpediem.lab.analysis.measures import (
    BEST_ERROR,
    CONVERGED_LOSS,
    MEAN_ERROR,
    TRAINING_LOSS,
    Arm,
    Measure,
)
from carpediem.lab.analysis.versus import ERROR, LOSS, TABLE_4, TABLES_2_AND_3, Setting, above, below


def _strategy(number: int, data: str) -> Arm:
    pressure, schedule = paper.STRATEGIES[number]
    return Arm(
        *("densenet-40-12", data, "momentum", "recency"), (("pressure", pressure), ("schedule", schedule))
    )


def _strategies(
    *pairs: tuple[int, int], measure: Measure = BEST_ERROR, datasets: Iterable[str] = paper.ABLATED
) -> tuple[Comparison, ...]:
    """The first strategy of each pair below the second."""
    return tuple(Below(_strategy(a, d), _strategy(b, d), measure) for d in datasets for a, b in pairs)


def _point(setting: Setting, pressure: float, window: int) -> Arm:
    return Arm(*setting, "recency", (("pressure", float(pressure)), ("window", window)))


def _best_pressure(settings: Iterable[Setting], windows: Iterable[int]) -> tuple[Comparison, ...]:
    others = [pressure for pressure in paper.GRID_PRESSURES if pressure != 100]
    return tuple(
        Below(_point(setting, 100, window), _point(setting, pressure, window))
        for setting in settings
        for window in windows
        for pressure in others
    )


def _best_window(settings: Iterable[Setting], pressures: Iterable[float]) -> tuple[Comparison, ...]:
    others = [window for window in paper.GRID_WINDOWS if window != 10]
    return tuple(
        Below(_point(setting, pressure, 10), _point(setting, pressure, window))
        for setting in settings
        for pressure in pressures
        for window in others
    )


SECTION_4_3 = (
    Claim(
        "4.3.2",
        "Fine-tuning goes as classification does: Recency Bias has the lowest test error.",
        f"{ERROR}: the lowest of the four",
        below(TABLE_4, "recency", *paper.RIVALS),
    ),
    Claim(
        "4.3.2",
        "Recency Bias alone is faster than Random Batch in both training loss and test error.",
        f"{LOSS} and mean error: Recency Bias's below Random Batch's, Active Bias's above in both, "
        "Online Batch's in the error",
        (
            *below(TABLE_4, "recency", "random", measure=TRAINING_LOSS),
            *below(TABLE_4, "recency", "random", measure=MEAN_ERROR),
            *above(TABLE_4, "active", "random", measure=TRAINING_LOSS),
            *above(TABLE_4, "active", "random", measure=MEAN_ERROR),
            *above(TABLE_4, "online", "random", measure=MEAN_ERROR),
        ),
    ),
    Claim(
        "4.3.2",
        "Online Batch is the fastest in training loss, and has a higher test error than Random Batch.",
        f"{LOSS}: the lowest of the four; {ERROR}: above Random Batch's",
        (
            *below(TABLE_4, "online", "random", "active", "recency", measure=TRAINING_LOSS),
            *below(TABLE_4, "random", "online"),
        ),
    ),
    Claim(
        "4.3.2",
        "Active Bias is the slowest in both training loss and test error.",
        f"{LOSS} and mean error: the highest of the four",
        (
            *above(TABLE_4, "active", "random", "online", "recency", measure=TRAINING_LOSS),
            *above(TABLE_4, "active", "random", "online", "recency", measure=MEAN_ERROR),
        ),
    ),
)
SECTION_4_4 = (
    Claim(
        "4.4",
        "A pressure that stays ends, as a rule, at a lower training loss than one that decays.",
        "last training loss: Strategy 1's below 3's, 2's below 4's",
        _strategies((1, 3), (2, 4), measure=CONVERGED_LOSS),
        is_general=True,
    ),
    Claim(
        "4.4",
        "A pressure that stays ends, as a rule, at a higher test error than one that decays.",
        f"{ERROR}: Strategy 1's above 3's, 2's above 4's",
        _strategies((3, 1), (4, 2)),
        is_general=True,
    ),
    Claim(
        "4.4",
        "A higher pressure that stays overfits more, as CIFAR-100 shows.",
        f"{ERROR}: Strategy 2's above 1's",
        _strategies((1, 2), datasets=["cifar100"]),
    ),
    Claim(
        "4.4",
        "A higher pressure is worth it where it decays.",
        f"{ERROR}: Strategy 4's below 3's",
        _strategies((4, 3)),
    ),
    Claim(
        "4.4",
        "A higher pressure is not worth it where it stays.",
        f"{ERROR}: Strategy 1's below 2's",
        _strategies((1, 2)),
    ),
    Claim(
        "4.4",
        "Strategy 4, the highest pressure that decays, is always the best.",
        f"{ERROR}: the lowest of the four strategies",
        _strategies((4, 1), (4, 2), (4, 3)),
    ),
)
_GRID: tuple[Setting, ...] = tuple(("resnet-50", data, "momentum") for data in paper.ABLATED)
_NOT_GRID = [s for s in TABLES_2_AND_3 if s[1] in paper.ABLATED and s not in _GRID]
SECTION_4_5 = (
    Claim(
        "4.5",
        "As a rule s₀ = 100 is the best pressure to begin with.",
        f"{ERROR} of ResNet: the lowest of s₀ = 1, 10, 100 and 1000",
        _best_pressure(_GRID, paper.GRID_WINDOWS),
        is_general=True,
    ),
    Claim(
        "4.5",
        "Almost always q = 10 is the best window.",
        f"{ERROR} of ResNet: the lowest of q = 5, 10 and 15",
        _best_window(_GRID, [p for p in paper.GRID_PRESSURES if p > 1]),
        is_general=True,
    ),
    Claim(
        "4.5",
        "Other networks and optimizers agree on pressure and window.",
        f"{ERROR}: s₀ = 100 the lowest at q = 10, and q = 10 at s₀ = 100",
        (*_best_pressure(_NOT_GRID, [10]), *_best_window(_NOT_GRID, [100])),
        is_general=True,
    ),
)
