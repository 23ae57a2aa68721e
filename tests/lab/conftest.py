"""A data set and runs so small that a whole study takes a fraction of a second."""

import json
import shutil
import sys
import types

import numpy as np
import pytest
import torch

from carpediem.lab.data import ImageData
from carpediem.lab.plans import run_configs
from lab.report_makers import train_study

TIMES = ("seconds", "seconds_with_evaluation")
METHODS = ("random", "online", "active", "recency")


@pytest.fixture
def toy(monkeypatch):
    """48 training and 25 test images of three classes that overlap, found as `toy_data:images`."""
    rng = np.random.default_rng(5)
    labels = np.arange(73) % 3
    pixels = (
        rng.normal(90 + 40 * labels[:, None, None, None], 60, (73, 1, 8, 8)).clip(0, 255).astype(np.uint8)
    )
    x, y = torch.from_numpy(pixels), torch.from_numpy(labels)
    data = ImageData("toy", x[:48], y[:48], x[48:], y[48:], classes=("a", "b", "c"))
    module = types.ModuleType("toy_data")
    module.images = lambda: data
    monkeypatch.setitem(sys.modules, "toy_data", module)
    return data


@pytest.fixture
def make_configs(toy):
    """Runs on the toy data: batches of 8, six steps an epoch, two epochs of warm-up."""

    def make(*methods, seeds=(0,), epochs=5, **changes):
        settings = {"batch_size": 8, "warm_up": 2, "window": 2, "learning_rate": 0.05} | changes
        return run_configs(
            "toy_data:images",
            toy,
            recipe_name="demo",
            net=settings.pop("net", "small-cnn"),
            optimizer=settings.pop("optimizer", "momentum"),
            methods=methods or METHODS,
            seeds=seeds,
            precision="float32",
            epochs=None if "iterations" in settings else epochs,
            **settings,
        )

    return make


@pytest.fixture
def read_study():
    """From a study's folder to what its runs computed: {hash: records without their times}."""

    def read(folder):
        files = sorted((folder / "runs").glob("*/epochs.jsonl"))
        return {
            file.parent.name: [
                {name: value for name, value in json.loads(line).items() if name not in TIMES}
                for line in file.read_text().splitlines()
            ]
            for file in files
        }

    return read


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A small study of all methods, with what it recorded about its samples; only to be read."""
    return train_study(tmp_path_factory.mktemp("trained") / "study")


@pytest.fixture
def study(trained, tmp_path):
    """A copy of it that a test may damage."""
    return shutil.copytree(trained, tmp_path / "study")
