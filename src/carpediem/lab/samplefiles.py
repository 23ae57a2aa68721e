"""Writes what a run leaves about single samples: the files that `lab.samples` reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate

from carpediem.lab.atomic import write_whole
from carpediem.lab.drawing import comparable, plain_and_varied
from carpediem.lab.gallery import gallery_rows
from carpediem.lab.observer import record_of, trails_of
from carpediem.lab.records import RunRecord
from carpediem.lab.samples import GALLERY, SAMPLES, TRAILS, newest, read_trails, run_folder, write_record
from carpediem.lab.source import Source

SIDE = 48  # the most pixels that an image in the gallery is wide or high


def write_sample_files(folder: Path, state: dict[str, Any], data: Source) -> None:
    """Writes `samples.npz`, `gallery.npz` and `trails.npz` from the state of a run's observer."""
    label = data.train_labels.numpy()
    record, trails = record_of(state, data.classes, label), trails_of(state, data.classes, label)
    if data.train_files is not None:
        record = replace(record, path=np.array(data.train_files))
    write_record(folder / SAMPLES, record)
    write_record(folder / TRAILS, trails)
    rows = gallery_rows(record, trails.index.astype(np.int64))
    images = thumbnails(data.images_of(rows.tolist()))
    write_record(folder / GALLERY, replace(record.take(rows), images=images))


def copy_shown(records: Iterable[RunRecord], studies: Sequence[Path], out: Path) -> list[Path]:
    """Copies `gallery.npz` and `trails.npz` of one seed of each method to published results; returns the copies.

    Args:
        records: runs; of each method with the paper's options the first seed that has such files counts.
        studies: the folders that the runs come from.
        out: the folder of the published results.
    """
    copies = []
    for cells in comparable(records):
        for cell in plain_and_varied(cells)[0]:
            copied = ([run_folder(study, run.hash) for study in studies] for run in cell.runs)
            for place, _ in islice(filter(None, (newest(read_trails, places) for places in copied)), 1):
                for file in (place / name for name in (GALLERY, TRAILS)):
                    if file.is_file():
                        copies.append(run_folder(out, place.name) / file.name)
                        write_whole(copies[-1], file.read_bytes())
    return copies


def thumbnails(images: Tensor) -> NDArray[np.uint8]:
    """Images (n, c, h, w) made small, as (n, h, w, c).

    >>> thumbnails(torch.zeros(2, 3, 224, 224, dtype=torch.uint8)).shape
    (2, 48, 48, 3)
    >>> thumbnails(torch.zeros(2, 3, 200, 50, dtype=torch.uint8)).shape
    (2, 48, 12, 3)
    """
    sides = images.shape[-2:]
    if max(sides) > SIDE:
        size = [max(1, round(side * SIDE / max(sides))) for side in sides]
        images = interpolate(images.float(), size=size, mode="area").round().to(torch.uint8)
    return images.permute(0, 2, 3, 1).contiguous().numpy()
