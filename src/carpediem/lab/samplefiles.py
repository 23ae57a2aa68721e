"""Writes what a run leaves about single samples: the files that `lab.samples` reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate

from carpediem.lab.gallery import gallery_rows
from carpediem.lab.observer import record_of, trails_of
from carpediem.lab.samples import GALLERY, SAMPLES, TRAILS, write_record
from carpediem.lab.source import Source

SIDE = 48  # the most pixels that an image in the gallery is wide


def write_sample_files(folder: Path, state: dict[str, Any], data: Source) -> None:
    """Writes `samples.npz`, `gallery.npz` and `trails.npz` from the state of a run's observer."""
    label = data.train_labels.numpy()
    record, trails = record_of(state, data.classes, label), trails_of(state, data.classes, label)
    write_record(folder / SAMPLES, record)
    write_record(folder / TRAILS, trails)
    rows = gallery_rows(record, trails.index.astype(np.int64))
    images = thumbnails(data.images_of(rows.tolist()))
    write_record(folder / GALLERY, replace(record.take(rows), images=images))


def thumbnails(images: Tensor) -> NDArray[np.uint8]:
    """Images (n, c, h, w) made small, as (n, h, w, c).

    >>> thumbnails(torch.zeros(2, 3, 224, 224, dtype=torch.uint8)).shape
    (2, 48, 48, 3)
    """
    if images.shape[-1] > SIDE:
        images = interpolate(images.float(), size=(SIDE, SIDE), mode="area").round().to(torch.uint8)
    return images.permute(0, 2, 3, 1).contiguous().numpy()
