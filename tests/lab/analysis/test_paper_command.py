"""`carpediem paper`: the tables and claims, in words and as data."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from carpediem.cli import app
from carpediem.lab.analysis.claims import claim_data
from carpediem.lab.analysis.comparisons import Measured
from carpediem.lab.analysis.stated_claims import CLAIMS
from carpediem.lab.records import read_runs, record_line
from lab.analysis.claim_makers import runs

RESULTS = Path(__file__).parents[3] / "results"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A folder without results."""
    monkeypatch.chdir(tmp_path)


def paper(*options):
    """Exit status, standard output and standard error."""
    found = CliRunner().invoke(app, ["paper", *map(str, options)])
    return found.exit_code, found.stdout, found.stderr


def write(folder, records):
    folder.mkdir(parents=True)
    lines = [
        {"run": one.hash, "config": one.config, "done": one.done, "epochs": one.epochs} for one in records
    ]
    (folder / "runs.jsonl").write_bytes(b"".join(map(record_line, lines)))
    return folder


def test_it_prints_the_seven_tables_the_numbers_and_the_claims():
    code, text, told = paper()
    assert code == 0
    for number in range(1, 8):
        assert f"Table {number}: " in text
    assert "27.05 ± 0.19" in text
    assert re.search(r"4\.72 to 5\.71 +3\.92 to 5\.71", text)
    assert "What the paper claims" in text
    assert f"our runs: not measured {len(CLAIMS)})" in text
    assert told.strip() == (
        "note: no runs were found in results, so that nothing of ours is measured; --results DIR names others"
    )


def test_one_table_or_the_claims_alone_can_be_asked_for():
    _, text, told = paper("--table", 6, "--table", 4)
    assert text.index("Table 4: ") < text.index("Table 6: ")
    assert "0.0120" in text
    assert text.count("Table") == 2
    assert "claim" not in text
    assert told == ""
    _, text, _ = paper("--claims")
    assert "What the paper claims" in text
    assert "Table 2:" not in text
    assert "Table 7: " in paper("--claims", "--table", 7)[1]


def test_the_json_holds_numbers_and_claims():
    code, text, told = paper("--json", "--results", RESULTS)
    made = json.loads(text)
    assert (code, told) == (0, "")
    assert list(made["tables"]) == list("1234567")
    first = made["tables"]["2"]["rows"][0]
    assert (first["optimizer"], first["method"]) == ("momentum", "Random Batch")
    assert (first["cifar100"], first["cifar100_standard_error"]) == (27.95, 0.16)
    assert made["tables"]["5"]["rows"][0]["reduction"] == 24.57
    assert made["tables"]["6"]["rows"][2]["cifar10"] == 0.012
    assert [one["agrees"] for one in made["derived"]].count(False) == 3
    folders = sorted(file.parent for file in RESULTS.glob("*/runs.jsonl"))
    assert made["results"] == list(map(str, folders))
    measured = Measured(read_runs(*folders))
    assert made["claims"] == json.loads(json.dumps([claim_data(one, measured) for one in CLAIMS]))
    assert "claims" not in json.loads(paper("--json", "--table", 1)[1])


def test_ours_are_the_runs_in_results_or_in_the_folders_named(tmp_path):
    recency = {"data": "mnist", "net": "densenet-40-12"}
    records = runs("random", [1.0, 1.1, 1.2], **recency)
    one = write(tmp_path / "results" / "one", records)
    other = write(tmp_path / "other", runs("recency", [0.5, 0.7, 0.6], **recency))

    def verdicts(*options):
        return {
            one["claim"]: one["ours"]["verdict"] for one in json.loads(paper("--json", *options)[1])["claims"]
        }

    claim = "With DenseNet and momentum Recency Bias has the lowest test error on all three data sets."
    assert verdicts()[claim] == "not measured"
    assert json.loads(paper("--json")[1])["results"] == ["results/one"]
    assert verdicts("--results", one, "--results", other)[claim] == "undecided"
    text = " ".join(paper("--claims", "--results", one, "--results", other)[1].split())
    assert "50.00" not in text
    assert "45.45 (1 of 3)" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--results", "nowhere"), "error: nowhere does not exist"),
        (("--results", "."), "error: . holds no study: neither runs.jsonl nor runs/ is in it"),
        (("--table", "8"), "error: Invalid value for '--table': "),
        (("--table", "two"), "error: Invalid value for '--table': "),
    ],
    ids=str,
)
def test_bad_input_is_one_line(options, message):
    code, text, told = paper(*options)
    assert (code, text) == (2, "")
    assert told.startswith(message)
    assert options[1] in told
    assert len(told.splitlines()) == 1


def test_damaged_records_are_named(tmp_path):
    folder = write(tmp_path / "damaged", [])
    (folder / "runs.jsonl").write_text("{\n")
    code, _, told = paper("--results", folder)
    assert code == 2
    assert "runs.jsonl, line 1 is damaged" in told
