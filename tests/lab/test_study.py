"""Studies that are stopped, damaged and continued."""

import json
import math
import os
from contextlib import suppress

import pytest
import torch

from carpediem.lab import study as study_module
from carpediem.lab.checkpoint import DamagedCheckpoint, latest_checkpoint, load_checkpoint, save_checkpoint
from carpediem.lab.curves import write_curves
from carpediem.lab.data import ImageData
from carpediem.lab.records import export_runs, read_runs
from carpediem.lab.runfolder import RunFolder
from carpediem.lab.study import Study
from carpediem.lab.table import render_text
from carpediem.lab.tables import all_tables
from carpediem.lab.tensorboard import write_events
from carpediem.lab.terminal_curves import terminal_curves

METHODS = ("random", "online", "active", "recency")
EPOCHS = 5
FULL = 2 + 4 * 3  # epochs that a study of four methods trains: the warm-up once, then each to its end


@pytest.fixture
def whole(make_configs, read_study, tmp_path):
    """Configurations, and what an uninterrupted study of them computed."""
    configs = make_configs(*METHODS, epochs=EPOCHS, dropout=0.2)
    Study(tmp_path / "whole", configs).train()
    return configs, read_study(tmp_path / "whole")


class Stop(BaseException):
    """Stands for a kill: nothing in the lab catches it."""


def stop_after(epochs):
    """Stops a study when it has told of so many epochs."""
    told = []

    def on_epoch(training, record):
        told.append((training.config.hash, record["epoch"]))
        if len(told) == epochs:
            raise Stop

    return on_epoch


def stopped_in(study, epochs):
    """Stops a study when it has told of so many epochs; the file of records of the run that it was at."""
    with suppress(Stop):
        study.train(on_epoch=stop_after(epochs))
    files = {len(f.read_text().splitlines()): f for f in (study.folder / "runs").glob("*/epochs.jsonl")}
    return files[max(files)]


def trained_by(study, **options):
    """Trains a study; which epochs that took, and what it complained of."""
    epochs, complaints = [], []

    def on_epoch(training, record):
        epochs.append((training.is_warm_up, training.config.method, record["epoch"]))

    study.train(on_epoch=on_epoch, complain=complaints.append, **options)
    return epochs, complaints


# Once and never again


def test_finished_runs_are_never_repeated(whole, tmp_path):
    configs, _ = whole
    study = Study(tmp_path / "whole", configs)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "whole" / "runs").rglob("*") if p.is_file()}
    assert study.pending() == []
    assert trained_by(study) == ([], [])
    assert before == {
        p: p.stat().st_mtime_ns for p in (tmp_path / "whole" / "runs").rglob("*") if p.is_file()
    }


def test_a_method_that_is_added_is_trained_and_the_others_are_not(whole, read_study, make_configs, tmp_path):
    configs, expected = whole
    Study(tmp_path / "part", configs[:2]).train()
    epochs, _ = trained_by(Study(tmp_path / "part", configs))
    assert {method for warm_up, method, _ in epochs if not warm_up} == {"active", "recency"}
    assert read_study(tmp_path / "part") == expected


def test_two_studies_live_in_one_folder(whole, make_configs, read_study, tmp_path):
    configs, expected = whole
    other = make_configs("recency", epochs=4, seeds=(7,))
    Study(tmp_path / "both", configs, name="one").train()
    Study(tmp_path / "both", other, name="two").train()
    assert Study(tmp_path / "both", configs).pending() == []
    both = read_study(tmp_path / "both")
    assert {name: both[name] for name in expected} == expected
    assert both.keys() == expected.keys() | {other[0].hash}
    description = json.loads((tmp_path / "both" / "study.json").read_text())
    assert set(description["runs"]) == both.keys()


def test_every_run_leaves_its_whole_configuration_and_its_machine(whole, tmp_path):
    configs, _ = whole
    records = {run.hash: run for run in read_runs(tmp_path / "whole")}
    for config in configs:
        run = records[config.hash]
        assert run.config == config.to_dict()
        assert run.done.keys() == {"finished", "machine", "versions"}
        assert run.done["versions"]["torch"] == torch.__version__
        assert [record["epoch"] for record in run.epochs] == list(range(EPOCHS))
        times = [(r["seconds"], r["seconds_with_evaluation"]) for r in run.epochs]
        assert times == sorted(times)
        assert all(0 < without <= with_ for without, with_ in times)


def test_changed_data_is_refused(make_configs, toy, monkeypatch, tmp_path):
    configs = make_configs("random")
    pixels = toy.train_images.clone()
    pixels[0, 0, 0, 0] ^= 1
    changed = ImageData("toy", pixels, toy.train_labels, toy.test_images, toy.test_labels, toy.classes)
    monkeypatch.setattr(study_module, "open_data", lambda *_, **__: changed)
    message = (
        f"fingerprint {toy.fingerprint()}.*got {changed.fingerprint()}; start a new study in another folder"
    )
    with pytest.raises(ValueError, match=message):
        Study(tmp_path, configs).train()
    assert Study(tmp_path, configs).pending() == configs


# Stopped and continued


@pytest.mark.parametrize("epochs", range(1, FULL + 1))
def test_a_stopped_study_goes_on_where_it_was(whole, read_study, tmp_path, epochs):
    configs, expected = whole
    study = Study(tmp_path / "stopped", configs)
    with suppress(Stop):
        study.train(on_epoch=stop_after(epochs))
    again, complaints = trained_by(study)
    assert len(again) == FULL - epochs
    assert complaints == []
    assert read_study(tmp_path / "stopped") == expected
    assert study.pending() == []


def test_a_study_may_be_stopped_again_and_again(whole, read_study, tmp_path):
    configs, expected = whole
    study = Study(tmp_path / "stopped", configs)
    sittings = 0
    while study.pending():
        sittings += 1
        with suppress(Stop):
            study.train(on_epoch=stop_after(1))
    assert sittings == FULL
    assert read_study(tmp_path / "stopped") == expected


def test_stopping_before_any_write_reaches_the_disk_loses_no_finished_epoch(
    make_configs, read_study, tmp_path, monkeypatch
):
    """Every file is written with `fsync` and moved with `replace`: stopped before each of these in turn."""
    configs = make_configs("random", "recency", epochs=3, dropout=0.2)
    calls, real = [], {name: getattr(os, name) for name in ("fsync", "replace")}
    limit = 10**9

    def counted(name):
        def call(*args, **kwargs):
            calls.append(name)
            if len(calls) == limit:
                raise Stop
            return real[name](*args, **kwargs)

        return call

    for name in real:
        monkeypatch.setattr(os, name, counted(name))
    Study(tmp_path / "whole", configs).train()
    expected, writes = read_study(tmp_path / "whole"), len(calls)
    assert writes > 40
    for stop in range(1, writes + 1):
        study, told = Study(tmp_path / f"stopped-{stop}", configs), []
        calls, limit = [], stop
        with pytest.raises(Stop):
            study.train(on_epoch=lambda training, record, told=told: told.append(record))
        calls, limit = [], 10**9
        again, _ = trained_by(study)
        where = f"stopped before write {stop} of {writes}"
        assert read_study(study.folder) == expected, where
        assert study.pending() == [], where
        assert len(told) + len(again) <= 2 + 2 * 1, where


def test_half_a_last_line_is_passed_over(whole, read_study, tmp_path):
    configs, expected = whole
    study = Study(tmp_path / "stopped", configs)
    file = stopped_in(study, 2 + 2)
    whole_lines = file.read_bytes()
    with file.open("ab") as out:
        out.write(whole_lines.splitlines()[-1][:100].replace(b'"epoch": 3', b'"epoch": 4'))
    assert len(next(run for run in read_runs(study.folder) if run.hash == file.parent.name).epochs) == 4
    again, complaints = trained_by(study)
    assert len(again) == FULL - 4
    assert complaints == []
    assert read_study(study.folder) == expected


def test_a_record_whose_checkpoint_was_not_written_is_made_again(whole, read_study, tmp_path):
    configs, expected = whole
    study = Study(tmp_path / "stopped", configs)
    file = stopped_in(study, 2 + 1)
    invented = json.loads(file.read_text().splitlines()[-1]) | {"epoch": 3, "train_loss": 99.0}
    with file.open("a") as out:
        out.write(json.dumps(invented) + "\n")
    trained_by(study)
    assert read_study(study.folder) == expected


# Damage


def truncated(content):
    return content[: len(content) // 2]


def flipped(content):
    return content[:-1000] + bytes([content[-1000] ^ 1]) + content[-999:]


def emptied(content):
    return b""


def flipped_checksum(content):
    at = content.index(b"\n") + 5
    return content[:at] + (b"0" if content[at : at + 1] != b"0" else b"1") + content[at + 1 :]


DAMAGES = (truncated, flipped, emptied, flipped_checksum)


def damage(path, how):
    path.write_bytes(how(path.read_bytes()))


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_taken(whole, read_study, tmp_path, how):
    configs, expected = whole
    study = Study(tmp_path / "damaged", configs)
    file = stopped_in(study, 2 + 2)
    newest = file.parent / "checkpoint.pt"
    damage(newest, how)
    again, complaints = trained_by(study)
    assert len(complaints) == 1
    assert str(newest) in complaints[0]
    assert len(again) == FULL - 4 + 1
    assert read_study(study.folder) == expected


def test_a_damaged_checkpoint_of_a_warm_up_is_named_too(whole, read_study, tmp_path):
    configs, expected = whole
    study = Study(tmp_path / "damaged", configs)
    with suppress(Stop):
        study.train(on_epoch=stop_after(2))
    (newest,) = (study.folder / "warm-ups").glob("*/checkpoint.pt")
    damage(newest, truncated)
    again, complaints = trained_by(study)
    assert str(newest) in complaints[0]
    assert len(again) == FULL - 2 + 1
    assert read_study(study.folder) == expected


def test_with_both_checkpoints_damaged_a_run_begins_again(whole, read_study, tmp_path):
    configs, expected = whole
    study = Study(tmp_path / "damaged", configs)
    file = stopped_in(study, 2 + 2)
    for path in file.parent.glob("checkpoint*.pt"):
        damage(path, flipped)
    again, complaints = trained_by(study)
    assert len(complaints) == 2
    assert len(again) == FULL - 4 + 2, (
        "the warm-up was watched by this run too, and need not be trained again"
    )
    assert read_study(study.folder) == expected


def test_a_run_whose_records_are_fewer_than_its_checkpoint_says_begins_again(whole, read_study, tmp_path):
    configs, expected = whole
    study = Study(tmp_path / "damaged", configs)
    file = stopped_in(study, 2 + 2)
    file.write_text("\n".join(file.read_text().splitlines()[:1]) + "\n")
    _, complaints = trained_by(study)
    assert any(str(file) in complaint for complaint in complaints)
    assert read_study(study.folder) == expected


# The checkpoint itself


def test_a_checkpoint_is_read_back_as_it_was(tmp_path):
    state = {"a": torch.arange(5), "b": [1, "two", None], "c": {"d": 0.1}}
    save_checkpoint(tmp_path / "checkpoint.pt", state)
    found = load_checkpoint(tmp_path / "checkpoint.pt")
    assert torch.equal(found.pop("a"), state.pop("a"))
    assert found == state


def test_the_checkpoint_before_the_last_is_kept(tmp_path):
    path = tmp_path / "checkpoint.pt"
    for number in range(3):
        save_checkpoint(path, {"number": number})
    assert load_checkpoint(path) == {"number": 2}
    damage(path, truncated)
    found, complaints = latest_checkpoint(path)
    assert found == {"number": 1}
    assert complaints == [f"{path} is damaged: its content differs from its checksum"]
    assert {p.name for p in tmp_path.iterdir()} == {"checkpoint.pt", "checkpoint.previous.pt"}


@pytest.mark.parametrize("how", DAMAGES)
def test_damage_is_refused_by_name(tmp_path, how):
    path = tmp_path / "checkpoint.pt"
    save_checkpoint(path, {"tensor": torch.randn(1000)})
    damage(path, how)
    with pytest.raises(DamagedCheckpoint, match=r"checkpoint\.pt is "):
        load_checkpoint(path)


def test_every_single_flipped_byte_is_noticed(tmp_path):
    path = tmp_path / "checkpoint.pt"
    save_checkpoint(path, {"tensor": torch.zeros(4)})
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        with pytest.raises(DamagedCheckpoint):
            load_checkpoint(path)


def test_without_a_checkpoint_there_is_neither_state_nor_complaint(tmp_path):
    assert latest_checkpoint(tmp_path / "checkpoint.pt") == (None, [])


@pytest.mark.parametrize("changes", [{}, {"losses": "evaluate"}], ids=str)
def test_a_run_that_diverges_is_trained_to_its_end_like_the_others(
    make_configs, read_study, tmp_path, changes
):
    methods = ("random", "online" if changes else "recency")
    Study(tmp_path, make_configs(*methods, learning_rate=1e30, **changes)).train()
    runs = read_study(tmp_path)
    assert len(runs) == 2
    assert all(len(epochs) == 5 for epochs in runs.values())
    assert all(epochs[-1]["train_loss"] is None for epochs in runs.values())


def test_the_records_of_a_run_that_diverges_are_json_that_readers_and_curves_take(make_configs, tmp_path):
    study = Study(tmp_path / "study", make_configs("random", "recency", learning_rate=1e30))
    study.train()
    export_runs([study.folder], tmp_path / "published" / "runs.jsonl")

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    for file in [*study.folder.glob("*/*/epochs.jsonl"), tmp_path / "published" / "runs.jsonl"]:
        for line in file.read_text().splitlines():
            json.loads(line, parse_constant=refuse)
    runs = read_runs(study.folder)
    assert all(math.isnan(run.epochs[-1]["train_loss"]) for run in runs)
    assert read_runs(study.folder, tmp_path / "published") == runs, "a run that is found twice is one run"
    assert all(file.stat().st_size for file in write_curves(runs, tmp_path / "figures"))
    assert terminal_curves(runs)
    assert all(render_text(table) for table in all_tables(runs))
    for run in runs:
        assert write_events(study.folder / "runs" / run.hash).is_file()


@pytest.mark.parametrize(("net", "expected"), [("small-cnn", 1), ("resnet-50", 2)])
def test_small_networks_train_with_one_thread_and_others_with_torchs_own(
    make_configs, tmp_path, net, expected
):
    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(2)
    try:
        study = Study(tmp_path, make_configs("random", net=net))
        study.train(on_epoch=lambda *_: seen.append(torch.get_num_threads()))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {expected}


def test_a_run_that_diverges_goes_on_where_it_was(make_configs, read_study, tmp_path):
    configs = make_configs("random", "recency", learning_rate=1e30)
    Study(tmp_path / "whole", configs).train()
    stopped = Study(tmp_path / "stopped", configs)
    with suppress(Stop):
        stopped.train(on_epoch=stop_after(2 + 2))
    stopped.train()
    assert read_study(stopped.folder) == read_study(tmp_path / "whole")


def test_a_damaged_line_in_the_middle_is_named_with_its_file(whole, tmp_path):
    configs, _ = whole
    run = tmp_path / "whole" / "runs" / configs[0].hash
    (run / "done.json").unlink()
    lines = (run / "epochs.jsonl").read_text().splitlines()
    (run / "epochs.jsonl").write_text("\n".join([lines[0], lines[1][:20], *lines[2:]]) + "\n")
    with pytest.raises(ValueError, match=r"epochs\.jsonl, line 2 is damaged"):
        Study(tmp_path / "whole", configs).train()


def test_a_damaged_description_is_named_with_a_remedy(make_configs, tmp_path):
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.json").write_text("{")
    with pytest.raises(
        ValueError, match=r"study.json is damaged: .*; delete it, and the same command writes it anew"
    ):
        Study(tmp_path / "study", make_configs("random")).train()


def test_a_damaged_checkpoint_does_not_take_the_place_of_the_good_one(tmp_path, monkeypatch):
    folder, path = RunFolder(tmp_path), tmp_path / "checkpoint.pt"
    for number in (1, 2):
        folder.append(
            {"epoch": number - 1, "iteration": number, "seconds": 1.0, "train_loss": 1.0, "test_error": 1.0}
        )
        folder.save({"epochs": number})
    damage(path, flipped)
    state, complaints = folder.resume()
    assert (state, len(complaints)) == ({"epochs": 1}, 1)

    def full(*_):
        raise OSError("no room")

    monkeypatch.setattr("carpediem.lab.checkpoint.write_whole", full)
    with pytest.raises(OSError, match="no room"):
        folder.save({"epochs": 2})
    assert latest_checkpoint(path)[0] == {"epochs": 1}
