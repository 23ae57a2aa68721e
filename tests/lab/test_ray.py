"""A study over a real Ray of two cores."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from carpediem.cli import app
from carpediem.lab import ray_cluster
from carpediem.lab.data import open_data
from carpediem.lab.folder_news import FolderNews
from carpediem.lab.plans import run_configs
from carpediem.lab.ray_cluster import ClusterError, RayCluster
from carpediem.lab.records import read_runs
from carpediem.lab.study import Study
from processes import python, said

if find_spec("ray") is None:
    pytest.skip("Ray is not installed", allow_module_level=True)

OWN = """
import os
import time
from pathlib import Path

import numpy as np
from torch import nn

def data():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 4
    images = (rng.integers(0, 200, (60, 8, 8)) + 10 * labels[:, None, None]).astype(np.uint8)
    return images[:48], labels[:48], images[48:], labels[48:]

class Net(nn.Sequential):
    def forward(self, images):
        if Path("slow").exists():
            time.sleep(float(Path("slow").read_text()))
        return super().forward(images)

def net(num_classes, in_channels):
    if Path("pids").is_dir():
        Path("pids", str(os.getpid())).touch()
    return Net(nn.Flatten(), nn.Dropout(0.2), nn.Linear(64 * in_channels, num_classes))

class Wrong(nn.Linear):
    def forward(self, images):
        return {}["here"]

def wrong(num_classes, in_channels):
    return Wrong(in_channels, num_classes)

def deadly(num_classes, in_channels):
    os._exit(1)
"""
COMPARE = ["compare", "--data", "ray_own:data", "--net", "ray_own:net", "--methods", "random,recency"]
COMPARE += ["--seeds", "2", "--epochs", "12", "--warm-up", "2", "--window", "2", "--batch-size", "8"]
COMPARE += ["--device", "cpu"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def address(home):
    """A Ray of two cores, started by us, to which this process is connected and others can connect."""
    with pytest.MonkeyPatch.context() as patch, RayCluster(cores=2) as cluster:
        patch.setenv("HOME", str(home))
        cluster._connect()
        yield cluster._ray.get_runtime_context().gcs_address


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The user's own code in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ray_own.py").write_text(OWN)
    yield tmp_path
    sys.modules.pop("ray_own", None)


@pytest.fixture
def call(own, monkeypatch, capsys):
    """Calls the command inside the test's process: (exit code, stdout, stderr)."""
    monkeypatch.setattr(sys, "argv", ["carpediem"])

    def called(*arguments):
        with pytest.raises(SystemExit) as ended:
            app(list(map(str, arguments)))
        return (ended.value.code or 0, *capsys.readouterr())

    return called


def make_configs(*methods, seeds=(0, 1), net="net", epochs=12):
    return run_configs(
        "ray_own:data",
        open_data("ray_own:data"),
        recipe_name="demo",
        net=f"ray_own:{net}",
        optimizer="momentum",
        methods=methods or ("random", "recency"),
        seeds=seeds,
        precision="float32",
        epochs=epochs,
        batch_size=8,
        warm_up=2,
        window=2,
    )


def test_a_study_survives_the_death_of_a_worker_and_ends_with_the_records_of_a_local_one(
    address, own, read_study
):
    (own / "pids").mkdir()
    (own / "slow").write_text("0.01")
    configs, complaints, killed = make_configs(), [], []
    at_work = FolderNews(own / "ray", configs)

    def kill_one(news):
        if not killed and not news.is_warm_up and len(news.records) > 2:
            killed.append(int(min(os.listdir("pids"))))
            os.kill(killed[0], signal.SIGKILL)

    with RayCluster() as cluster:
        cluster.train(
            Study(Path("ray"), configs, name="kill"),
            device="cpu",
            on_news=kill_one,
            complain=complaints.append,
        )
    workers = {int(name) for name in os.listdir("pids")}
    assert len(workers) >= 2
    assert os.getpid() not in workers
    (complaint,) = complaints
    assert complaint.startswith("a worker died; runs ")
    assert complaint.endswith(" go on from their checkpoints")
    (own / "slow").unlink()
    Study(Path("local"), configs, name="kill").train()
    assert read_study(own / "ray") == read_study(own / "local")
    assert {len(news.records) for news in at_work.latest() if not news.is_warm_up} == {12}
    runs = read_runs("ray")
    assert len(runs) == 4
    assert all(run.finished and run.done["machine"]["threads"] == 1 for run in runs)
    described = [json.loads(Path(name, "study.json").read_text()) for name in ("ray", "local")]
    assert described[0] == described[1]
    assert sorted(p.name for p in own.glob("ray/warm-ups/*")) == sorted({c.warm_up_hash for c in configs})


def test_ctrl_c_stops_all_workers_and_the_same_command_goes_on(address, call, own, read_study):
    (own / "slow").write_text("0.1")
    command = [*COMPARE, "--ray", address, "--out", "study"]
    stopped = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "carpediem", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        patience = time.monotonic() + 60
        while not list(own.glob("study/warm-ups/*/epochs.jsonl")):
            assert stopped.poll() is None, stopped.communicate()
            assert time.monotonic() < patience
            time.sleep(0.02)
        stopped.send_signal(signal.SIGINT)
        out, err = said(stopped, timeout=60)
    finally:
        stopped.kill()
    assert (stopped.returncode, out) == (130, ""), err
    assert err.splitlines()[-1] == "stopped: the same command continues where it was"
    assert not list(own.glob("study/runs/*/done.json"))
    (own / "slow").unlink()
    code, out, err = call(*command)
    assert code == 0, err
    assert err.startswith("trains 4 runs of ")
    assert len(err.splitlines()[1:]) == err.count(": best test error ") == 4, "no folder was still locked"
    assert "Recency Bias" in out
    assert call(*COMPARE, "--out", "local")[0] == 0
    assert read_study(own / "study") == read_study(own / "local")


def test_the_flag_alone_is_enough_and_what_is_done_is_not_trained_again(address, call, own):
    options = ["--epochs", 3, "--tensorboard", "--out", "study"]
    code, out, err = call(*COMPARE, "--ray", *options)
    assert (code, err.count(": best test error ")) == (0, 4), err
    assert "written to study" in out
    assert len(list(own.glob("study/runs/**/*tfevents*"))) == 4
    assert call(*COMPARE, *options, "--ray") == (
        0,
        out,
        "all of these runs are done already: nothing is trained\n",
    )


def test_a_failing_run_is_told_in_the_sentence_of_a_local_study(address, call, own):
    options = [*COMPARE, "--net", "ray_own:wrong"]
    local, there = call(*options, "--out", "local"), call(*options, "--ray", "--out", "ray")
    assert there == local
    assert there == (2, "", "error: the network of ray_own:wrong raised KeyError: 'here'\n")


def test_runs_at_which_every_worker_dies_are_given_up(address, own, monkeypatch):
    monkeypatch.setattr(ray_cluster, "DEATHS", 2)
    study, complaints = Study(Path("study"), make_configs(seeds=(0,), net="deadly")), []
    with (
        RayCluster() as cluster,
        pytest.raises(ClusterError, match=r"^2 workers died one after the other at runs"),
    ):
        cluster.train(study, device="cpu", on_news=print, complain=complaints.append)
    assert len(complaints) == 1
    assert not Path("study").exists(), "nothing was trained"


def test_no_token_is_left_in_the_users_home(address, home):
    assert not (home / ".ray").exists()


def test_a_worker_without_the_folder_says_that_the_disk_must_be_shared(own):
    study = Study(own / "study", make_configs())
    orders = {"current": own, "data": None, "device": "cpu", "data_dir": None, "side_by_side": None}
    with pytest.raises(ClusterError, match="study must be there on every machine of the cluster"):
        ray_cluster._train(study, **orders)


def test_gpus_take_as_many_runs_as_pay_off_but_none_stays_idle(own):
    configs = make_configs("random", "online", "active", "recency", seeds=range(9))
    sizes = {gpus: list(map(len, ray_cluster._groups(configs, gpus, 16))) for gpus in (1, 2, 4, 9, 100)}
    assert sizes == {1: [16, 16, 4], 2: [16, 16, 4], 4: [8, 8, 8, 8, 4], 9: [4] * 9, 100: [4] * 9}
    for groups in (ray_cluster._groups(configs, gpus, 16) for gpus in sizes):
        assert sorted(c.hash for group in groups for c in group) == sorted(c.hash for c in configs)


# What goes wrong before anything is trained


@pytest.mark.parametrize("address", ["here", "host", "http://host:1", "host:port", ""])
def test_what_is_no_address_is_refused(call, address):
    expected = f"error: --ray must be local, auto or HOST:PORT, got {address!r}\n"
    assert call("reproduce", "resnet-sgd", f"--ray={address}") == (2, "", expected)


def test_an_address_at_which_nobody_answers_is_told_at_once(call, own):
    script = f"import sys; from carpediem.cli import app; app({[*COMPARE, '--ray', '127.0.0.1:9']!r})"
    done = python("-c", script, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: the Ray cluster (127.0.0.1:9) could not be connected to: [Errno 111] Connection refused\n"
    )


def test_the_name_of_a_study_behind_the_flag_is_not_its_address(call, own):
    code, _, err = call("reproduce", "--ray", "resnet-sgd", "--datasets", "cifar10", "--data-dir", "data")
    assert code == 2
    assert err.startswith("error: cifar10 "), err


def test_a_misspelt_study_behind_the_flag_is_named(call):
    code, _, err = call("reproduce", "--ray", "resnet-sdg")
    assert code == 2
    assert err.startswith(
        "error: NAME is missing ('resnet-sdg' was taken for the address of --ray); it is one"
    )


def test_a_cuda_device_must_be_on_the_cluster(address, call):
    _, _, err = call(*COMPARE, "--ray", address, "--device", "cuda")
    assert err == (
        "error: --device cuda needs a CUDA device, and the Ray cluster has none; use --device cpu\n"
    )
