"""`ImageData`: a whole image classification set, in memory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from .errors import DataError


@dataclass(frozen=True, eq=False)
class ImageData:
    """A training and a test set of square images, checked when it is built.

    Args:
        name: what the set is called in messages and reports.
        train_images: uint8, shape (N, c, h, w) with h = w.
        train_labels: int64, shape (N,), in [0, k); every class occurs at least once.
        test_images: uint8, shape (M, c, h, w), the same c, h and w.
        test_labels: int64, shape (M,), in [0, k).
        classes: the k class names, in the order of the labels.
        train_files: N names of files, where the training images come from some.

    >>> images = torch.zeros(4, 1, 8, 8, dtype=torch.uint8)
    >>> labels = torch.tensor([0, 1, 0, 1])
    >>> data = ImageData("toy", images, labels, images, labels, classes=("cat", "dog"))
    >>> data.num_classes, data.in_channels, data.image_size
    (2, 1, 8)
    """

    name: str
    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor
    classes: tuple[str, ...]
    train_files: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _check_part(self.name, "train", self.train_images, self.train_labels, self.classes)
        _check_part(self.name, "test", self.test_images, self.test_labels, self.classes)
        if self.train_files is not None and len(self.train_files) != len(self.train_labels):
            raise DataError(
                f"{self.name}: train_files must be as many as the {len(self.train_labels)} training images, got "
                f"{len(self.train_files)}"
            )
        train, test = tuple(self.train_images.shape[1:]), tuple(self.test_images.shape[1:])
        if train != test:
            raise DataError(f"{self.name}: train and test images must have one shape, got {train} and {test}")
        counts = torch.bincount(self.train_labels, minlength=len(self.classes))
        absent = [self.classes[i] for i in torch.nonzero(counts == 0).flatten().tolist()]
        if absent:
            raise DataError(
                f"{self.name}: every class needs a training sample, none of {_some(absent)}; labels count from 0"
            )

    @property
    def num_classes(self) -> int:
        """k, the number of classes."""
        return len(self.classes)

    @property
    def num_samples(self) -> int:
        """N, the number of training samples."""
        return len(self.train_labels)

    @property
    def in_channels(self) -> int:
        """c, the number of colour channels: 1 or 3 in the sets of the lab."""
        return self.train_images.shape[1]

    @property
    def image_size(self) -> int:
        """The side of the square images, in pixels."""
        return self.train_images.shape[2]

    def fingerprint(self) -> str:
        """16 hexadecimal digits that change when any pixel, label or class name does.

        It goes into the hash that names a run, so that results on different data never mix.
        """
        return self._digest

    @cached_property
    def _digest(self) -> str:
        digest = hashlib.sha256(repr(self.classes).encode())
        for part in (self.train_images, self.train_labels, self.test_images, self.test_labels):
            digest.update(repr(tuple(part.shape)).encode())
            digest.update(part.contiguous().cpu().numpy().data)
        return digest.hexdigest()[:16]


def _check_part(name: str, part: str, images: Tensor, labels: Tensor, classes: tuple[str, ...]) -> None:
    """Refuse images or labels of a wrong kind, shape, number or range."""
    if images.dtype != torch.uint8:
        raise DataError(
            f"{name}: {part}_images must be uint8 with values from 0 to 255, got {images.dtype}; "
            "scale and round them first"
        )
    if images.ndim != 4 or images.shape[2] != images.shape[3]:
        raise DataError(
            f"{name}: {part}_images must be square, of shape (N, channels, side, side), "
            f"got {tuple(images.shape)}"
        )
    if labels.dtype != torch.int64 or labels.ndim != 1:
        raise DataError(
            f"{name}: {part}_labels must be int64 of shape (N,), "
            f"got {labels.dtype} of shape {tuple(labels.shape)}"
        )
    if len(images) != len(labels):
        raise DataError(f"{name}: {part} has {len(images)} images but {len(labels)} labels")
    if len(images) == 0:
        raise DataError(f"{name}: {part} must hold at least one image, got none")
    outside = torch.nonzero((labels < 0) | (labels >= len(classes))).flatten()
    if len(outside) > 0:
        first = int(outside[0])
        raise DataError(
            f"{name}: {part}_labels must lie in [0, {len(classes)}), "
            f"got {int(labels[first])} at index {first}"
        )


def _some(names: list[str]) -> str:
    """The first few of `names`, and how many more there are."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(repr(name) for name in names[:5]) + more
