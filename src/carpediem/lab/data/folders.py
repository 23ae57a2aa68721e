"""A folder of images with a folder for each class: anyone's own data."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from .errors import DataError
from .files import ImageFile, Listing
from .images import ENDINGS
from .split import stratified_split

TEST_SHARE = Fraction(1, 5)
TEST_FOLDERS = ("test", "val", "valid")
_CLUTTER = ("thumbs.db", "desktop.ini")  # what file managers leave behind; hidden files are passed over too


def list_folder(root: Path, *, name: str | None = None) -> Listing:
    """The images under `root`, classes in alphabetical order.

    Either `root/train/CLASS/image.jpg` with a test set in `root/test`, else `root/val`, else `root/valid`;
    or `root/CLASS/image.jpg`, of which one fifth of each class becomes the test set, always the same one
    (`stratified_split`, by "CLASS/image.jpg").
    """
    name = name or root.resolve().name
    tests = [root / folder for folder in TEST_FOLDERS if (root / folder).is_dir()]
    if (root / "train").is_dir():
        if not tests:
            raise DataError(f"{root} holds train but none of {', '.join(TEST_FOLDERS)}; add a test set")
        classes = class_folders(root / "train")
        strangers = sorted(set(class_folders(tests[0])) - set(classes))
        if strangers:
            raise DataError(
                f"{tests[0] / strangers[0]} must also be a class of {root / 'train'}; add it there"
            )
        return Listing(
            name=name,
            root=root,
            train=_all_files(root / "train", classes),
            test=_all_files(tests[0], classes),
            classes=classes,
        )
    if tests:
        raise DataError(f"{root} holds {tests[0].name} but no train; add {root / 'train'}")
    classes = class_folders(root)
    files = _all_files(root, classes)
    keys = [file.path.relative_to(root).as_posix() for file in files]
    train, test = stratified_split([file.label for file in files], keys, test_share=TEST_SHARE)
    return Listing(
        name=name,
        root=root,
        train=tuple(files[index] for index in train),
        test=tuple(files[index] for index in test),
        classes=classes,
    )


def class_folders(root: Path) -> tuple[str, ...]:
    """The names of the class folders in `root`, in alphabetical order: at least two."""
    names = sorted(path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    if len(names) < 2:
        remedy = (
            f"is {root / names[0]} meant?" if names else "put the images of each class into one of its own"
        )
        raise DataError(f"{root} must hold a folder for each of at least two classes, got {names}; {remedy}")
    return tuple(names)


def class_images(folder: Path) -> list[Path]:
    """The image files of one class, in alphabetical order: at least one, and nothing but images."""
    paths = sorted(path for path in folder.iterdir() if not _is_clutter(path))
    for path in paths:
        if not path.is_file() or path.suffix.lower() not in ENDINGS:
            raise DataError(f"{path} must be an image file ({' '.join(ENDINGS)}); move it out of {folder}")
    if not paths:
        raise DataError(f"{folder} must hold at least one image, got none; add some or remove the folder")
    return paths


def _all_files(root: Path, classes: tuple[str, ...]) -> tuple[ImageFile, ...]:
    """Every image of `root`'s class folders; a class without a folder there has none."""
    return tuple(
        ImageFile(path, label)
        for label, name in enumerate(classes)
        if (root / name).is_dir()
        for path in class_images(root / name)
    )


def _is_clutter(path: Path) -> bool:
    return path.name.startswith(".") or path.name.lower() in _CLUTTER
