"""Several processes in one study's folder."""

import errno
import os
import subprocess
import sys
import threading
import time

import pytest

from carpediem.lab import locks
from carpediem.lab.locks import FolderLock
from carpediem.lab.records import read_runs
from carpediem.lab.runfolder import RunFolder
from carpediem.lab.study import Study

COMMAND = [sys.executable, "-m", "carpediem"]
COMPARE = ["compare", "--seeds", "2", "--epochs", "5", "--warm-up", "2", "--window", "2", "--device", "cpu"]


def start(*arguments):
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def hold():
    """Holds the lock of a folder, as another process would."""
    held = []

    def take(folder):
        folder.mkdir(parents=True, exist_ok=True)
        held.append(FolderLock(folder))
        assert held[-1].take(wait=False)
        return held[-1]

    yield take
    for lock in held:
        lock.release()


def test_two_processes_train_one_study_to_the_records_of_one(tmp_path, read_study):
    alone = start(*COMPARE, "--out", tmp_path / "alone")
    assert alone.wait(120) == 0, alone.stderr.read()
    alone.communicate()
    both = [start(*COMPARE, "--out", tmp_path / "both") for _ in range(2)]
    said = [process.communicate(timeout=240)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert any("is being trained by another process" in words for words in said), said
    assert read_study(tmp_path / "both") == read_study(tmp_path / "alone")
    assert all(run.finished for run in read_runs(tmp_path / "both"))
    tables = start("tables", tmp_path / "both")
    out, err = tables.communicate(timeout=60)
    assert (tables.returncode, err) == (0, "")
    assert "Recency Bias" in out


def test_a_run_that_another_process_holds_is_left_to_it(make_configs, hold, tmp_path):
    configs, complaints, trained = make_configs("random", "recency"), [], set()
    lock = hold(tmp_path / "runs" / configs[0].hash)
    study = Study(tmp_path, configs)
    study.train(complain=complaints.append, on_epoch=lambda training, _: trained.add(training.config.method))
    (complaint,) = complaints
    assert complaint.startswith(f"{tmp_path / 'runs' / configs[0].hash} is being trained by another process")
    assert study.pending() == configs[:1]
    assert trained == {"recency"}
    lock.release()
    study.train()
    assert study.pending() == []


def test_a_run_that_another_process_finished_meanwhile_is_not_trained_again(make_configs, tmp_path):
    configs, trained, done = make_configs("random", "recency", seeds=(0, 1)), [], {}

    def on_epoch(training, record):
        if not trained:
            Study(tmp_path, [c for c in configs if c.seed != training.config.seed]).train()
            done.update({file: file.stat().st_mtime_ns for file in tmp_path.glob("runs/*/done.json")})
        trained.append(training.config.seed)

    Study(tmp_path, configs).train(on_epoch=on_epoch)
    assert set(trained) == {0}
    assert len(done) == 2
    assert all(file.stat().st_mtime_ns == written for file, written in done.items())
    assert Study(tmp_path, configs).pending() == []


def test_a_warm_up_that_another_process_holds_is_waited_for(make_configs, read_study, hold, tmp_path):
    configs, complaints = make_configs("random", "recency"), []
    Study(tmp_path / "alone", configs).train()
    lock = hold(tmp_path / "both" / "warm-ups" / configs[0].warm_up_hash)
    study = Study(tmp_path / "both", configs)
    thread = threading.Thread(target=study.train, kwargs={"complain": complaints.append})
    thread.start()
    patience = time.monotonic() + 60
    while not complaints and time.monotonic() < patience:
        time.sleep(0.01)
    time.sleep(0.2)
    assert thread.is_alive()
    assert not (lock.path.parent / "config.json").exists()
    lock.release()
    thread.join(60)
    assert not thread.is_alive()
    (complaint,) = complaints
    assert "is being trained by another process; waiting" in complaint
    assert read_study(tmp_path / "both") == read_study(tmp_path / "alone")


def test_an_error_leaves_no_folder_locked(make_configs, tmp_path):
    def fail(*_):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        Study(tmp_path, make_configs("random", "recency")).train(on_epoch=fail)
    found = list(tmp_path.rglob(".lock"))
    assert len(found) == 4, "the study's, two runs' and a warm-up's"
    for path in found:
        lock = FolderLock(path.parent)
        assert lock.take(wait=False)
        lock.release()


def test_what_another_process_is_writing_is_not_cleared_away(make_configs, hold, tmp_path):
    (config,) = make_configs("random")
    lock, part = hold(tmp_path), tmp_path / ".checkpoint.pt.1.part"
    part.touch()
    folder = RunFolder(tmp_path)
    assert not folder.begin(config)
    assert part.exists()
    assert not (tmp_path / "config.json").exists()
    lock.release()
    assert folder.begin(config)
    assert not part.exists()
    folder.end()


def test_where_the_system_has_no_locks_everyone_is_let_in(make_configs, monkeypatch, tmp_path):
    monkeypatch.setattr(locks, "fcntl", None)
    (config,) = make_configs("random")
    part = tmp_path / ".checkpoint.pt.1.part"
    part.touch()
    one, other = RunFolder(tmp_path), RunFolder(tmp_path)
    assert one.begin(config)
    assert other.begin(config)
    assert part.exists(), "nobody knows whose it is"
    one.end()
    other.end()


def test_a_worker_that_was_forked_meanwhile_does_not_keep_the_lock(tmp_path):
    lock = FolderLock(tmp_path)
    assert lock.take(wait=False)
    copy = os.dup(lock._descriptor)  # what a forked worker has
    lock.release()
    try:
        again = FolderLock(tmp_path)
        assert again.take(wait=False)
        again.release()
    finally:
        os.close(copy)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_where_the_disk_has_no_locks_everyone_is_let_in(make_configs, monkeypatch, tmp_path, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(locks.fcntl, "flock", refuse)
    (config,) = make_configs("random")
    one, other = RunFolder(tmp_path), RunFolder(tmp_path)
    assert one.begin(config)
    assert other.begin(config)
    one.end()
    other.end()
