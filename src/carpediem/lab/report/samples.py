"""What the page shows of single samples: the gallery, and their way through the epochs."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from carpediem.lab.figure_data import telling_trails
from carpediem.lab.gallery import KINDS
from carpediem.lab.records import RunRecord
from carpediem.lab.results import Cell
from carpediem.lab.samples import SampleRecord, Trails, newest, read_gallery, read_trails, run_folder

from .curves import lines
from .numbers import short, shorts

_Read = TypeVar("_Read", bound=SampleRecord | Trails)
_CHOSEN = 4  # samples whose way is drawn until the reader chooses others


def galleries(folders: Sequence[Path], cells: Sequence[Cell], damage: list[str]) -> dict[str, Any]:
    """The samples worth a look, of one run a method, with each image once.

    Args:
        damage: takes a sentence on each file that cannot be read.
    """
    runs = []
    classes: tuple[str, ...] = ()
    images: dict[int, str] = {}
    for line, run, record in _one_each(folders, cells, read_gallery, damage):
        classes = record.classes
        for row, index in enumerate(record.index.tolist()):
            if record.images is not None and index not in images:
                images[index] = _png(record.images[row])
        runs.append(line | {"seed": run.config["seed"]} | _gallery(record))
    if not runs:
        return {"missing": _missing("which samples are worth a look")}
    return {"classes": list(classes), "images": images, "runs": runs}


def strips(folders: Sequence[Path], cells: Sequence[Cell], damage: list[str]) -> dict[str, Any]:
    """A few samples through the epochs of one run a method (Figure 2); `damage` as for `galleries`."""
    runs = []
    classes: tuple[str, ...] = ()
    for line, run, trails in _one_each(folders, cells, read_trails, damage):
        if trails.epochs:
            classes = trails.classes
            runs.append(line | {"seed": run.config["seed"]} | _trails(trails))
    if not runs:
        return {"missing": _missing("what single samples were predicted to be")}
    return {"classes": list(classes), "runs": runs}


def _missing(what: str) -> str:
    return (
        f"No record of {what} lies beside these runs; runs that are trained with this version write one, "
        "and carpediem publish keeps that of one seed of each method."
    )


def _one_each(
    folders: Sequence[Path], cells: Sequence[Cell], read: Callable[[Path], _Read | None], damage: list[str]
) -> list[tuple[dict[str, Any], RunRecord, _Read]]:
    """Of each cell, the first run with such a file, finished runs first."""
    found: list[tuple[dict[str, Any], RunRecord, _Read]] = []
    for line, cell in zip(lines(cells), cells, strict=True):
        for run in (*cell.runs, *cell.unfinished):
            there = newest(read, [run_folder(folder, run.hash) for folder in folders], damage.append)
            if there is not None:
                found.append((line, run, there[1]))
                break
    return found


def _gallery(record: SampleRecord) -> dict[str, Any]:
    return {
        "epochs": record.epochs,
        "samples": [
            {
                "index": int(record.index[row]),
                "label": int(record.label[row]),
                "window": record.window[row].tolist(),
                "uncertainty": short(float(record.uncertainty[row]), 3),
                "majority": int(record.majority[row]),
                "agreement": short(float(record.agreement[row]), 3),
                "drawn": int(record.times_drawn[row]),
                "changed": int(record.last_change[row]),
                "loss": short(float(record.last_loss[row]), 3),
            }
            for row in range(len(record))
        ],
        "kinds": {kind: choose(record).tolist() for kind, choose in KINDS.items()},
    }


def _trails(trails: Trails) -> dict[str, Any]:
    return {
        "epochs": trails.epochs,
        "chosen": telling_trails(trails, _CHOSEN).tolist(),
        "samples": [
            {
                "index": int(trails.index[column]),
                "label": int(trails.label[column]),
                "prediction": trails.prediction[:, column].tolist(),
                "drawn": trails.drawn[:, column].tolist(),
                "uncertainty": shorts(trails.uncertainty[:, column].tolist(), 3),
                "deviation": shorts(trails.deviation[:, column].tolist(), 3),
            }
            for column in range(len(trails.index))
        ],
    }


def _png(image: np.ndarray[Any, np.dtype[np.uint8]]) -> str:
    """An image (h, w, c) as an address that holds it."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image).save(stream, "png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()
