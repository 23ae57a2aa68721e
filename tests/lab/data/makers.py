"""Small files in the real formats, for the tests of the readers."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image


def python2_pickle(value) -> bytes:
    """`value` as Python 2 with an old NumPy pickled it under protocol 2: all text as byte strings."""
    return b"\x80\x02" + _python2(value) + b"."


def _python2(value) -> bytes:
    if isinstance(value, bytes):
        return b"T" + struct.pack("<i", len(value)) + value
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    if value is None:
        return b"N"
    if isinstance(value, list):
        return b"](" + b"".join(map(_python2, value)) + b"e"
    if isinstance(value, tuple):
        return b"(" + b"".join(map(_python2, value)) + b"t"
    if isinstance(value, dict):
        return b"}(" + b"".join(_python2(part) for item in value.items() for part in item) + b"u"
    if isinstance(value, np.ndarray):
        code = value.dtype.str[1:].encode()
        order = value.dtype.str[0].encode()
        kind = b"cnumpy\ndtype\n" + _python2((code, 0, 1)) + b"R"
        kind += _python2((3, order, None, None, None, -1, -1, 0)) + b"b"
        made = (
            b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n"
            + _python2((0,))
            + _python2(b"b")
            + b"tR"
        )
        state = (
            b"("
            + _python2(1)
            + _python2(value.shape)
            + kind
            + _python2(False)
            + _python2(value.tobytes())
            + b"t"
        )
        return made + state + b"b"
    raise TypeError(type(value))


def cifar_rows(count: int, *, classes: int, seed: int) -> tuple[np.ndarray, list[int]]:
    """Random pixels (count, 3072) and labels in which every class comes in turn."""
    pixels = np.random.default_rng(seed).integers(0, 256, (count, 3072), dtype=np.uint8)
    return pixels, [(index + seed) % classes for index in range(count)]


def cifar10_binary(root: Path, *, rows: int = 4) -> Path:
    folder = root / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for seed, name in enumerate([*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]):
        pixels, labels = cifar_rows(rows, classes=10, seed=3 * seed)
        both = np.concatenate([np.array(labels, dtype=np.uint8)[:, None], pixels], axis=1)
        (folder / name).write_bytes(both.tobytes())
    (folder / "batches.meta.txt").write_text("\n".join(CIFAR10_NAMES) + "\n\n")
    return folder


def cifar10_python(root: Path, *, rows: int = 4, dump=python2_pickle) -> Path:
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    for seed, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        pixels, labels = cifar_rows(rows, classes=10, seed=3 * seed)
        batch = {
            b"batch_label": b"a batch",
            b"labels": labels,
            b"data": pixels,
            b"filenames": [b"x.png"] * rows,
        }
        (folder / name).write_bytes(dump(batch))
    names = [name.encode() for name in CIFAR10_NAMES]
    (folder / "batches.meta").write_bytes(dump({b"label_names": names, b"num_vis": 3072}))
    return folder


def cifar100_binary(root: Path) -> Path:
    folder = root / "cifar-100-binary"
    folder.mkdir(parents=True)
    for name, rows in (("train.bin", 100), ("test.bin", 20)):
        pixels, labels = cifar_rows(rows, classes=100, seed=7)
        columns = [np.array([label // 5 for label in labels]), np.array(labels)]
        (folder / name).write_bytes(np.column_stack([*columns, pixels]).astype(np.uint8).tobytes())
    (folder / "fine_label_names.txt").write_text("\n".join(f"thing_{i}" for i in range(100)) + "\n")
    return folder


def cifar100_python(root: Path) -> Path:
    folder = root / "cifar-100-python"
    folder.mkdir(parents=True)
    for name, rows in (("train", 100), ("test", 20)):
        pixels, labels = cifar_rows(rows, classes=100, seed=7)
        coarse = [label // 5 for label in labels]
        batch = {b"fine_labels": labels, b"coarse_labels": coarse, b"data": pixels}
        (folder / name).write_bytes(python2_pickle(batch))
    names = [f"thing_{i}".encode() for i in range(100)]
    (folder / "meta").write_bytes(python2_pickle({b"fine_label_names": names}))
    return folder


CIFAR10_NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def tar_of(folder: Path, archive: Path) -> Path:
    """`folder` packed as the publisher packs it: its name first in every member's."""
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname=folder.name)
    return archive


def tar_with(archive: Path, members: dict[str, bytes], links: dict[str, str] | None = None) -> Path:
    """An archive of any member names at all, hostile ones included."""
    with tarfile.open(archive, "w:gz") as tar:
        for name, blob in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(blob)
            tar.addfile(info, io.BytesIO(blob))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return archive


def idx(array: np.ndarray) -> bytes:
    return (
        struct.pack(f">{1 + array.ndim}I", 0x0800 + array.ndim, *array.shape)
        + array.astype(np.uint8).tobytes()
    )


def mnist_files(*, train: int = 20, test: int = 10) -> dict[str, bytes]:
    files = {}
    for prefix, count in (("train", train), ("t10k", test)):
        pixels = np.random.default_rng(count).integers(0, 256, (count, 28, 28))
        files[f"{prefix}-images-idx3-ubyte"] = idx(pixels)
        files[f"{prefix}-labels-idx1-ubyte"] = idx(np.arange(count) % 10)
    return files


def mnist(folder: Path, *, zipped: bool) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, blob in mnist_files().items():
        if zipped:
            (folder / f"{name}.gz").write_bytes(gzip.compress(blob))
        else:
            (folder / name).write_bytes(blob)
    return folder


def picture(path: Path, *, color=(200, 40, 40), size=(12, 12), mode="RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, color).save(path)
    return path


def stripes(path, size, *, vertical):
    """Left third (or top third) red, the middle green, the last blue."""
    width, height = size
    pixels = np.zeros((height, width, 3), dtype=np.uint8)
    length = width if vertical else height
    for third in range(3):
        part = slice(third * length // 3, (third + 1) * length // 3)
        (pixels[:, part] if vertical else pixels[part])[..., third] = 255
    Image.fromarray(pixels).save(path)
    return path


def class_folders(root: Path, *, classes=("cat", "dog"), count: int = 5) -> Path:
    """`root/CLASS/0.jpg` and so on, every class of its own colour."""
    for number, name in enumerate(classes):
        for index in range(count):
            picture(root / name / f"{index}.jpg", color=(80 * number, 255 - 80 * number, 10 * index))
    return root


def hostile_pickle() -> bytes:
    """A pickle that would run a command when unpickled."""

    class Payload:
        def __reduce__(self):
            import os

            return os.system, ("exit 1",)

    return pickle.dumps({b"data": Payload()}, protocol=2)
