"""Files that several processes write."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from carpediem.lab.atomic import write_whole


def test_two_writers_of_one_file_leave_one_of_both_whole(tmp_path):
    def write(content):
        for _ in range(50):
            write_whole(tmp_path / "tables.md", content)

    # As alike as two machines with a disk in common can be: even the numbers of the processes are the same.
    with ThreadPoolExecutor(2) as both:
        list(both.map(write, ("a" * 5000, "b" * 5000)))
    assert (tmp_path / "tables.md").read_text() in ("a" * 5000, "b" * 5000)
    assert [file.name for file in tmp_path.iterdir()] == ["tables.md"]


def test_a_full_disk_is_told_with_the_file_that_did_not_fit(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*file\.json'"):
        write_whole(tmp_path / "file.json", "{}")
