"""Scores as files, and back by key."""

import json
import subprocess
import sys

import numpy as np
import pytest

from carpediem.record import Record
from record.material import SCORES, trained

KEYS = {
    "text": [f"photos/{i:03d}, “{i}”\n.png" for i in range(30)],
    "digits": [str(i) for i in range(30)],
    "numbers": [2**62 - 7 * i for i in range(30)],
}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("keys", [None, *KEYS])
def test_scores_come_back_as_they_were(ending, keys, tmp_path):
    record = trained(keys=KEYS.get(keys))
    record.save(tmp_path / f"scores.{ending}")
    found, scores = Record.read_scores(tmp_path / f"scores.{ending}"), record.scores()
    assert tuple(found) == ("key", "index", *SCORES)
    assert found["key"].tolist() == (KEYS[keys] if keys else list(range(30)))
    for name, values in scores.items():
        assert found[name].dtype == values.dtype, name
        np.testing.assert_array_equal(found[name], values)


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("keys", KEYS)
def test_scores_are_read_by_key_in_the_order_asked_for(ending, keys, tmp_path):
    record = trained(keys=KEYS[keys])
    record.save(tmp_path / f"scores.{ending}")
    wanted = KEYS[keys][20:5:-3]
    found = Record.read_scores(tmp_path / f"scores.{ending}", keys=wanted)
    assert found["key"].tolist() == wanted
    np.testing.assert_array_equal(found["confidence"], record.scores()["confidence"][20:5:-3])
    with pytest.raises(ValueError, match="keys must be known ones, got -5 and 0 more"):
        Record.read_scores(tmp_path / f"scores.{ending}", keys=[-5])


def test_the_data_map_is_a_line_a_sample(tmp_path):
    """The names of allenai/cartography's td_metrics.jsonl; null where a sample was never seen."""
    record = trained(keys=KEYS["text"])
    record.save(tmp_path / "td_metrics.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "td_metrics.jsonl").read_text().splitlines()]
    scores = record.scores()
    assert [line["guid"] for line in lines] == KEYS["text"]
    for i, line in enumerate(lines):
        assert list(line)[:3] == ["guid", "index", "threshold_closeness"]
        assert line["index"] == i
        seen = scores["times_seen"][i] > 0
        for name in ("confidence", "variability", "correctness"):
            assert line[name] == (scores[name][i] if seen else None)
        if seen:
            assert line["threshold_closeness"] == pytest.approx(line["confidence"] * (1 - line["confidence"]))
    assert {line["confidence"] is None for line in lines} == {True, False}
    unnamed = trained()
    unnamed.save(tmp_path / "unnamed.jsonl")
    assert Record.read_scores(tmp_path / "unnamed.jsonl")["key"].tolist() == list(range(30))


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    record = trained()
    record.save(tmp_path / "scores.csv")
    before = (tmp_path / "scores.csv").read_bytes()
    record.observe(*(t[:0] for t in (np_tensor([0]), np_tensor([[0.0] * 4]), np_tensor([0]))))
    monkeypatch.setattr("pathlib.Path.replace", failing)
    with pytest.raises(OSError, match="the disk is full"):
        record.save(tmp_path / "scores.csv")
    assert [file.name for file in tmp_path.iterdir()] == ["scores.csv"]
    assert (tmp_path / "scores.csv").read_bytes() == before


def np_tensor(values):
    import torch

    return torch.tensor(values)


def failing(*_):
    raise OSError("the disk is full")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", "nothing here"),
        ("x.csv", ""),
        ("x.csv", '"key","index"\n"a",0,7\n'),
        ("x.csv", '"key","index"\n"a",0\n"a",1\n'),
        ("x.csv", b"\xff\xfe\x00"),
        ("x.jsonl", '{"guid": 3}\n'),
        ("x.jsonl", '{"guid": 3, "index"'),
        ("x.jsonl", "[1, 2]\n"),
        ("x.jsonl", '{"guid": [1], "index": 0}\n'),
        ("x.parquet", "no parquet"),
    ],
)
def test_a_file_that_holds_no_scores_is_refused_by_its_name(name, content, tmp_path):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(
        ValueError, match=rf"{name} must hold scores as Record.save writes them, and does not \("
    ) as caught:
        Record.read_scores(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_without_polars_parquet_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['polars'] = None\n"
        "from carpediem.record import Record\n"
        "try: Record(3).save('scores.parquet')\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "needs polars, which is not installed; pip install polars, or choose .csv" in done.stdout
    assert list(tmp_path.iterdir()) == []
