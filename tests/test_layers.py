from processes import python

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


def imported_by(module):
    code = (
        f"import torch, sys; before = set(sys.modules); import {module}; print(*(set(sys.modules) - before))"
    )
    return {name.split(".")[0] for name in python("-c", code).stdout.split()}


def test_importing_the_library_imports_no_framework():
    assert not FRAMEWORKS & imported_by("carpediem")


def test_importing_the_contract_imports_no_framework_either():
    assert not FRAMEWORKS & imported_by("carpediem.testing")


def test_importing_the_library_warns_of_nothing():
    assert python("-W", "error", "-c", "import carpediem").stderr == ""


def test_the_public_names_are_sorted_and_there():
    import carpediem

    assert carpediem.__all__ == sorted(carpediem.__all__)
    for name in carpediem.__all__:
        assert getattr(carpediem, name).__doc__
