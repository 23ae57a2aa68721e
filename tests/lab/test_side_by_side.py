"""A run on a CUDA device gives the same numbers alone and beside others."""

import os

import pytest
import torch

from carpediem.lab.config import RunConfig
from carpediem.lab.data import ImageData
from carpediem.lab.network import Network
from carpediem.lab.recipes import recipe
from carpediem.lab.records import read_runs
from carpediem.lab.source import place
from carpediem.lab.wave import Wave

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

# Read when the first matrix product is made: without it the library may choose another algorithm on another stream.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

N, CLOCKS = 1280, ("seconds", "seconds_with_evaluation", "side_by_side")


def images():
    random = torch.Generator().manual_seed(0)
    made = torch.randint(0, 256, (N, 3, 32, 32), generator=random, dtype=torch.uint8)
    labels = made.float().mean((1, 2, 3)).argsort().argsort() * 10 // N  # something to learn: the brightness
    return ImageData("noise", made, labels, made[:500], labels[:500], tuple("0123456789"))


def configs(net):
    base = {
        **recipe("paper"),
        "recipe": "paper",
        "data": "noise",
        "data_fingerprint": "",
        "net": net,
        "net_fingerprint": "",
        "optimizer": "momentum",
        "precision": "bf16",
        "iterations": 40,
        "warm_up": 2,
        "window": 2,
    }
    methods = ("random", "online", "active", "recency")
    return [RunConfig.from_dict(base | {"seed": s, "method": m}) for s in range(2) for m in methods]


def trained(chosen, folder):
    """What the runs recorded, by hash, without the clocks."""
    source = place(images(), "per-image", torch.device("cuda"))
    network = Network(chosen[0], 10, 3, torch.device("cuda"))
    Wave(chosen, source, network, folder, on_epoch=lambda *_: None, complain=pytest.fail).train(len(chosen))
    return {
        run.hash: [{k: v for k, v in e.items() if k not in CLOCKS} for e in run.epochs]
        for run in read_runs(folder)
    }


@pytest.mark.parametrize("net", ["resnet-50", "densenet-40-12", "small-cnn"])
def test_a_run_gives_the_same_numbers_alone_and_beside_seven_others(net, tmp_path):
    before = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    try:
        together = trained(configs(net), tmp_path / "together")
        for config in configs(net)[3::4]:  # Recency Bias
            alone = trained([config], tmp_path / config.hash)
            assert alone[config.hash] == together[config.hash]
    finally:
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = before
    one, other = (together[config.hash] for config in configs(net)[3::4])
    assert one != other  # two seeds
