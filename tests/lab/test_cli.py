"""The `carpediem` command, as a user and as a script meet it."""

import csv
import io
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from carpediem import __version__
from carpediem.cli import app
from carpediem.lab import session
from carpediem.lab.export import sample_table
from carpediem.lab.records import read_run, read_runs
from carpediem.lab.tensorboard import write_events
from lab.data.makers import class_folders, mnist

COMMAND = [str(Path(sys.executable).with_name("carpediem"))]
MODULE = [sys.executable, "-m", "carpediem"]
QUICK = ["--seeds", "1", "--epochs", "12", "--batch-size", "700"]  # two steps an epoch
NAMES = ("Random Batch", "Online Batch", "Active Bias", "Recency Bias")
OWN = """
import numpy as np
from torch import nn

def data():
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 4
    images = (rng.integers(0, 60, (40, 8, 8)) + 60 * labels[:, None, None]).astype(np.uint8)
    return images[:32], labels[:32], images[32:], labels[32:]

def three():
    return 1, 2, 3

def net(num_classes, in_channels):
    return nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(64 * in_channels, num_classes))

def wrong_data():
    return len(5)

def wrong_net(num_classes, in_channels):
    return nn.Linear(num_classes)

class Wrong(nn.Linear):
    def forward(self, images):
        return {}["here"]

def plain_net():
    return None


def wrong_forward(num_classes, in_channels):
    return Wrong(in_channels, num_classes)
"""


def environment(**changes):
    clean = {k: v for k, v in os.environ.items() if k not in ("CARPEDIEM_DATA", "COLUMNS", "FORCE_COLOR")}
    return clean | {"OMP_NUM_THREADS": "1", "TERM": "xterm-256color"} | changes


def run(*arguments, cwd, command=MODULE, **options):
    return subprocess.run(
        [*command, *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Calls the command inside the test's process, in a folder of its own: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CARPEDIEM_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", ["carpediem"])
    (tmp_path / "own_code.py").write_text(OWN)
    yield lambda *arguments: _called(capsys, *arguments)
    sys.modules.pop("own_code", None)


def _called(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        app(list(map(str, arguments)))
    out, err = capsys.readouterr()
    return ended.value.code or 0, out, err


def best_errors(folder):
    return {run.config["method"]: min(e["test_error"] for e in run.epochs) for run in read_runs(folder)}


# The demo


def test_seeds_may_begin_later_and_make_the_runs_of_a_longer_study(call):
    options = [
        "--methods",
        "random",
        "--epochs",
        "2",
        "--warm-up",
        "1",
        "--window",
        "1",
        "--batch-size",
        "700",
    ]
    assert call("compare", *options, "--seeds", "3", "--out", "whole")[0] == 0
    assert call("compare", *options, "--seeds", "2", "--first-seed", "1", "--out", "part")[0] == 0
    whole, part = ({run.hash: run for run in read_runs(folder)} for folder in ("whole", "part"))
    assert sorted(run.config["seed"] for run in part.values()) == [1, 2]
    for name, run in part.items():
        errors = [[epoch["test_error"] for epoch in one.epochs] for one in (run, whole[name])]
        assert errors[0] == errors[1]


def test_the_demo_compares_the_methods_and_writes_what_it_says(tmp_path):
    options = ["--seeds", "2", "--epochs", "12", "--batch-size", "256"]
    done = run("compare", "--out", "demo", *options, cwd=tmp_path, command=COMMAND)
    assert done.returncode == 0, done.stderr
    runs = read_runs(tmp_path / "demo")
    assert len(runs) == 8
    assert all(run.finished and len(run.epochs) == 12 for run in runs)
    assert all((run.config["data"], run.config["net"]) == ("digits", "small-cnn") for run in runs)
    for number, name in enumerate(NAMES):
        method = ("random", "online", "active", "recency")[number]
        bests = [min(e["test_error"] for e in run.epochs) for run in runs if run.config["method"] == method]
        (row,) = [
            line for line in done.stdout.splitlines() if line.startswith(f" {name}") and "%" not in line
        ]
        assert float(row.split()[2]) == pytest.approx(sum(bests) / 2, abs=0.006)
        # One line a finished run while it goes on.
        assert len(re.findall(rf"^{name}, seed [01]: best test error", done.stderr, re.M)) == 2
    first, note, *lines = done.stderr.splitlines()
    assert first == "trains 8 runs of 12 epochs, each of 3 batches of 256"
    assert note.startswith("note: an epoch of so few batches leaves little to select")
    assert len(lines) == 8
    assert "Test error by epoch: digits, small-cnn, momentum" in done.stdout
    *_, last = done.stdout.splitlines()
    assert last.startswith("written to demo: runs/, tables.md, figures/")
    for name in last.removeprefix("written to demo: ").split(", "):
        assert (tmp_path / "demo" / name).exists()
    study = json.loads((tmp_path / "demo" / "study.json").read_text())
    assert study["command"][:4] == ["carpediem", "compare", "--out", "demo"]
    assert set(study["runs"]) == {run.hash for run in runs}
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stdout + done.stderr
    assert "━" not in done.stderr


def test_compare_needs_no_argument(tmp_path):
    with subprocess.Popen(
        [*COMMAND, "compare"], cwd=tmp_path, env=environment(), stderr=subprocess.PIPE
    ) as begun:
        end = time.monotonic() + 60
        while not list(tmp_path.glob("runs/*/runs/*/config.json")):
            assert begun.poll() is None, begun.stderr.read().decode()
            assert time.monotonic() < end
            time.sleep(0.1)
        begun.kill()


def test_a_run_that_diverged_is_named(call):
    code, _, err = call("train", "--method", "random", "--epochs", "2", "--learning-rate", "1e30")
    assert code == 0
    assert "note: Random Batch, seed 0: the training loss is no number in epoch 1" in err


def test_whoever_reads_the_output_may_stop_early(tmp_path):
    script = f"set -o pipefail; {' '.join(map(str, COMMAND))} data ls | true"
    done = run("-c", script, cwd=tmp_path, command=["bash"])
    assert (done.returncode, done.stderr) == (0, "")


def test_a_second_call_trains_nothing_and_shows_the_same(call, tmp_path):
    _, first, trained = call("compare", "--out", "study", *QUICK)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "study" / "runs").rglob("*")}
    code, second, said = call("compare", "--out", "study", *QUICK)
    assert (code, second, said) == (0, first, "all of these runs are done already: nothing is trained\n")
    assert trained.count("best test error") == 4
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "study" / "runs").rglob("*")}


def test_json_is_all_there_is_on_standard_output(tmp_path):
    done = run("compare", "--json", "--out", "study", *QUICK, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    assert printed["folder"] == "study"
    (table,) = printed["tables"]
    errors = best_errors(tmp_path / "study")
    assert len(table["rows"]) == len(errors) == 4
    for row, (method, name) in zip(
        table["rows"], zip(("random", "online", "active", "recency"), NAMES, strict=True), strict=True
    ):
        assert row["method"] == name
        found = row["best_error"]
        assert errors[method] == pytest.approx(found["mean"] if isinstance(found, dict) else found)


def on_a_terminal(arguments, cwd):
    """What a command shows on a terminal of 100 columns, and its exit code."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*MODULE, *arguments],
        cwd=cwd,
        env=environment(COLUMNS="100"),
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    shown, patience = b"", time.monotonic() + 120
    while time.monotonic() < patience:
        if select.select([master], [], [], 0.1)[0]:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other end was closed
                break
            if not part:
                break
            shown += part
    os.close(master)
    return shown.decode(), process.wait(60)


def test_a_table_that_goes_to_a_file_is_plain_on_a_terminal_too(tmp_path):
    assert run("compare", "--out", "study", *QUICK, cwd=tmp_path).returncode == 0
    shown, code = on_a_terminal(["tables", "study", "--measured"], tmp_path)
    assert code == 0
    assert "\x1b[" in shown
    shown, code = on_a_terminal(["tables", "study", "--measured", "--out", "table.txt"], tmp_path)
    assert (shown.split(), code) == (["table.txt"], 0)
    assert "\x1b" not in (tmp_path / "table.txt").read_text()


def test_a_terminal_shows_a_bar_and_colours(tmp_path):
    shown, code = on_a_terminal(["compare", "--out", "study", *QUICK], tmp_path)
    assert code == 0, shown
    assert "━" in shown
    assert re.search(r"shared warm-up, seed 0: \d+\.\d\d%", shown)
    assert re.search(r"Recency Bias, seed 0: \d+\.\d\d%", shown)
    assert re.search(r"\d+/48.*epochs", shown)
    assert "\x1b[" in shown
    assert "written to study" in shown


def test_ctrl_c_leaves_a_study_that_the_same_command_continues(tmp_path):
    arguments = [
        "compare",
        "--seeds",
        "1",
        "--epochs",
        "9",
        "--warm-up",
        "3",
        "--window",
        "3",
        "--out",
        "study",
    ]
    process = subprocess.Popen(
        [*MODULE, *arguments], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    patience = time.monotonic() + 60
    while (
        not (files := list(tmp_path.glob("study/runs/*/epochs.jsonl")))
        or max(file.read_bytes().count(b"\n") for file in files) < 5
    ):
        assert process.poll() is None
        assert time.monotonic() < patience
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")
    assert err.decode().splitlines() == [
        "trains 4 runs of 9 epochs, each of 14 batches of 64",
        "stopped: the same command continues where it was",
    ]
    before = {run.hash: run.epochs for run in read_runs(tmp_path / "study")}
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for finished in read_runs(tmp_path / "study"):
        assert finished.finished
        assert len(finished.epochs) == 9
        kept = before[finished.hash][:-1]
        assert finished.epochs[: len(kept)] == kept


# Options


def test_options_may_come_from_a_file_and_the_command_line_wins(call, tmp_path):
    (tmp_path / "options.toml").write_text(
        'methods = ["random", "recency"]\nseeds = 2\nepochs = 3\nwarm-up = 2\nwindow = 2\nbatch_size = 256\n'
        'out = "elsewhere"\njson = true\n'
    )
    code, out, err = call("compare", "--config", "options.toml", "--seeds", "1")
    assert (code, err) == (0, "")
    assert json.loads(out)["folder"] == "elsewhere"
    runs = read_runs(tmp_path / "elsewhere")
    assert {(r.config["method"], r.config["seed"]) for r in runs} == {("random", 0), ("recency", 0)}
    assert {(r.config["batch_size"], r.config["warm_up"], r.config["window"]) for r in runs} >= {(256, 2, 2)}


def test_options_reach_the_configuration(call, tmp_path):
    options = {
        "--method": "recency-independent",
        "--seed": 5,
        "--recipe": "modern",
        "--optimizer": "sgd",
        "--iterations": 7,
        "--batch-size": 300,
        "--learning-rate": 0.02,
        "--dropout": 0.1,
        "--augmentation": "none",
        "--image-size": 9,
        "--warm-up": 1,
        "--window": 1,
        "--pressure": 12,
        "--schedule": "constant",
        "--out": "one",
    }
    code, _, err = call("train", *(part for option in options.items() for part in option))
    assert code == 0, err
    (found,) = read_runs(tmp_path / "one")
    wanted = {
        "method": "recency",
        "draws": "independent",
        "seed": 5,
        "recipe": "modern",
        "optimizer": "sgd",
        "iterations": 7,
        "batch_size": 300,
        "learning_rate": 0.02,
        "dropout": 0.1,
        "augmentation": "none",
        "image_size": 9,
        "warm_up": 1,
        "window": 1,
        "pressure": 12.0,
        "schedule": "constant",
        "precision": "float32",
        "normalisation": "per-image",
    }
    assert wanted.items() <= found.config.items()
    assert [e["iteration"] for e in found.epochs] == [2, 4, 6, 7]


def test_settings_of_a_method_are_options_that_the_others_do_not_read(call, tmp_path):
    options = {
        "--draws": "independent",
        "--schedule": "constant",
        "--losses": "evaluate",
        "--smoothness": 0.3,
        "--mode": "reweight",
        "--out": "study",
    }
    options = [part for option in options.items() for part in option]
    code, _, err = call(
        "compare", *QUICK[:2], "--epochs", 2, "--warm-up", 1, "--window", 1, *QUICK[4:], *options
    )
    assert code == 0, err
    configs = {run.config["method"]: run.config for run in read_runs(tmp_path / "study")}
    names = ("schedule", "losses", "smoothness", "mode")
    assert {method: tuple(config[name] for name in names) for method, config in configs.items()} == {
        "random": ("decayed", "observe", 0.02, "sample"),
        "online": ("constant", "evaluate", 0.02, "sample"),
        "active": ("decayed", "observe", 0.3, "reweight"),
        "recency": ("constant", "observe", 0.02, "sample"),
    }
    assert {config["draws"] for config in configs.values()} == {"independent"}


def test_runs_go_to_a_folder_of_their_own_without_out(call, tmp_path):
    assert call("train", "--method", "random", "--epochs", "1", "--batch-size", "700")[0] == 0
    (found,) = read_runs(tmp_path / "runs" / "train-digits-small-cnn")
    assert found.finished


def test_a_folder_of_images_can_be_compared_on(call, tmp_path):
    class_folders(tmp_path / "pets", count=10)
    options = ["--image-size", "16", "--batch-size", "8", "--seeds", "1"]
    options += ["--epochs", "3", "--warm-up", "2", "--window", "2"]
    code, out, err = call("compare", "--data", "./pets", *options, "--out", "study")
    assert code == 0, err
    assert {r.config["recipe"] for r in read_runs(tmp_path / "study")} == {"modern"}
    assert all(name in out for name in NAMES)
    table = sample_table([tmp_path / "study"])
    for path, name in table.select("path", "class_name").rows():
        assert (tmp_path / "pets" / path).is_file()
        assert path.startswith(f"{name}/")


def test_users_own_data_and_network_are_found_in_the_current_folder(tmp_path):
    (tmp_path / "own_code.py").write_text(OWN)
    options = ["--data", "own_code:data", "--net", "own_code:net", "--methods", "random,recency"]
    options += ["--seeds", "1", "--epochs", "3", "--warm-up", "2", "--window", "2", "--batch-size", "8"]
    done = run("compare", *options, cwd=tmp_path, command=COMMAND)
    assert done.returncode == 0, done.stderr
    runs = read_runs(tmp_path / "runs" / "compare-own_code-data-own_code-net")
    assert {r.config["net"] for r in runs} == {"own_code:net"}
    assert all(r.finished for r in runs)
    assert "not continued" not in done.stderr
    # What is trained after a change of the code is said to be something else.
    (tmp_path / "own_code.py").write_text(OWN.replace("default_rng(0)", "default_rng(1)"))
    done = run("compare", *options, cwd=tmp_path, command=COMMAND)
    assert done.returncode == 0, done.stderr
    folder = "runs/compare-own_code-data-own_code-net"
    for what in ("the data own_code:data", "the code of the network own_code:net"):
        assert f"note: {what} is not that of 2 runs in {folder}, which are not continued" in done.stderr
    assert len(read_runs(tmp_path / folder)) == 4


def test_it_is_said_how_much_there_is_to_train(call):
    options = ["train", "--method", "random", "--epochs", "2"]
    _, _, err = call(*options, "--out", "one")
    assert err.splitlines()[0] == "trains 1 run of 2 epochs, each of 14 batches of 64"
    _, _, err = call(*options, "--out", "one")
    assert "trains" not in err, "it is done"
    _, _, err = call(*options, "--batch-size", "300", "--out", "two")
    assert err.splitlines()[:2] == [
        "trains 1 run of 2 epochs, each of 2 batches of 300",
        "note: an epoch of so few batches leaves little to select; a smaller --batch-size gives more of them",
    ]


def test_it_is_said_when_the_warm_up_leaves_nothing_to_select(call):
    options = ["train", "--method", "recency", "--window", "2", "--warm-up", "2"]
    for epochs, is_told in (("3", True), ("4", False)):
        _, _, err = call(*options, "--epochs", epochs, "--out", epochs)
        assert ("note: the warm-up leaves one epoch to select in" in err) == is_told


def test_a_finished_study_is_shown_where_nothing_can_be_written(call, tmp_path):
    options = ["compare", *QUICK, "--methods", "random", "--out", "done"]
    _, before, _ = call(*options)
    shutil.rmtree(tmp_path / "done" / "figures")
    (tmp_path / "done" / "figures").write_text("in the way")
    code, out, err = call(*options)
    assert (code, "Random Batch" in out) == (2, True)
    assert before.startswith(out)
    assert "figures cannot be written" in err


def test_runs_that_were_trained_without_a_second_test_are_told_of(call):
    options = ["train", *QUICK[2:], "--out", "before"]
    call(*options)
    code, _, err = call(*options, "--test-dropout")
    assert code == 0
    assert "1 of these runs were trained without --test-dropout before" in err


def test_dropout_can_be_left_on_in_a_second_test_of_every_epoch(call, tmp_path):
    assert call("compare", *QUICK, "--methods", "random,recency", "--test-dropout", "--out", "both")[0] == 0
    for one in read_runs(tmp_path / "both"):
        assert all(0 <= epoch["test_error_dropout"] <= 100 for epoch in one.epochs)
    code, out, _ = call("tables", "both", "--stages")
    assert code == 0
    assert "Dropout left on: digits, small-cnn, momentum, recipe demo" in out


def test_tensorboard_files_lie_beside_each_run(call, tmp_path):
    assert call("train", *QUICK[2:], "--tensorboard", "--out", "one")[0] == 0
    (file,) = tmp_path.glob("one/runs/*/tensorboard/*tfevents*")
    assert file.stat().st_size > 1000


def test_tensorboard_files_are_written_after_every_epoch(call, monkeypatch):
    seen = []

    def write(folder):
        seen.append(len(read_run(folder).epochs))
        return write_events(folder)

    monkeypatch.setattr(session, "write_events", write)
    options = ["--epochs", 4, "--warm-up", 1, "--window", 1, "--batch-size", 700]
    assert call("train", *options, "--tensorboard", "--out", "one")[0] == 0
    assert seen == [2, 3, 4, 4], "the first epoch is the warm-up's"


# Mistakes


MISTAKES = {
    "unknown data": (["--data", "nonsense"], "digits, mnist, .* got 'nonsense'"),
    "unknown method": (["--methods", "random,magic"], "method must be one of .* got 'magic'"),
    "unknown network": (["--net", "vgg"], "densenet-40-12.*got 'vgg'"),
    "unknown recipe": (["--recipe", "old"], "recipe must be one of paper, modern"),
    "unknown optimizer": (["--optimizer", "adam"], "optimizer must be one of momentum, sgd, got 'adam'"),
    "unknown augmentation": (["--augmentation", "mixup"], "none, crop-flip, flip-jitter.* got 'mixup'"),
    "too few epochs": (["--epochs", "10"], "epochs must exceed warm_up = 10 .*train longer or warm up less"),
    "both lengths": (
        ["--epochs", "20", "--iterations", "99"],
        "--epochs and --iterations .*give one of them",
    ),
    "window too long": (["--window", "12"], "warm_up must be at least window = 12"),
    "batch too large": (["--batch-size", "899"], "batch_size must be at most the 898 training samples"),
    "missing data": (["--data", "mnist", "--data-dir", "."], "carpediem data fetch mnist.*--data-dir"),
    "missing folder": (["--data", "./photos"], "data must be one of .*an existing folder .*got './photos'"),
    "missing module": (["--data", "no_such_module:data"], "no module 'no_such_module'"),
    "missing function": (["--data", "own_code:nothing"], "own_code.py must define a function 'nothing'"),
    "function of another kind": (["--data", "own_code:three"], "own_code:three must return"),
    "unknown draws": (["--draws", "lots"], "draws must be one of independent, systematic, got 'lots'"),
    "unknown schedule": (["--schedule", "up"], "schedule must be one of decayed, constant, got 'up'"),
    "unknown mode": (["--mode", "drop"], "mode must be one of sample, reweight, got 'drop'"),
    "unknown losses": (["--losses", "old"], "losses must be one of observe, evaluate, got 'old'"),
    "no dropout to leave on": (
        ["--test-dropout", "--dropout", "0"],
        "small-cnn has no nn.Dropout at work with dropout 0; leave --test-dropout out",
    ),
    "error in the user's data": (
        ["--data", "own_code:wrong_data"],
        r"own_code:wrong_data raised TypeError: object of type 'int' has no len\(\)",
    ),
    "error in the user's network": (
        ["--net", "own_code:wrong_net"],
        "own_code:wrong_net raised TypeError: .*missing 1 required positional argument",
    ),
    "error in the user's module": (
        ["--net", "broken_code:net"],
        "broken_code of broken_code:net raised NameError: name 'nothing' is not defined",
    ),
    "error in the user's module of data": (
        ["--data", "broken_code:data"],
        "broken_code of broken_code:data raised NameError: name 'nothing' is not defined",
    ),
    "missing network module": (["--net", "no_such_module:net"], "no module 'no_such_module'"),
    "file for module": (["--net", "own_code.py:net"], "leave .py out: own_code:net"),
    "missing network function": (
        ["--net", "own_code:nothing"],
        "own_code.py must define a function 'nothing'",
    ),
    "folder without images": (["--data", "./empty"], "empty must hold a folder for each"),
    "no such device": (["--device", "abacus"], "--device must be cpu or cuda, got 'abacus'"),
    "unknown key": (
        ["--config", "wrong.toml"],
        "wrong.toml has the unknown key 'sedes'; did you mean 'seeds'[?]",
    ),
    "a network with other arguments": (
        ["--net", "own_code:plain_net"],
        "own_code:plain_net must take num_classes and in_channels by name: .*'num_classes'",
    ),
    "no TOML": (["--config", "broken.toml"], "broken.toml is not a TOML file"),
    "no file": (["--config", "absent.toml"], "absent.toml.*see .*carpediem compare --help"),
    "no number": (["--seeds", "many"], "--seeds.*many.*see .*carpediem compare --help"),
    "no seeds": (["--seeds", "0"], r"--seeds.*\b0\b.*see"),
    "an empty number": (["--seeds", ""], "--seeds.*''.*see"),
    "two lines": (["--seeds", "1\n2"], r"--seeds.*'1\\n2'.*see"),
    "unknown option": (["--sedes", "3"], "--sedes.*--seeds"),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_gets_one_line_with_a_remedy(call, tmp_path, arguments, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "wrong.toml").write_text("sedes = 3\n")
    (tmp_path / "broken.toml").write_text("seeds = [\n")
    (tmp_path / "broken_code.py").write_text("nothing\n")
    code, out, err = call("compare", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert re.search(message, err), err
    assert not list(tmp_path.rglob("config.json")), "a run was begun"


def test_an_error_of_a_users_network_in_training_gets_one_line_too(call):
    code, out, err = call("train", "--net", "own_code:wrong_forward", "--out", "one")
    assert (code, out) == (2, "")
    assert err == "error: the network of own_code:wrong_forward raised KeyError: 'here'\n"


@pytest.mark.parametrize(
    "arguments", [["comprae"], ["reproduce"], ["tables"], ["tables", "absent"], ["data", "fetch", "moon"]]
)
def test_a_mistake_elsewhere_gets_one_line_too(call, arguments):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", [COMMAND, MODULE], ids=["script", "module"])
def test_a_mistake_in_a_process_of_its_own(tmp_path, command):
    done = run("train", "--method", "magic", cwd=tmp_path, command=command)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: method must be one of")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


# The other commands


@pytest.mark.parametrize("command", [COMMAND, MODULE], ids=["script", "module"])
def test_the_version_is_told(tmp_path, command):
    done = run("--version", cwd=tmp_path, command=command)
    assert done.stdout == f"carpediem {__version__} (torch {torch.__version__})\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_without_arguments_the_commands_are_listed(call):
    _, out, err = call()
    assert all(name in out + err for name in ("compare", "train", "reproduce", "tables", "data"))


@pytest.mark.parametrize("command", ["compare", "train", "reproduce", "tables", "data ls", "data fetch"])
def test_every_option_is_explained(call, command):
    code, out, _ = call(*command.split(), "--help")
    assert code == 0
    assert f"carpediem {command}" in out or f"{command} [OPTIONS]" in out
    assert "\x1b" not in out


def test_tables_come_in_four_forms(call, tmp_path):
    assert call("compare", "--out", "study", *QUICK)[0] == 0
    errors = {f"{error:.2f}" for error in best_errors(tmp_path / "study").values()}
    forms = {form: call("tables", "study", "--format", form) for form in ("text", "markdown", "csv", "json")}
    for form, (code, out, err) in forms.items():
        assert (code, err) == (0, ""), form
        assert "\x1b" not in out
        assert all(name in out for name in NAMES), form
    assert call("tables", "study")[1] == forms["text"][1]
    assert all(error in forms["text"][1] and error in forms["markdown"][1] for error in errors)
    assert re.search(r"^\| .*Method.* \|$", forms["markdown"][1], re.M)
    assert any("Recency Bias" in row for row in csv.reader(io.StringIO(forms["csv"][1])))
    (table,) = json.loads(call("tables", "study", "--measured", "--format", "json")[1])
    assert json.loads(forms["json"][1])[0] == table
    assert [row["method"] for row in table["rows"]] == list(NAMES)


def test_all_tables_of_the_paper_are_there_unless_only_the_measured_are_wanted(call):
    assert call("train", "--method", "random", "--epochs", "1", "--batch-size", "700", "--out", "one")[0] == 0
    only = call("tables", "one", "--measured")[1]
    assert "Table 2" not in only
    assert "Random Batch" in only
    _, out, _ = call("tables", "one")
    assert out.startswith(only)  # what was run comes first
    assert all(f"Table {number}: " in out for number in range(2, 8))
    assert "Figure 7: " in out
    assert "—" in out


def test_the_stages_of_a_training_are_a_table_of_their_own(call):
    options = ["--methods", "random,recency", "--seeds", "1", "--epochs", "12", "--batch-size", "898"]
    assert call("compare", *options, "--out", "study")[0] == 0
    code, out, err = call("tables", "study", "--stages", "--format", "json")
    assert (code, err) == (0, "")
    (table,) = json.loads(out)
    assert table["title"].startswith("Stages: ")
    assert [row["stage"] for row in table["rows"][::2]] == [
        "11 to 12, rate 0.001",
        "8 to 12, last 5",
        "12, last",
        "best",
    ]
    code, _, err = call("tables", "study", "--stages", "--overview")
    assert (code, err) == (
        2,
        "error: --overview, --stages and --worlds make different tables; call once with each\n",
    )


def test_the_papers_numbers_stand_beside_ours_with_both_recipes(call):
    assert call("train", "--method", "random", "--epochs", "1", "--batch-size", "700", "--out", "one")[0] == 0
    code, out, err = call("tables", "one", "--worlds", "--format", "json")
    assert (code, err) == (0, "")
    (table,) = json.loads(out)
    assert table["title"] == "Three worlds: best test error (%), CIFAR-10, momentum"
    printed = {row["paper"] for row in table["rows"] if row["method"] == "Recency − Random"}
    assert printed == {-0.43, -0.73}


def test_tables_can_be_written_to_a_file(call, tmp_path):
    assert call("train", "--method", "random", "--epochs", "1", "--batch-size", "700", "--out", "one")[0] == 0
    code, out, _ = call("tables", "one", "--format", "markdown", "--out", "tables/mine.md")
    assert (code, out) == (0, "tables/mine.md\n")
    assert (tmp_path / "tables" / "mine.md").read_text() == call("tables", "one", "--format", "markdown")[1]


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.md", "markdown"), ("a.csv", "csv"), ("a.json", "json"), ("a.txt", "text"), ("a", "text")],
)
def test_the_name_of_a_file_of_tables_says_its_format(call, tmp_path, name, form):
    assert call("train", "--method", "random", "--epochs", "1", "--batch-size", "700", "--out", "one")[0] == 0
    assert call("tables", "one", "--out", name)[0] == 0
    assert (tmp_path / name).read_text() == call("tables", "one", "--format", form)[1]


def test_tables_of_a_folder_of_studies_or_of_a_page_beside_them_are_refused_with_a_remedy(call, tmp_path):
    assert (
        call("train", "--method", "random", "--epochs", "1", "--batch-size", "700", "--out", "all/one")[0]
        == 0
    )
    (tmp_path / "all" / "README.md").write_text("# Results\n")
    code, _, err = call("tables", "all")
    assert code == 2
    assert err.endswith("is in it; its folders hold some, so name all/*/\n")
    code, _, err = call("tables", "all/one", "all/README.md")
    assert (code, err) == (2, "error: all/README.md is no study: name folders, or runs.jsonl files\n")


def test_an_unknown_form_of_tables_is_refused(call):
    assert call("train", "--method", "random", "--epochs", "1", "--batch-size", "700", "--out", "one")[0] == 0
    code, _, err = call("tables", "one", "--format", "latex")
    assert code == 2
    assert err == "error: --format must be text, markdown, csv or json, got 'latex'\n"


def test_the_data_that_is_there_is_listed(call, tmp_path):
    mnist(tmp_path / "here" / "MNIST" / "raw", zipped=True)
    code, out, err = call("data", "ls", "--data-dir", "here")
    assert (code, err) == (0, "")
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert "here" in lines["mnist"]
    assert "missing" not in lines["mnist"]
    assert "comes with scikit-learn" in lines["digits"]
    assert "carpediem data fetch cifar10" in lines["cifar10"]
    assert lines["looked"] == "looked for in here"
    told = json.loads(call("data", "ls", "--data-dir", "here", "--json")[1])
    assert told["places"] == ["here"]
    assert {one["name"] for one in told["sets"] if one["present"]} == {"digits", "mnist"}


def test_figures_are_drawn_and_results_published_from_finished_runs(call, tmp_path):
    options = ["--methods", "random,recency", "--seeds", "1", "--epochs", "12", "--batch-size", "898"]
    assert call("compare", *options, "--out", "study")[0] == 0
    code, out, err = call("figures", "study", "--out", "drawn")
    assert (code, err) == (0, "")
    assert {Path(line).suffix for line in out.splitlines()} == {".png", ".pdf"}
    code, out, err = call("publish", "study", "--out", "results/today")
    assert (code, err) == (0, "")
    written = {Path(line) for line in out.splitlines()}
    assert all(file.stat().st_size > 100 for file in written)
    assert {file.name for file in written} >= {"runs.jsonl", "tables.md", "tables.csv"}
    assert read_runs(tmp_path / "results" / "today") == read_runs(tmp_path / "study")
    asked = [("--measured", "--format", "markdown"), ("--stages", "--format", "markdown")]
    published = (tmp_path / "results" / "today" / "tables.md").read_text()
    assert published == "\n".join(call("tables", "study", *options)[1] for options in asked)
    assert call("tables", "results/today")[1] == call("tables", "study")[1]
    next((tmp_path / "study" / "runs").glob("*/done.json")).unlink()
    code, _, err = call("publish", "study", "--out", "results/later")
    assert code == 0
    assert err == "note: 1 of the 2 runs have not finished; they are in runs.jsonl, but in no table\n"


def test_a_call_for_a_part_of_a_folder_leaves_the_picture_of_the_whole(call, tmp_path):
    call("compare", "--out", "study", *QUICK)
    pictures = list((tmp_path / "study" / "figures").iterdir())
    whole = [picture.read_bytes() for picture in pictures]
    assert len(whole) == 2  # by iteration and by seconds
    _, out, err = call("compare", "--out", "study", *QUICK, "--methods", "recency")
    assert "note: study holds 3 more runs" in err
    assert "Online Batch" not in out
    assert [picture.read_bytes() for picture in pictures] == whole


def test_a_folder_with_other_settings_keeps_them_in_its_table_and_says_so(call, tmp_path):
    options = ["--seeds", "1", "--epochs", "12", "--batch-size", "898", "--out", "study"]
    methods = ["--methods", "random-shuffle,random-independent"]
    _, out, err = call("compare", *methods, *options)
    assert "Random Batch (shuffle), seed 0: best" in err
    assert "Random Batch (independent draws), seed 0: best" in err
    _, out, err = call(
        "compare", *options, "--methods", "random", "--draws", "independent", "--learning-rate", "0.05"
    )
    assert "note: study holds 2 more runs; tables.md and figures/ show all of them" in err
    assert "Random Batch (independent draws)" in out  # which the recipe does not have
    written = (tmp_path / "study" / "tables.md").read_text()
    assert written.count("**digits, small-cnn, momentum, recipe demo with ") == 2
    assert len(list((tmp_path / "study" / "figures").glob("curves_*.png"))) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["tables", "study", "--out", "t.xlsx"],
            "--out must end in .md, .csv, .json or .txt, or --format be given",
        ),
        (["tables", "study", "--out", "study"], "study cannot be written: .*; choose another --out"),
        (["report", "study", "--out", "r.pdf"], "--out must end in .html, got r.pdf"),
        (["compare", "--out", "own_code.py"], "--out must be a folder, got the file own_code.py"),
        (["compare", "--out", "own_code.py/x"], "own_code.py/x cannot be written: .*; choose another --out"),
        (["figures", "study"], "study holds no run yet; carpediem compare --out study trains some"),
        (["tables", "study", "--stages"], "no run has finished in study, so there is nothing to show; "),
        (["tables", "study", "--overview"], "no run has finished in study, so there is nothing to show; "),
        (["tables", "study", "--measured"], "no run has finished in study, so there is nothing to show; "),
    ],
)
def test_an_out_that_cannot_be_meant_gets_a_sentence(call, tmp_path, arguments, message):
    (tmp_path / "study" / "runs").mkdir(parents=True)
    code, _, err = call(*arguments)
    assert code == 2
    assert re.fullmatch(f"error: {message}[^\n]*\n", err)


@pytest.mark.parametrize(
    "mistake", [("--net", "resnet50"), ("--augmentation", "flips"), ("--batch-size", "5000")]
)
def test_a_study_that_cannot_be_trained_leaves_nothing_behind(call, tmp_path, mistake):
    code, _, said = call("compare", "--out", "study", *mistake)
    assert code == 2
    assert said.startswith("error: ")
    assert not (tmp_path / "study").exists()
