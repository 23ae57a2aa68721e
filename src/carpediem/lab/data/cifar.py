"""CIFAR-10 and CIFAR-100 as published: binary or python version, unpacked or still in the archive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .dataset import ImageData
from .errors import DataError
from .pickles import read_pickled_dict
from .tarballs import read_members

_PIXELS = 3 * 32 * 32  # a row is the red plane, the green, the blue, each line by line
Arrays = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Form:
    """One published form of a set: where its files are and how its rows begin.

    `label_bytes` counts the labels before a binary row's pixels, of which the last is ours;
    0 means the pickled form, with its labels under `label_key`.
    """

    folder: str
    archive: str
    train: tuple[str, ...]
    test: str
    names: str
    names_key: str
    label_bytes: int = 0
    label_key: str = "labels"


_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
CIFAR10 = (
    Form(
        folder="cifar-10-batches-bin",
        archive="cifar-10-binary.tar.gz",
        train=tuple(f"{name}.bin" for name in _BATCHES),
        test="test_batch.bin",
        names="batches.meta.txt",
        names_key="",
        label_bytes=1,
    ),
    Form(
        folder="cifar-10-batches-py",
        archive="cifar-10-python.tar.gz",
        train=_BATCHES,
        test="test_batch",
        names="batches.meta",
        names_key="label_names",
    ),
)
CIFAR100 = (
    Form(
        folder="cifar-100-binary",
        archive="cifar-100-binary.tar.gz",
        train=("train.bin",),
        test="test.bin",
        names="fine_label_names.txt",
        names_key="",
        label_bytes=2,
    ),
    Form(
        folder="cifar-100-python",
        archive="cifar-100-python.tar.gz",
        train=("train",),
        test="test",
        names="meta",
        names_key="fine_label_names",
        label_key="fine_labels",
    ),
)


def locate_cifar(root: Path, forms: Sequence[Form]) -> Path | None:
    """The first of the published folders under `root`, or `root` if it is one, else the first archive."""
    for form in forms:
        for folder in (root / form.folder, root):
            if folder.name == form.folder and folder.is_dir():
                return folder
    for form in forms:
        if (root / form.archive).is_file():
            return root / form.archive
    return None


def read_cifar(path: Path, forms: Sequence[Form], *, name: str) -> ImageData:
    """CIFAR from a folder or archive that `locate_cifar` found: shape (N, 3, 32, 32), fine labels.

    The published sets have 50,000 + 10,000 images. A damaged file is told by its rows: every file of
    CIFAR-10 holds equally many, and CIFAR-100's training file five times its test file's.
    """
    form = next((form for form in forms if path.name in (form.folder, form.archive)), None)
    if form is None:
        raise ValueError(f"path must end in a published name such as {forms[0].folder}, got {path}")
    files = read_members(path, folder=form.folder) if path.is_file() else _read_folder(path, form)
    for needed in (*form.train, form.test, form.names):
        if needed not in files:
            raise DataError(f"{path / needed} is missing; remove {path} and run: carpediem data fetch {name}")
    classes = _class_names(files[form.names], form, path / form.names)
    parts = {
        file: _read_part(files[file], form, path / file, len(classes)) for file in (*form.train, form.test)
    }
    _check_rows(parts, form, path)
    return ImageData(
        name=name,
        train_images=_images([parts[file][0] for file in form.train]),
        train_labels=torch.from_numpy(np.concatenate([parts[file][1] for file in form.train])),
        test_images=_images([parts[form.test][0]]),
        test_labels=torch.from_numpy(parts[form.test][1]),
        classes=classes,
    )


def _read_folder(folder: Path, form: Form) -> dict[str, bytes]:
    wanted = (folder / name for name in (*form.train, form.test, form.names))
    return {path.name: path.read_bytes() for path in wanted if path.is_file()}


def _class_names(blob: bytes, form: Form, path: Path) -> tuple[str, ...]:
    if form.label_bytes:
        names = blob.decode("utf-8", errors="replace").split()
    else:
        listed = read_pickled_dict(blob, where=str(path)).get(form.names_key, [])
        names = [name.decode() if isinstance(name, bytes) else str(name) for name in listed]
    if not names:
        raise DataError(f"{path} must list the class names, got none; remove it and fetch it again")
    return tuple(names)


def _read_part(blob: bytes, form: Form, path: Path, classes: int) -> Arrays:
    """Pixels (n, 3072) uint8 and labels (n,) int64 of one file."""
    pixels, labels = _binary_rows(blob, form, path) if form.label_bytes else _pickled_rows(blob, form, path)
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(outside) > 0:
        row = int(outside[0])
        raise DataError(f"{path}: labels must lie in [0, {classes}), got {int(labels[row])} in row {row}")
    return pixels, labels


def _binary_rows(blob: bytes, form: Form, path: Path) -> Arrays:
    width = form.label_bytes + _PIXELS
    if len(blob) == 0 or len(blob) % width != 0:
        raise DataError(
            f"{path} must hold whole rows of {width} bytes, got {len(blob)} bytes; it is truncated: "
            "remove it and fetch it again"
        )
    rows = np.frombuffer(blob, dtype=np.uint8).reshape(-1, width)
    return rows[:, form.label_bytes :], rows[:, form.label_bytes - 1].astype(np.int64)


def _pickled_rows(blob: bytes, form: Form, path: Path) -> Arrays:
    found = read_pickled_dict(blob, where=str(path))
    pixels, labels = found.get("data"), found.get(form.label_key)
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (_PIXELS,):
        raise DataError(
            f"{path} must hold 'data', a uint8 array of shape (n, {_PIXELS}); remove it and fetch it again"
        )
    whole = isinstance(labels, list) and all(isinstance(n, int) and abs(n) < 2**31 for n in labels)
    if not whole or len(labels or ()) != len(pixels):
        raise DataError(
            f"{path} must hold {form.label_key!r}, a list of {len(pixels)} whole numbers; "
            "remove it and fetch it again"
        )
    return pixels, np.array(labels, dtype=np.int64)


def _check_rows(parts: dict[str, Arrays], form: Form, path: Path) -> None:
    test = len(parts[form.test][1])
    expected = test if len(form.train) == 5 else 5 * test
    for file in form.train:
        rows = len(parts[file][1])
        if rows != expected:
            raise DataError(
                f"{path / file} must hold {expected} rows beside the {test} of {form.test}, got {rows}; "
                "one of the two is truncated: remove both and fetch them again"
            )


def _images(parts: list[npt.NDArray[np.uint8]]) -> Tensor:
    return torch.from_numpy(np.concatenate(parts).reshape(-1, 3, 32, 32))
