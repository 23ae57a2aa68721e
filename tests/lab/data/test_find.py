from pathlib import Path

import pytest
from platformdirs import user_cache_dir

from carpediem.lab.data import SOURCES, DataNotFoundError, available, load
from carpediem.lab.data.find import VARIABLE, places
from lab.data.makers import mnist


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder of the test's own."""
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *args, **kwargs: str(tmp_path / "cache"))
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path / "cache"


def test_the_user_s_cache_is_the_last_place(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert places() == [Path(user_cache_dir("carpediem", appauthor=False))]


def test_the_variable_goes_before_the_cache(tmp_path, monkeypatch, cache):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "named"))
    assert places() == [tmp_path / "named", cache]


def test_an_explicit_folder_is_the_only_place(tmp_path, monkeypatch, cache):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "named"))
    mnist(cache, zipped=True)
    assert places(tmp_path / "given") == [tmp_path / "given"]
    with pytest.raises(DataNotFoundError):
        load("mnist", tmp_path / "given")


def test_the_first_place_that_has_it_is_taken(tmp_path, monkeypatch, cache):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "named"))
    mnist(cache, zipped=True)
    assert len(load("mnist").train_images) == 20
    mnist(tmp_path / "named", zipped=False)
    found = {record.name: record.path for record in available()}
    assert found["mnist"] == tmp_path / "named"


def test_the_message_says_where_was_looked_and_what_to_do(tmp_path, monkeypatch, cache):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "named"))
    with pytest.raises(DataNotFoundError) as caught:
        load("cifar10")
    message = str(caught.value)
    for part in (str(tmp_path / "named"), str(cache), "carpediem data fetch cifar10", "--data-dir"):
        assert part in message
    assert "\n" not in message


def test_looking_creates_nothing(tmp_path, cache):
    available()
    assert not cache.exists()


def test_what_is_available_is_listed_for_every_name(tmp_path):
    mnist(tmp_path / "MNIST" / "raw", zipped=True)
    records = {record.name: record for record in available(tmp_path)}
    assert list(records) == list(SOURCES)
    assert [name for name, record in records.items() if record.present] == ["digits", "mnist"]
    assert [name for name, record in records.items() if record.downloadable] == [
        "mnist",
        "cifar10",
        "cifar100",
    ]
    assert records["mnist"].path == tmp_path / "MNIST" / "raw"
    assert records["digits"].path is None
    assert all(record.expected for record in records.values())
