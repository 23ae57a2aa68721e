"""What a run left about single samples, read back.

A run's folder holds, beside its records (`lab.records`):

    samples.npz   `SampleRecord` of every training sample: `read_samples`
    gallery.npz   the same of at most a few hundred samples that are worth a look, with their images: `read_gallery`
    trails.npz    `Trails` of a few fixed samples through all epochs (Figure 2): `read_trails`

Each `read_...` takes the folder of the run (`run_folder(study, hash)`) and returns None where the file is not there:
runs of an earlier version have none of them, and published folders have only `gallery.npz` and `trails.npz`, of one
seed of each method. A damaged file raises `RecordError`, which names it. While a run trains, the files say how it was
some epochs ago; `epochs` says when.

Which samples are worth a look is said by `lab.gallery`: `most_uncertain`, `recently_changed`, `against_label`.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from carpediem.core.shapes import window_shapes
from carpediem.lab.atomic import write_whole
from carpediem.lab.records import RecordError

SAMPLES, GALLERY, TRAILS = "samples.npz", "gallery.npz", "trails.npz"

Integers = NDArray[np.integer[Any]]
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class SampleRecord:
    """n of a run's training samples, as they were after `epochs` epochs. All arrays have n rows.

    Args:
        epochs: finished epochs of the run at the time of writing.
        num_samples: N, how many training samples the run has: n, unless these are a part of them.
        classes: the class names; labels and predictions count them from 0.
        index: position in the training set.
        label: the class that the data set gives the sample.
        window: (n, q), the last q predictions in training, the newest in the last column, -1 in front where there
            were fewer.
        uncertainty: normalised entropy of the window (Eq. 6), in [0, 1]; 1 for a sample that was never drawn.
        majority: the label that the window holds most often, the newest of several; -1 for an empty window.
        agreement: share of the window that equals `label`; NaN for an empty window.
        times_drawn: how often the sample was in a mini-batch, over the whole run.
        last_change: the epoch (from 0) in which the prediction last differed from the one before; -1 if never.
        last_loss: the loss when the sample was drawn last; NaN if never.
        path: the image's file, under the folder of the data; None where the images do not come from files.
        images: (n, h, w, c), uint8, c = 1 or 3, at most 48 pixels a side; None in `samples.npz`.
    """

    epochs: int
    num_samples: int
    classes: tuple[str, ...]
    index: Integers
    label: Integers
    window: Integers
    uncertainty: Floats
    majority: Integers
    agreement: Floats
    times_drawn: Integers
    last_change: Integers
    last_loss: Floats
    path: NDArray[np.str_] | None = None
    images: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.index)

    def take(self, rows: Integers) -> SampleRecord:
        """The samples in these rows, in this order."""
        parts: dict[str, Any] = {
            field.name: value[rows]
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), np.ndarray)
        }
        return replace(self, **parts)


@dataclass(frozen=True, eq=False)
class Trails:
    """m samples through the epochs of a run; the same ones in every run on the same data.

    Args:
        classes: the class names.
        index, label: (m,), position in the training set, and class.
        prediction: (epochs, m), the last prediction of the epoch, -1 where the sample was not drawn in it.
        drawn: (epochs, m), how often it was drawn in the epoch.
        window: (epochs, m, q), its last q predictions after the epoch, the newest in the last column, -1 in front.
        uncertainty: (epochs, m), of that window (Eq. 6): what Recency Bias makes of the sample.
        deviation: (epochs, m), of the true label's probability over all draws so far (Eq. 2): what Active Bias makes
            of it.
    """

    classes: tuple[str, ...]
    index: Integers
    label: Integers
    prediction: Integers
    drawn: Integers
    window: Integers
    uncertainty: Floats
    deviation: Floats

    @property
    def epochs(self) -> int:
        """How many epochs the trails are long."""
        return len(self.prediction)


_Record = TypeVar("_Record", bound=SampleRecord | Trails)


def run_folder(study: str | Path, run: str) -> Path:
    """Where the files of a run lie, in the folder of a study or of published results."""
    return Path(study) / "runs" / run


def read_samples(folder: str | Path) -> SampleRecord | None:
    """Every training sample of the run in `folder`, or None where that was not written."""
    return _read(Path(folder) / SAMPLES, SampleRecord)


def read_gallery(folder: str | Path) -> SampleRecord | None:
    """The samples worth a look of the run in `folder`, with images, or None where that was not written."""
    return _read(Path(folder) / GALLERY, SampleRecord)


def read_trails(folder: str | Path) -> Trails | None:
    """A few samples through the epochs of the run in `folder`, or None where that was not written."""
    return _read(Path(folder) / TRAILS, Trails)


def newest(
    read: Callable[[Path], _Record | None],
    places: Iterable[Path],
    complain: Callable[[str], object] | None = None,
) -> tuple[Path, _Record] | None:
    """Of a run that lies in several places, the record of the most epochs, with its place; of equals the first.

    Args:
        read: one of the `read_...`.
        places: the run's folder in each study.
        complain: told of a damaged record, which is then passed over; without it, that is an error where no place has
            a whole one.
    """
    found: tuple[Path, _Record] | None = None
    damage: RecordError | None = None
    for place in places:
        try:
            record = read(place)
        except RecordError as error:
            damage = damage or error
            if complain is not None:
                complain(str(error))
            continue
        if record is not None and (found is None or record.epochs > found[1].epochs):
            found = place, record
    if found is None and damage is not None and complain is None:
        raise damage
    return found


def write_record(file: Path, record: SampleRecord | Trails) -> None:
    """Writes the file whole or leaves it as it was."""
    values: Mapping[str, Any] = {
        field.name: value for field in fields(record) if (value := getattr(record, field.name)) is not None
    }
    stream = io.BytesIO()
    np.savez_compressed(stream, **values)
    write_whole(file, stream.getvalue())


def sample_record(
    *,
    epochs: int,
    classes: tuple[str, ...],
    label: Integers,
    window: Integers,
    times_drawn: Integers,
    last_change: Integers,
    last_loss: Floats,
) -> SampleRecord:
    """The record of all training samples: what follows from their windows is computed here."""
    majority = majorities(window)
    filled = (window >= 0).sum(axis=1)
    with np.errstate(invalid="ignore"):
        agreement = (window == label[:, None]).sum(axis=1) / np.where(filled, filled, np.nan)
    return SampleRecord(
        epochs=epochs,
        num_samples=len(label),
        classes=classes,
        index=np.arange(len(label)),
        label=label.astype(np.int32),
        window=window,
        uncertainty=uncertainties(window, len(classes)).astype(np.float32),
        majority=majority,
        agreement=agreement.astype(np.float32),
        times_drawn=times_drawn,
        last_change=last_change,
        last_loss=last_loss,
    )


def uncertainties(window: Integers, num_classes: int) -> NDArray[np.float64]:
    """U of each row of predictions, free places being -1 (Eq. 6).

    >>> uncertainties(np.array([[-1, -1], [-1, 3], [3, 5]]), num_classes=4).tolist()
    [1.0, 0.0, 0.5]
    """
    shapes = window_shapes(window.shape[1])
    columns = np.ascontiguousarray(np.where(window < 0, num_classes + 1, window).T)
    level = np.empty(len(window), dtype=np.int64)
    shapes.levels(columns, (window >= 0).sum(axis=1), level)
    return shapes.uncertainties(num_classes)[level]


def majorities(window: Integers) -> NDArray[np.int32]:
    """The label that each row holds most often, the newest of several; -1 for an empty row.

    >>> majorities(np.array([[-1, -1, -1], [2, 2, 7], [-1, 2, 7]])).tolist()
    [-1, 2, 7]
    """
    most = np.full(len(window), -1, dtype=np.int32)
    best = np.zeros(len(window), dtype=np.int64)
    for column in window.T[::-1]:  # from the newest, which an older one must outnumber
        count = np.where(column >= 0, (window == column[:, None]).sum(axis=1), 0)
        ahead = count > best
        most[ahead], best[ahead] = column[ahead], count[ahead]
    return most


def _read(file: Path, kind: type[_Record]) -> _Record | None:
    try:
        content = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            values: dict[str, Any] = {
                field.name: stored[field.name] for field in fields(kind) if field.name in stored
            }
        values["classes"] = tuple(map(str, values["classes"]))
        for name in ("epochs", "num_samples"):
            if name in values:
                values[name] = int(values[name])
        return kind(**values)
    except (ValueError, KeyError, TypeError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        raise RecordError(f"{file} is damaged; delete it, and train its run again to have it back") from error
