"""The programs that users copy run as they are."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
LAUNCHERS = {"accelerate_digits": TORCHRUN, "ddp": TORCHRUN}
LOUD = {"lightning_digits"}  # those whose framework logs as it goes
EXAMPLES = Path(__file__).parents[1] / "examples"
# The last line that each must print.
LAST = {
    "accelerate_digits": r"epoch 11  test error +\d+\.\d\d% on 2 processes",
    "digits": r"epoch 19  test error +\d\.\d\d%  settled samples +\d+%",
    "ddp": r"epoch 11  test error +\d+\.\d\d% on 2 ranks",
    "gpu_resident": r"epoch 7  mean loss \d\.\d{3} on (cpu|cuda)",
    "lightning_digits": r"after 12 epochs: test error \d+\.\d\d% on 1 process\(es\)",
    "trainer_text": r"\d+\.\d% of the test sentences understood",
    "resume": r"resumed at index 300 of epoch 0: the same 700 indices followed",
}


def test_every_example_is_run_here():
    assert {file.stem for file in EXAMPLES.glob("*.py")} == set(LAST)


@pytest.mark.parametrize("name", LAST)
def test_an_example_runs_and_prints_what_it_should(name, tmp_path):
    done = subprocess.run(
        [sys.executable, *LAUNCHERS.get(name, []), EXAMPLES / f"{name}.py"],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert name in LAUNCHERS or name in LOUD or done.stderr == ""
    assert re.fullmatch(LAST[name], done.stdout.splitlines()[-1])
