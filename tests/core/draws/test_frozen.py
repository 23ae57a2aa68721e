"""Streams that no change of the code may move: digests of what version 0.1 drew."""

import hashlib

import numpy as np
import pytest
import torch

from carpediem import AdaptiveSampler, Levels, RandomBatch, Uniform, Weights


def uniform(n):
    return Uniform(n)


def levels(n):
    return Levels((torch.arange(n) * 7919 % 31 % 5).to(torch.uint8), np.array([1.0, 0.5, 0.0, 0.125, 3.0]))


def weights(n):
    return Weights((torch.arange(n, dtype=torch.float64) * 2654435761 % 1009) / 64)


def few(n):
    """A hundredth of the samples has nearly all the mass, so that most batches are completed by a race."""
    return Weights(torch.where(torch.arange(n) % 100 == 3, 1.0, 2.0**-40))


class Given(RandomBatch):
    def __init__(self, distribution):
        super().__init__(distribution.num_samples, epochs=9)
        self.given = distribution

    def build(self, epoch):
        return self.given


def digest(make, n, batch_size, draws, *, seed=0, epoch=0, position=0, rank=0, world_size=1):
    place = {"rank": rank, "world_size": world_size}
    sampler = AdaptiveSampler(Given(make(n)), batch_size=batch_size, seed=seed, draws=draws, **place)
    sampler.set_epoch(epoch)
    if position:
        sampler.selector.refresh(epoch)
        sampler.load_state_dict(sampler.state_dict(position))
    drawn = sampler.next_epoch()
    assert drawn.dtype == torch.int64
    return hashlib.sha256(drawn.numpy().tobytes()).hexdigest()[:12]


FROZEN = [
    (uniform, 1, 1, "independent", {}, "af5570f5a181"),
    (uniform, 257, 7, "independent", {"seed": 3}, "26a4da8dc970"),
    (uniform, 1000, 128, "independent", {"seed": 1099511627776, "epoch": 2}, "e50b645ce9cf"),
    (uniform, 50000, 128, "independent", {"epoch": 1}, "0a4d2748c1e7"),
    (uniform, 50000, 4096, "independent", {"seed": 5}, "211ae2e3eaa1"),
    (uniform, 30001, 100, "independent", {"seed": 1, "epoch": 4, "position": 7300}, "718e47ba515d"),
    (uniform, 30001, 100, "independent", {"seed": 1, "position": 30000}, "086eb63c5d86"),
    (uniform, 30003, 100, "independent", {"seed": 1, "rank": 3, "world_size": 4}, "86c5fd96cf26"),
    (uniform, 70000, 33, "independent", {"rank": 1, "world_size": 3, "position": 23100}, "b22b18b12a94"),
    (uniform, 2000, 300, "independent", {"seed": 9}, "9e1d93f8c5ba"),
    (levels, 1, 1, "independent", {}, "af5570f5a181"),
    (levels, 257, 7, "independent", {"seed": 3}, "e1002e3f346b"),
    (levels, 1000, 128, "independent", {"seed": 1099511627776, "epoch": 2}, "e6f5c9d0204e"),
    (levels, 50000, 128, "independent", {"epoch": 1}, "48680ff453b4"),
    (levels, 50000, 4096, "independent", {"seed": 5}, "9be2db9bf25e"),
    (levels, 30001, 100, "independent", {"seed": 1, "epoch": 4, "position": 7300}, "c85151f13a1b"),
    (levels, 30001, 100, "independent", {"seed": 1, "position": 30000}, "abc147d72388"),
    (levels, 30003, 100, "independent", {"seed": 1, "rank": 3, "world_size": 4}, "9cbee285233b"),
    (levels, 70000, 33, "independent", {"rank": 1, "world_size": 3, "position": 23100}, "5ee809fb9f77"),
    (levels, 2000, 300, "independent", {"seed": 9}, "82286cb9449d"),
    (weights, 257, 7, "independent", {"seed": 3}, "433427ed2350"),
    (weights, 1000, 128, "independent", {"seed": 1099511627776, "epoch": 2}, "fbd8c2cc8cd8"),
    (weights, 50000, 128, "independent", {"epoch": 1}, "8d903e7ebcde"),
    (weights, 50000, 4096, "independent", {"seed": 5}, "cb01708a8f53"),
    (weights, 30001, 100, "independent", {"seed": 1, "epoch": 4, "position": 7300}, "2ac7385eb4d2"),
    (weights, 30001, 100, "independent", {"seed": 1, "position": 30000}, "96c0d67a760f"),
    (weights, 30003, 100, "independent", {"seed": 1, "rank": 3, "world_size": 4}, "870bb8b642a3"),
    (weights, 70000, 33, "independent", {"rank": 1, "world_size": 3, "position": 23100}, "ac2da265e82e"),
    (weights, 2000, 300, "independent", {"seed": 9}, "211888c608b1"),
    (few, 20000, 128, "independent", {"seed": 1}, "a5bf3daa5d25"),
    (few, 2000, 128, "independent", {"seed": 1}, "7a5063e01caf"),
    (uniform, 1, 1, "systematic", {}, "af5570f5a181"),
    (uniform, 257, 7, "systematic", {"seed": 3}, "e957fcd4cdd5"),
    (uniform, 50000, 128, "systematic", {"seed": 1099511627776, "epoch": 2}, "e0aff51290f2"),
    (uniform, 50000, 4096, "systematic", {"epoch": 1}, "e44776126baf"),
    (uniform, 30001, 100, "systematic", {"seed": 1, "epoch": 4, "position": 7300}, "9b1b71f0f064"),
    (uniform, 30003, 100, "systematic", {"seed": 1, "rank": 3, "world_size": 4}, "d4974d2530ec"),
    (uniform, 1048575, 128, "systematic", {}, "0e1704cb4ec3"),
    (uniform, 1048576, 128, "systematic", {"seed": 1}, "b1acc39dbb4e"),
    (uniform, 1048568, 4095, "systematic", {}, "e84d1d3e9a4c"),
    (uniform, 1048576, 5000, "systematic", {}, "b722f1c40e8d"),
    (uniform, 1048576, 4096, "systematic", {"epoch": 3}, "295e4b34fcc2"),
    (uniform, 2500001, 128, "systematic", {"seed": 4}, "36d950b655ae"),
    (uniform, 2500001, 128, "systematic", {"seed": 4, "position": 1500032}, "55781416852c"),
    (
        uniform,
        2500001,
        96,
        "systematic",
        {"seed": 4, "rank": 1, "world_size": 3, "position": 1056000},
        "01a8d126f439",
    ),
]


@pytest.mark.parametrize(
    ("make", "n", "batch_size", "draws", "where", "wanted"),
    FROZEN,
    ids=lambda value: getattr(value, "__name__", None) or str(value),
)
def test_the_stream_is_that_of_version_0_1(make, n, batch_size, draws, where, wanted):
    assert digest(make, n, batch_size, draws, **where) == wanted
