"""What every systematic epoch must be."""

import numpy as np
import torch


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def assert_epoch(drawn, expected, batch_size):
    """Each sample as often as expected, rounded up or down, and no batch that holds one twice."""
    n = len(expected)
    assert drawn.dtype == torch.int64
    assert len(drawn) == n
    assert_distinct(drawn, batch_size)
    counts = torch.bincount(drawn, minlength=n).numpy()
    assert (counts >= np.floor(expected - 1e-9)).all()
    assert (counts <= np.ceil(expected + 1e-9)).all()


def assert_distinct(drawn, batch_size):
    for batch in drawn.split(batch_size):
        assert len(batch.unique()) == len(batch)
