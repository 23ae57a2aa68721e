"""Each integration names what it needs, and asks for the same as the extra that installs it."""

import importlib
import re
import site
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import carpediem
from carpediem.integrations.requirement import require
from processes import python

ROOT = Path(__file__).parents[2]
MODULES = {
    "lightning": "carpediem.integrations.lightning",
    "accelerate": "carpediem.integrations.accelerate",
    "transformers": "carpediem.integrations.transformers",
    "ray": "carpediem.lab.ray_cluster",
}
# Ray is looked for when a cluster is asked for, by a command that works without it.
USE = {name: f"import {module}" for name, module in MODULES.items()}
USE["ray"] = "from carpediem.cli import app; app(['compare', '--ray'])"
frameworks = pytest.mark.parametrize("framework", MODULES)


def extra(name):
    """What pyproject.toml asks for under the extra of this name."""
    text = (ROOT / "pyproject.toml").read_text()
    return [
        Requirement(asked) for asked in re.findall('"(.+?)"', re.search(rf"^{name} = (.+)$", text, re.M)[1])
    ]


@pytest.fixture
def without(tmp_path):
    """Runs code by a Python that has all that is installed here but one framework, or another version of it."""

    def run(framework, code, *, there=None):
        packages = tmp_path / "packages"
        packages.mkdir()
        gone = re.compile(rf"{framework}(-[0-9].*)?", re.IGNORECASE)
        for folder in site.getsitepackages():
            for entry in Path(folder).iterdir():
                if not gone.fullmatch(entry.name) and not (packages / entry.name).exists():
                    (packages / entry.name).symlink_to(entry)
        (packages / "carpediem").unlink(missing_ok=True)
        (packages / "carpediem").symlink_to(Path(carpediem.__file__).parent)
        if there is not None:
            metadata = packages / f"{framework}-{there}.dist-info" / "METADATA"
            metadata.parent.mkdir()
            metadata.write_text(f"Metadata-Version: 2.1\nName: {framework}\nVersion: {there}\n")
        done = python("-S", "-c", code, check=False, env={"PYTHONPATH": str(packages), "HOME": str(tmp_path)})
        assert done.returncode != 0
        return done.stderr.splitlines()[-1].partition(": ")[2]

    return run


def supported(framework):
    return importlib.import_module(MODULES[framework]).SUPPORTED


def remedy(*frameworks):
    """The command that installs them; PyPI's project called carpediem is another one, so never by our extras."""
    return " ".join(["pip install", *(f"'{name}{supported(name)}'" for name in frameworks)])


@frameworks
def test_without_its_framework_an_integration_says_what_to_install(without, framework):
    assert without(framework, USE[framework]) == (
        f"this needs {framework} {supported(framework)}, which is not installed: {remedy(framework)}"
    )


def test_the_trainer_without_accelerate_says_what_to_install(without):
    said = without("accelerate", USE["transformers"])
    assert said.endswith(f"which is not installed: {remedy('accelerate')}")


@pytest.mark.parametrize(("framework", "there"), [("lightning", "2.4.0"), ("ray", "3.0.0")])
def test_a_version_that_was_not_tried_is_refused_with_both(without, framework, there):
    assert without(framework, USE[framework], there=there) == (
        f"this needs {framework} {supported(framework)}, installed is {there}: {remedy(framework)}"
    )


def test_a_version_in_the_range_is_accepted():
    require("torch", ">=2,<99")


@frameworks
def test_the_supported_range_is_that_of_the_extra_and_has_both_bounds(framework):
    (asked,) = [one for one in extra(framework) if one.name == framework]
    assert asked.specifier == SpecifierSet(supported(framework))
    assert sorted(bound.operator for bound in asked.specifier) == ["<", ">="]
    assert version(framework) in asked.specifier


def test_the_extra_of_the_trainer_brings_the_accelerate_that_it_needs():
    (asked,) = [one for one in extra("transformers") if one.name == "accelerate"]
    assert asked.specifier == SpecifierSet(supported("accelerate"))


@pytest.mark.parametrize(
    ("page", "needed"),
    [
        ("integrations/lightning.md", ["lightning"]),
        ("integrations/accelerate.md", ["accelerate"]),
        ("integrations/transformers.md", ["transformers", "accelerate"]),
        ("lab.md", ["ray"]),
    ],
)
def test_a_page_installs_the_supported_range(page, needed):
    assert f"`{remedy(*needed)}`" in (ROOT / "docs" / page).read_text()


def test_nothing_advises_to_install_the_other_carpediem_of_pypi():
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    advice = re.compile(r"pip install[^`\n]*?['\" ]carpediem\b")
    assert [file.name for file in files if advice.search(file.read_text())] == []


def test_every_page_says_the_same_about_the_batch_size():
    pages = [
        ROOT / "docs" / "integrations" / f"{name}.md" for name in ("lightning", "accelerate", "transformers")
    ]
    said = {
        sentence
        for page in pages
        for sentence in re.findall(
            r"The sampler's `batch_size` is counted over all processes: .*?\.(?= )",
            " ".join(page.read_text().split()),
        )
    }
    assert len(said) == 1
    assert all("`batch_size` is counted over all processes" in " ".join(p.read_text().split()) for p in pages)
