"""What a record says about where it comes from."""

import shutil
import subprocess
from pathlib import Path

import pytest

from carpediem.lab import machine

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(
    not (ROOT / ".git").exists() or shutil.which("git") is None, reason="needs git and a checkout"
)
def test_a_checkouts_commit_is_recorded():
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    assert head.startswith(machine.describe_machine()["versions"]["commit"].removesuffix("-dirty"))


def test_the_code_is_told_by_its_files_where_there_is_no_checkout(tmp_path, monkeypatch):
    package = tmp_path / "carpediem"
    shutil.copytree(ROOT / "src" / "carpediem", package, ignore=shutil.ignore_patterns("__pycache__"))
    here = machine.describe_machine()["versions"]["source"]
    monkeypatch.setattr(machine, "__file__", str(package / "lab" / "machine.py"))
    assert machine.source_fingerprint() == here
    without_lab = machine.source_fingerprint(lab=False)
    (package / "lab" / "recipes.py").write_text("")
    assert machine.source_fingerprint() != here
    assert machine.source_fingerprint(lab=False) == without_lab
    (package / "sampler.py").write_text("")
    assert machine.source_fingerprint(lab=False) != without_lab


def test_a_package_that_lies_in_another_checkout_has_no_commit(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(machine, "__file__", str(tmp_path / "site-packages/carpediem/lab/machine.py"))
    assert machine._commit.__wrapped__() is None
