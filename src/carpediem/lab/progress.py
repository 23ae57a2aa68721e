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


class StudyProgress:
    """A bar over the epochs of all runs on a terminal; one line a finished run elsewhere.

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
            self._console.print(
                f"{name}, seed {config.seed}: best test error {best:.2f}% after "
                f"{last['iteration']} iterations, {last['seconds']:.1f} s",
                highlight=False,
                soft_wrap=True,
            )

    def complain(self, message: str) -> None:
        """Shows what was passed over."""
        self._console.print(f"note: {message}", highlight=False, soft_wrap=True)
