"""Plain DDP in real processes, started by torchrun over gloo."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from distributed.train import TIMEOUT
from integrations.launch import results, steps
from processes import python, said

SCRIPT = Path(__file__).with_name("train.py")
STEPS = 7  # of an epoch
LOST = (
    "the ranks could not exchange what they observed; .* Start all of them again from their last checkpoint"
)
BOTH = [
    "plain",
    "online --method online --draws systematic --epochs 4",
    "active --method active --epochs 4",
    "uneven --samples 99 --epochs 4",
]
FAULTY = [
    "twice --fault twice --epochs 5",
    "silent --fault silent --epochs 5",
    "differ --fault differ",
    "weights --fault differ --method weighted",
]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """What one, two and four ranks trained on."""
    out = tmp_path_factory.mktemp("torchrun")
    python(SCRIPT, out, *BOTH, ranks=1)
    python(SCRIPT, out, *BOTH, "saved --stop 2,3", *FAULTY, ranks=2)
    python(SCRIPT, out, "plain", "resumed --resume saved", ranks=4)
    return out


def batches(out, name, ranks):
    """The epochs and batches that all ranks trained on together, each batch sorted."""
    return [(epoch, sorted(batch)) for epoch, batch in steps(out, name, ranks)]


def test_two_and_four_ranks_train_on_the_batches_of_one(out):
    # 100 samples in batches of 16 leave 4 for the last, of which every rank gets one.
    alone = batches(out, "plain", 1)
    assert len(alone) == 6 * STEPS
    assert len({tuple(batch) for _, batch in alone}) == len(alone)
    assert batches(out, "plain", 2) == alone
    assert batches(out, "plain", 4) == alone


@pytest.mark.parametrize("method", ["online", "active"])
def test_every_method_is_the_same_on_two_ranks(out, method):
    assert len(batches(out, method, 1)) == 4 * STEPS
    assert batches(out, method, 2) == batches(out, method, 1)


def test_an_uneven_last_batch_is_shared_out_whole(out):
    assert batches(out, "uneven", 2) == batches(out, "uneven", 1)
    assert [len(batch) for _, batch in batches(out, "uneven", 2)][6] == 3


@pytest.mark.parametrize("fault", ["twice", "silent"])
def test_the_ranks_agree_when_a_report_repeats_an_index_or_a_rank_reports_nothing(out, fault):
    first, second = results(out, fault, 2)
    assert first == second
    assert len(set(first)) > 1
    assert first != results(out, "plain", 2)[0]


def test_ranks_that_are_set_up_differently_are_refused_with_both_values(out):
    expected = "selector.pressure must be the same on all ranks, rank 0 has 50.0 and rank 1 has 51.0"
    assert results(out, "differ", 2) == [expected] * 2


def test_ranks_that_hold_different_weights_are_refused_too(out):
    words = r"selector\.state\.weights must be the same on all ranks, rank 0 has '(.+)' and rank 1 has '(.+)'"
    for error in results(out, "weights", 2):
        first, second = re.fullmatch(words, error).groups()
        assert first != second


def test_a_rank_that_is_killed_ends_the_others_and_all_resume_to_the_same_batches(out):
    begin = time.monotonic()
    done = python(SCRIPT, out, "killed --stop 3,2 --fault kill", ranks=2, check=False)
    assert done.returncode != 0
    assert time.monotonic() - begin < 60
    python(SCRIPT, out, "resumed --resume killed", ranks=2)
    assert batches(out, "resumed", 2) == batches(out, "plain", 2)[3 * STEPS + 2 :]


def test_a_checkpoint_of_two_ranks_is_continued_by_four_and_by_one(out):
    python(SCRIPT, out, "resumed --resume saved", ranks=1)
    for ranks in (1, 4):
        assert batches(out, "resumed", ranks) == batches(out, "plain", 1)[2 * STEPS + 3 :]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        # Between two epochs, killed or no longer moving: the exchange of what was observed is the first to miss it.
        ("die", LOST),
        ("freeze", LOST),
        # In the middle of an epoch DDP is.
        ("die inside", "RuntimeError: .* by peer"),
    ],
)
def test_a_rank_that_is_lost_ends_the_other_within_the_timeout_with_a_clear_error(fault, words, tmp_path):
    # Without torchrun, which would end the survivor before it can speak.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    ranks = [
        subprocess.Popen(
            [sys.executable, SCRIPT, tmp_path, f"lost --fault '{fault}'"],
            env=os.environ | meeting | {"RANK": str(rank), "PYTHONFAULTHANDLER": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        _, survivor = said(ranks[0], timeout=60)
    finally:
        ranks[1].kill()
        ranks[1].communicate()
    assert ranks[0].returncode == 1, survivor
    assert ranks[1].returncode == -signal.SIGKILL
    last = survivor.splitlines()[-1]
    assert re.search(words, last)
    lost = float((tmp_path / "lost").read_text())
    assert (tmp_path / "ended").stat().st_mtime - lost < TIMEOUT + 5, "longer than the timeout of the group"


def test_a_program_of_one_process_is_told_that_there_is_nothing_to_synchronise():
    from carpediem import RandomBatch
    from carpediem.distributed import synchronise

    assert not torch.distributed.is_initialized()
    with pytest.raises(ValueError, match="synchronise needs a process group; call"):
        synchronise(RandomBatch(10, 2, 1))
