"""Programs under a framework, started as users start them: a process, or torchrun with a process a rank."""

import json
from pathlib import Path

from processes import python

HERE = Path(__file__).parent


def launch(ranks, script, out, *runs, check=True):
    """Runs a script of this folder, each of `runs` being a line of its options; returns the finished process."""
    return python(HERE / script, out, *runs, ranks=ranks if ranks > 1 else None, check=check)


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
