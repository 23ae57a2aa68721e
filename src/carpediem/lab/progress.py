"""What is shown while a study trains."""

from __future__ import annotations

import sys
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


class StudyProgress:
    """How much there is to train, then a bar over all epochs on a terminal, or one line a finished run elsewhere.

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
        self._configs = {config.hash for config in configs}
        self._tells_draws = len({config.draws for config in configs}) > 1
        self._known: dict[str, int] = {}
        self._has_told_length = False

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
        for one in news.configs:
            self._known[one.hash] = len(news.records)
        name = "shared warm-up" if news.is_warm_up else METHODS[config.method]
        if self._tells_draws and not news.is_warm_up:
            name += f" ({draws_name(config.method, config.draws)})"
        self._progress.update(
            self._task,
            total=len(self._configs) * news.epochs,
            completed=sum(self._known.values()),
            description=f"{name}, seed {config.seed}: {last['test_error']:.2f}%",
        )
        if news.is_finished_run and not self._console.is_terminal:
            best = min(record["test_error"] for record in news.records)
            self._say(
                f"{name}, seed {config.seed}: best test error {best:.2f}% after "
                f"{last['iteration']} iterations, {last['seconds']:.1f} s"
            )

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
        if steps < FEW_BATCHES:
            self.complain(
                "an epoch of so few batches leaves little to select; a smaller --batch-size gives more of them"
            )

    def _say(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)
