"""A study's runs spread over a Ray cluster."""

from __future__ import annotations

import importlib
import logging
import math
import os
import re
import secrets
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from carpediem.integrations.requirement import require
from carpediem.lab.config import RunConfig
from carpediem.lab.data.find import VARIABLE
from carpediem.lab.folder_news import FolderNews, News
from carpediem.lab.groups import by_setting, waves
from carpediem.lab.study import SIDE_BY_SIDE, Study
from carpediem.lab.usercode import UserCodeError

SUPPORTED = ">=2.40,<3"
LOCAL = "local"
DEATHS = 3  # of workers at the same runs, with no epoch between them, until the study is given up
SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_OF_A_DEAD_LOCK = 120.0  # how long a shared disk may keep what a dead machine had locked
SMALLEST_STORE = 80 * 2**20  # bytes that Ray asks for at least; hardly anything is sent


class ClusterError(RuntimeError):
    """The cluster, or a run on it, failed; the message is one sentence."""


@dataclass
class _Task:
    """Runs that one worker trains."""

    study: Study
    news: FolderNews
    deaths: int = 0  # of workers, since the runs last came on


class RayCluster:
    """Machines that train the runs of a study.

    Ray is started or connected to when it is needed first, and left when the `with` block ends. A Ray that this
    process is connected to already is used, and stays. The study's folder, the data and the current folder must
    lie at the same path on all machines.

    Args:
        address: `local` starts Ray on this machine for this process alone, `auto` finds one that was started on
            this machine, `HOST:PORT` or `ray://HOST:PORT` connects to one.
        cores: how many cores a `local` one takes; by default all.
    """

    def __init__(self, address: str = LOCAL, *, cores: int | None = None) -> None:
        if address not in (LOCAL, "auto") and not re.fullmatch(r"(ray://)?[^\s/:]+:[0-9]+", address):
            raise ValueError(f"--ray must be {LOCAL}, auto or HOST:PORT, got {address!r}")
        self.address, self._cores = address, cores
        self._ray = _import_ray(private=address == LOCAL)
        self._connected_here = False

    def __enter__(self) -> RayCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connected_here:
            self._ray.shutdown()
            self._connected_here = False

    @property
    def has_gpus(self) -> bool:
        """Whether runs can train on GPUs."""
        # This machine is known without starting anything.
        return torch.cuda.is_available() if self.address == LOCAL else self._places("GPU") > 0

    def train(
        self,
        study: Study,
        *,
        device: str,
        data_dir: Path | None = None,
        side_by_side: int | None = None,
        on_news: Callable[[News], None],
        complain: Callable[[str], None],
    ) -> None:
        """Trains what is not done, to the records that `Study.train` would write.

        A worker that dies is replaced, and its runs go on from their checkpoints. What ends this call early,
        Ctrl-C or the error of a run, stops all workers; the next call continues.

        Args:
            device: cpu, a core for each worker, or cuda, a GPU for each worker.
            side_by_side: how many runs of a worker train at once; by default as many as pay off on the device.
            on_news: told of every training that has come on.
            complain: told of what is passed over, and of workers that died.
        """
        pending = study.pending()
        if not pending:
            return
        workers = self._places("GPU" if device == "cuda" else "CPU")
        if workers < 1:
            raise ClusterError(f"the Ray cluster ({self.address}) must have a {device} to train on, got none")
        folder = study.folder.absolute()
        tasks = []
        for group in _groups(pending, workers, side_by_side or SIDE_BY_SIDE[device]):
            part = study.share(group)
            part.folder = folder
            tasks.append(_Task(part, FolderNews(folder, group)))
        orders = {
            "current": Path.cwd(),
            "data": os.environ.get(VARIABLE),
            "device": device,
            "data_dir": data_dir,
            "side_by_side": side_by_side,
        }
        is_new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)  # by which a worker sees that it has the same disk
        try:
            self._finish(tasks, orders, on_news, complain)
        except self._ray.exceptions.RayError as error:
            raise ClusterError(f"the Ray cluster ({self.address}) was lost: {_first_line(error)}") from error
        finally:
            if is_new:
                with suppress(OSError):  # not empty: something was trained
                    folder.rmdir()

    def _finish(
        self,
        tasks: list[_Task],
        orders: dict[str, Any],
        on_news: Callable[[News], None],
        complain: Callable[[str], None],
    ) -> None:
        """Returns when all tasks are done, and leaves no worker behind however it ends."""
        errors = self._ray.exceptions
        # Not Ray's own retries: those count the deaths of days together, and say nothing.
        resources = {"num_cpus": 1, "num_gpus": 1 if orders["device"] == "cuda" else 0, "max_retries": 0}
        remote = self._ray.remote(**resources)(_train)
        under_way = {remote.remote(task.study, **orders): task for task in tasks}
        try:
            while under_way:
                ended, _ = self._ray.wait(list(under_way), timeout=SECONDS_BETWEEN_LOOKS)
                for task in under_way.values():
                    for news in task.news.latest():
                        task.deaths = 0
                        on_news(news)
                for reference in ended:
                    task = under_way.pop(reference)
                    try:
                        for complaint in self._ray.get(reference):
                            complain(complaint)
                    except errors.RayTaskError as error:
                        raise _as_told(error) from error
                    except errors.RayError as error:
                        task.deaths += 1
                        if task.deaths == DEATHS:
                            raise ClusterError(
                                f"{DEATHS} workers died one after the other at {_names(task.study)}: "
                                f"{_first_line(error)}"
                            ) from error
                        complain(f"a worker died; {_names(task.study)} go on from their checkpoints")
                        again = remote.remote(task.study, **orders, patience=SECONDS_OF_A_DEAD_LOCK)
                        under_way[again] = task
        finally:
            for reference in under_way:
                self._ray.cancel(reference, force=True)
            if under_way:  # so that no folder is locked when the same command is called again
                self._ray.wait(list(under_way), num_returns=len(under_way), timeout=10)

    def _places(self, resource: str) -> int:
        """How many workers with a core or a GPU each the cluster has room for."""
        if not self._ray.is_initialized():
            self._connect()
        return int(self._ray.cluster_resources().get(resource, 0))

    def _connect(self) -> None:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if self.address == LOCAL:
            options |= {"include_dashboard": False, "object_store_memory": SMALLEST_STORE}
            options |= {"num_cpus": self._cores}
        try:
            if match := re.search(r"([^/:]+):([0-9]+)$", self.address):
                # Ray itself would try for minutes.
                socket.create_connection((match[1], int(match[2])), timeout=10).close()
            self._ray.init(address=self.address, **options)
        except (OSError, OverflowError, RuntimeError, ValueError, self._ray.exceptions.RayError) as error:
            what = "could not be started" if self.address == LOCAL else "could not be connected to"
            raise ClusterError(f"the Ray cluster ({self.address}) {what}: {_first_line(error)}") from error
        self._connected_here = True


def _import_ray(*, private: bool) -> Any:
    """Ray, which is imported here alone.

    Args:
        private: Ray will be started for this process alone.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if private and "RAY_AUTH_MODE" not in os.environ and "ray" not in sys.modules:
        # Nobody else needs the token, so it is not left in a file in the user's home, as Ray would.
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    require("ray", SUPPORTED)
    return importlib.import_module("ray")


def _groups(pending: list[RunConfig], workers: int, at_once: int) -> list[list[RunConfig]]:
    """What each task trains: as many runs as pay off at once, but fewer where workers would have nothing to do."""
    size = min(at_once, math.ceil(len(pending) / workers))
    return [wave for group in by_setting(pending) for wave in waves(group, size)]


def _train(
    study: Study,
    *,
    current: Path,
    data: str | None,
    device: str,
    data_dir: Path | None,
    side_by_side: int | None,
    patience: float = 0.0,
) -> list[str]:
    """Trains the runs in a worker's process, as in the process that sent them; what was passed over."""
    for folder in (current, study.folder):
        if not folder.is_dir():
            raise ClusterError(
                f"{folder} must be there on every machine of the cluster, on a disk that they share"
            )
    os.chdir(current)
    if data is not None:
        os.environ[VARIABLE] = data
    if device == "cpu":
        torch.set_num_threads(1)
    complaints: list[str] = []
    until = time.monotonic() + patience
    while True:
        study.train(device=device, data_dir=data_dir, side_by_side=side_by_side, complain=complaints.append)
        # After a death, runs that seem to be trained by another process may only seem so.
        if not study.pending() or time.monotonic() > until:
            return complaints
        complaints.clear()
        time.sleep(1)


def _as_told(error: Any) -> Exception:
    """The error of a run as it would be told by a local study, without what Ray writes around it."""
    cause = error.cause
    if isinstance(cause, (ValueError, TypeError, OSError, ImportError, UserCodeError, ClusterError)):
        return cause
    return ClusterError(f"a run failed on the cluster: {type(cause).__name__}: {_first_line(cause)}")


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _names(study: Study) -> str:
    """The runs of a task, for a message."""
    return "runs " + ", ".join(config.hash for config in study.own)
