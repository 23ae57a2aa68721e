"""Where a run's images come from: the whole set on the device, or a loader beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Protocol

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from carpediem.lab.augment import Normalisation, normalisation
from carpediem.lab.data import FolderData, ImageData

IGNORED = -100  # the label of images that only fill up a part
SHARE_OF_MEMORY = 0.5  # of a device that a data set may take


class Source(Protocol):
    """Training batches by index, and both sets in parts of one size for evaluation.

    Attributes:
        num_samples, num_tested, num_classes: sizes of the training set and the test set, number of classes.
        classes: the class names.
        train_labels: the label of every training sample, on the host.
        train_files: the file of every training sample, where they come from files.
        normalise: (b, c, h, w) on the 0..255 scale to what a network takes.
        is_resident: `fetch` only computes on the device, so that it may be recorded in a CUDA graph.
    """

    num_samples: int
    num_tested: int
    num_classes: int
    classes: tuple[str, ...]
    train_labels: Tensor
    train_files: tuple[str, ...] | None
    normalise: Normalisation
    is_resident: bool

    def for_one_run(self) -> Source:
        """The same data set, for a run that trains beside others on batches of its own."""

    def begin(self, batches: Tensor) -> None:
        """Announces the batches of an epoch, (steps, b): the next ones that will be fetched."""

    def fetch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Images (uint8) and labels of the next batch, on the device."""

    def parts(self, *, test: bool) -> Iterator[tuple[Tensor, Tensor]]:
        """The test or the training set in equal parts, the last filled up with images of label -100."""

    def images_of(self, indices: Sequence[int]) -> Tensor:
        """Training images (uint8), read without the device."""


class Resident:
    """The whole data set on a device, shared by all runs there."""

    is_resident = True

    def __init__(self, data: ImageData, normalise: Normalisation, device: torch.device) -> None:
        self.num_samples, self.num_tested = len(data.train_labels), len(data.test_labels)
        self.num_classes, self.normalise = data.num_classes, normalise
        self.classes, self.train_labels, self._train_images = (
            data.classes,
            data.train_labels,
            data.train_images,
        )
        self.train_files = data.train_files
        self.images, self.labels = data.train_images.to(device), data.train_labels.to(device)
        self._test = (data.test_images.to(device), data.test_labels.to(device))

    def for_one_run(self) -> Source:
        return self

    def begin(self, batches: Tensor) -> None:
        """Nothing to prepare."""

    def fetch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        return self.images[indices], self.labels[indices]

    def parts(self, *, test: bool) -> Iterator[tuple[Tensor, Tensor]]:
        images, labels = self._test if test else (self.images, self.labels)
        size = part_size(images.shape[-1])
        for start in range(0, len(labels), size):
            yield filled_up(
                images[start : start + size], labels[start : start + size], min(size, len(labels))
            )

    def images_of(self, indices: Sequence[int]) -> Tensor:
        return self._train_images[torch.tensor(indices)]


class Streamed:
    """A data set too large for the device, read by the workers of a DataLoader."""

    is_resident = False

    def __init__(
        self, data: ImageData | FolderData, normalise: Normalisation, device: torch.device, *, workers: int
    ) -> None:
        self._train, self._test = _datasets(data)
        self.num_samples, self.num_tested = len(self._train), len(self._test)
        self.num_classes, self.normalise = data.num_classes, normalise
        self.classes, self.train_labels = data.classes, self._train.labels
        self.train_files = data.train_files
        self._device, self._workers, self._image_size = device, workers, data.image_size
        self._coming: Iterator[list[Tensor]] = iter(())

    def for_one_run(self) -> Source:
        return copy(self)

    def begin(self, batches: Tensor) -> None:
        self._coming = iter(self._loader(self._train, batch_sampler=batches.tolist()))

    def fetch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        images, labels = next(self._coming)
        return self._placed(images), self._placed(labels)

    def parts(self, *, test: bool) -> Iterator[tuple[Tensor, Tensor]]:
        chosen = self._test if test else self._train
        size = min(part_size(self._image_size), len(chosen))
        places = list(range(len(chosen)))
        cut = [places[start : start + size] for start in range(0, len(places), size)]
        for images, labels in self._loader(chosen, batch_sampler=cut):
            yield filled_up(self._placed(images), self._placed(labels), size)

    def images_of(self, indices: Sequence[int]) -> Tensor:
        return torch.stack([self._train[index][0] for index in indices])

    def _loader(self, data: _Sized, batch_sampler: list[list[int]]) -> DataLoader[tuple[Tensor, int]]:
        return DataLoader(
            data,
            batch_sampler=batch_sampler,
            num_workers=self._workers,
            generator=torch.Generator(),  # else it takes a number from the global one
            pin_memory=self._device.type == "cuda",
        )

    def _placed(self, tensor: Tensor) -> Tensor:
        return tensor.to(self._device, non_blocking=True)


class _Sized(Dataset[tuple[Tensor, int]]):
    """Images and labels that lie in memory, one by one."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.images[index], int(self.labels[index])


def place(
    data: ImageData | FolderData, normalisation_name: str, device: torch.device, *, workers: int = 2
) -> Source:
    """The source of a data set: resident where it fits on the device beside the runs, else streamed."""
    normalise = normalisation(normalisation_name, device=device)
    if isinstance(data, ImageData) and _fits(data, device):
        return Resident(data, normalise, device)
    return Streamed(data, normalise, device, workers=workers)


def part_size(image_size: int) -> int:
    """How many images are evaluated at once: a thousand small ones, fewer large ones.

    >>> part_size(32), part_size(224)
    (1000, 83)
    """
    return max(min(1000, 2**22 // image_size**2), 1)


def filled_up(images: Tensor, labels: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The images and labels, filled up to `size` with an image that counts for nothing."""
    missing = size - len(labels)
    if missing == 0:
        return images, labels
    filler = labels.new_full((missing,), IGNORED)
    return torch.cat((images, images[:1].expand(missing, *images.shape[1:]))), torch.cat((labels, filler))


def _datasets(data: ImageData | FolderData) -> tuple[_Sized, _Sized]:
    if isinstance(data, ImageData):
        return _Sized(data.train_images, data.train_labels), _Sized(data.test_images, data.test_labels)
    return data.train, data.test  # type: ignore[return-value]


def _fits(data: ImageData, device: torch.device) -> bool:
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return data.train_images.nbytes + data.test_images.nbytes <= SHARE_OF_MEMORY * free
