"""The programs that users copy run as they are."""

import re
from pathlib import Path

import pytest

from processes import python

ON_TWO = {"accelerate_digits", "ddp", "lightning_digits", "trainer_text"}  # processes, started by torchrun
EXAMPLES = Path(__file__).parents[1] / "examples"
# The last line that each must print.
LAST = {
    "accelerate_digits": r"epoch 11  test error +\d+\.\d\d% on 2 processes",
    "find_wrong_labels": r"average precision 0\.9[789]\d",
    "digits": r"epoch 19  test error +\d\.\d\d%  settled samples +\d+%",
    "ddp": r"epoch 11  test error +\d+\.\d\d% on 2 ranks",
    "gpu_resident": r"epoch 7  mean loss \d\.\d{3} on (cpu|cuda)",
    "lightning_digits": r"after 12 epochs: test error \d+\.\d\d% on 2 process\(es\)",
    "trainer_text": r"\d+\.\d% of the test sentences understood",
    "resume": r"the weights are those of a run without a stop",
}


def test_every_example_is_run_here():
    assert {file.stem for file in EXAMPLES.glob("*.py")} == set(LAST)


@pytest.mark.parametrize("name", LAST)
def test_an_example_is_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 60


@pytest.mark.parametrize("name", LAST)
def test_an_example_runs_and_prints_what_it_should(name, tmp_path):
    done = python(EXAMPLES / f"{name}.py", ranks=2 if name in ON_TWO else None, cwd=tmp_path)
    assert name in ON_TWO or done.stderr == ""
    assert re.fullmatch(LAST[name], done.stdout.splitlines()[-1])
