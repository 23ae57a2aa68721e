"""MIT-67, indoor scenes (Quattoni and Torralba, 2009), with its authors' split."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from .errors import DataError
from .files import FINE_TUNING_SIZE, ImageFile, Listing

TRAIN, TEST = "TrainImages.txt", "TestImages.txt"


def locate_mit67(root: Path) -> Path | None:
    """The folder that holds `Images`: `root`, `root/mit67` or, as unpacked, `root/indoorCVPR_09`.

    The two lists are downloads of their own, and so may lie in that folder or in the one above.
    """
    for folder in (root / "mit67", root / "indoorCVPR_09", root / "mit67" / "indoorCVPR_09", root):
        if (folder / "Images").is_dir() and _list_path(folder, TRAIN) is not None:
            return folder
    return None


def list_mit67(folder: Path) -> Listing:
    """The images that `TrainImages.txt` and `TestImages.txt` name: 5,360 and 1,340 as published.

    The set has 15,620 images; its authors, and the paper, use about 80 + 20 of each of the 67 classes. They are
    resized as a whole, as the paper does, to 256×256 where no other size is asked for.
    """
    train, test = (_read_list(folder, name) for name in (TRAIN, TEST))
    classes = tuple(sorted({entry.parts[0] for entry in train}))
    label = {name: number for number, name in enumerate(classes)}
    for entry in test:
        if entry.parts[0] not in label:
            raise DataError(f"{_list_path(folder, TEST)}: {entry} is of a class that {TRAIN} does not name")
    parts = [
        tuple(ImageFile(folder / "Images" / entry, label[entry.parts[0]]) for entry in entries)
        for entries in (train, test)
    ]
    return Listing(
        name="mit67",
        root=folder,
        train=parts[0],
        test=parts[1],
        classes=classes,
        image_size=FINE_TUNING_SIZE,
        whole=True,
    )


def _read_list(folder: Path, name: str) -> list[PurePosixPath]:
    """The entries CLASS/image.jpg of one list, each an existing file."""
    path = _list_path(folder, name)
    if path is None:
        raise DataError(f"{folder / name} is missing; put the published list there")
    entries = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        if not line.strip():
            continue
        entry = PurePosixPath(line.strip())
        if len(entry.parts) != 2 or ".." in entry.parts or entry.is_absolute():
            raise DataError(
                f"{path}, line {number}: an entry must read CLASS/image.jpg, got {line.strip()!r}"
            )
        if not (folder / "Images" / entry).is_file():
            raise DataError(f"{folder / 'Images' / entry} is missing, which {path} names in line {number}")
        entries.append(entry)
    return entries


def _list_path(folder: Path, name: str) -> Path | None:
    for path in (folder / name, folder.parent / name):
        if path.is_file():
            return path
    return None
