"""A study in shares: what a job array trains."""

import json
import os
import random
import re
import subprocess
import sys

import pytest

from carpediem.cli import app
from carpediem.lab.groups import Shard
from carpediem.lab.records import read_runs
from carpediem.lab.study import Study
from lab.data.makers import cifar10_binary
from processes import said

COMPARE = ["compare", "--seeds", "3", "--epochs", "3", "--warm-up", "2", "--window", "2"]
COMPARE += ["--batch-size", "700", "--methods", "random,recency", "--device", "cpu"]


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Calls the command inside the test's process, in a folder of its own: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["carpediem"])

    def called(*arguments):
        with pytest.raises(SystemExit) as ended:
            app(list(map(str, arguments)))
        return (ended.value.code or 0, *capsys.readouterr())

    return called


def shares(configs, count):
    return [Shard(number, count).of(configs) for number in range(1, count + 1)]


def hashes(configs):
    return [config.hash for config in configs]


# The cut


@pytest.mark.parametrize("count", range(1, 12))
def test_shares_cover_the_study_once_and_split_no_warm_up(make_configs, count):
    configs = make_configs("random", "recency", seeds=range(4)) + make_configs(
        "random", "online", "active", seeds=range(3), batch_size=12, iterations=20
    )
    cut = shares(configs, count)
    assert sorted(h for share in cut for h in hashes(share)) == sorted(hashes(configs))
    homes = {}
    for number, share in enumerate(cut):
        for config in share:
            assert homes.setdefault(config.warm_up_hash, number) == number
    assert sum(map(bool, cut)) == min(count, 7), "none is empty while another has two warm-ups"


@pytest.mark.parametrize("count", [2, 3, 4, 7, 10])
def test_shares_of_equal_runs_differ_by_one_warm_up_at_most(make_configs, count):
    sizes = {len(share) // 2 for share in shares(make_configs("random", "recency", seeds=range(10)), count)}
    assert max(sizes) - min(sizes) <= 1


def test_long_runs_weigh_more_than_short_ones(make_configs):
    long, short = make_configs("random", epochs=50), make_configs("random", seeds=range(1, 6), epochs=10)
    assert sorted(map(len, shares(long + short, 2))) == [1, 5]


def test_what_loads_the_same_data_and_network_stays_together(make_configs):
    configs = [
        config
        for seed in range(3)
        for net in ("small-cnn", "densenet-40-12", "resnet-50")
        for config in make_configs("random", "recency", seeds=[seed], net=net)
    ]
    assert [len({c.net for c in share}) for share in shares(configs, 3)] == [1, 1, 1]


def test_every_job_makes_the_same_cut_whatever_the_order_and_whatever_is_done(make_configs, tmp_path):
    configs = make_configs("random", "recency", seeds=range(5), epochs=3)
    expected = shares(configs, 3)
    shuffled = random.Random(0).sample(configs, len(configs))
    assert [set(hashes(s)) for s in shares(shuffled, 3)] == [set(hashes(s)) for s in expected]
    study = Study(tmp_path, configs)
    study.share(expected[1]).train()
    assert study.share(expected[1]).pending() == []
    assert set(hashes(study.pending())) == set(hashes(expected[0] + expected[2]))
    assert shares(study.configs, 3) == expected


# The command


def test_shares_in_one_folder_and_in_folders_of_their_own_give_the_records_of_the_whole(
    call, tmp_path, read_study
):
    assert call(*COMPARE, "--out", "whole")[0] == 0
    for number in (1, 2):
        for folder in ("together", f"apart-{number}"):
            code, out, err = call(*COMPARE, "--out", folder, "--shard", f"{number}/2")
            assert (code, err.count("best test error")) == (0, [4, 2][number - 1]), err
            # The table is of all that the folder holds of the study.
            seeds = 3 if folder == "together" and number == 2 else 3 - number
            assert len(read_runs(folder)) == 2 * seeds
            (row,) = [line for line in out.splitlines() if re.match(r" Recency Bias .* \d+\.\d\d ", line)]
            assert re.split("  +", row.strip())[2] == str(seeds)
    whole = read_study(tmp_path / "whole")
    assert len(whole) == 6
    assert read_study(tmp_path / "together") == whole
    parts = [read_study(tmp_path / f"apart-{number}") for number in (1, 2)]
    assert parts[0] | parts[1] == whole
    assert not parts[0].keys() & parts[1].keys()
    described = [
        json.loads((tmp_path / f / "study.json").read_text()) for f in ("whole", "together", "apart-1")
    ]
    assert all(one["runs"] == described[0]["runs"] for one in described), "a share knows the whole study"

    def errors(*folders):
        code, out, err = call("tables", *folders, "--format", "json", "--measured")
        assert (code, err) == (0, "")
        (table,) = json.loads(out)
        # Times differ from one training to the next.
        return [
            {k: v for k, v in row.items() if "seconds" not in k and "time" not in k} for row in table["rows"]
        ]

    assert errors("apart-1", "apart-2") == errors("together") == errors("whole")


def test_shares_that_train_at_the_same_time_do_not_get_in_each_others_way(tmp_path, read_study):
    jobs = [
        subprocess.Popen(
            [sys.executable, "-m", "carpediem", *COMPARE, "--out", "study", "--shard", f"{number}/3"],
            cwd=tmp_path,
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in (1, 2, 3)
    ]
    try:
        told = [said(job, timeout=120)[1] for job in jobs]
    finally:
        for job in jobs:
            job.kill()
    assert [job.returncode for job in jobs] == [0, 0, 0], told
    assert not any("another process" in words for words in told), told
    assert [words.count("best test error") for words in told] == [2, 2, 2]
    assert all(run.finished for run in read_runs(tmp_path / "study"))
    assert len(read_study(tmp_path / "study")) == 6
    assert not list(tmp_path.rglob("*.part"))


def test_a_share_of_a_study_of_the_paper(call, tmp_path):
    cifar10_binary(tmp_path / "data")
    options = ["--datasets", "cifar10", "--data-dir", "data", "--methods", "random,recency", "--seeds", 2]
    options += ["--iterations", 12, "--batch-size", 20, "--image-size", 8, "--device", "cpu"]
    code, _, err = call("reproduce", "densenet-sgd", *options, "--out", "study", "--shard", "2/2")
    assert code == 0, err
    assert [run.config["seed"] for run in read_runs(tmp_path / "study")] == [1, 1]


def test_an_empty_share_says_so_and_succeeds(call, tmp_path):
    code, out, err = call(*COMPARE, "--out", "study", "--shard", "4/4")
    assert (code, out) == (0, "")
    assert err == (
        "this share is empty: runs that share a warm-up stay together, and the study has 3 such groups; "
        "nothing is trained\n"
    )
    code, out, err = call(*COMPARE, "--out", "study", "--shard", "4/4", "--json")
    assert (code, json.loads(out), err) == (0, {"folder": "study", "tables": []}, "")
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("shard", ["0/4", "5/4", "a/b", "3", "-1/4", "1/0", "1/2/3", "", "²/3"])
@pytest.mark.parametrize("command", [("compare",), ("reproduce", "resnet-sgd")])
def test_what_is_no_share_is_refused_in_one_sentence(call, tmp_path, command, shard):
    code, out, err = call(*command, f"--shard={shard}", "--out", "study")
    assert (code, out) == (2, "")
    assert err.startswith("error: --shard must be I/N with I from 1 to N, such as 3/16, got ")
    assert shard in err
    assert err.count("\n") == 1
    assert not (tmp_path / "study").exists()
