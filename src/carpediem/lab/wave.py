"""Runs that train side by side, each warm-up once."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from carpediem.lab.capture import Track
from carpediem.lab.config import RunConfig
from carpediem.lab.learner import Learner, seen_by
from carpediem.lab.machine import describe_machine
from carpediem.lab.methods import build_selector
from carpediem.lab.network import Network
from carpediem.lab.runfolder import RunFolder
from carpediem.lab.samplefiles import write_sample_files
from carpediem.lab.source import Source

# Sample files are written at a run's end and, while it trains, at most this often and for 1% of the time.
SAMPLES_EVERY = 60.0  # seconds

OnEpoch = Callable[["Training", dict[str, Any]], None]


@dataclass
class Training:
    """A learner on its way, with the clock and the folders that its epochs are written to."""

    configs: list[RunConfig]  # whose selectors look on: one, but for a shared warm-up
    learner: Learner
    folder: RunFolder
    until: int  # epochs
    is_warm_up: bool = False
    writing: Future[None] | None = None
    samples_due: float = field(default_factory=lambda: time.monotonic() + SAMPLES_EVERY)
    seconds: float = 0.0
    seconds_with_evaluation: float = 0.0
    records: list[dict[str, Any]] = field(default_factory=list)

    @property
    def config(self) -> RunConfig:
        return self.learner.config

    @property
    def finished(self) -> bool:
        return self.learner.epoch >= self.until

    def state(self) -> dict[str, Any]:
        clock = {"seconds": self.seconds, "seconds_with_evaluation": self.seconds_with_evaluation}
        watched_by = [c.hash for c in self.configs]
        return self.learner.state_dict() | clock | {"epochs": len(self.records), "watched_by": watched_by}

    def load(self, state: dict[str, Any], records: list[dict[str, Any]]) -> None:
        self.learner.load_state_dict(state)
        self.seconds, self.seconds_with_evaluation = state["seconds"], state["seconds_with_evaluation"]
        self.records = list(records)


class Wave:
    """Trains several runs of one network and data set at once, as far as the device takes them.

    Args:
        configs: the runs; they differ in seed and in how batches are selected.
        folder: where `runs/` and `warm-ups/` lie.
        training_loss_every: after how many epochs the whole training set is evaluated, and after the last; 0 never.
        on_epoch: told of every finished epoch.
        complain: told of what is passed over, such as a damaged checkpoint.
    """

    def __init__(
        self,
        configs: list[RunConfig],
        data: Source,
        network: Network,
        folder: Path,
        *,
        training_loss_every: int = 0,
        on_epoch: OnEpoch,
        complain: Callable[[str], None],
    ) -> None:
        self._at_once = 1
        self._writer = ThreadPoolExecutor(1) if network.device.type == "cuda" else None
        self.configs, self.data, self.network, self.folder = configs, data, network, folder
        self._every = training_loss_every
        self._on_epoch, self._complain = on_epoch, complain

    def train(self, at_once: int) -> None:
        """Trains every run to its end, at most `at_once` at a time, but for those that another process trains."""
        self._at_once = at_once
        resumed, fresh = [], []
        with ExitStack() as held:
            for config in self.configs:
                # Built before the folder is: what cannot be trained leaves nothing behind.
                folder = self._run_folder(config)
                training = self._training([config], folder, config.epochs(self.data.num_samples))
                held.callback(folder.end)
                if not folder.begin(config):
                    self._complain(
                        f"{folder.folder} is being trained by another process; it is left to that one"
                    )
                    continue
                if folder.done:  # another process was faster
                    continue
                state = self._state_of(training)
                if state is None:
                    fresh.append(training)
                else:
                    training.load(state, training.folder.records())
                    resumed.append(training)
            if self._writer is not None:  # no folder is left to others while a state is still being written
                held.callback(self._writer.shutdown)
            self._warm_up(fresh)
            for training in resumed + fresh:
                if training.finished:  # stopped after its last epoch, or no longer than the warm-up
                    self._finish(training)
            self._advance(resumed + fresh)

    def _state_of(self, training: Training) -> dict[str, Any] | None:
        state, complaints = training.folder.resume()
        for complaint in complaints:
            self._complain(complaint)
        return state

    def _run_folder(self, config: RunConfig) -> RunFolder:
        return RunFolder.of(config, self.folder / "runs")

    def _training(self, configs: list[RunConfig], folder: RunFolder, until: int) -> Training:
        device, data = self.network.device, self.data
        selectors = [build_selector(c, data.num_samples, data.num_classes, device) for c in configs]
        # The longest window of all: a run that is forked off keeps its own part of it.
        window = max(c.window for c in configs)
        learner = Learner(configs[0], self.network, data, selectors, window=window)
        return Training(configs, learner, folder, until)

    def _warm_up(self, fresh: list[Training]) -> None:
        """Trains the warm-up of each group of runs once, all selectors looking on, and hands every run its state."""
        groups: dict[str, list[Training]] = {}
        for training in fresh:
            if training.config.warm_up > 0:
                groups.setdefault(training.config.warm_up_hash, []).append(training)
        with ExitStack() as held:
            # In the order of their names, so that of two processes neither holds what the other waits for.
            folders = {
                name: self._warm_up_folder(name, groups[name][0].config, held) for name in sorted(groups)
            }
            if self._writer is not None:
                held.callback(self._all_saved)
            self._train_warm_ups(groups, folders)

    def _warm_up_folder(self, name: str, config: RunConfig, held: ExitStack) -> RunFolder:
        """The folder of a warm-up, when no other process is at it."""
        folder = RunFolder(self.folder / "warm-ups" / name)
        held.callback(folder.end)
        if not folder.begin(config):
            self._complain(f"{folder.folder} is being trained by another process; waiting for it")
            folder.begin(config, wait=True)
        return folder

    def _train_warm_ups(self, groups: dict[str, list[Training]], folders: dict[str, RunFolder]) -> None:
        shared = []
        for name, group in groups.items():
            configs = sorted((t.config for t in group), key=lambda c: c.hash)
            until = min(configs[0].warm_up, group[0].until)
            training = self._training(configs, folders[name], until)
            training.is_warm_up = True
            state = self._state_of(training)
            # Of use to these alone is a warm-up that all their selectors watched, perhaps among others.
            watched = [] if state is None else state["watched_by"]
            if state is not None and {c.hash for c in configs} <= set(watched):
                own = [state["selectors"][watched.index(c.hash)] for c in configs]
                training.load(state | {"selectors": own}, training.folder.records())
            else:
                training.folder.keep_records([])
            shared.append((training, group, configs))
        self._advance([training for training, _, _ in shared])
        for training, group, configs in shared:
            state = training.state()
            for run in group:
                own = state["selectors"][configs.index(run.config)]
                records = [_as_of(run.config, record) for record in training.records]
                run.load(state | {"selectors": [own]}, records)
                run.folder.keep_records(run.records)
                self._save(run)

    def _advance(self, trainings: list[Training]) -> None:
        """Trains all of them to their ends, as many at once as allowed."""
        waiting = [t for t in trainings if not t.finished]
        for first in range(0, len(waiting), self._at_once):
            self._advance_together(waiting[first : first + self._at_once])

    def _advance_together(self, active: list[Training]) -> None:
        """Trains these side by side, an epoch at a time, the steps of each on a track of its own."""
        tracks = [Track(t.learner) for t in active]
        while active:
            steps = []
            for training, track in zip(active, tracks, strict=True):
                begin = time.perf_counter()
                with track.beside():
                    steps.append(training.learner.begin_epoch())
                self._tick(training, begin)
            begin = time.perf_counter()
            self._step_all(active, tracks, steps)
            for training in active:
                self._tick(training, begin)
            tested = self._evaluate(active, tracks, test=True)
            found = [
                training.learner.end_epoch(count) | result
                for training, count, result in zip(active, steps, tested, strict=True)
            ]
            due = [n for n, training in enumerate(active) if self._is_due(training)]
            of_training = self._evaluate([active[n] for n in due], [tracks[n] for n in due], test=False)
            for n, evaluated in zip(due, of_training, strict=True):
                found[n] |= evaluated
            for training, record in zip(active, found, strict=True):
                self._write(training, record, beside=len(active))
            going = [(a, t) for a, t in zip(active, tracks, strict=True) if not a.finished]
            active, tracks = [a for a, _ in going], [t for _, t in going]

    def _step_all(self, active: list[Training], tracks: list[Track], steps: list[int]) -> None:
        for number in range(max(steps)):
            for training, track, count in zip(active, tracks, steps, strict=True):
                if number < count:
                    with track.beside():
                        training.learner.set_rate()
                        track.step()
                    training.learner.iteration += 1
        for track in tracks:
            track.wait()

    def _is_due(self, training: Training) -> bool:
        """Whether the training set is evaluated after this epoch."""
        epoch, last = training.learner.epoch, training.config.epochs(self.data.num_samples)
        return self._every > 0 and (epoch % self._every == 0 or epoch == last)

    def _evaluate(self, active: list[Training], tracks: list[Track], *, test: bool) -> list[dict[str, Any]]:
        """The loss and error of each on the test or the training set; the time counts as evaluation alone."""
        begin, evaluations = time.perf_counter(), []
        for training, track in zip(active, tracks, strict=True):
            with track.beside():
                evaluations.append(training.learner.evaluate(track.test_part, test=test))
        for training, track in zip(active, tracks, strict=True):
            track.wait()
            training.seconds_with_evaluation += time.perf_counter() - begin
        return [finish() for finish in evaluations]

    def _save(self, training: Training) -> None:
        """Writes the state, on a device while the next epoch trains: there, writing takes as long as training."""
        state = training.state()
        if self._writer is None:
            self._put_down(training, state)
        else:
            self._saved(training)
            training.writing = self._writer.submit(self._put_down, training, state)

    def _put_down(self, training: Training, state: dict[str, Any]) -> None:
        """Writes the state and, now and then, the sample files. Touches no device: another thread may be recording."""
        training.folder.save(state)
        begin = time.monotonic()
        ends_here = training.is_warm_up or training.finished
        if state["samples"] is not None and not ends_here and begin >= training.samples_due:
            write_sample_files(training.folder.folder, state["samples"], self.data)
            now = time.monotonic()
            training.samples_due = now + max(SAMPLES_EVERY, 100 * (now - begin))

    def _saved(self, training: Training) -> None:
        """Returns when the state is on disk."""
        if training.writing is not None:
            training.writing.result()

    def _all_saved(self) -> None:
        """Returns when nothing is left to write: the one thread that writes has come to this."""
        if self._writer is not None:
            self._writer.submit(_nothing).result()

    def _tick(self, training: Training, begin: float) -> None:
        elapsed = time.perf_counter() - begin
        training.seconds += elapsed
        training.seconds_with_evaluation += elapsed

    def _write(self, training: Training, record: dict[str, Any], *, beside: int) -> None:
        epoch = {
            "epoch": len(training.records),
            "iteration": training.learner.iteration,
            "seconds": round(training.seconds, 4),
            "seconds_with_evaluation": round(training.seconds_with_evaluation, 4),
            "side_by_side": beside,
        } | record
        if training.is_warm_up:
            watching = zip(training.configs, training.learner.selectors, strict=True)
            epoch["watched_by"] = {config.hash: seen_by(selector) for config, selector in watching}
        # First the record, then the state: what was recorded without its state is trained again to the same numbers.
        training.folder.append(epoch)
        training.records.append(epoch)
        self._save(training)
        if training.finished and not training.is_warm_up:
            self._finish(training)
        self._on_epoch(training, epoch)

    def _finish(self, training: Training) -> None:
        self._saved(training)
        if training.learner.observer is not None:
            state = training.learner.observer.state_dict()
            write_sample_files(training.folder.folder, state, self.data)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        training.folder.finish({"finished": now, **describe_machine(self.network.device)})


def _nothing() -> None:
    """Does nothing."""


def _as_of(config: RunConfig, record: dict[str, Any]) -> dict[str, Any]:
    """The record of an epoch of a shared warm-up as the run would have written it alone."""
    own = {name: value for name, value in record.items() if name != "watched_by"}
    own |= record["watched_by"][config.hash]
    return own
