"""The lab's data: sets with a name, folders of images, and the user's own functions."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from carpediem.lab.usercode import is_spec

from .custom import read_custom
from .dataset import ImageData
from .errors import DataError, DataNotFoundError, FetchError
from .fetch import DOWNLOADS, fetch
from .files import DEFAULT_MAX_BYTES, FolderData, FolderImages, Listing, open_listing
from .find import find_data, places
from .folders import list_folder
from .registry import SOURCES
from .resize import resized
from .weights import find_weights, normalisation_of_weights

__all__ = [
    "DEFAULT_MAX_BYTES",
    "DOWNLOADS",
    "SOURCES",
    "Availability",
    "DataError",
    "DataNotFoundError",
    "FetchError",
    "FolderData",
    "FolderImages",
    "ImageData",
    "available",
    "fetch",
    "find_weights",
    "load",
    "normalisation_of_weights",
    "open_data",
    "places",
    "plain_name",
]


def load(name: str, data_dir: Path | None = None, *, image_size: int | None = None) -> ImageData:
    """A whole set in memory.

    Args:
        name: a registered name (`SOURCES`), the path of a folder of images (write `./digits` for a folder
            that is called like a registered set), or `module:function` (`custom.read_custom`).
        data_dir: where named sets are looked for; else CARPEDIEM_DATA, else the user's cache folder.
        image_size: the side of the images in pixels. Without it, image files are decoded at 224 pixels, those of
            `mit67` and `food100` at 256, and the other sets keep their own size.

    >>> data = load("digits")
    >>> len(data.train_images), len(data.test_images), data.num_classes
    (898, 899, 10)
    """
    data = open_data(name, data_dir, image_size=image_size)
    if isinstance(data, FolderData):
        raise DataError(
            f"{data.listing.root} takes more than {DEFAULT_MAX_BYTES} bytes in memory at {data.image_size} "
            "pixels; pass a smaller image_size, or read it piece by piece with carpediem.lab.data.open_data"
        )
    return data


def open_data(
    name: str,
    data_dir: Path | None = None,
    *,
    image_size: int | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> ImageData | FolderData:
    """What `load` returns or, for image files that would take more than `max_bytes` decoded, a `FolderData`.

    The latter decodes its images one by one, as a `DataLoader` asks for them.
    """
    found = _read(str(name), data_dir)
    if isinstance(found, Listing):
        return open_listing(found, image_size=image_size, max_bytes=max_bytes)
    return resized(found, image_size)


def plain_name(name: str) -> str:
    """The name without what makes no difference to it, so that `photos` and `./photos/` are one data set.

    >>> plain_name("./photos/"), plain_name("cifar10"), plain_name("./digits/")
    ('photos', 'cifar10', './digits')
    """
    if name in SOURCES or is_spec(name):
        return name
    plain = os.path.normpath(name)
    return f".{os.sep}{plain}" if plain in SOURCES else plain


def _read(name: str, data_dir: Path | None) -> ImageData | Listing:
    source = SOURCES.get(name)
    if source is not None:
        if source.locate is None:
            return source.read(Path())
        expected, downloadable = source.expected, source.downloadable
        path = find_data(name, source.locate, expected=expected, downloadable=downloadable, data_dir=data_dir)
        return source.read(path)
    folder = Path(name).expanduser()
    if folder.is_dir():
        return list_folder(folder)
    if is_spec(name):
        return read_custom(name)
    raise DataNotFoundError(
        f"data must be one of {', '.join(SOURCES)}, an existing folder of images, or module:function, got {name!r}"
    )


@dataclass(frozen=True)
class Availability:
    """Whether a named set is there: what a line of `carpediem data ls` says."""

    name: str
    present: bool
    path: Path | None
    expected: str
    downloadable: bool


def available(data_dir: Path | None = None) -> list[Availability]:
    """Every named set, with where it was found. `path` is None for a set that is absent or needs no files.

    >>> [record.name for record in available(Path("no/such/folder")) if record.present]
    ['digits']
    """
    records = []
    for source in SOURCES.values():
        path = None
        if source.locate is not None:
            path = next((found for folder in places(data_dir) if (found := source.locate(folder))), None)
        present = path is not None or (source.locate is None and find_spec("sklearn") is not None)
        records.append(Availability(source.name, present, path, source.expected, source.downloadable))
    return records
