"""The sets that have a name, with where each is found and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .cifar import CIFAR10, CIFAR100, Form, locate_cifar, read_cifar
from .dataset import ImageData
from .digits import read_digits
from .fetch import DOWNLOADS
from .files import Listing
from .folders import list_folder
from .food100 import list_food100, locate_food100
from .mit67 import list_mit67, locate_mit67
from .mnist import locate_mnist, read_mnist


@dataclass(frozen=True)
class Source:
    """A named set.

    Args:
        expected: the files it consists of, in words.
        locate: from a data folder to the set in it, or None; a set without `locate` is always there.
        read: from what `locate` found to the set, or to the listing of its files.
    """

    name: str
    expected: str
    locate: Callable[[Path], Path | None] | None
    read: Callable[[Path], ImageData | Listing]

    @property
    def downloadable(self) -> bool:
        """Whether `fetch` gets it."""
        return self.name in DOWNLOADS


def _cifar(name: str, forms: tuple[Form, ...]) -> Source:
    return Source(
        name=name,
        expected=f"{' or '.join(form.folder for form in forms)}, or the published .tar.gz",
        locate=partial(locate_cifar, forms=forms),
        read=partial(read_cifar, forms=forms, name=name),
    )


def _locate_flowers(root: Path) -> Path | None:
    for folder in (root / "flowers-102", root):
        if folder.name == "flowers-102" and folder.is_dir():
            return folder
    return None


_ALL = (
    Source("digits", "comes with scikit-learn", None, lambda _: read_digits()),
    Source("mnist", "four idx files, plain or .gz, in MNIST/raw", locate_mnist, read_mnist),
    _cifar("cifar10", CIFAR10),
    _cifar("cifar100", CIFAR100),
    Source("mit67", "Images with TrainImages.txt and TestImages.txt", locate_mit67, list_mit67),
    Source("food100", "UECFOOD100 with category.txt and the folders 1 to 100", locate_food100, list_food100),
    Source(
        "flowers-102",
        "flowers-102 with train/CLASS and test/CLASS, as in Udacity's image-classifier course",
        _locate_flowers,
        partial(list_folder, name="flowers-102"),
    ),
)
SOURCES = {source.name: source for source in _ALL}
