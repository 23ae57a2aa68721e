import subprocess
import sys

FRAMEWORKS = {
    "accelerate",
    "lightning",
    "matplotlib",
    "pytorch_lightning",
    "rich",
    "safetensors",
    "scipy",
    "sklearn",
    "tensorboard",
    "torchdata",
    "torchvision",
    "transformers",
    "typer",
    "ray",
    "PIL",
    "pytest",
    "hypothesis",
}


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def imported_by(module):
    code = (
        f"import torch, sys; before = set(sys.modules); import {module}; print(*(set(sys.modules) - before))"
    )
    done = run("-c", code)
    assert done.returncode == 0, done.stderr
    return {name.split(".")[0] for name in done.stdout.split()}


def test_importing_the_library_imports_no_framework():
    assert not FRAMEWORKS & imported_by("carpediem")


def test_importing_the_contract_imports_no_framework_either():
    assert not FRAMEWORKS & imported_by("carpediem.testing")


def test_importing_the_library_warns_of_nothing():
    done = run("-W", "error", "-c", "import carpediem")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_the_public_names_are_sorted_and_there():
    import carpediem

    assert carpediem.__all__ == sorted(carpediem.__all__)
    for name in carpediem.__all__:
        assert getattr(carpediem, name).__doc__
