"""Event files, read back by TensorBoard itself."""

import json
import sys
from datetime import datetime, timezone

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from carpediem.lab.tensorboard import write_events

CONFIG = {
    "recipe": "demo",
    "data": "digits",
    "net": "small-cnn",
    "optimizer": "momentum",
    "method": "recency",
    "seed": 3,
}


def epoch(number):
    return {
        "epoch": number,
        "iteration": 22 * (number + 1),
        "train_loss": 2.0 / (number + 1),
        "test_loss": 2.5 / (number + 1),
        "test_error": 50.0 / (number + 1),
        "learning_rate": 0.1,
        "pressure": None if number < 2 else 100.0 / number,
        "seconds": 2.0 * (number + 1),
        "seconds_with_evaluation": 3.0 * (number + 1),
        "uncertainty": 0.5,
        "distinct": 0.63,
        "loss_quantiles": {"0.05": 0.01, "0.5": 0.2, "0.95": 3.0},
        "loss_histogram": {"edges_log10": [-2.0, -1.0, 0.0, 1.0], "counts": [1, 6, 3]},
    }


@pytest.fixture
def run_dir(tmp_path):
    folder = tmp_path / "0123456789ab"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    write_epochs(folder, 4)
    return folder


def write_epochs(folder, count, change=lambda row: row):
    (folder / "epochs.jsonl").write_text("".join(json.dumps(change(epoch(n))) + "\n" for n in range(count)))


def read(file):
    events = EventAccumulator(str(file.parent), size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
    return events.Reload()


def test_every_number_of_every_epoch_is_there_by_iteration(run_dir):
    file = write_events(run_dir)
    assert file.parent == run_dir / "tensorboard"
    events = read(file)
    for tag, name in {
        "loss/drawn": "train_loss",
        "error/test": "test_error",
        "selection/distinct": "distinct",
    }.items():
        found = events.Scalars(tag)
        assert [event.step for event in found] == [22, 44, 66, 88]
        assert [event.value for event in found] == pytest.approx([epoch(n)[name] for n in range(4)])
    assert [(event.step, event.value) for event in events.Scalars("schedule/pressure")] == [
        (66, 50.0),
        (88, pytest.approx(100 / 3)),
    ]
    assert [event.value for event in events.Scalars("drawn_loss/quantile_0.95")] == pytest.approx([3.0] * 4)


def test_the_histogram_of_the_drawn_losses_is_kept(run_dir):
    histogram = read(write_events(run_dir)).Histograms("drawn_loss/log10")[0].histogram_value
    assert list(histogram.bucket_limit) == [-2.0, -1.0, 0.0, 1.0]
    assert list(histogram.bucket) == [0, 1, 6, 3]
    assert (histogram.num, histogram.min, histogram.max) == (10, -2.0, 1.0)
    assert histogram.sum == pytest.approx(1 * -1.5 + 6 * -0.5 + 3 * 0.5)


def test_open_ends_and_empty_histograms_are_taken(run_dir):
    def change(row):
        edges, counts = [-float("inf"), 0.0, float("inf")], [4, 0] if row["epoch"] else [0, 0]
        return row | {"loss_histogram": {"edges_log10": edges, "counts": counts}}

    write_epochs(run_dir, 2, change)
    (only,) = read(write_events(run_dir)).Histograms("drawn_loss/log10")
    assert list(only.histogram_value.bucket_limit) == [-1.0, 0.0, 1.0]


def test_the_configuration_is_shown_as_text(run_dir):
    (event,) = read(write_events(run_dir)).Tensors("configuration/text_summary")
    assert b"| net | small-cnn |" in event.tensor_proto.string_val[0]


def test_writing_again_replaces_what_was_written(run_dir):
    first = write_events(run_dir)
    write_epochs(run_dir, 6)
    second = write_events(run_dir)
    assert first == second
    assert [path.name for path in second.parent.iterdir()] == [second.name]
    assert sorted(path.name for path in run_dir.iterdir()) == ["config.json", "epochs.jsonl", "tensorboard"]
    assert [event.step for event in read(second).Scalars("loss/drawn")] == [22, 44, 66, 88, 110, 132]


def test_times_are_the_runs_own(run_dir):
    finished = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    for text in (finished.isoformat(), "2026-01-02T03:04:05Z"):
        (run_dir / "done.json").write_text(json.dumps({"finished": text}))
        times = [event.wall_time for event in read(write_events(run_dir)).Scalars("loss/drawn")]
        assert times == pytest.approx([finished.timestamp() - 12 + 3 * (n + 1) for n in range(4)])


def test_a_run_with_the_least_that_a_record_must_have_is_written(run_dir):
    needed = ("epoch", "iteration", "train_loss", "test_error", "seconds")
    write_epochs(run_dir, 2, lambda row: {name: row[name] for name in needed})
    events = read(write_events(run_dir))
    assert events.Tags()["scalars"] == ["loss/drawn", "error/test", "time/training"]
    (run_dir / "epochs.jsonl").unlink()
    assert read(write_events(run_dir)).Tags()["scalars"] == []


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no run"):
        write_events(tmp_path)


def test_a_missing_tensorboard_comes_with_a_remedy(run_dir, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ImportError, match=r"pip install tensorboard"):
        write_events(run_dir)
