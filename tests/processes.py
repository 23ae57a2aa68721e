"""Programs that tests start: one that hangs is ended with all it started, and says where it was."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

TORCHRUN = ("-m", "torch.distributed.run", "--standalone")


def python(*arguments, ranks=None, timeout=120, check=True, **options):
    """Runs a Python program to its end; returns the finished process with what it said.

    Args:
        ranks: so many processes, started by torchrun; without it a single one.
        timeout: seconds after which the test fails, with the stack of every process that was still there.
        check: the test fails unless the program succeeds.
        options: those of `subprocess.Popen`.
    """
    started = [] if ranks is None else [*TORCHRUN, f"--nproc-per-node={ranks}"]
    command = [sys.executable, *started, *map(str, arguments)]
    options["env"] = {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"} | options.get(
        "env", dict(os.environ)
    )
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    ) as process:
        out, err = said(process, timeout)
    if check:
        assert process.returncode == 0, err
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def said(process, timeout):
    """What a process writes until it ends; see `python` for one that does not."""
    try:
        return process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        # torchrun gives every rank a session of its own, so that a signal to the group would not reach them.
        family = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
        for sign in (signal.SIGABRT, signal.SIGKILL):  # at the first, Python's fault handler writes its stack
            for member in family:
                with suppress(psutil.NoSuchProcess):
                    member.send_signal(sign)
            psutil.wait_procs(family, timeout=5)
        out, err = process.communicate(timeout=10)
        name = " ".join(Path(word).name for word in process.args[1:])[:200]
        stacks = "\n".join(line for line in err.splitlines() if not line.startswith("Extension modules"))
        pytest.fail(f"{name} still ran after {timeout} s\n{out[-2000:]}\n{stacks[-30_000:]}", pytrace=False)
