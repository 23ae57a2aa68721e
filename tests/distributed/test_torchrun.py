"""Plain DDP in real processes, started by torchrun over gloo."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).with_name("train.py")


def torchrun(ranks, out, *options, check=True):
    """Runs train.py on so many ranks; returns what it printed."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    done = subprocess.run(
        [*command, SCRIPT, out, *options], capture_output=True, text=True, timeout=120, check=False
    )
    if check:
        assert done.returncode == 0, done.stderr
    return done


def global_batches(out, ranks, suffix=""):
    """The epochs and batches that all ranks trained on together, each batch sorted."""
    files = [out / f"batches-{ranks}-{rank}{suffix}.jsonl" for rank in range(ranks)]
    logs = [[json.loads(line) for line in file.read_text().splitlines()] for file in files]
    steps = []
    for step in range(max(map(len, logs))):
        shares = [log[step] for log in logs if step < len(log)]
        assert len({epoch for epoch, _ in shares}) == 1
        steps.append((shares[0][0], sorted(index for _, share in shares for index in share)))
    return steps


def test_two_and_four_ranks_train_on_the_batches_of_one(tmp_path):
    # 100 samples in batches of 16 leave 4 for the last, of which every rank gets one.
    for ranks in (1, 2, 4):
        torchrun(ranks, tmp_path)
    alone = global_batches(tmp_path, 1)
    assert len(alone) == 6 * 7
    assert len({tuple(batch) for _, batch in alone}) == len(alone)
    assert global_batches(tmp_path, 2) == alone
    assert global_batches(tmp_path, 4) == alone


@pytest.mark.parametrize(("method", "draws"), [("online", "systematic"), ("active", "independent")])
def test_every_method_is_the_same_on_two_ranks(method, draws, tmp_path):
    for ranks in (1, 2):
        torchrun(ranks, tmp_path, "--method", method, "--draws", draws, "--epochs", "4")
    assert global_batches(tmp_path, 2) == global_batches(tmp_path, 1)


def test_an_uneven_last_batch_is_shared_out_whole(tmp_path):
    for ranks in (1, 2):
        torchrun(ranks, tmp_path, "--samples", "99", "--epochs", "4")
    assert global_batches(tmp_path, 2) == global_batches(tmp_path, 1)
    assert [len(batch) for _, batch in global_batches(tmp_path, 2)][6] == 3


def test_the_ranks_agree_when_a_report_repeats_an_index_or_a_rank_reports_nothing(tmp_path):
    for fault in ("twice", "silent"):
        torchrun(2, tmp_path, "--fault", fault, "--epochs", "5")
        first, second = (
            json.loads((tmp_path / f"probabilities-2-{rank}.json").read_text()) for rank in (0, 1)
        )
        assert first == second


def test_ranks_that_are_set_up_differently_are_refused_with_both_values(tmp_path):
    done = torchrun(2, tmp_path, "--fault", "differ", check=False)
    assert done.returncode != 0
    assert (
        "selector.pressure must be the same on all ranks, rank 0 has 50.0 and rank 1 has 51.0" in done.stderr
    )


def test_a_rank_that_is_killed_ends_the_others_and_all_resume_to_the_same_batches(tmp_path):
    torchrun(2, tmp_path)
    whole = global_batches(tmp_path, 2)
    begin = time.monotonic()
    done = torchrun(2, tmp_path, "--stop", "3,2", "--fault", "kill", check=False)
    assert done.returncode != 0
    assert time.monotonic() - begin < 60
    torchrun(2, tmp_path, "--resume")
    resumed = global_batches(tmp_path, 2, "-resumed")
    assert resumed == whole[3 * 7 + 2 :]


def test_a_rank_that_waits_in_vain_says_what_to_do(tmp_path):
    # Without torchrun, which would end the survivor before it can speak.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meeting = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": "2",
        "OMP_NUM_THREADS": "1",
    }
    ranks = [
        subprocess.Popen(
            [sys.executable, SCRIPT, tmp_path, "--fault", "die"],
            env=os.environ | meeting | {"RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = ranks[0].communicate(timeout=60)[1]
    ranks[1].communicate(timeout=60)
    assert ranks[0].returncode != 0
    assert "RuntimeError: the ranks could not exchange what they observed; one of them has stopped" in said
    assert "Start all of them again from their last checkpoint" in said


def test_a_checkpoint_of_two_ranks_is_continued_by_four_and_by_one(tmp_path):
    torchrun(2, tmp_path)
    whole = global_batches(tmp_path, 2)
    torchrun(2, tmp_path, "--stop", "2,3")
    for ranks in (1, 4):
        torchrun(ranks, tmp_path, "--resume")
        assert global_batches(tmp_path, ranks, "-resumed") == whole[2 * 7 + 3 :]


def test_a_program_of_one_process_is_told_that_there_is_nothing_to_synchronise():
    from carpediem import RandomBatch
    from carpediem.distributed import synchronise

    assert not torch.distributed.is_initialized()
    with pytest.raises(ValueError, match="synchronise needs a process group; call"):
        synchronise(RandomBatch(10, 2, 1))
