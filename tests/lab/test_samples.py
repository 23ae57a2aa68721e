"""What a run leaves about single samples: how it is kept, read back and sorted."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from carpediem.core.moments import RunningMoments
from carpediem.core.uncertainty import window_uncertainty
from carpediem.lab.augment import normalisation
from carpediem.lab.checkpoint import load_checkpoint, save_checkpoint
from carpediem.lab.export import sample_table
from carpediem.lab.gallery import against_label, gallery_rows, most_uncertain, recently_changed
from carpediem.lab.learner import Learner
from carpediem.lab.methods import build_selector
from carpediem.lab.network import Network
from carpediem.lab.observer import SampleObserver, record_of, trails_of
from carpediem.lab.publish import publish
from carpediem.lab.records import RecordError
from carpediem.lab.samplefiles import thumbnails, write_sample_files
from carpediem.lab.samples import (
    GALLERY,
    SAMPLES,
    TRAILS,
    newest,
    read_gallery,
    read_samples,
    read_trails,
    run_folder,
    sample_record,
    write_record,
)
from carpediem.lab.source import Streamed, place
from carpediem.lab.study import Study

CPU = torch.device("cpu")


def assert_same_samples(one, other):
    """Two observers' states are the same, bit for bit."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, dict):
            assert_same_samples(value, other[name])
        elif isinstance(value, torch.Tensor):
            assert torch.equal(value.nan_to_num(-1.0), other[name].nan_to_num(-1.0)), name
        else:
            assert value == other[name], name


def train_four_epochs(folder, config):
    """A run that is stopped on its way."""

    def stop(training, record):
        if not training.is_warm_up and record["epoch"] == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Study(folder, [config]).train(on_epoch=stop)


def small_record():
    """Six samples: settled, torn, contradicted, contradicted less surely, changed late, never drawn."""
    window = np.array([[0] * 4, [0, 1, 0, 1], [2] * 4, [2, 2, 1, 2], [0, 0, 0, 1], [-1] * 4], dtype=np.int16)
    return sample_record(
        epochs=9,
        classes=("a", "b", "<script>"),
        label=np.array([0, 1, 1, 0, 1, 2]),
        window=window,
        times_drawn=np.array([4, 9, 7, 8, 5, 0]),
        last_change=np.array([-1, 7, 2, 5, 8, -1]),
        last_loss=np.array([0.1, 0.7, 3.0, 2.0, 0.4, np.nan], dtype=np.float32),
    )


def test_what_follows_from_the_windows_is_in_the_record():
    record = small_record()
    assert record.majority.tolist() == [0, 1, 2, 2, 0, -1]
    np.testing.assert_allclose(record.agreement, [1, 0.5, 0, 0, 0.25, np.nan])
    np.testing.assert_allclose(record.uncertainty[[0, 1, 5]], [0, math.log(2) / math.log(3), 1], rtol=1e-6)


def test_samples_worth_a_look_come_in_order():
    record = small_record()
    assert most_uncertain(record).tolist() == [1, 3, 4]
    assert most_uncertain(record, 1, label=0).tolist() == [3]
    assert recently_changed(record).tolist() == [4, 1, 3, 2]
    assert against_label(record).tolist() == [2, 3, 4]
    assert against_label(record, label=2).tolist() == []
    assert gallery_rows(record, np.array([5])).tolist() == [1, 2, 3, 4, 5]


def test_a_record_reads_back_as_it_was_written(tmp_path):
    record = small_record()
    write_record(tmp_path / SAMPLES, record)
    found = read_samples(tmp_path)
    assert found is not None
    assert (found.epochs, found.num_samples, found.classes) == (9, 6, ("a", "b", "<script>"))
    assert found.images is None
    for name in ("index", "label", "window", "uncertainty", "agreement", "times_drawn", "last_loss"):
        np.testing.assert_array_equal(getattr(found, name), getattr(record, name))


def test_what_was_not_written_is_none(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        assert read_samples(folder) is read_gallery(folder) is read_trails(folder) is None


@pytest.mark.parametrize("damage", [lambda c: c[: len(c) // 2], lambda c: b"", lambda c: b"PK" + c[5:]])
def test_a_damaged_file_is_named(tmp_path, damage):
    for name, read in ((SAMPLES, read_samples), (GALLERY, read_gallery), (TRAILS, read_trails)):
        write_record(tmp_path / name, small_record())
        (tmp_path / name).write_bytes(damage((tmp_path / name).read_bytes()))
        with pytest.raises(RecordError, match=f"{name} is damaged"):
            read(tmp_path)


# -- what training leaves --------------------------------------------------------------------------------------


def watched_training(toy, config, epochs):
    """A learner trained for some epochs, beside a literal list of every (epoch, prediction, loss) of each sample."""
    learner = Learner(
        config, Network(config, 3, 1, CPU), place(toy, "per-image", CPU), [build_selector(config, 48, 3, CPU)]
    )
    visits = [[] for _ in range(48)]
    for epoch in range(epochs):
        steps = learner.begin_epoch()
        for number in range(steps):
            learner.set_rate()
            learner.step()
            learner.iteration += 1
            row = (t[number].tolist() for t in (learner._batches, learner._predictions, learner._losses))
            for index, predicted, loss in zip(*row, strict=True):
                visits[index].append((epoch, predicted, loss))
        learner.end_epoch(steps)
    return learner, visits


@pytest.mark.parametrize("method", ["random", "recency", "active"])
@pytest.mark.parametrize("draws", ["systematic", "independent"])
def test_the_observer_keeps_what_a_list_of_all_visits_says(toy, make_configs, method, draws):
    (config,) = make_configs(method, draws=draws, warm_up=4, window=3, learning_rate=0.02, epochs=7)
    learner, visits = watched_training(toy, config, 7)
    state = learner.observer.state_dict()
    label = toy.train_labels.numpy()
    record, trails = record_of(state, toy.classes, label), trails_of(state, toy.classes, label)
    q = config.window
    assert record.window.shape == (48, q)
    assert any(len(own) > 7 for own in visits) == (draws == "independent" or method != "random")
    for index, own in enumerate(visits):
        predicted = [p for _, p, _ in own]
        last = predicted[-q:]
        assert record.window[index].tolist() == [-1] * (q - len(last)) + last
        assert record.times_drawn[index] == len(own)
        changes = [own[i][0] for i in range(1, len(own)) if predicted[i] != predicted[i - 1]]
        assert record.last_change[index] == (changes[-1] if changes else -1)
        np.testing.assert_equal(record.last_loss[index], np.float32(own[-1][2] if own else np.nan))
        assert record.uncertainty[index] == pytest.approx(
            window_uncertainty(list(Counter(last).values()), 3), abs=1e-6
        )
    for place_, index in enumerate(trails.index):
        for epoch in range(7):
            so_far = [v for v in visits[index] if v[0] <= epoch]
            now = [p for e, p, _ in so_far if e == epoch]
            assert trails.drawn[epoch, place_] == len(now)
            assert trails.prediction[epoch, place_] == (now[-1] if now else -1)
            moments = RunningMoments(1)
            moments.record(
                torch.zeros(len(so_far), dtype=torch.int64), torch.tensor([-v[2] for v in so_far]).exp()
            )
            assert trails.deviation[epoch, place_] == pytest.approx(float(moments.deviation()[0]), abs=1e-6)
    if method == "recency":
        history = learner.selectors[0].history
        assert [[p for p in row if p >= 0] for row in record.window.tolist()] == [
            history.predictions(index) for index in range(48)
        ]


def test_an_observer_goes_on_from_its_state_with_a_window_of_its_own():
    """A run forked off a warm-up that was observed with a longer window is as if it had been observed alone."""
    random = torch.Generator().manual_seed(1)
    epochs = [
        (
            torch.randint(0, 9, (5, 4), generator=random),  # some samples occur twice in a batch
            torch.randint(0, 4, (5, 4), generator=random, dtype=torch.int32),
            torch.rand(5, 4, generator=random),
        )
        for _ in range(8)
    ]
    epochs[3][2][1, 2] = float("nan")
    alone, longer = SampleObserver(12, 4, 3, 8, CPU), SampleObserver(12, 4, 7, 8, CPU)
    forked = SampleObserver(12, 4, 3, 8, CPU)
    for epoch in epochs[:5]:
        alone.take_in(*epoch)
        longer.take_in(*epoch)
    forked.load_state_dict(longer.state_dict())
    for epoch in epochs[5:]:
        alone.take_in(*epoch)
        forked.take_in(*epoch)
    assert_same_samples(alone.state_dict(), forked.state_dict())
    with pytest.raises(ValueError, match="windows of 3 predictions, not 7"):
        longer.load_state_dict(alone.state_dict())


def test_a_batch_that_is_not_finite_counts_as_drawn_and_nothing_else():
    observer = SampleObserver(4, 3, 2, 2, CPU)
    observer.take_in(torch.tensor([[0, 1]]), torch.tensor([[2, 1]]).int(), torch.tensor([[0.5, 0.5]]))
    observer.take_in(torch.tensor([[0, 2]]), torch.tensor([[1, 1]]).int(), torch.tensor([[math.nan, 0.5]]))
    record = record_of(observer.state_dict(), ("a", "b", "c"), np.array([0, 1, 2, 0]))
    assert record.times_drawn.tolist() == [2, 1, 1, 0]
    assert record.window.tolist() == [[-1, 2], [-1, 1], [-1, -1], [-1, -1]]
    assert record.last_change.tolist() == [-1, -1, -1, -1]


def test_every_run_of_a_study_leaves_its_samples(toy, make_configs, tmp_path):
    configs = make_configs("random", "online", "active", "recency", seeds=(0,), epochs=5)
    Study(tmp_path, configs).train()
    for config in configs:
        folder = run_folder(tmp_path, config.hash)
        record, gallery, trails = read_samples(folder), read_gallery(folder), read_trails(folder)
        assert len(record) == record.num_samples == gallery.num_samples == 48
        assert record.times_drawn.sum() == 5 * 48  # the draws of the shared warm-up too
        assert record.epochs == gallery.epochs == trails.epochs == 5
        assert record.label.tolist() == toy.train_labels.tolist()
        assert gallery.images.shape == (len(gallery), 8, 8, 1)
        assert np.array_equal(gallery.images[:, :, :, 0], toy.train_images[gallery.index][:, 0].numpy())
        assert np.array_equal(gallery.times_drawn, record.times_drawn[gallery.index])
        assert set(trails.index) <= set(gallery.index)
    drawn = {c.method: read_samples(run_folder(tmp_path, c.hash)).times_drawn for c in configs}
    assert set(drawn["random"]) == {5}  # each sample once an epoch
    assert drawn["recency"].max() > 5


def test_a_warm_up_with_several_windows_gives_each_run_its_own(make_configs, tmp_path):
    configs = [make_configs("recency", window=q, warm_up=5, epochs=7)[0] for q in (2, 5)]
    Study(tmp_path / "both", configs).train()
    for config in configs:
        Study(tmp_path / "alone", [config]).train()
        both, alone = (read_samples(run_folder(tmp_path / name, config.hash)) for name in ("both", "alone"))
        assert both.window.shape == (48, config.window)
        for name in ("window", "times_drawn", "last_change", "last_loss", "uncertainty"):
            np.testing.assert_array_equal(getattr(both, name), getattr(alone, name))


def test_a_run_stopped_and_continued_leaves_the_same_samples(make_configs, tmp_path):
    (config,) = make_configs("recency", epochs=6)
    Study(tmp_path / "once", [config]).train()
    train_four_epochs(tmp_path / "twice", config)
    Study(tmp_path / "twice", [config]).train()
    once, twice = (run_folder(tmp_path / name, config.hash) for name in ("once", "twice"))
    for name in (SAMPLES, GALLERY, TRAILS):
        assert (once / name).read_bytes() == (twice / name).read_bytes()


def test_a_run_continued_from_a_state_that_knows_no_samples_leaves_none(make_configs, tmp_path):
    """A count over a part of the run would look like one over all of it."""
    (config,) = make_configs("random", epochs=5)
    train_four_epochs(tmp_path, config)
    file = run_folder(tmp_path, config.hash) / "checkpoint.pt"
    save_checkpoint(file, {k: v for k, v in load_checkpoint(file).items() if k != "samples"})
    Study(tmp_path, [config]).train()
    assert (file.parent / "done.json").exists()
    assert read_samples(file.parent) is None


def test_the_files_are_there_while_a_run_trains(make_configs, tmp_path, monkeypatch):
    monkeypatch.setattr("carpediem.lab.wave.SAMPLES_EVERY", -1e9)
    (config,) = make_configs("recency", epochs=5)
    seen = []

    def look(training, record):
        if not training.is_warm_up:
            seen.append(read_samples(training.folder.folder).epochs)
            training.samples_due = 0.0

    Study(tmp_path, [config]).train(on_epoch=look)
    assert seen == [2, 4, 5]  # written as the run is forked off, and then whenever it is due


def test_images_of_a_streamed_set_are_the_same(toy):
    resident, streamed = (
        place(toy, "per-image", CPU),
        Streamed(toy, normalisation("per-image"), CPU, workers=0),
    )
    assert torch.equal(resident.images_of([3, 47, 0]), streamed.images_of([3, 47, 0]))
    assert resident.classes == streamed.classes
    assert torch.equal(resident.train_labels, streamed.train_labels)


def test_of_a_run_in_two_places_the_newest_samples_count(toy, make_configs, tmp_path):
    (config,) = make_configs("recency", epochs=6)
    train_four_epochs(tmp_path / "early", config)
    Study(tmp_path / "late", [config]).train()
    early, late = (tmp_path / name for name in ("early", "late"))
    state = load_checkpoint(run_folder(early, config.hash) / "checkpoint.pt")["samples"]
    write_sample_files(run_folder(early, config.hash), state, place(toy, config.normalisation, CPU))
    assert read_samples(run_folder(early, config.hash)).epochs == 4
    for folders in ([early, late], [late, early]):
        assert sample_table(folders)["times_drawn"].sum() == 6 * 48
        out = tmp_path / "out"
        publish(folders, out)
        assert read_trails(run_folder(out, config.hash)).epochs == 6
        place_of_it, gallery = newest(read_gallery, [run_folder(folder, config.hash) for folder in folders])
        assert (place_of_it, gallery.epochs) == (run_folder(late, config.hash), 6)


def test_a_damaged_copy_of_the_samples_is_passed_over_where_there_is_a_whole_one(tmp_path):
    good, bad = tmp_path / "good", tmp_path / "bad"
    bad.mkdir()
    (bad / SAMPLES).write_bytes(b"no archive")
    write_record(good / SAMPLES, small_record())
    with pytest.raises(RecordError, match="is damaged"):
        newest(read_samples, [bad, tmp_path / "none"])
    for places in ([bad, good], [good, bad]):
        assert newest(read_samples, places)[0] == good
    told = []
    assert newest(read_samples, [bad, good], told.append)[0] == good
    assert len(told) == 1


def test_an_image_that_is_high_is_made_small_too():
    assert thumbnails(torch.zeros(1, 3, 200, 40, dtype=torch.uint8)).shape == (1, 48, 10, 3)
    assert thumbnails(torch.zeros(1, 1, 10, 100, dtype=torch.uint8)).shape == (1, 5, 48, 1)
    assert thumbnails(torch.zeros(1, 3, 32, 32, dtype=torch.uint8)).shape == (1, 32, 32, 3)
