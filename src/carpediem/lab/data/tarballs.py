"""Published tar archives: read in place, or unpacked without letting a file out of its folder."""

from __future__ import annotations

import tarfile
import zlib
from pathlib import Path

from .errors import DataError


def read_members(archive: Path, *, folder: str) -> dict[str, bytes]:
    """The plain files that lie directly in `folder` of the archive, by name, read into memory."""
    found = {}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                parent, _, name = member.name.removeprefix("./").rpartition("/")
                stream = tar.extractfile(member) if member.isreg() and parent == folder else None
                if stream is not None:
                    found[name] = stream.read()
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DataError(
            f"{archive} is not a whole archive ({error}); remove it and fetch it again"
        ) from error
    if not found:
        raise DataError(f"{archive} must hold files under {folder}/, got none; remove it and fetch it again")
    return found


def unpack(archive: Path, into: Path) -> None:
    """Unpack a tar archive into the folder `into`.

    Members that would land outside of it, links that leave it and devices are refused, by tarfile's
    "data" filter.
    """
    if not hasattr(tarfile, "data_filter"):
        raise RuntimeError("unpacking safely needs Python 3.10.12, 3.11.4 or later; update Python")
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(into, filter="data")
    except tarfile.FilterError as error:
        raise DataError(f"{archive} holds an unsafe member ({error}); do not trust this file") from error
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise DataError(
            f"{archive} is not a whole archive ({error}); remove it and fetch it again"
        ) from error
