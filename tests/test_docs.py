"""What the documentation shows is run, and what it names exists."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    done = subprocess.run([sys.executable, "-W", "error", script], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


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
