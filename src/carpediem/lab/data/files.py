"""Sets that are image files on disk: listed first, then decoded into memory or one by one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import Dataset

from .dataset import ImageData
from .errors import DataError
from .images import Box, read_image

DEFAULT_IMAGE_SIZE = 224  # what networks trained on ImageNet take
FINE_TUNING_SIZE = 256  # of MIT-67's and FOOD-100's images in the paper
DEFAULT_MAX_BYTES = 4 * 2**30  # MIT-67 takes 1.3e9 at 256 pixels, FOOD-100 2.0e9


class ImageFile(NamedTuple):
    """One sample on disk, with the part of the picture it is about."""

    path: Path
    label: int
    box: Box | None = None


@dataclass(frozen=True)
class Listing:
    """The files of a set, nothing decoded yet.

    Args:
        root: the folder that all paths lie under.
        image_size: the side of the decoded images where no other is asked for.
        whole: whether images are resized as a whole, rather than their central square (`read_image`).
    """

    name: str
    root: Path
    train: tuple[ImageFile, ...]
    test: tuple[ImageFile, ...]
    classes: tuple[str, ...]
    image_size: int = DEFAULT_IMAGE_SIZE
    whole: bool = False

    @property
    def train_files(self) -> tuple[str, ...]:
        """The training images' paths under `root`."""
        names = (file.path.relative_to(self.root).as_posix() for file in self.train)
        return tuple(os.fsencode(name).decode(errors="backslashreplace") for name in names)

    def __post_init__(self) -> None:
        for part, files in (("training", self.train), ("test", self.test)):
            if not files:
                raise DataError(
                    f"{self.root} must hold {part} images, got none; add some, or make folders train and test in it"
                )
        absent = sorted(set(range(len(self.classes))) - {file.label for file in self.train})
        if absent:
            raise DataError(
                f"{self.root}: every class needs a training image, {self.classes[absent[0]]!r} has none"
            )


class FolderImages(Dataset[tuple[Tensor, int]]):
    """A map-style data set that decodes a file when it is asked for: (uint8 (3, size, size), label).

    Args:
        files: the samples, in order.
        image_size: the side to which `read_image` brings every image.
        whole: whether it resizes the image as a whole.
    """

    def __init__(self, files: Sequence[ImageFile], *, image_size: int, whole: bool = False) -> None:
        self.files = tuple(files)
        self.image_size, self.whole = image_size, whole
        self.labels = torch.tensor([file.label for file in self.files], dtype=torch.int64)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        file = self.files[index]
        image = read_image(file.path, size=self.image_size, whole=self.whole, box=file.box)
        return torch.from_numpy(image), file.label


@dataclass(frozen=True, eq=False)
class FolderData:
    """What `ImageData` is, for a set too large for memory: its two parts decode as they are read."""

    listing: Listing
    image_size: int

    @property
    def name(self) -> str:
        """What the set is called in messages and reports."""
        return self.listing.name

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, in the order of the labels."""
        return self.listing.classes

    @property
    def train_files(self) -> tuple[str, ...]:
        """The training images' paths under the folder of the set."""
        return self.listing.train_files

    @property
    def train(self) -> FolderImages:
        """The training set."""
        return FolderImages(self.listing.train, image_size=self.image_size, whole=self.listing.whole)

    @property
    def test(self) -> FolderImages:
        """The test set."""
        return FolderImages(self.listing.test, image_size=self.image_size, whole=self.listing.whole)

    @property
    def num_classes(self) -> int:
        """k, the number of classes."""
        return len(self.classes)

    @property
    def num_samples(self) -> int:
        """N, the number of training samples."""
        return len(self.listing.train)

    @property
    def in_channels(self) -> int:
        """Files are always decoded to RGB."""
        return 3

    def fingerprint(self) -> str:
        """16 hexadecimal digits of the file names, sizes, labels and boxes, and of how images are resized.

        Not of the pixels, which would mean to read the whole set.
        """
        # Only what is not the central square is named, so that the fingerprints of other sets stay as they were.
        resizing = (self.image_size, "whole") if self.listing.whole else (self.image_size,)
        digest = hashlib.sha256(repr((self.classes, *resizing)).encode())
        for part in (self.listing.train, self.listing.test):
            digest.update(b"part")
            for path, label, box in part:
                name = path.relative_to(self.listing.root).as_posix()
                digest.update(repr((name, path.stat().st_size, label, box)).encode())
        return digest.hexdigest()[:16]


def open_listing(
    listing: Listing, *, image_size: int | None = None, max_bytes: int = DEFAULT_MAX_BYTES
) -> ImageData | FolderData:
    """The set in memory if it takes at most `max_bytes` there, else the one that decodes as it is read."""
    size = listing.image_size if image_size is None else image_size
    if size < 1:
        raise ValueError(f"image_size must be at least 1, got {size}")
    if decoded_bytes(listing, size) > max_bytes:
        return FolderData(listing, size)
    return ImageData(
        name=listing.name,
        train_images=_decode(listing.train, size, whole=listing.whole),
        train_labels=torch.tensor([file.label for file in listing.train]),
        test_images=_decode(listing.test, size, whole=listing.whole),
        test_labels=torch.tensor([file.label for file in listing.test]),
        classes=listing.classes,
        train_files=listing.train_files,
    )


def decoded_bytes(listing: Listing, image_size: int) -> int:
    """What the decoded images take in memory."""
    return (len(listing.train) + len(listing.test)) * 3 * image_size**2


def _decode(files: Sequence[ImageFile], size: int, *, whole: bool) -> Tensor:
    """All images, shape (N, 3, size, size). Threads help, because Pillow decodes outside of the lock."""
    decoded = FolderImages(files, image_size=size, whole=whole)
    images = torch.empty(len(files), 3, size, size, dtype=torch.uint8)

    def fill(index: int) -> None:
        images[index], _ = decoded[index]

    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        for _ in pool.map(fill, range(len(files))):
            pass
    return images
