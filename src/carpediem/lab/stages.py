"""The stages of a training that tables compare: each learning rate, the last epochs, the best of all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
from typing import Any

from carpediem.lab.records import RunRecord
from carpediem.lab.results import best_error


@dataclass(frozen=True)
class Stage:
    """Some epochs of a run, or None for the best of all: `key` for machines, `name` for people."""

    key: str
    name: str
    epochs: range | None
    is_of_one_rate: bool = False

    @property
    def title(self) -> str:
        """The name where nothing says that it is of epochs."""
        if self.epochs is None:
            return "Best"
        return f"{'Epochs' if len(self.epochs) > 1 else 'Epoch'} {self.name}"

    def error(self, run: RunRecord) -> float:
        """The mean test error of these epochs, in percent."""
        return best_error(run) if self.epochs is None else fmean(self._of(run, "test_error"))

    def mean(self, run: RunRecord, name: str) -> float | None:
        """The mean of what these epochs recorded under `name`, or None where one did not."""
        values = self._of(run, name)
        return None if None in values else fmean(values)

    def _of(self, run: RunRecord, name: str) -> list[Any]:
        return [run.epochs[number].get(name) for number in self.epochs or ()]


def stages_of(runs: Iterable[RunRecord]) -> list[Stage]:
    """Each learning rate after the warm-up, the last five epochs, the last one, and the best.

    Args:
        runs: of one setting; what one has trained longer than another is left out, but for the best.
    """
    shortest = min(runs, key=lambda run: len(run.epochs))
    found, length = _by_rate(shortest), len(shortest.epochs)
    for last in (5, 1):
        if length > last:
            name = f"{_span(length - last, length)}, last" + (f" {last}" if last > 1 else "")
            found.append(Stage(f"last_{last}", name, range(length - last, length)))
    return [*found, Stage("best", "best", None)]


def _by_rate(run: RunRecord) -> list[Stage]:
    """A stage for each learning rate, or for all epochs where the record does not say."""
    found = []
    selected = range(int(run.config.get("warm_up") or 0), len(run.epochs))
    for rate, group in groupby(selected, key=lambda number: run.epochs[number].get("learning_rate")):
        numbers = list(group)
        epochs = range(numbers[0], numbers[-1] + 1)
        key, name = f"epochs_{epochs.start + 1}_{epochs.stop}", _span(epochs.start, epochs.stop)
        name += "" if rate is None else f", rate {float(rate):.4g}"
        found.append(Stage(key, name, epochs, is_of_one_rate=True))
    return found


def _span(first: int, end: int) -> str:
    return f"{first + 1} to {end}" if end - first > 1 else f"{end}"
