"""The tables that people read are those that the published records give."""

import importlib.util
from pathlib import Path

import pytest

from carpediem.lab.publish import published_tables
from carpediem.lab.records import read_runs
from carpediem.lab.table import render_csv, render_markdown

ROOT = Path(__file__).parents[1]
FOLDERS = sorted(file.parent for file in (ROOT / "results").glob("*/runs.jsonl"))


def pages():
    spec = importlib.util.spec_from_file_location("pages", ROOT / "results" / "pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_of_the_readme_and_the_findings_are_those_of_the_records():
    made = pages()
    texts = [page.read_text(encoding="utf-8") for page in made.PAGES]
    assert made.with_tables(*texts) == texts
    wrong = [text.replace("[+0.44, +0.68]", "[+0.44, +0.69]") for text in texts]
    assert wrong != texts
    assert made.with_tables(*wrong) == texts


def test_folders_of_one_experiment_are_read_together():
    runs = read_runs(ROOT / "results" / "2026-11-15_cifar10_resnet50_momentum_paper")
    kinds = [[run for run in runs if run.config["draws"] == draws] for draws in ("independent", "systematic")]
    dated = zip(("2026-11-15", "2026-12-01"), kinds, strict=True)
    pairs = pages().pairs_of({f"{date}_cifar10_resnet50_momentum_paper": found for date, found in dated})
    assert set(pairs["CIFAR-10, paper"]) == {"independent", "systematic"}


def test_each_table_stands_on_one_page_once():
    made = pages()
    texts = "".join(page.read_text(encoding="utf-8") for page in made.PAGES)
    tables = made.TABLES.keys() | made.OF_FOLDERS.keys()
    for name in tables:
        assert texts.count(f"<!-- results/pages.py {name} -->") == 1
    assert texts.count("<!-- end -->") == len(tables)


def test_a_page_that_asks_for_an_unknown_table_or_forgets_its_end_is_refused():
    with pytest.raises(KeyError, match="gains"):
        pages().with_tables("<!-- results/pages.py gains -->\n<!-- end -->\n")
    with pytest.raises(ValueError, match="the table draws must end with <!-- end -->"):
        pages().with_tables(
            "<!-- results/pages.py draws -->\nprose\n<!-- results/pages.py draws -->\n<!-- end -->\n"
        )


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_tables_of_a_results_folder_are_those_of_its_records(folder):
    made = published_tables(read_runs(folder))
    for name, render in (("tables.md", render_markdown), ("tables.csv", render_csv)):
        assert (folder / name).read_text(encoding="utf-8") == "\n".join(map(render, made))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_results_folder_says_what_it_is_and_is_listed(folder):
    text = (folder / "README.md").read_text(encoding="utf-8")
    for part in ("**Command.**", "**Configuration.**", "**What came out**", "**Missing.**"):
        assert part in text
    assert f"({folder.name}/)" in (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    assert folder.name in (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
