"""What is shown while a study trains."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

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
from carpediem.lab.wave import Training


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
        self._known: dict[str, int] = {}

    def __enter__(self) -> StudyProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def on_epoch(self, training: Training, record: dict[str, Any]) -> None:
        """Takes notice of a finished epoch."""
        for config in training.configs:
            self._known[config.hash] = record["epoch"] + 1
        name = "shared warm-up" if training.is_warm_up else METHODS[training.config.method]
        self._progress.update(
            self._task,
            total=len(self._configs) * training.config.epochs(training.learner.data.num_samples),
            completed=sum(self._known.values()),
            description=f"{name}, seed {training.config.seed}: {record['test_error']:.2f}%",
        )
        if training.finished and not training.is_warm_up and not self._console.is_terminal:
            best = min(r["test_error"] for r in training.records)
            self._console.print(
                f"{name}, seed {training.config.seed}: best test error {best:.2f}% after "
                f"{record['iteration']} iterations, {record['seconds']:.1f} s",
                highlight=False,
                soft_wrap=True,
            )

    def complain(self, message: str) -> None:
        """Shows what was passed over."""
        self._console.print(f"note: {message}", highlight=False, soft_wrap=True)
