"""Comparisons of methods in settings of the paper, from which its claims are made."""

from __future__ import annotations

from collections.abc import Iterable

from carpediem.lab.analysis import paper
from carpediem.lab.analysis.comparisons import Below, Comparison
from carpediem.lab.analysis.measures import BEST_ERROR, DRAWN_LOSS, Arm, Measure

Setting = tuple[str, str, str]  # network, data, optimizer
TABLE_2_LEFT: tuple[Setting, ...] = tuple(("densenet-40-12", d, "momentum") for d in paper.CLASSIFIED)
TABLES_2_AND_3: tuple[Setting, ...] = tuple(
    (net, data, optimizer)
    for net in ("densenet-40-12", "resnet-50")
    for optimizer in paper.OPTIMIZERS
    for data in paper.CLASSIFIED
)
TABLE_4: tuple[Setting, ...] = tuple(("densenet-121", data, "momentum") for data in paper.FINE_TUNED)
# Figure 4 is of CIFAR-10; the paper does not say of which network.
FIGURE_4: tuple[Setting, ...] = tuple((net, "cifar10", "momentum") for net in ("densenet-40-12", "resnet-50"))

ERROR = "best test error"
LOSS = "training loss"
DRAWN = "loss drawn at 30% and 70%"


def below(
    settings: Iterable[Setting], lower: str, *higher: str, measure: Measure = BEST_ERROR
) -> tuple[Comparison, ...]:
    """One method below each of the others, in each setting."""
    return tuple(
        Below(Arm(*setting, lower), Arm(*setting, other), measure) for setting in settings for other in higher
    )


def above(settings: Iterable[Setting], higher: str, *lower: str, measure: Measure) -> tuple[Comparison, ...]:
    """One method above each of the others, in each setting."""
    return tuple(
        one for s in settings for other in lower for one in below([s], other, higher, measure=measure)
    )


def between(method: str, shares: Iterable[float]) -> tuple[Comparison, ...]:
    """What a method draws has a loss between Random Batch's and Online Batch's."""
    return tuple(
        one
        for share in shares
        for low, high in (("random", method), (method, "online"))
        for one in below(FIGURE_4, low, high, measure=DRAWN_LOSS[share])
    )
