"""MNIST in the idx format it is published in: plain or gzipped."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .dataset import ImageData
from .errors import DataError

NAMES = {
    "train images": "train-images-idx3-ubyte",
    "train labels": "train-labels-idx1-ubyte",
    "test images": "t10k-images-idx3-ubyte",
    "test labels": "t10k-labels-idx1-ubyte",
}


def locate_mnist(root: Path) -> Path | None:
    """The folder under `root` with MNIST's files: `MNIST/raw`, `mnist` or `root` itself."""
    for folder in (root / "MNIST" / "raw", root / "mnist", root):
        if any(_with_suffix(folder, name) for name in NAMES.values()):
            return folder
    return None


def read_mnist(folder: Path) -> ImageData:
    """MNIST from its four files: 60,000 + 10,000 images as published, shape (N, 1, 28, 28)."""
    parts = {}
    for part, name in NAMES.items():
        path = _with_suffix(folder, name)
        if path is None:
            raise DataError(
                f"{folder / name} is missing, plain or .gz; get it with: carpediem data fetch mnist"
            )
        parts[part] = read_idx(path, dimensions=3 if part.endswith("images") else 1)
    return ImageData(
        name="mnist",
        train_images=parts["train images"].unsqueeze(1),
        train_labels=parts["train labels"].long(),
        test_images=parts["test images"].unsqueeze(1),
        test_labels=parts["test labels"].long(),
        classes=tuple("0123456789"),
    )


def read_idx(path: Path, *, dimensions: int) -> Tensor:
    """The uint8 array of one idx file: a magic number, the sizes in big-endian order, then the bytes."""
    blob = _bytes_of(path)
    head = 4 * (1 + dimensions)
    # 0x08 says "unsigned bytes", the last byte says how many dimensions.
    magic = 0x0800 + dimensions
    found = struct.unpack(">I", blob[:4])[0] if len(blob) >= head else None
    if found != magic:
        raise DataError(
            f"{path} must be an idx file of magic number {magic}, got {found}; remove it and fetch it again"
        )
    shape = struct.unpack(f">{dimensions}I", blob[4:head])
    if len(blob) - head != math.prod(shape):
        raise DataError(
            f"{path} announces {shape}, {math.prod(shape)} bytes, but holds {len(blob) - head}; "
            "remove it and fetch it again"
        )
    return torch.from_numpy(np.frombuffer(blob, dtype=np.uint8, offset=head).reshape(shape).copy())


def _bytes_of(path: Path) -> bytes:
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        with gzip.open(path) as file:
            return file.read()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is not a whole gzip file ({error}); remove it and fetch it again") from error


def _with_suffix(folder: Path, name: str) -> Path | None:
    """The plain file if it is there, else the gzipped one, else None."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    return None
