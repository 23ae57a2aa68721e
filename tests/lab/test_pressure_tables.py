"""Tables 6 and 7: the four strategies of Recency Bias's pressure."""

import math

import numpy as np
import pytest
from scipy import stats

from carpediem.lab.table import render_markdown
from carpediem.lab.tables import all_tables
from lab.record_makers import run, study
from lab.table_readers import row, rows, table

DENSENET = {"net": "densenet-40-12"}
STRATEGIES = {
    "1: s₀ = 10": {"pressure": 10.0, "schedule": "constant"},
    "2: s₀ = 100": {"pressure": 100.0, "schedule": "constant"},
    "3: s₀ = 10 → 1": {"pressure": 10.0},
    "4: s₀ = 100 → 1": {},
}


def trained(losses, errors=(6.0, 7.0), **config):
    """A run for each loss, which is that of its last epoch; the one before has none."""
    return [
        run("recency", seed, [9.0, error], fields=[{}, {"training_set_loss": loss}], **DENSENET | config)
        for seed, (loss, error) in enumerate(zip(losses, errors, strict=True))
    ]


def test_each_strategy_has_our_loss_and_error_beside_the_papers():
    rng = np.random.default_rng(1)
    losses = {name: rng.uniform(0.003, 0.02, 3) for name in STRATEGIES}
    errors = {name: rng.uniform(6, 7, 3) for name in STRATEGIES}
    records = [
        one for name, config in STRATEGIES.items() for one in trained(losses[name], errors[name], **config)
    ]
    tables = all_tables(records)
    table_6, table_7 = table(tables, "Table 6"), table(tables, "Table 7")
    where = "Recency Bias, DenseNet (L=40, k=12), momentum, recipe paper, 40,000 iterations"
    assert table_6.title == f"Table 6: training loss at the end, {where}"
    assert table_7.title == f"Table 7: best test error (%), {where}"
    printed = {name: (loss, error) for name, loss, error in zip(
        STRATEGIES, (0.0059, 0.0036, 0.0120, 0.0060), (6.81, 6.62, 7.13, 6.60), strict=True
    )}  # fmt: skip
    for name in STRATEGIES:
        loss = row(table_6, data="CIFAR-10", strategy=name)
        assert loss["ours"] == pytest.approx(losses[name].mean())
        assert loss["ours_standard_error"] == pytest.approx(stats.sem(losses[name]))
        error = row(table_7, data="CIFAR-10", strategy=name)
        assert error["ours"] == pytest.approx(errors[name].mean())
        assert (loss["seeds"], error["seeds"]) == (3, 3)
        assert (loss["paper"], error["paper"]) == printed[name]
    interval = stats.ttest_rel(errors["1: s₀ = 10"], errors["4: s₀ = 100 → 1"]).confidence_interval(0.95)
    line = row(table_7, data="CIFAR-10", strategy="1: s₀ = 10")
    assert (line["difference_low"], line["difference_high"]) == (
        pytest.approx(interval.low),
        pytest.approx(interval.high),
    )
    assert row(table_7, data="CIFAR-10", strategy="4: s₀ = 100 → 1")["difference"] is None
    assert "| 0.0120 |" in render_markdown(table_6)
    assert {line["ours"] for line in rows(table_6, data="CIFAR-100")} == {None}
    assert row(table_6, data="CIFAR-100", strategy="2: s₀ = 100")["paper"] == 0.1757


def test_recency_bias_of_table_2_is_the_fourth_strategy():
    own = trained([0.006, 0.007]) + [run("random", seed, [9.0, 6.5], **DENSENET) for seed in range(2)]
    first, table_6 = all_tables(own)
    assert first.title.startswith("Table 2: ")
    line = row(table_6, data="CIFAR-10", strategy="4: s₀ = 100 → 1")
    assert (line["ours"], line["seeds"]) == (pytest.approx(0.0065), 2)
    # Its error alone is Table 2's; among the tables of which nothing was run it stands where it belongs.
    last = table(all_tables(own, empty=True), "Table 7")
    assert row(last, data="CIFAR-10", strategy="4: s₀ = 100 → 1")["ours"] == 6.5


def test_the_training_loss_is_that_of_the_runs_that_recorded_it():
    records = trained([0.01, 0.02], schedule="constant") + study(
        {"recency": [1.0, 1.0, 1.0]}, **DENSENET, schedule="constant", pressure=10.0
    )
    records += [run("recency", 2, [9.0, 8.0], **DENSENET, schedule="constant")]
    found = table(all_tables(records), "Table 6")
    assert row(found, data="CIFAR-10", strategy="2: s₀ = 100")["seeds"] == 2
    silent = row(found, data="CIFAR-10", strategy="1: s₀ = 10")
    assert (silent["ours"], silent["seeds"]) == (None, None)


def test_a_run_that_diverged_leaves_no_mean_loss():
    records = trained([0.01, math.nan], schedule="constant")
    found = table(all_tables(records), "Table 6")
    line = row(found, data="CIFAR-10", strategy="2: s₀ = 100")
    assert (line["ours"], line["seeds"]) == (None, 2)
    assert "| 2: s₀ = 100 | nan | 2 |" in render_markdown(found)


def test_runs_that_differ_have_tables_6_and_7_of_their_own():
    records = trained([0.01, 0.02], schedule="constant", dropout=0.0, iterations=13)
    table_6, table_7 = all_tables(records)
    said = "with dropout 0 and 13 iterations"
    assert table_6.title.startswith(f"Table 6 {said}: ")
    assert table_7.title.startswith(f"Table 7 {said}: ")
    assert row(table_7, strategy="2: s₀ = 100")["paper"] == 6.62
    assert {line["data"] for line in rows(table_7)} == {"CIFAR-10"}


def test_another_pressure_is_no_strategy_of_the_paper():
    records = trained([0.01, 0.02], pressure=1000.0) + trained([0.01, 0.02], pressure=10.0)
    own, other = [one for one in all_tables(records) if one.title.startswith("Table 7")]
    assert "1000" not in render_markdown(own)
    assert other.title.startswith("Table 7 with pressure 1000: ")
    line = row(other, strategy="s₀ = 1000 → 1")
    assert (line["ours"], line["paper"]) == (6.5, None)
    assert row(other, strategy="4: s₀ = 100 → 1")["paper"] == 6.60


def test_a_constant_pressure_on_another_network_is_no_row_of_tables_6_and_7():
    records = study({"random": [6.0], "recency": [5.5]}) + study({"recency": [5.9]}, schedule="constant")
    titles = [one.title for one in all_tables(records)]
    assert [title.split(":")[0] for title in titles] == ["Table 3", "Table 3 with constant pressure"]
