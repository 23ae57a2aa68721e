"""What is shown while a study trains."""

from __future__ import annotations

import math
import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from carpediem.lab.config import METHODS, RunConfig
from carpediem.lab.folder_news import News
from carpediem.lab.results import draws_name

FEW_BATCHES = 4  # an epoch, of which selection can make little
EVERY = 60.0  # seconds between two lines on how far it is
# With their seconds, and how many of them are told at most.
_UNITS = (("minute", 60, 120), ("hour", 3600, 48), ("day", 86_400, math.inf))


class StudyProgress:
    """How much there is to train, then a bar over all epochs on a terminal; elsewhere a line now and then.

    Args:
        configs: the runs that will be trained.
        quiet: show nothing at all.
    """

    def __init__(self, configs: list[RunConfig], *, quiet: bool = False) -> None:
        self._console = Console(file=sys.stderr, quiet=quiet)
        self._progress = Progress(
            TextColumn("{task.description:<30}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("epochs"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=quiet or not self._console.is_terminal,
        )
        self._task = self._progress.add_task("starting", total=None)
        self._configs = configs
        self._lengths: dict[tuple[str, int, int], int] = {}  # epochs of a run
        self._tells_draws = len({config.draws for config in configs}) > 1
        self._known: dict[str, int] = {}
        self._has_told_length = False
        self._trained = 0  # epochs, since this began
        self._begun = self._told_at = time.monotonic()

    def __enter__(self) -> StudyProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, news: News) -> None:
        """Takes notice of a training that has come on."""
        config, last = news.configs[0], news.records[-1]
        if not self._has_told_length:
            self._has_told_length = True
            self._tell_length(news)
        count = len(news.records)
        # What a run had done before it was continued took no time now; nor did a warm-up that is told of afterwards.
        self._trained += max(0, count - self._known.get(config.hash, count - 1))
        for one in news.configs:
            self._known[one.hash] = max(count, self._known.get(one.hash, 0))
            self._lengths[_length_key(one)] = news.epochs
        total = sum(self._lengths.get(_length_key(one), news.epochs) for one in self._configs)
        name = "shared warm-up" if news.is_warm_up else METHODS[config.method]
        if self._tells_draws and not news.is_warm_up:
            name += f" ({draws_name(config.method, config.draws)})"
        self._progress.update(
            self._task,
            total=total,
            completed=sum(self._known.values()),
            description=f"{name}, seed {config.seed}: {last['test_error']:.2f}%",
        )
        if news.is_finished_run and not self._console.is_terminal:
            best = min(record["test_error"] for record in news.records)
            self._say(
                f"{name}, seed {config.seed}: best test error {best:.2f}%, "
                f"{last['iteration']} iterations in {last['seconds']:.1f} s"
            )
        now = time.monotonic()
        if not self._console.is_terminal and now - self._told_at >= EVERY:
            self._told_at = now
            self._tell_rest(total, now - self._begun)

    def complain(self, message: str) -> None:
        """Shows what was passed over."""
        self._say(f"note: {message}")

    def _tell_length(self, news: News) -> None:
        """Says it before anybody waits for days."""
        runs, steps = len(self._configs), news.records[0]["iteration"]
        self._say(
            f"trains {runs} run{'s' * (runs != 1)} of {news.epochs:,} epoch{'s' * (news.epochs != 1)}, "
            f"each of {steps:,} batch{'es' * (steps != 1)} of {news.configs[0].batch_size}"
        )
        selecting = [news.epochs - config.warm_up for config in self._configs if config.method != "random"]
        if selecting and max(selecting) <= 1:
            self.complain(
                "the warm-up leaves one epoch to select in, in which a pressure that decays is 1; train for more "
                "--epochs, or with a shorter --warm-up and --window"
            )
        if steps < FEW_BATCHES:
            self.complain(
                "an epoch of so few batches leaves little to select; a smaller --batch-size gives more of them"
            )

    def _tell_rest(self, total: int, elapsed: float) -> None:
        """Says how far it is, and for how long it will go on at this pace."""
        done = sum(self._known.values())
        if done < total and self._trained:
            left = (total - done) * elapsed / self._trained
            self._say(f"{done:,} of {total:,} epochs done, about {_duration(left)} left")

    def _say(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)


def _length_key(config: RunConfig) -> tuple[str, int, int]:
    """What the number of a run's epochs depends on."""
    return (config.data, config.iterations, config.batch_size)


def _duration(seconds: float) -> str:
    """In the unit that suits it.

    >>> _duration(20), _duration(200), _duration(20_000), _duration(2_000_000)
    ('1 minute', '4 minutes', '6 hours', '24 days')
    """
    unit, size = next((unit, size) for unit, size, most in _UNITS if seconds <= most * size)
    count = math.ceil(seconds / size)
    return f"{count:,} {unit}{'s' * (count != 1)}"
