"""A training that is killed and started again ends with the numbers of one that never was."""

import json
import os
import random
import signal
import subprocess
import sys
import time

WARM_UP, EPOCHS = 3, 7
COMMAND = [sys.executable, "-m", "carpediem", "compare", "--seeds", "1", "--epochs", str(EPOCHS)]
COMMAND += ["--warm-up", str(WARM_UP), "--window", "3", "--device", "cpu"]
TOTAL = WARM_UP + 4 * (EPOCHS - WARM_UP)


def start(folder):
    return subprocess.Popen(
        [*COMMAND, "--out", str(folder)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def lines(folder):
    """The whole lines of every file of records."""
    files = sorted(folder.glob("*/*/epochs.jsonl"))
    return {str(f.relative_to(folder)): f.read_bytes().split(b"\n")[:-1] for f in files}


def trained(folder):
    """How many epochs have been recorded, a shared one once."""
    count = 0
    for name, found in lines(folder).items():
        count += len(found) if name.startswith("warm-ups") else max(len(found) - WARM_UP, 0)
    return count


def test_killed_three_times_a_study_ends_with_the_numbers_of_one_that_never_was(tmp_path, read_study):
    whole = start(tmp_path / "whole")
    folder, moments, kept = tmp_path / "killed", [], {}
    for first, last in ((1, 1), (WARM_UP + 1, WARM_UP + 5), (WARM_UP + 6, TOTAL - 7)):
        epochs, delay = random.randint(first, last), random.uniform(0, 0.04)
        moments.append(f"{delay:.3f} s after epoch {epochs}")
        process, patience = start(folder), time.monotonic() + 60
        while trained(folder) < epochs:
            assert process.poll() is None, f"it ended by itself: {process.stderr.read()}"
            assert time.monotonic() < patience
            time.sleep(0.005)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL, moments
        left = lines(folder)
        if len(moments) == 1:
            assert trained(folder) <= WARM_UP, "the first kill is meant for the warm-up"
        # What is recorded now, times included, is what the finished study will hold, but for each file's last
        # line: the state behind that one may not have been written yet.
        kept |= left
    last = start(folder)
    assert (last.wait(120), whole.wait(120)) == (0, 0), last.stderr.read() + whole.stderr.read()
    assert "note:" not in last.stderr.read()
    whole.stderr.close()
    last.stderr.close()
    expected = read_study(tmp_path / "whole")
    assert {len(records) for records in expected.values()} == {EPOCHS}
    assert read_study(folder) == expected, moments
    final = lines(folder)
    for name, before in kept.items():
        assert final[name][: len(before) - 1] == before[:-1], f"{name}: epochs were lost, {moments}"
    assert all((file.parent / "done.json").is_file() for file in folder.glob("runs/*/config.json"))
    assert json.loads((folder / "study.json").read_text())["name"] == "compare"
