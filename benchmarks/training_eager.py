"""The usual training program, to compare the lab's engine with: a module, an optimizer, a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from carpediem.lab import networks
from carpediem.lab.augment import augmentation
from carpediem.lab.config import RunConfig
from carpediem.lab.data import ImageData
from carpediem.lab.source import Resident

WORKERS = 8


def from_loader(data: ImageData, batch: int, device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of a shuffling DataLoader with workers, for ever."""
    pairs = TensorDataset(data.train_images, data.train_labels)
    loader = DataLoader(
        pairs,
        batch,
        shuffle=True,
        num_workers=WORKERS,
        pin_memory=True,
        drop_last=True,
        persistent_workers=True,
    )
    while True:
        for images, labels in loader:
            yield images.to(device, non_blocking=True), labels.to(device, non_blocking=True)


def from_device(source: Resident, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of the data set on the device, for ever."""
    while True:
        order = torch.randperm(source.num_samples, device=source.labels.device)
        for indices in order.split(batch):
            if len(indices) == batch:
                yield source.fetch(indices)


def eager_step(
    config: RunConfig, source: Resident, batches: Iterator[tuple[Tensor, Tensor]], *, autocast: bool
) -> Callable[[], None]:
    """One training step of the recipe as most programs write it."""
    device = source.labels.device
    net = networks.build(
        config.net, num_classes=source.num_classes, in_channels=3, dropout=config.dropout
    ).to(device)
    optimizer = torch.optim.SGD(
        net.parameters(),
        lr=config.learning_rate,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
        nesterov=config.nesterov,
    )
    augment = augmentation(config.augmentation)

    def step() -> None:
        pixels, labels = next(batches)
        images = source.normalise(augment(pixels, None))
        with torch.autocast(device.type, torch.bfloat16) if autocast else nullcontext():
            loss = cross_entropy(net(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
