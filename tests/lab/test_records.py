"""Reading back what runs left: both forms, whole and damaged."""

import json
import math
from pathlib import Path

import pytest

from carpediem.lab.config import LATER_FIELDS, RunConfig
from carpediem.lab.records import (
    RecordError,
    RunRecord,
    export_runs,
    read_epochs,
    read_run,
    read_runs,
    record_line,
)
from carpediem.lab.results import group_cells

PUBLISHED = Path(__file__).parents[2] / "results" / "2026-11-15_cifar10_resnet50_momentum_paper"

CONFIG = {
    "recipe": "demo",
    "data": "digits",
    "net": "small-cnn",
    "optimizer": "momentum",
    "method": "random",
    "seed": 0,
    "net_fingerprint": "",
}


def epoch(number, **more):
    row = {
        "epoch": number,
        "iteration": 22 * (number + 1),
        "train_loss": 1.0,
        "test_error": 9.0 - number,
        "seconds": 1.5,
    }
    return row | more


def write_run(study, name="0123456789ab", epochs=3, done=True, **config):
    folder = study / "runs" / name
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | config))
    (folder / "epochs.jsonl").write_text("".join(json.dumps(epoch(n)) + "\n" for n in range(epochs)))
    if done:
        (folder / "done.json").write_text(json.dumps({"finished": "2026-01-01T00:00:00+00:00"}))
    return folder


def test_a_study_is_read_with_its_finished_and_unfinished_runs(tmp_path):
    write_run(tmp_path, "bbbbbbbbbbbb", done=False, seed=1)
    write_run(tmp_path, "aaaaaaaaaaaa")
    first, second = read_runs(tmp_path)
    assert first == RunRecord(
        "aaaaaaaaaaaa",
        LATER_FIELDS | CONFIG,
        [epoch(n) for n in range(3)],
        {"finished": "2026-01-01T00:00:00+00:00"},
    )
    assert (second.hash, second.finished, second.config["seed"]) == ("bbbbbbbbbbbb", False, 1)


def test_an_exported_study_reads_like_the_study_itself(tmp_path):
    write_run(tmp_path / "study", "aaaaaaaaaaaa")
    write_run(tmp_path / "study", "bbbbbbbbbbbb", epochs=1, done=False)
    exported = tmp_path / "results" / "runs.jsonl"
    export_runs([tmp_path / "study"], exported)
    assert read_runs(exported.parent) == read_runs(exported) == read_runs(tmp_path / "study")
    assert [path.name for path in exported.parent.iterdir()] == ["runs.jsonl"]


def test_an_export_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    write_run(tmp_path / "study")
    target = tmp_path / "runs.jsonl"
    target.write_text("old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        export_runs([tmp_path / "study"], target)
    assert target.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs.jsonl", "study"]


@pytest.mark.parametrize("keep", [1, 20, 60, -2])
def test_a_last_line_that_is_cut_off_is_passed_over(tmp_path, keep):
    file = write_run(tmp_path, done=False) / "epochs.jsonl"
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]) + lines[2][:keep])
    (run,) = read_runs(tmp_path)
    assert [row["epoch"] for row in run.epochs] == [0, 1]


def test_a_last_line_cut_inside_a_character_is_passed_over(tmp_path):
    file = write_run(tmp_path, done=False) / "epochs.jsonl"
    file.write_bytes(file.read_bytes() + '{"note": "é'.encode()[:-1])
    assert len(read_runs(tmp_path)[0].epochs) == 3


def test_a_whole_last_line_counts_even_without_its_line_end(tmp_path):
    file = write_run(tmp_path) / "epochs.jsonl"
    file.write_bytes(file.read_bytes().rstrip())
    assert len(read_runs(tmp_path)[0].epochs) == 3


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda lines: [lines[0], '{"epoch": 1, "iter', lines[2]], "line 2 is damaged"),
        (lambda lines: [*lines[:2], '{"epoch": 2, "iter'], "line 3 is damaged"),
        (lambda lines: [lines[0], "[1, 2]", lines[2]], "line 2 must hold a JSON object, got list"),
        (lambda lines: [lines[0], "", lines[2]], "line 2 is damaged"),
        (lambda lines: [lines[0], lines[0]], "line 2: epoch must be 1, one after the last, got 0"),
        (lambda lines: [lines[0], lines[2]], "line 2: epoch must be 1, one after the last, got 2"),
        (
            lambda lines: ['{"epoch": 0, "iteration": 4}'],
            "line 1: the epoch lacks train_loss, test_error, seconds",
        ),
    ],
)
def test_any_other_damaged_line_is_named(tmp_path, damage, message):
    file = write_run(tmp_path) / "epochs.jsonl"
    file.write_text("".join(f"{line}\n" for line in damage(file.read_text().splitlines())))
    with pytest.raises(RecordError, match=f"epochs.jsonl, {message}"):
        read_runs(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("config.json", "{", "config.json is damaged"),
        (
            "config.json",
            '{"recipe": "demo", "seed": 1}',
            "the configuration lacks data, net, optimizer, method",
        ),
        ("done.json", "", "done.json is damaged"),
    ],
)
def test_a_damaged_file_of_a_run_is_named(tmp_path, name, text, message):
    (write_run(tmp_path) / name).write_text(text)
    with pytest.raises(RecordError, match=message):
        read_runs(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is damaged"),
        ('{"run": "x", "config": {}}', "line 2 lacks epochs"),
        ('{"run": "x", "config": [], "epochs": []}', "line 2: config must be an object, got list"),
        (
            json.dumps({"run": "x", "config": CONFIG, "epochs": [5]}),
            "line 2: an epoch must be an object, got int",
        ),
    ],
)
def test_a_damaged_line_of_an_export_is_named_even_if_it_is_the_last(tmp_path, line, message):
    write_run(tmp_path / "study")
    export_runs([tmp_path / "study"], tmp_path / "runs.jsonl")
    with (tmp_path / "runs.jsonl").open("a") as stream:
        stream.write(line)
    with pytest.raises(RecordError, match=f"runs.jsonl, {message}"):
        read_runs(tmp_path / "runs.jsonl")


@pytest.mark.parametrize(
    ("done", "words"),
    [
        (True, "delete .*/0123456789ab and train it again"),
        (False, "the command that trains it writes it anew"),
    ],
)
def test_a_run_that_lost_its_configuration_is_named_with_a_remedy(tmp_path, done, words):
    (write_run(tmp_path, done=done) / "config.json").unlink()
    with pytest.raises(RecordError, match=f"config.json is missing; {words}"):
        read_runs(tmp_path)


def test_a_run_in_two_places_counts_once_with_its_longer_record(tmp_path):
    write_run(tmp_path / "here", epochs=2, done=False)
    write_run(tmp_path / "there", epochs=3)
    for places in (("here", "there"), ("there", "here")):
        (run,) = read_runs(*(tmp_path / place for place in places))
        assert run.finished
        assert len(run.epochs) == 3


def test_two_finished_records_of_one_run_that_differ_are_refused(tmp_path):
    write_run(tmp_path / "here", epochs=2)
    write_run(tmp_path / "there", epochs=3)
    words = r"run 0123456789ab \(\w+, seed 0\) occurs twice with different epochs"
    with pytest.raises(RecordError, match=words):
        read_runs(tmp_path / "here", tmp_path / "there")


def test_of_two_records_of_one_run_the_one_that_looked_at_more_is_taken(tmp_path):
    for place in ("here", "there"):
        write_run(tmp_path / place, epochs=2)
    (file,) = (tmp_path / "there").rglob("epochs.jsonl")
    epochs = [json.loads(line) | {"training_set_loss": 0.5} for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(epoch) + "\n" for epoch in epochs))
    for places in (("here", "there"), ("there", "here")):
        (run,) = read_runs(*(tmp_path / place for place in places))
        assert run.epochs == epochs


def test_a_run_that_was_named_otherwise_before_is_the_same_run(tmp_path):
    (run,) = [one for one in read_runs(PUBLISHED) if one.hash == "07efdea03d63"]
    config = RunConfig.from_dict(run.config)
    line = record_line({"run": config.hash, "config": run.config, "done": run.done, "epochs": run.epochs})
    (tmp_path / "runs.jsonl").write_bytes(line)
    assert len(read_runs(PUBLISHED, tmp_path)) == len(read_runs(PUBLISHED))


def test_two_records_of_one_run_that_differ_in_their_clocks_alone_are_one(tmp_path):
    for place in ("here", "there"):
        write_run(tmp_path / place, epochs=2)
    (file,) = (tmp_path / "there").rglob("epochs.jsonl")
    epochs = [json.loads(line) for line in file.read_text().splitlines()]
    slower = [epoch | {"seconds": epoch["seconds"] + 1, "side_by_side": 4} for epoch in epochs]
    file.write_text("".join(json.dumps(epoch) + "\n" for epoch in slower))
    (run,) = read_runs(tmp_path / "here", tmp_path / "there")
    assert run.epochs == epochs
    file.write_text("".join(json.dumps(epoch | {"test_error": 1.25}) + "\n" for epoch in slower))
    with pytest.raises(RecordError, match="occurs twice"):
        read_runs(tmp_path / "here", tmp_path / "there")


def test_a_run_that_has_not_begun_is_no_run_and_one_without_epochs_is(tmp_path):
    (write_run(tmp_path, "aaaaaaaaaaaa", done=False) / "epochs.jsonl").unlink()
    (tmp_path / "runs" / "bbbbbbbbbbbb").mkdir()
    (run,) = read_runs(tmp_path)
    assert (run.hash, run.epochs, run.finished) == ("aaaaaaaaaaaa", [], False)


def test_a_finished_run_that_lacks_its_end_is_damage_with_a_remedy(tmp_path):
    folder = write_run(tmp_path, epochs=3, iterations=66)
    assert read_run(folder).finished
    lines = (folder / "epochs.jsonl").read_text()
    (folder / "epochs.jsonl").write_text(lines[:-20])
    with pytest.raises(
        RecordError, match=r"epochs.jsonl lacks the end of a finished run: 44 of 66 iterations; delete .*"
    ):
        read_runs(tmp_path)
    told = []
    assert read_runs(tmp_path, damage=told) == []
    assert told[0].endswith(f"delete {folder} and train it again")
    (folder / "done.json").unlink()
    assert not read_run(folder).finished


def test_the_folder_above_the_studies_is_none_itself(tmp_path):
    write_run(tmp_path / "runs" / "compare")
    (tmp_path / "runs" / "compare" / "study.json").write_text("{}")
    for place in (tmp_path, tmp_path / "runs"):
        with pytest.raises(
            FileNotFoundError, match=r"holds no study.*; its folders hold some, so name .*runs/\*/"
        ):
            read_runs(place)


def test_a_study_without_runs_is_empty_and_anything_else_is_not_a_study(tmp_path):
    (tmp_path / "study.json").write_text('{"name": "compare"}')
    assert read_runs(tmp_path) == []
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="holds no study"):
        read_runs(tmp_path / "empty")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_runs(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="holds no run"):
        read_run(tmp_path)
    with pytest.raises(ValueError, match="at least one"):
        read_runs()


def test_a_record_from_before_a_field_was_there_belongs_with_those_that_have_it_empty(tmp_path):
    folder = write_run(tmp_path, "aaaaaaaaaaaa")
    old = {name: value for name, value in CONFIG.items() if name != "net_fingerprint"}
    (folder / "config.json").write_text(json.dumps(old))
    write_run(tmp_path, "bbbbbbbbbbbb", seed=1)
    write_run(tmp_path, "cccccccccccc", seed=2, net_fingerprint="0123456789ab")
    together, other = sorted(group_cells(read_runs(tmp_path)), key=lambda cell: -len(cell.runs))
    assert [run.config["seed"] for run in together.runs] == [0, 1]
    assert [run.config["seed"] for run in other.runs] == [2]


def test_a_loss_that_is_null_is_read_as_not_a_number_and_written_as_null_again(tmp_path):
    file = write_run(tmp_path / "study") / "epochs.jsonl"
    file.write_text("".join(json.dumps(epoch(n, train_loss=None, pressure=None)) + "\n" for n in range(3)))
    (run,) = read_runs(tmp_path / "study")
    assert all(math.isnan(row["train_loss"]) and row["pressure"] is None for row in run.epochs)
    export_runs([tmp_path / "study"], tmp_path / "runs.jsonl")
    assert "NaN" not in (tmp_path / "runs.jsonl").read_text()
    assert read_runs(tmp_path / "runs.jsonl") == [run]


def test_a_run_that_finishes_while_it_is_read_is_not_called_damaged(tmp_path, monkeypatch):
    folder = write_run(tmp_path, epochs=3, iterations=66)
    (whole, done) = ((folder / name).read_text() for name in ("epochs.jsonl", "done.json"))
    (folder / "epochs.jsonl").write_text("".join(whole.splitlines(keepends=True)[:2]))
    (folder / "done.json").unlink()

    def read_and_finish(path):
        epochs = read_epochs(path)
        (folder / "epochs.jsonl").write_text(whole)
        (folder / "done.json").write_text(done)
        return epochs

    monkeypatch.setattr("carpediem.lab.records.read_epochs", read_and_finish)
    assert not read_run(folder).finished
    assert read_run(folder).finished
