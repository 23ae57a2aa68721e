"""From a configuration to its selector."""

from __future__ import annotations

import torch

from carpediem import ActiveBias, OnlineBatch, RandomBatch, RecencyBias, Selector
from carpediem.lab.config import RunConfig


def build_selector(
    config: RunConfig, num_samples: int, num_classes: int, device: torch.device | str
) -> Selector:
    """The selector that a run draws with. A run that diverges goes on to its end: it is a result too."""
    size = (num_samples, num_classes, config.epochs(num_samples))
    if config.method == "random":
        return RandomBatch(*size, warm_up=config.warm_up, device=device, on_nonfinite="skip")
    if config.method == "online":
        return OnlineBatch(
            *size,
            pressure=config.pressure,
            schedule=config.schedule,
            warm_up=config.warm_up,
            losses="evaluate" if config.losses == "evaluate" else "observe",
            pressure_lag=config.pressure_lag,
            device=device,
            on_nonfinite="skip",
        )
    if config.method == "active":
        return ActiveBias(
            *size,
            smoothness=config.smoothness,
            warm_up=config.warm_up,
            mode="reweight" if config.mode == "reweight" else "sample",
            renewal="step" if config.renewal == "step" else "epoch",
            device=device,
            on_nonfinite="skip",
        )
    return RecencyBias(
        *size,
        window=config.window,
        pressure=config.pressure,
        schedule=config.schedule,
        warm_up=config.warm_up,
        window_start="zeros" if config.window_start == "zeros" else "empty",
        device=device,
        on_nonfinite="skip",
    )
