"""How far the runs of a study have come."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from carpediem.lab.config import RunConfig
from carpediem.lab.groups import by_warm_up
from carpediem.lab.records import read_epochs
from carpediem.lab.runfolder import RunFolder


@dataclass(frozen=True)
class News:
    """A training that has come on.

    Args:
        configs: the runs that it is for: one, but for a shared warm-up.
        records: of all its epochs so far, at least one.
    """

    configs: list[RunConfig]
    records: list[dict[str, Any]]
    is_warm_up: bool

    @property
    def epochs(self) -> int:
        """How many epochs one of the runs has."""
        steps: int = self.records[0]["iteration"]
        return math.ceil(self.configs[0].iterations / steps)

    @property
    def is_finished_run(self) -> bool:
        """Whether this is a run at its end."""
        return not self.is_warm_up and len(self.records) >= self.epochs


class FolderNews:
    """Sees from a study's folder how far runs have come that other processes train.

    Args:
        folder: the study's.
        configs: the runs to look at.
    """

    def __init__(self, folder: Path, configs: list[RunConfig]) -> None:
        self._places = {RunFolder.of(config, folder / "runs").folder: ([config], False) for config in configs}
        for group in by_warm_up(configs):
            self._places[folder / "warm-ups" / group[0].warm_up_hash] = (group, True)
        self._sizes: dict[Path, int] = {}
        self._epochs: dict[Path, int] = {}

    def latest(self) -> Iterator[News]:
        """What has come on since this was last called."""
        for place, (configs, is_warm_up) in self._places.items():
            file = place / "epochs.jsonl"
            size = file.stat().st_size if file.exists() else 0
            if size == self._sizes.get(place, 0):
                continue
            self._sizes[place], records = size, read_epochs(file)
            if records and len(records) > self._epochs.get(place, 0):
                self._epochs[place] = len(records)
                yield News(configs, records, is_warm_up)
