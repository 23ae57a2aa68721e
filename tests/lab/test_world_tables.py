"""The paper's numbers, ours with its recipe and ours with the released code's."""

import numpy as np
import pytest
from scipy import stats

from carpediem.lab.table import DASH, render_markdown
from carpediem.lab.world_tables import world_table
from lab.record_makers import run, study
from lab.table_readers import row, rows

RELEASED = {"recipe": "released", "net": "resnet-50-released"}
RESNET = {"network": "ResNet (L=50)"}


def test_the_difference_between_the_recipes_is_that_of_their_means():
    rng = np.random.default_rng(2)
    ours = {method: rng.uniform(8, 9, 5) for method in ("random", "recency")}
    released = {method: rng.uniform(9, 10, 8) for method in ("random", "recency")}
    found = world_table(study(ours) + study(released, **RELEASED))
    line = row(found, **RESNET, method="Random Batch")
    assert (line["paper"], line["ours_seeds"], line["released_seeds"]) == (10.22, 5, 8)
    assert line["released"] == pytest.approx(released["random"].mean())
    test = stats.ttest_ind(released["random"], ours["random"], equal_var=False)
    interval = test.confidence_interval(0.95)
    assert (line["difference_low"], line["difference_high"]) == (
        pytest.approx(interval.low),
        pytest.approx(interval.high),
    )
    gain = row(found, **RESNET, method="Recency − Random")
    gains = [one["recency"] - one["random"] for one in (ours, released)]
    assert gain["paper"] == pytest.approx(-0.43)
    assert (gain["ours"], gain["ours_standard_error"]) == (
        pytest.approx(gains[0].mean()),
        pytest.approx(stats.sem(gains[0])),
    )
    assert gain["difference"] == pytest.approx(gains[1].mean() - gains[0].mean())
    interval = stats.ttest_ind(gains[1], gains[0], equal_var=False).confidence_interval(0.95)
    assert gain["difference_high"] == pytest.approx(interval.high)


def test_what_was_not_run_is_a_dash_beside_the_papers_number():
    found = world_table(study({"random": [8.0]}, net="densenet-40-12"))
    assert len(rows(found)) == 2 * 5
    text = render_markdown(found)
    assert (
        f"| DenseNet (L=40, k=12) | as it is | Random Batch | 7.33 ± 0.09 | 8.00 (1) | {DASH} | {DASH} |"
        in text
    )
    assert f"| ResNet (L=50) | as it is | Active Bias | 10.55 ± 0.08 | {DASH} | {DASH} | {DASH} |" in text
    assert f"| Recency − Random | -0.73 | {DASH} | {DASH} | {DASH} |" in text


def test_other_settings_data_and_unfinished_runs_are_left_out():
    records = study({"random": [8.0]}) + study({"random": [1.0]}, dropout=0.0)
    records += study({"random": [2.0]}, data="mnist") + study({"random": [3.0]}, optimizer="sgd")
    records += [run("random", 5, [0.5], done=False), *study({"recency": [4.0]}, window=5)]
    found = world_table(records)
    assert row(found, **RESNET, method="Random Batch")["ours"] == 8.0
    assert row(found, **RESNET, method="Recency Bias")["ours"] is None


def test_the_released_recipe_with_other_settings_has_rows_of_its_own():
    records = study({"random": [8.0, 8.2]}) + study({"random": [9.0, 9.4]}, **RELEASED, dropout=0.2)
    found = world_table(records)
    assert {line["released_as"] for line in rows(found, **RESNET)} == {"with dropout 0.2"}
    both = world_table(records + study({"random": [7.0, 7.4]}, **RELEASED))
    lines = {line["released_as"]: line["released"] for line in rows(both, **RESNET, method="Random Batch")}
    assert lines == {"as it is": pytest.approx(7.2), "with dropout 0.2": pytest.approx(9.2)}


def test_a_single_run_has_no_interval():
    found = world_table(study({"random": [8.0]}) + study({"random": [9.0, 9.5]}, **RELEASED))
    line = row(found, **RESNET, method="Random Batch")
    assert (line["difference"], line["difference_low"]) == (pytest.approx(1.25), None)
