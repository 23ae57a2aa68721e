"""Numbers of a run that the paper's claims are about, and where the paper prints them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from carpediem.lab.analysis import paper
from carpediem.lab.config import METHODS
from carpediem.lab.records import RunRecord
from carpediem.lab.results import best_error

EARLY, LATE = 0.3, 0.7
"""The shares of the epochs at which the paper looks at what is drawn."""
_LEAST_LOSS = 1e-8  # what a loss of 0 counts as on a logarithmic axis


@dataclass(frozen=True)
class Arm:
    """One way of training that the paper speaks of.

    Args:
        options: pressure, schedule and window, where they are not the paper's best or are the subject.
    """

    net: str
    data: str
    optimizer: str
    method: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def setting(self) -> tuple[str, str, str]:
        """Network, data and optimizer."""
        return (self.net, self.data, self.optimizer)

    @property
    def is_of_grid(self) -> bool:
        """Whether it is a point of the grid search."""
        return "window" in dict(self.options)

    @property
    def name(self) -> str:
        """The method; of Recency Bias with options, these."""
        options = dict(self.options)
        if not options:
            return METHODS[self.method]
        if self.is_of_grid:
            return f"s₀ = {options['pressure']:g}, q = {options['window']}"
        strategy = (options["pressure"], options["schedule"])
        return f"Strategy {next(n for n, one in paper.STRATEGIES.items() if one == strategy)}"


def setting_words(setting: tuple[str, str, str]) -> str:
    """Data, network and optimizer.

    >>> setting_words(("resnet-50", "cifar10", "sgd"))
    'CIFAR-10, ResNet, SGD'
    """
    net, data, optimizer = setting
    return f"{paper.DATA[data]}, {paper.NETWORKS[net].partition(' (')[0]}, {paper.OPTIMIZERS[optimizer]}"


@dataclass(frozen=True)
class Measure:
    """A number of a run.

    Args:
        of: the number, or None where the record does not hold it.
        printed: the paper's, or None where it prints none.
        digits: how many stand behind the point when a difference is shown.
    """

    name: str
    of: Callable[[RunRecord], float | None]
    printed: Callable[[Arm], paper.Published | None]
    digits: int = 2


def _unprinted(arm: Arm) -> None:
    """None: the paper shows curves."""


def _strategy(numbers: dict[paper.Strategy, paper.Published], arm: Arm) -> paper.Published | None:
    options = dict(arm.options)
    if arm.is_of_grid or (arm.net, arm.optimizer, arm.method) != ("densenet-40-12", "momentum", "recency"):
        return None
    return numbers.get((options["pressure"], options["schedule"], arm.data))


def _printed_error(arm: Arm) -> paper.Published | None:
    if arm.options:
        return _strategy(paper.STRATEGY_ERRORS, arm)
    return paper.best_error(arm.net, arm.data, arm.optimizer, arm.method)


def _printed_loss(arm: Arm) -> paper.Published | None:
    return _strategy(paper.TRAINING_LOSSES, arm) if arm.options else None


def _selecting(run: RunRecord) -> list[dict[str, Any]]:
    """The epochs after the warm-up, which the methods do not share."""
    return run.epochs[run.config.get("warm_up") or 0 :]


def _mean_error(run: RunRecord) -> float | None:
    return fmean(epoch["test_error"] for epoch in _selecting(run)) if _selecting(run) else None


def _mean_log_loss(run: RunRecord) -> float | None:
    """Of every epoch after the warm-up; between those that recorded it, on a straight line."""
    losses = _training_losses(run)
    if not losses:
        return None
    epochs = np.arange(run.config.get("warm_up") or 0, len(run.epochs))
    known = [math.log10(max(loss, _LEAST_LOSS)) for loss in losses.values()]
    return float(np.interp(epochs, list(losses), known).mean()) if len(epochs) else None


def _last_loss(run: RunRecord) -> float | None:
    return next(reversed(_training_losses(run).values()), None)


def _training_losses(run: RunRecord) -> dict[int, float]:
    """Over the whole training set, by the epochs that recorded one."""
    found = {epoch["epoch"]: epoch.get("training_set_loss") for epoch in run.epochs}
    return {n: loss for n, loss in found.items() if loss is not None and math.isfinite(loss)}


def epoch_at(epochs: int, share: float) -> int:
    """Index of the epoch that ends a share of so many epochs.

    >>> epoch_at(103, 0.3) + 1, epoch_at(103, 0.7) + 1
    (31, 72)
    """
    return max(round(share * epochs), 1) - 1


def _at(share: float, field: str) -> Callable[[RunRecord], float | None]:
    def of(run: RunRecord) -> float | None:
        value = run.epochs[epoch_at(len(run.epochs), share)].get(field)
        return None if value is None or not math.isfinite(value) else float(value)

    return of


BEST_ERROR = Measure("best error", best_error, _printed_error)
MEAN_ERROR = Measure("mean error", _mean_error, _unprinted)
TRAINING_LOSS = Measure("log₁₀ of the training loss", _mean_log_loss, _unprinted, 3)
CONVERGED_LOSS = Measure("last training loss", _last_loss, _printed_loss, 4)
DRAWN_LOSS = {
    share: Measure(f"loss drawn at {share:.0%}", _at(share, "train_loss"), _unprinted, 3)
    for share in (EARLY, LATE)
}
SETTLED_SHARE = {
    share: Measure(f"settled share at {share:.0%}", _at(share, "settled_share"), _unprinted)
    for share in (EARLY, LATE)
}
