"""`carpediem export`: the scores of every sample, for other programs."""

import csv
import sys

import numpy as np
import polars
import pytest
from typer.testing import CliRunner

from carpediem.cli import app
from carpediem.lab.export import export_samples, sample_table
from carpediem.lab.samples import read_samples, run_folder
from carpediem.lab.study import Study


@pytest.fixture
def study(make_configs, tmp_path):
    """Two methods with two seeds, in a folder."""
    configs = make_configs("random", "recency", seeds=(0, 1), epochs=4)
    Study(tmp_path / "study", configs).train()
    return tmp_path / "study"


def export(*arguments):
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


def test_both_files_hold_what_the_records_say(study):
    files = export_samples([study])
    assert files == [study / "samples.csv", study / "samples.parquet"]
    table = polars.read_parquet(files[1])
    assert len(table) == 4 * 48
    with files[0].open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == table.columns
    assert [line["run"] for line in lines] == table["run"].to_list()
    assert [float(line["uncertainty"]) for line in lines] == pytest.approx(table["uncertainty"].to_list())
    assert table["method"].unique(maintain_order=True).to_list() == ["random", "recency"]
    assert (
        table["draws"].unique().to_list(),
        table.filter(polars.col("method") == "recency")["window"][0],
    ) == (
        ["systematic"],
        2,
    )
    pressures = set(table.select("method", "pressure", "schedule").rows())
    assert pressures == {("random", None, None), ("recency", 100.0, "decayed")}
    for (name,), own in table.group_by("run"):
        record = read_samples(run_folder(study, name))
        for column, values in (
            ("index", record.index),
            ("label", record.label),
            ("uncertainty", record.uncertainty),
            ("majority_prediction", record.majority),
            ("agreement", record.agreement),
            ("times_drawn", record.times_drawn),
        ):
            np.testing.assert_array_equal(own[column].to_numpy(), values)
        assert own["class_name"].to_list() == [record.classes[label] for label in record.label]
        assert own["last_change"].null_count() == (record.last_change < 0).sum()


def test_a_method_may_say_how_it_draws(make_configs, tmp_path):
    Study(tmp_path, make_configs("random-independent", "random-shuffle", "recency", epochs=3)).train()
    for asked, expected in (
        (["random"], {("random", "independent"), ("random", "systematic")}),
        (["random-independent", "recency"], {("random", "independent"), ("recency", "systematic")}),
        (["recency-independent"], None),
    ):
        if expected is None:
            with pytest.raises(ValueError, match="none of the 3 runs has that method"):
                sample_table([tmp_path], methods=asked)
        else:
            found = sample_table([tmp_path], methods=asked).select("method", "draws").unique()
            assert set(found.rows()) == expected
    (tmp_path / "new" / "runs").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"new holds no run yet; carpediem compare --out .*new trains some"):
        sample_table([tmp_path / "new"])


def test_a_sample_that_was_never_drawn_has_no_majority_and_no_loss(make_configs, tmp_path):
    # Batches of 9 leave 3 of the 48 samples over.
    Study(tmp_path, make_configs("random", batch_size=9, draws="systematic", warm_up=1, epochs=1)).train()
    row = sample_table([tmp_path]).filter(polars.col("times_drawn") == 0)
    assert len(row) == 3
    for column in ("majority_prediction", "majority_class_name", "agreement", "last_loss", "last_change"):
        assert row[column].null_count() == 3
    assert row["uncertainty"].to_list() == [1.0] * 3


def test_runs_are_chosen_by_method_seed_and_name(study):
    one = sample_table([study], methods=["recency"], seeds=[1])
    (name,) = one["run"].unique()
    assert (one["method"].unique().to_list(), one["seed"].unique().to_list()) == (["recency"], [1])
    assert sample_table([study], runs=[name[:6]]).equals(one)


def test_the_command_writes_the_file_and_format_that_it_is_told(study, tmp_path):
    for arguments, expected in (
        ((), [study / "samples.csv", study / "samples.parquet"]),
        (("--format", "csv"), [study / "samples.csv"]),
        (("--out", tmp_path / "x.parquet"), [tmp_path / "x.parquet"]),
        (
            ("--out", tmp_path / "new" / "v1.2"),
            [tmp_path / "new" / f"v1.2.{form}" for form in ("csv", "parquet")],
        ),
        (("--out", tmp_path / "y", "--format", "csv"), [tmp_path / "y.csv"]),
    ):
        result = export(study, "--method", "recency", "--seed", 0, *arguments)
        assert result.exit_code == 0, result.output
        assert result.stdout.split() == list(map(str, expected))
        assert all(file.stat().st_size for file in expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--format", "xls"), "error: --format must be csv or parquet, got 'xls'"),
        (
            ("--out", "x.json"),
            "error: --out must end in .csv or .parquet, or have no ending for both, got x.json",
        ),
        (("--out", "x.csv", "--format", "parquet"), "error: --format must be csv, since --out ends so"),
        (
            ("--method", "magic"),
            "error: --method must be one of random, online, active, recency, perhaps with -shuffle, -systematic, "
            "-independent behind it, got 'magic'",
        ),
        (
            ("--out", "."),
            "error: --out must be a file, got the folder .; name one in it, such as samples.csv",
        ),
        (
            ("--seed", "7"),
            "error: none of the 4 runs has that method, seed or name; there are random, recency with the seeds 0, 1",
        ),
    ],
)
def test_a_wrong_call_gets_one_sentence(study, arguments, message):
    result = export(study, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_records_that_are_not_there_are_said_so(study):
    files = sorted(study.glob("runs/*/samples.npz"))
    files[0].unlink()
    result = export(study)
    assert result.exit_code == 0
    assert result.stderr == "note: 1 of the 4 runs have left no sample records\n"
    for file in files[1:]:
        file.unlink()
    result = export(study)
    assert result.exit_code == 2
    assert "none of the 4 runs has left sample records (samples.npz)" in result.stderr
    assert not list(study.glob("samples.*.part"))


def test_a_damaged_record_is_named(study):
    file = sorted(study.glob("runs/*/samples.npz"))[0]
    file.write_bytes(file.read_bytes()[:100])
    result = export(study)
    assert (result.exit_code, f"{file} is damaged" in result.stderr) == (2, True)


def test_a_missing_polars_comes_with_a_remedy(study, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    result = export(study)
    assert (result.exit_code, "export needs polars: pip install polars\n" in result.stderr) == (2, True)
