"""The stages of a training that tables compare: each learning rate, the last epochs, the best of all."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from carpediem.lab.records import RunRecord
from carpediem.lab.results import best_error


@dataclass(frozen=True)
class Stage:
    """Some epochs of a run, or None for the best of all: `key` for machines, `name` for people."""

    key: str
    name: str
    epochs: range | None
    is_of_one_rate: bool = False

    def error(self, run: RunRecord) -> float:
        """The mean test error of these epochs, in percent."""
        return best_error(run) if self.epochs is None else self.mean(run, "test_error")

    def mean(self, run: RunRecord, name: str) -> float:
        """The mean of what these epochs recorded under `name`."""
        return fmean(run.epochs[number][name] for number in self.epochs or ())


def stages_of(run: RunRecord) -> list[Stage]:
    """Each learning rate after the warm-up, the last five epochs, the last one, and the best."""
    found, length = _by_rate(run), len(run.epochs)
    for last in (5, 1):
        if length > last:
            found.append(Stage(f"last_{last}", _span(length - last, length), range(length - last, length)))
    return [*found, Stage("best", "best", None)]


def _by_rate(run: RunRecord) -> list[Stage]:
    found = []
    selected = range(run.config.get("warm_up", 0), len(run.epochs))
    for rate, group in groupby(selected, key=lambda number: float(run.epochs[number]["learning_rate"])):
        numbers = list(group)
        epochs = range(numbers[0], numbers[-1] + 1)
        key, name = f"epochs_{epochs.start + 1}_{epochs.stop}", _span(epochs.start, epochs.stop)
        found.append(Stage(key, f"{name}, rate {rate:.4g}", epochs, is_of_one_rate=True))
    return found


def _span(first: int, end: int) -> str:
    return f"{first + 1} to {end}" if end - first > 1 else f"{end}"
