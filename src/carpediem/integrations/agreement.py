"""What a selector and the trainer of a framework must agree on."""

from __future__ import annotations

import math
import warnings
from typing import Any

from carpediem import RandomBatch, Selector, WeightedBatch


def refuse_another_length(selector: Selector, dataset: Any) -> None:
    """Refuse a selector of another number of samples than the data set has."""
    if len(dataset) != selector.num_samples:
        raise ValueError(
            f"the selector's num_samples must be the length of the data set = {len(dataset)}, got "
            f"{selector.num_samples}; build the selector with num_samples={len(dataset)}"
        )


def check_epochs(selector: Selector, name: str, epochs: float, *, aloud: bool = True) -> None:
    """Refuse a training of more epochs than the selector was built for, and warn of one of fewer.

    Args:
        selector: one that may know its epochs.
        name: what the framework calls its number of epochs.
        epochs: that number; the last one may be trained in part.
        aloud: whether this process is the one that warns.
    """
    known, trained = selector.epochs, math.ceil(epochs)
    if known is None or trained == known:
        return
    remedy = f"build the selector with epochs={trained}"
    if trained > known:
        raise ValueError(f"{name} must be at most the selector's epochs = {known}, got {epochs:g}; {remedy}")
    if aloud and not isinstance(selector, (RandomBatch, WeightedBatch)):  # in which nothing decays
        warnings.warn(
            f"{name} is {epochs:g}, fewer than the selector's epochs = {known}, so that a pressure which decays over "
            f"them stops short of its end; {remedy}, unless training goes on from there later",
            stacklevel=3,
        )
