"""Adaptive batch selection for PyTorch: draw the samples your network is uncertain about at the moment."""

from carpediem.core.distribution import Distribution, Levels, Uniform, Weights
from carpediem.core.history import LabelHistory
from carpediem.dataset import Indexed
from carpediem.record import Record
from carpediem.sampler import AdaptiveSampler
from carpediem.selectors import ActiveBias, OnlineBatch, RandomBatch, RecencyBias, Selector, WeightedBatch

__version__ = "0.1.0"

__all__ = [
    "ActiveBias",
    "AdaptiveSampler",
    "Distribution",
    "Indexed",
    "LabelHistory",
    "Levels",
    "OnlineBatch",
    "RandomBatch",
    "RecencyBias",
    "Record",
    "Selector",
    "Uniform",
    "WeightedBatch",
    "Weights",
]
