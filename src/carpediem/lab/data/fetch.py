"""Downloading the sets that their publishers let anyone download: whole and checked, or not at all."""

from __future__ import annotations

import hashlib
import http.client
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .errors import DataError, FetchError
from .find import places
from .tarballs import unpack

Progress = Callable[[str, int, int | None], None]
_CHUNK = 1 << 18


@dataclass(frozen=True)
class Download:
    """One published file.

    Args:
        url: where it is.
        sha256: of the file, as 64 hexadecimal digits.
        target: where it goes, below the data folder; of an archive, the folder that is in it.
    """

    url: str
    sha256: str
    target: str

    @property
    def is_archive(self) -> bool:
        """Whether it is to be unpacked."""
        return self.url.endswith(".tar.gz")


# yann.lecun.com no longer serves these to programs; this is the mirror that torchvision uses.
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
_CIFAR = "https://www.cs.toronto.edu/~kriz"
DOWNLOADS: dict[str, tuple[Download, ...]] = {
    "mnist": tuple(
        Download(f"{_MNIST}/{file}", sha256, f"MNIST/raw/{file}")
        for file, sha256 in {
            "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        }.items()
    ),
    "cifar10": (
        Download(
            f"{_CIFAR}/cifar-10-binary.tar.gz",  # published md5: c32a1d4ab5d03f1284b67883e8d87530
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            "cifar-10-batches-bin",
        ),
    ),
    "cifar100": (
        Download(
            f"{_CIFAR}/cifar-100-binary.tar.gz",  # published md5: 03b5dce01913d631647c71ecec9e9cb8
            "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
            "cifar-100-binary",
        ),
    ),
}


def fetch(
    name: str, data_dir: Path | None = None, *, progress: Progress | None = None, timeout: float = 60.0
) -> Path:
    """Download a set and return the folder it is in; files that are already there are left alone.

    Args:
        name: one of `DOWNLOADS`.
        data_dir: where to; else CARPEDIEM_DATA, else the user's cache folder.
        progress: called with the file's name, the bytes so far and, if known, the bytes in all.
        timeout: seconds without an answer after which to give up.
    """
    if name not in DOWNLOADS:
        raise ValueError(f"name must be one of {', '.join(DOWNLOADS)}, which can be downloaded, got {name!r}")
    root = places(data_dir)[0]
    root.mkdir(parents=True, exist_ok=True)
    for item in DOWNLOADS[name]:
        if (root / item.target).exists():
            continue
        if item.is_archive:
            _fetch_archive(item, root, progress=progress, timeout=timeout)
        else:
            target = root / item.target
            download(item.url, target, sha256=item.sha256, progress=progress, timeout=timeout)
    first = DOWNLOADS[name][0]
    return root / first.target if first.is_archive else (root / first.target).parent


def download(
    url: str, target: Path, *, sha256: str, progress: Progress | None = None, timeout: float = 60.0
) -> None:
    """Download `url` to `target`, which appears only once it is whole and its sha256 is right."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            found = _stream(url, file, name=target.name, progress=progress, timeout=timeout)
        if found != sha256:
            raise FetchError(f"{url} must have sha256 {sha256}, got {found}; nothing was kept, try again")
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _stream(url: str, file: IO[bytes], *, name: str, progress: Progress | None, timeout: float) -> str:
    """Copy `url` to `file` and return the sha256 of what came."""
    digest, done, total = hashlib.sha256(), 0, None
    request = urllib.request.Request(url, headers={"User-Agent": "carpediem"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            total = int(response.headers["Content-Length"]) if response.headers["Content-Length"] else None
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(name, done, total)
    except urllib.error.HTTPError as error:
        error.close()
        raise FetchError(f"{url} answered {error.code} {error.reason}; try again later") from error
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise FetchError(f"{url} could not be read ({error}); check the connection and try again") from error
    if total is not None and done != total:
        raise FetchError(f"{url} announced {total} bytes and sent {done}; nothing was kept, try again")
    return digest.hexdigest()


def _fetch_archive(item: Download, root: Path, *, progress: Progress | None, timeout: float) -> None:
    """Download and unpack an archive; its folder appears under `root` only once all is there."""
    with tempfile.TemporaryDirectory(dir=root, prefix=".fetch-") as scratch:
        archive = Path(scratch) / item.url.rpartition("/")[2]
        download(item.url, archive, sha256=item.sha256, progress=progress, timeout=timeout)
        unpacked = Path(scratch) / "unpacked"
        unpack(archive, unpacked)
        if not (unpacked / item.target).is_dir():
            raise DataError(f"{item.url} must hold the folder {item.target}, got an archive without it")
        os.replace(unpacked / item.target, root / item.target)
