"""One process at a time in a folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a POSIX system: folders are not locked there
    fcntl = None  # type: ignore[assignment]


_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # as some disks on a network answer


class FolderLock:
    """Keeps other processes that ask for the same lock out of a folder.

    The lock is on a file `.lock`, which stays; it ends with the process that holds it, however that ends. Where
    the system or the disk has no such locks, everyone is let in.

    Args:
        folder: must exist when the lock is taken.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / ".lock"
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether others are kept out."""
        return self._descriptor is not None

    def take(self, *, wait: bool) -> bool:
        """Whether the caller may work in the folder: at once, or when whoever holds it is done."""
        if fcntl is None or self.is_held:
            return True
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            return False
        except BaseException as error:
            os.close(descriptor)
            if isinstance(error, OSError) and error.errno in _NO_LOCKS:
                return True
            raise
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Lets others in; does nothing where the lock is not held."""
        if self._descriptor is not None:
            # Closing is not enough: a worker that was forked meanwhile has the file open too.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Work inside happens while no other process is in the folder."""
    lock = FolderLock(folder)
    lock.take(wait=True)
    try:
        yield
    finally:
        lock.release()
