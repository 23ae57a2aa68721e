"""What the documentation shows is run, and what it names exists."""

import re
from pathlib import Path

import pytest

from processes import python

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [
    pytest.param(code, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL))
]


@pytest.mark.parametrize("code", BLOCKS)
def test_python_in_the_documentation_runs(code, tmp_path):
    script = tmp_path / "shown.py"
    script.write_text(code)
    python("-W", "error", script, cwd=tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page):
    targets = [t for t in re.findall(r"\]\(([^)#]+)", page.read_text()) if not t.startswith("http")]
    assert [t for t in targets if not (page.parent / t).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_named_in_code_style_exist(page):
    named = re.findall(r"`((?:docs|tests|examples|benchmarks|results|src)/[\w./-]+)`", page.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_readme_begins_with_the_two_commands():
    first_block = re.search(r"```\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)[1]
    assert [line.split("#")[0].strip() for line in first_block.splitlines()] == ["make demo", "make test"]
    makefile = (ROOT / "Makefile").read_text()
    assert "\ndemo:" in makefile
    assert "\ntest:" in makefile
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_the_readme_shows_each_integration_in_three_lines_of_a_program_that_runs():
    page = (ROOT / "README.md").read_text()
    shown = re.findall(r"\[(examples/\w+\.py)\]\([^`]*?```py\n(.*?)```", page, flags=re.DOTALL)
    assert {Path(file).stem for file, _ in shown} == {
        "ddp",
        "lightning_digits",
        "accelerate_digits",
        "trainer_text",
        "gpu_resident",
    }
    for file, lines in shown:
        program = [line.strip() for line in (ROOT / file).read_text().splitlines()]
        own = [line for line in lines.splitlines() if line and not line.startswith("from ")]
        assert len(own) == 3, file
        assert [line for line in lines.splitlines() if line not in program] == [], file
