"""Programs under a framework, started as users start them: a process, or torchrun with a process a rank."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def launch(ranks, script, out, *runs, check=True):
    """Runs a script of this folder, each of `runs` being a line of its options; returns the finished process."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    done = subprocess.run(
        [sys.executable, *(torchrun if ranks > 1 else []), HERE / script, out, *runs],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if check:
        assert done.returncode == 0, done.stderr
    return done


def steps(out, name, ranks):
    """(epoch, indices) of each step over all ranks, rank after rank."""
    files = [out / f"{name}-{ranks}-{rank}.jsonl" for rank in range(ranks)]
    logs = [[json.loads(line) for line in file.read_text().splitlines()] for file in files]
    assert len({len(log) for log in logs}) == 1
    assert all(len({epoch for epoch, _ in shares}) == 1 for shares in zip(*logs, strict=True))
    return [
        (shares[0][0], [index for _, share in shares for index in share])
        for shares in zip(*logs, strict=True)
    ]


def results(out, name, ranks):
    """What each rank found in the end."""
    return [json.loads((out / f"{name}-{ranks}-{rank}.json").read_text()) for rank in range(ranks)]
