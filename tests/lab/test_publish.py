"""What a results folder holds, and what happens to one that held something before."""

from pathlib import Path

import pytest

from carpediem.lab import publish as module
from carpediem.lab.publish import publish
from carpediem.lab.records import read_runs
from carpediem.lab.study import Study


@pytest.fixture
def study(make_configs, tmp_path):
    Study(tmp_path / "study", make_configs("random", "recency", seeds=(0,), epochs=5)).train()
    return tmp_path / "study"


def names(folder):
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def test_publishing_again_changes_nothing_and_leaves_what_it_did_not_write(study, tmp_path):
    out = tmp_path / "results" / "today"
    written = publish([study], out)
    assert names(out) == {file.relative_to(out).as_posix() for file in written}
    before = {file: file.read_bytes() for file in written}
    (out / "README.md").write_text("what came out")
    assert publish([out], out) == written
    assert {file: file.read_bytes() for file in written} == before
    assert (out / "README.md").read_text() == "what came out"


def test_what_was_published_before_does_not_stay_among_the_new(study, make_configs, tmp_path):
    other = tmp_path / "other"
    Study(other, make_configs("recency", seeds=(1,), epochs=4, optimizer="sgd")).train()
    out = tmp_path / "out"
    first = {file.name for file in publish([other], out)}
    second = publish([study], out)
    assert names(out) == {file.relative_to(out).as_posix() for file in second}
    assert any("_sgd_" in name for name in first)
    assert {folder.name for folder in (out / "runs").iterdir()} <= {run.hash for run in read_runs(study)}


def test_what_fails_on_the_way_leaves_the_folder_as_it_was(study, tmp_path, monkeypatch):
    out = tmp_path / "out"
    publish([study], out)
    before = {name: (out / name).read_bytes() for name in names(out)}

    def fails(*_, **__):
        raise OSError("no room")

    monkeypatch.setattr(module, "write_figures", fails)
    with pytest.raises(OSError, match="no room"):
        publish([study], out)
    with pytest.raises(OSError, match="no room"):
        publish([study], tmp_path / "new")
    assert {name: (out / name).read_bytes() for name in names(out)} == before
    assert {place.name for place in tmp_path.iterdir()} == {"study", "out"}


def test_what_others_put_there_is_not_taken_for_an_earlier_publication(study, tmp_path):
    out = tmp_path / "out"
    own = {name: out / name for name in ("curves_by_hand.png", "grid_notes.pdf", "runs/mine/gallery.npz")}
    for file in own.values():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
    publish([study], out)
    publish([study], out)
    assert {file.read_text() for file in own.values()} == {"mine"}
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "tables.csv").write_text("mine")
    with pytest.raises(
        ValueError, match=r"--out must be a new folder or one that was published to, got .*tables.csv; "
    ):
        publish([study], tmp_path / "taken")
    assert names(tmp_path / "taken") == {"tables.csv"}


def test_a_study_is_no_place_to_publish_in_and_nothing_is_nothing_to_publish(study, tmp_path):
    (tmp_path / "above" / "runs").mkdir(parents=True)
    study.rename(tmp_path / "above" / "runs" / "study")
    study = tmp_path / "above" / "runs" / "study"
    for out in (study, study / "runs", tmp_path / "above"):
        with pytest.raises(
            ValueError, match=r"--out must be a folder of its own, got .*study; choose another"
        ):
            publish([study], out)
    (tmp_path / "empty" / "runs").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"empty holds no run yet; carpediem compare --out .* trains some"):
        publish([tmp_path / "empty"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"file/x cannot be written: .*; choose another --out"):
        publish([study], tmp_path / "file" / "x")


def test_the_working_folder_may_be_published_to(study, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    publish([study], Path())
    assert read_runs(tmp_path / "here") == read_runs(study)
    assert {place.name for place in tmp_path.iterdir()} == {"study", "here"}


def test_a_publication_that_was_stopped_is_put_right_by_the_next(study, make_configs, tmp_path, monkeypatch):
    other = tmp_path / "other"
    Study(other, make_configs("recency", seeds=(1,), epochs=4, optimizer="sgd")).train()
    out = tmp_path / "out"
    publish([other], out)
    unlink = Path.unlink

    def stop(file, **options):
        if file.parent == out:
            raise KeyboardInterrupt
        unlink(file, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", stop)
        with pytest.raises(KeyboardInterrupt):
            publish([study], out)
    assert {run.config["optimizer"] for run in read_runs(out)} == {"sgd"}
    second = publish([study], out)
    assert names(out) == {file.relative_to(out).as_posix() for file in second}
