import pytest

from carpediem.lab.data import DataError
from carpediem.lab.data.tarballs import read_members, unpack
from lab.data.makers import tar_with


def test_members_of_the_folder_are_read_and_no_others(tmp_path):
    members = {"set/a.bin": b"a", "set/deep/b.bin": b"b", "other/c.bin": b"c", "../set/d.bin": b"d"}
    archive = tar_with(tmp_path / "x.tar.gz", members, links={"set/e.bin": "/etc/hostname"})
    assert read_members(archive, folder="set") == {"a.bin": b"a"}


def test_an_archive_without_the_folder_is_refused(tmp_path):
    archive = tar_with(tmp_path / "x.tar.gz", {"other/a": b""})
    with pytest.raises(DataError, match=r"x\.tar\.gz must hold files under set/"):
        read_members(archive, folder="set")


@pytest.mark.parametrize(
    "read", [lambda path: read_members(path, folder="set"), lambda path: unpack(path, path.parent / "out")]
)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_archive_is_named(tmp_path, read, share):
    blob = bytes(range(256)) * 400
    archive = tar_with(tmp_path / "x.tar.gz", {"set/a": blob})
    whole = archive.read_bytes()
    archive.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(DataError, match=r"x\.tar\.gz is not a whole archive"):
        read(archive)


@pytest.mark.parametrize("name", ["../escaped", "set/../../escaped"])
def test_a_member_that_leaves_the_folder_is_refused(tmp_path, name):
    archive = tar_with(tmp_path / "x.tar.gz", {name: b"gotcha"})
    with pytest.raises(DataError, match=r"x\.tar\.gz holds an unsafe member"):
        unpack(archive, tmp_path / "inside")
    assert not list(tmp_path.rglob("escaped"))


def test_an_absolute_name_lands_inside(tmp_path):
    archive = tar_with(tmp_path / "x.tar.gz", {f"{tmp_path}/escaped": b"gotcha"})
    unpack(archive, tmp_path / "inside")
    assert not (tmp_path / "escaped").exists()


@pytest.mark.parametrize("target", ["/etc", "../../outside"])
def test_a_link_that_leaves_the_folder_is_refused(tmp_path, target):
    archive = tar_with(tmp_path / "x.tar.gz", {}, links={"set/link": target})
    with pytest.raises(DataError, match="unsafe member"):
        unpack(archive, tmp_path / "inside")
