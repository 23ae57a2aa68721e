"""UEC FOOD-100: photographs of a hundred Japanese dishes (Matsuda, Hoashi and Yanai, 2012)."""

from __future__ import annotations

from pathlib import Path

from .errors import DataError
from .files import FINE_TUNING_SIZE, ImageFile, Listing
from .images import ENDINGS, Box
from .split import counted_split

TRAIN, TEST = 70, 30  # of each class: the paper has 7,000 and 3,000 of a hundred


def locate_food100(root: Path) -> Path | None:
    """The folder that holds `category.txt` and `1`: `root/UECFOOD100`, in `dataset100` or not, or `root`."""
    for folder in (root / "UECFOOD100", root / "dataset100" / "UECFOOD100", root):
        if (folder / "category.txt").is_file() and (folder / "1").is_dir():
            return folder
    return None


def list_food100(folder: Path, *, train: int = TRAIN, test: int = TEST, crop: bool = False) -> Listing:
    """Photographs of the folders 1, 2, …, 100, with the names of `category.txt`: 7,000 for training, 3,000 for testing.

    The set has some 14,000; which of them the paper takes is not published. Ours are 70 + 30 of each class, always
    the same (`counted_split`, by file name). A photograph of two dishes lies in both of their folders under one file
    name: it may count for both, and always falls on one side. Images are resized as a whole, as the paper does, to
    256×256 where no other size is asked for.

    Args:
        train, test: photographs of each class.
        crop: take only the dish out of each photograph, by `bb_info.txt`; the paper does not mention it.
    """
    classes = _read_categories(folder / "category.txt")
    files: list[ImageFile] = []
    for label in range(len(classes)):
        found = _class_files(folder / str(label + 1), label=label, crop=crop)
        if len(found) < train + test:
            raise DataError(
                f"{folder / str(label + 1)} must hold at least {train + test} images, {train} for training and {test} "
                f"for testing, got {len(found)}; unpack the set again"
            )
        files += found
    keys = [file.path.name for file in files]
    for_training, for_testing = counted_split([file.label for file in files], keys, train=train, test=test)
    return Listing(
        name="food100",
        root=folder,
        train=tuple(files[index] for index in for_training),
        test=tuple(files[index] for index in for_testing),
        classes=classes,
        image_size=FINE_TUNING_SIZE,
        whole=True,
    )


def _read_categories(path: Path) -> tuple[str, ...]:
    """The names in order, from lines of a number, a tab and a name; the first line is a heading."""
    names: list[str] = []
    for number, line in _rows(path):
        index, _, name = line.strip().partition("\t")
        if index.strip() != str(len(names) + 1) or not name.strip():
            raise DataError(f"{path}, line {number} must read '{len(names) + 1}<tab>name', got {line!r}")
        names.append(name.strip())
    if len(names) < 2:
        raise DataError(f"{path} must name at least two categories, got {len(names)}")
    return tuple(names)


def _rows(path: Path) -> list[tuple[int, str]]:
    """The numbered lines of a table, without its heading and empty lines."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return [(number, line) for number, line in enumerate(lines, start=1) if number > 1 and line.strip()]


def _class_files(folder: Path, *, label: int, crop: bool) -> list[ImageFile]:
    if not folder.is_dir():
        raise DataError(f"{folder} is missing, which category.txt names; unpack the set again")
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in ENDINGS)
    if not crop:
        return [ImageFile(path, label) for path in paths]
    boxes = _read_boxes(folder / "bb_info.txt")
    for path in paths:
        if path.stem not in boxes:
            raise DataError(
                f"{folder / 'bb_info.txt'} must give a box for {path.name}; or read with crop=False"
            )
    return [ImageFile(path, label, boxes[path.stem]) for path in paths]


def _read_boxes(path: Path) -> dict[str, Box]:
    """By photograph, the smallest box around all that `bb_info.txt` gives: lines 'img x1 y1 x2 y2'."""
    if not path.is_file():
        raise DataError(f"{path} is missing; unpack the set again, or read with crop=False")
    boxes: dict[str, Box] = {}
    for number, line in _rows(path):
        try:
            photograph, left, top, right, bottom = line.split()
            box = (int(left), int(top), int(right), int(bottom))
        except ValueError:
            raise DataError(f"{path}, line {number} must read 'img x1 y1 x2 y2', got {line!r}") from None
        known = boxes.get(photograph, box)
        boxes[photograph] = (
            min(known[0], box[0]),
            min(known[1], box[1]),
            max(known[2], box[2]),
            max(known[3], box[3]),
        )
    return boxes
