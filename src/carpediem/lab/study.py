"""A study: a set of runs in a folder, each trained once."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

import torch

from carpediem.lab.atomic import write_json, writing_out
from carpediem.lab.augment import augmentation
from carpediem.lab.config import RunConfig
from carpediem.lab.data import FolderData, ImageData, open_data
from carpediem.lab.groups import by_setting, waves
from carpediem.lab.locks import locked
from carpediem.lab.network import Network
from carpediem.lab.networks import fingerprint
from carpediem.lab.runfolder import RunFolder
from carpediem.lab.source import place
from carpediem.lab.wave import OnEpoch, Wave

# Threads of the CPU, where fewer than torch's choice are faster: in small steps they wait for each other, the longer
# the busier the machine.
THREADS = {"small-cnn": 1}
SIDE_BY_SIDE = {"cuda": 4, "cpu": 1}  # what was fastest with the paper's networks (docs/decisions/0008)


def _quiet(*_: object) -> None:
    """Says nothing."""


class Study:
    """Runs to train, and the folder that holds what is done.

    Args:
        folder: made when it is not there.
        configs: the runs; one that the folder holds as done is not trained again.
        name: what the study is called.
        test_dropout: whether every epoch is also tested with dropout left on.
        training_loss_every: after how many epochs the loss over the whole training set is recorded, and after the
            last; 0 never.

    Attributes:
        own: the runs that are trained here: all of them, but for a `share`.
        command: what was called, for the study's description.
    """

    def __init__(
        self,
        folder: Path,
        configs: Iterable[RunConfig],
        *,
        name: str = "study",
        test_dropout: bool = False,
        training_loss_every: int = 0,
    ) -> None:
        self.folder, self.name = folder, name
        self.test_dropout, self.training_loss_every = test_dropout, training_loss_every
        self.configs = list({config.hash: config for config in configs}.values())
        self.own = self.configs
        self.command = ["carpediem", *sys.argv[1:]]

    def share(self, configs: Iterable[RunConfig]) -> Study:
        """The same study, of which these runs alone are trained here."""
        chosen, part = {config.hash for config in configs}, copy(self)
        part.own = [config for config in self.configs if config.hash in chosen]
        return part

    def pending(self) -> list[RunConfig]:
        """The runs that are to be trained here and are not done."""
        return [c for c in self.own if not RunFolder.of(c, self.folder / "runs").done]

    def train(
        self,
        *,
        device: torch.device | str = "cpu",
        data_dir: Path | None = None,
        side_by_side: int | None = None,
        on_epoch: OnEpoch = _quiet,
        complain: Callable[[str], None] = _quiet,
    ) -> None:
        """Trains what is not done. May be stopped at any moment and called again.

        Other processes may train in the same folder: a run that one of them is at is left to it, and is still
        pending afterwards if it has not finished by then.

        Args:
            side_by_side: how many runs train at once; by default as many as pay off on the device.
            on_epoch: told of every finished epoch.
            complain: told of what is passed over, such as a damaged checkpoint.
        """
        device = torch.device(device)
        at_once = side_by_side or SIDE_BY_SIDE.get(device.type, 1)
        for group in by_setting(self.pending()):
            if device.type == "cuda":
                _choose_arithmetic(group[0].precision)
            data = self._checked_data(group[0], data_dir)
            self._check_net(group[0])
            source = place(data, group[0].normalisation, device)
            network = Network(
                group[0],
                data.num_classes,
                data.in_channels,
                device,
                data_dir,
                test_dropout=self.test_dropout,
            )
            for config in group:
                augmentation(config.augmentation)
            network.try_out(source.normalise(source.images_of([0, 0]).to(device).float()))
            # Only now, so that a study that cannot be trained leaves nothing behind.
            with writing_out(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
                self._write_description()
            with _threads_for(group[0].net):
                for configs in waves(group, at_once):
                    wave = Wave(
                        configs,
                        source,
                        network,
                        self.folder,
                        training_loss_every=self.training_loss_every,
                        on_epoch=on_epoch,
                        complain=complain,
                    )
                    wave.train(at_once)

    def _checked_data(self, config: RunConfig, data_dir: Path | None) -> ImageData | FolderData:
        data = open_data(config.data, data_dir, image_size=config.image_size)
        if data.fingerprint() != config.data_fingerprint:
            raise ValueError(
                f"{config.data} must be the data that the run was set up with (fingerprint "
                f"{config.data_fingerprint}), got {data.fingerprint()}; start a new study in another folder, "
                "and let a function of your own give the same data every time"
            )
        return data

    def _check_net(self, config: RunConfig) -> None:
        if (found := fingerprint(config.net)) != config.net_fingerprint:
            raise ValueError(
                f"{config.net} must be the code that the run was set up with (fingerprint "
                f"{config.net_fingerprint!r}), got {found!r}; start a new study in another folder"
            )

    def _write_description(self) -> None:
        path = self.folder / "study.json"
        with locked(self.folder):
            old = _read_description(path)
            runs = sorted(set(old.get("runs", [])) | {c.hash for c in self.configs})
            write_json(path, {"name": self.name, "command": self.command, "runs": runs})


def _choose_arithmetic(precision: str) -> None:
    """Lets a CUDA device choose its kernels; float32 is float32, as in the paper, and not TF32."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = precision != "float32"
    torch.set_float32_matmul_precision("highest" if precision == "float32" else "high")


@contextmanager
def _threads_for(net: str) -> Iterator[None]:
    """Inside, torch computes with the threads that suit the network."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(before, THREADS.get(net, before)))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _read_description(path: Path) -> dict[str, Any]:
    try:
        old: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    except ValueError as error:
        raise ValueError(
            f"{path} is damaged: {error}; delete it, and the same command writes it anew"
        ) from error
    return old
