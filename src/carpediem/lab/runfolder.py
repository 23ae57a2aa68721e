"""A run's folder: its configuration, its records, its checkpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from carpediem.lab.atomic import write_json, write_whole
from carpediem.lab.checkpoint import latest_checkpoint, previous, save_checkpoint
from carpediem.lab.config import RunConfig
from carpediem.lab.locks import FolderLock
from carpediem.lab.records import read_epochs, record_line


class RunFolder:
    """Writes what a run leaves behind, so that stopping it at any moment loses no finished epoch.

    config.json     the whole configuration
    epochs.jsonl    one line a finished epoch
    checkpoint.pt   the state after the last epoch, and checkpoint.previous.pt the one before
    samples.npz     what the run did with every sample; gallery.npz and trails.npz show some of them (`lab.samples`)
    done.json       there when the run has finished
    .lock           held by the process that writes, from `begin` to `end`
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = FolderLock(folder)

    @staticmethod
    def of(config: RunConfig, runs: Path) -> RunFolder:
        """The folder of a run among all of a study's: one that is there under any of its names, else by its hash."""
        there = (runs / name for name in config.names if (runs / name).is_dir())
        return RunFolder(next(there, runs / config.hash))

    @property
    def done(self) -> bool:
        """Whether the run has finished."""
        return (self.folder / "done.json").exists()

    def begin(self, config: RunConfig, *, wait: bool = False) -> bool:
        """Makes the folder and writes the configuration, unless they are there.

        Args:
            wait: until no other process is at the folder.

        Returns:
            Whether the folder may be written to. Where another process is at it, nothing was done.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._lock.take(wait=wait):
            return False
        if self._lock.is_held:  # else these may be what another process is just writing
            for leftover in self.folder.glob(".*.part"):
                leftover.unlink()
        path = self.folder / "config.json"
        if not path.exists():
            write_json(path, config.to_dict())
        return True

    def end(self) -> None:
        """Leaves the folder to other processes."""
        self._lock.release()

    def append(self, record: dict[str, Any]) -> None:
        """Adds the record of an epoch: the whole line, or nothing."""
        line = record_line(record)
        path = self.folder / "epochs.jsonl"
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            before = os.fstat(descriptor).st_size
            if os.write(descriptor, line) < len(line):
                os.ftruncate(descriptor, before)
                raise OSError(f"{path} could not take another record; is the disk full?")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def records(self) -> list[dict[str, Any]]:
        """The epochs written so far; what a kill left of a last line is not one."""
        return read_epochs(self.folder / "epochs.jsonl")

    def keep_records(self, records: list[dict[str, Any]]) -> None:
        """Makes these the epochs written so far."""
        write_whole(self.folder / "epochs.jsonl", b"".join(map(record_line, records)))

    def save(self, state: dict[str, Any]) -> None:
        """Writes the state after an epoch, whose record has been appended before."""
        save_checkpoint(self.folder / "checkpoint.pt", state)

    def resume(self) -> tuple[dict[str, Any] | None, list[str]]:
        """The state to go on from, with the records cut back to it; and complaints about damaged files."""
        path = self.folder / "checkpoint.pt"
        state, complaints = latest_checkpoint(path)
        # Lest at the next save the damaged one takes the good one's place.
        if state is not None and complaints:
            previous(path).replace(path)
        records = self.records()
        # An epoch that was recorded but not saved is trained again, to the same numbers.
        keep = records[: state["epochs"]] if state else []
        if state is not None and len(keep) < state["epochs"]:
            complaints.append(f"{self.folder / 'epochs.jsonl'} lacks epochs that the checkpoint has seen")
            state, keep = None, []
        if self.folder.exists():
            self.keep_records(keep)
        return state, complaints

    def finish(self, summary: dict[str, Any]) -> None:
        """Marks the run as finished."""
        write_json(self.folder / "done.json", summary)
