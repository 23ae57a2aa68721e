"""A small real study for the report: names that try to be markup, a grid, an ablation, a run that has not finished."""

import json
import sys
import types
from contextlib import contextmanager

import numpy as np
import torch

from carpediem.lab.data import ImageData
from carpediem.lab.plans import run_configs
from carpediem.lab.study import Study

METHODS = ("random", "online", "active", "recency")
CLASSES = ("<script>alert(1)</script>", 'b"><img src=x onerror=alert(2)>', "c, with a comma & more")
EPOCHS = 6
VARIATIONS = [{"window": w, "pressure": p} for w in (2, 3) for p in (10.0, 100.0)] + [
    {"schedule": "constant"}
]


@contextmanager
def own_data():
    """A bright bar at one of three places, one label in eight wrong, found as `report_data:images`."""
    rng = np.random.default_rng(5)
    labels = np.arange(120) % 3
    bar = np.arange(8)[None, :] // 3 == labels[:, None]
    pixels = rng.normal(90 + 60 * bar[:, None, None, :], 110, (120, 1, 8, 8)).clip(0, 255)
    given = np.where(np.arange(120) % 8 == 0, (labels + 1) % 3, labels)
    x, y = torch.from_numpy(pixels.astype(np.uint8)), torch.from_numpy(given)
    data = ImageData("report", x[:96], y[:96], x[96:], torch.from_numpy(labels)[96:], classes=CLASSES)
    module = types.ModuleType("report_data")
    module.images = lambda: data
    sys.modules["report_data"] = module
    try:
        yield data
    finally:
        del sys.modules["report_data"]


def configs(data, *methods, seeds=(0, 1), **changes):
    """Batches of 8, twelve steps an epoch, three epochs of warm-up."""
    settings = {"batch_size": 8, "warm_up": 3, "window": 3, "learning_rate": 0.05} | changes
    return run_configs(
        "report_data:images",
        data,
        recipe_name="demo",
        net="small-cnn",
        optimizer="momentum",
        methods=methods or METHODS,
        seeds=seeds,
        precision="float32",
        epochs=EPOCHS,
        **settings,
    )


def train_study(folder):
    """Four methods with two seeds, windows and pressures for the grid, and a pressure that stays."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # several would wait for each other longer than such small layers take
    with own_data() as data:
        runs = configs(data) + [
            config for variation in VARIATIONS for config in configs(data, "recency", seeds=(0,), **variation)
        ]
        Study(folder, runs, name="compare").train()
    torch.set_num_threads(threads)
    return folder


def unfinish(folder, method, epochs):
    """Takes back what came after so many epochs of a finished run of the method; returns its folder and the rest."""
    for file in sorted(folder.glob("runs/*/config.json")):
        run = file.parent
        if json.loads(file.read_text())["method"] == method and (run / "done.json").exists():
            lines = (run / "epochs.jsonl").read_text().splitlines(keepends=True)
            (run / "epochs.jsonl").write_text("".join(lines[:epochs]))
            (run / "done.json").unlink()
            return run, lines[epochs:]
    raise ValueError(f"no finished run of {method} in {folder}")
