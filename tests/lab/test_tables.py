"""Tables from records made by hand, their numbers computed here in another way."""

import csv
import io
import json
from functools import partial

import numpy as np
import pytest
from scipy import stats

from carpediem.lab.table import DASH, render_csv, render_markdown, render_text, row_texts
from carpediem.lab.tables import all_tables, summary_tables
from lab.record_makers import run, study
from lab.table_readers import row, rows, table

DEMO = {"recipe": "demo", "data": "digits", "net": "small-cnn", "iterations": 672, "draws": "systematic"}
FINE_TUNED = {"recipe": "fine-tuning", "data": "mit67", "net": "densenet-121"}


def summary_table(records):
    (found,) = summary_tables(records)
    return found


def test_table_3_has_our_number_the_papers_and_the_paired_difference():
    rng = np.random.default_rng(0)
    errors = {method: rng.uniform(5, 7, 3) for method in ("random", "online", "active", "recency")}
    found = table(all_tables(study(errors)), "Table 3")
    assert found.title == "Table 3: best test error (%), ResNet (L=50), recipe paper, 40,000 iterations"
    line = row(found, optimizer="momentum", data="CIFAR-10", method="Recency Bias")
    assert (line["ours"], line["ours_standard_error"]) == (
        pytest.approx(errors["recency"].mean()),
        pytest.approx(stats.sem(errors["recency"])),
    )
    assert (line["seeds"], line["paper"], line["paper_standard_error"]) == (3, 9.79, 0.04)
    interval = stats.ttest_rel(errors["recency"], errors["random"]).confidence_interval(0.95)
    assert line["difference"] == pytest.approx((errors["recency"] - errors["random"]).mean())
    assert (line["difference_low"], line["difference_high"]) == (
        pytest.approx(interval.low),
        pytest.approx(interval.high),
    )
    assert line["difference_pairs"] == 3
    rival = row(found, optimizer="momentum", data="CIFAR-10", method="Active Bias")
    ours, theirs = errors["recency"].mean(), errors["active"].mean()
    assert rival["reduction"] == pytest.approx(100 * (1 - ours / theirs))
    assert rival["paper_reduction"] == pytest.approx(100 * (1 - 9.79 / 10.55))


def test_errors_have_two_decimals_like_their_standard_errors_however_low_they_are():
    errors = {"random": [1.67, 1.81], "recency": [0.0, 0.0], "active": [0.636, 0.64], "online": [0.5]}
    (found,) = summary_tables(study(errors))
    place = [column.key for column in found.columns].index("best_error")
    shown = {line[0]: line[place] for line in map(partial(row_texts, found), found.rows)}
    assert shown == {
        "Random Batch": "1.74 ± 0.07",
        "Online Batch": "0.50",
        "Active Bias": "0.64 ± 0.00",
        "Recency Bias": "0.00 ± 0.00",
    }


def test_what_has_not_been_run_is_a_dash_beside_the_papers_number():
    found = table(all_tables(study({"random": [6.0], "recency": [5.5]})), "Table 3")
    line = row(found, optimizer="SGD", data="CIFAR-100", method="Online Batch")
    assert (line["ours"], line["seeds"], line["difference"], line["paper"]) == (None, None, None, 40.69)
    assert (
        f"| SGD | CIFAR-100 | Online Batch | {DASH} | {DASH} | 40.69 ± 0.09 | {DASH} | {DASH} | 4.3 |"
        in render_markdown(found)
    )


def test_every_table_of_the_paper_is_there_when_nothing_has_been_run():
    empty = all_tables([], empty=True)
    titles = [one.title.split(":")[0] for one in empty]
    assert titles == [*(f"Table {number}" for number in range(2, 8)), "Figure 7"]
    assert all_tables([]) == []
    for one in empty:
        assert all(line.get("ours") is None for line in one.to_dict()["rows"])
        assert DASH in render_text(one)


def test_a_single_seed_has_neither_error_nor_interval():
    found = table(all_tables(study({"random": [6.0], "recency": [5.5]})), "Table 3")
    line = row(found, optimizer="momentum", data="CIFAR-10", method="Recency Bias")
    assert (line["ours"], line["ours_standard_error"], line["seeds"]) == (5.5, None, 1)
    assert (line["difference"], line["difference_low"], line["difference_high"]) == (-0.5, None, None)
    assert "| Recency Bias | 5.50 | 1 | 9.79 ± 0.04 | -0.50 |" in render_markdown(found)


def test_without_random_batch_there_is_no_difference():
    records = study({"online": [6.0, 7.0], "recency": [5.5, 5.0]}, **DEMO)
    found = summary_table(records)
    assert found.note.startswith("No finished run of Random Batch")
    assert (
        {line["difference"] for line in rows(found)}
        == {line["seconds_to_baseline"] for line in rows(found)}
        == {None}
    )
    paired = table(all_tables(study({"recency": [5.5]})), "Table 3")
    assert row(paired, optimizer="momentum", data="CIFAR-10", method="Recency Bias")["difference"] is None


def test_unfinished_runs_count_in_no_mean_and_are_reported():
    records = [*study({"random": [6.0, 6.2], "recency": [5.5, 5.7]}), run("recency", 2, [0.1], done=False)]
    found = table(all_tables(records), "Table 3")
    line = row(found, optimizer="momentum", data="CIFAR-10", method="Recency Bias")
    assert (line["ours"], line["seeds"]) == (pytest.approx(5.6), 2)
    assert found.note.endswith("Left out: 1 unfinished run.")
    alone = summary_table([run("recency", seed, [0.1], done=False, **DEMO) for seed in (0, 1)])
    assert (rows(alone)[0]["best_error"], rows(alone)[0]["seeds"]) == (None, 0)
    assert alone.note.endswith("Left out: 2 unfinished runs.")


def test_fine_tuning_gives_errors_and_the_papers_comparison_in_time():
    records = [run("random", s, [40, 30, 20, 25], seconds=10.0 + s, **FINE_TUNED) for s in range(3)]
    records += [run("recency", s, [40, 19 + s, 18, 17 - s], seconds=20.0, **FINE_TUNED) for s in range(3)]
    records += [run("online", s, [16, 20, 20, 20], seconds=20.0, **FINE_TUNED) for s in range(2)]
    errors, times = table(all_tables(records), "Table 4"), table(all_tables(records), "Table 5")
    assert row(errors, data="MIT-67", method="Random Batch")["ours"] == 20
    assert row(errors, data="MIT-67", method="Random Batch")["paper"] == 28.85
    assert row(errors, data="FOOD-100", method="Random Batch")["paper_reduction"] == pytest.approx(
        1.81, abs=0.005
    )
    line = row(times, data="MIT-67", rival="Random Batch")
    # Random Batch: 20 in its third epoch, after 3 x 11 s in the mean. Recency Bias: in its second, second and third.
    ours = 20 * (2 + 2 + 3) / 3
    assert (line["target"], line["rival_seconds"], line["ours_seconds"]) == (20, 33, pytest.approx(ours))
    assert line["reduction"] == pytest.approx((33 - ours) / 33 * 100)
    assert line["fewer_iterations"] == pytest.approx((3 - 7 / 3) / 3 * 100)
    assert (line["paper_rival_seconds"], line["paper_ours_seconds"]) == (5218, 3936)
    assert line["paper_reduction"] == pytest.approx(24.6, abs=0.05)
    missed = row(times, data="MIT-67", rival="Online Batch")
    assert (missed["ours_seconds"], missed["seeds"]) == ("not reached (1 of 2)", 2)
    assert missed["reduction"] is missed["fewer_iterations"] is None
    assert row(times, data="FOOD-100", rival="Active Bias")["rival_seconds"] is None


def test_the_table_of_times_says_how_many_runs_were_trained_at_once():
    records = study({"random": [20.0], "recency": [19.0], "active": [30.0]}, **FINE_TUNED)
    alone = table(all_tables(records), "Table 5").note
    assert "Seconds compare runs that are trained one at a time" in alone
    assert "at once" not in alone
    records[1].epochs[2]["side_by_side"] = 4
    assert "Up to 4 of these runs were trained at once" in table(all_tables(records), "Table 5").note


def test_the_summary_names_methods_that_were_best_before_they_selected():
    low_then_high = [9.0, 5.0, 7.0, 6.0]
    records = [run(method, 0, low_then_high, warm_up=2, **DEMO) for method in ("random", "online", "recency")]
    records.append(run("recency", 1, [9.0, 5.0, 7.0, 5.0], warm_up=2, **DEMO))
    note = summary_table(records).note
    assert "In 2 runs (Online Batch, Recency Bias) the best error is one of the warm-up's" in note
    assert "warm-up" not in summary_table(records[-1:]).note


def test_the_summary_says_how_soon_each_method_reached_random_batchs_best():
    records = [run("random", s, [9.0, 5.0, 4.0, 4.5], seconds=100.0, **DEMO) for s in range(2)]
    records += [run("recency", s, [8.0, 3.9, 4.0, 4.1], seconds=110.0, **DEMO) for s in range(2)]
    records += [run("active", s, [9.0, 8.0, 7.0, 6.0], seconds=100.0, **DEMO) for s in range(2)]
    found = summary_table(records)
    assert found.title == "digits, small-cnn, momentum, recipe demo"
    random, active, recency = rows(found)
    assert (random["seconds_to_baseline"], random["fewer_iterations"], random["seconds"]) == (300, None, 400)
    assert (active["seconds_to_baseline"], active["fewer_iterations"]) == ("never", None)
    assert (recency["seconds_to_baseline"], recency["seconds"]) == (220, 440)
    assert recency["fewer_iterations"] == pytest.approx(100 / 3)  # two epochs instead of three
    assert [one.title for one in all_tables(records)] == [found.title]


def test_a_summary_is_of_one_setting_and_titles_tell_settings_apart():
    records = study({"random": [6.0]}, **DEMO) + study({"random": [5.0]}, **(DEMO | {"iterations": 66}))
    assert [one.title for one in summary_tables(records)] == [
        "digits, small-cnn, momentum, recipe demo",
        "digits, small-cnn, momentum, recipe demo, 66 iterations",
    ]


def test_the_renderings_say_the_same():
    found = summary_table(study({"random": [6.0, 6.5], "recency": [5.5, 5.9]}, **DEMO))
    text, markdown = render_text(found), render_markdown(found)
    for said in ("Random Batch", "6.25 ± 0.25", "5.70 ± 0.20", "-0.55 [-1.19, +0.09]", found.title):
        assert said in text
        assert said in markdown
    assert "\x1b" not in text
    assert "\x1b[" in render_text(found, colour=True)
    assert all(len(line) <= 60 for line in render_text(found, width=60).splitlines())
    read = list(csv.DictReader(io.StringIO(render_csv(found))))
    plain = json.loads(json.dumps(found.to_dict()))["rows"]
    assert [
        {"table": found.title} | {key: "" if value is None else str(value) for key, value in line.items()}
        for line in plain
    ] == read
    assert float(read[1]["best_error_standard_error"]) == pytest.approx(
        np.std([5.5, 5.9], ddof=1) / np.sqrt(2), abs=1e-12
    )


def test_programs_get_no_digits_that_sums_leave_behind():
    errors = {"random": [0.3, 0.1], "recency": [0.1 + 0.2, 0.1]}
    assert errors["recency"][0] != errors["random"][0]
    found = rows(summary_table(study(errors, **DEMO)))[1]
    assert (found["difference"], str(found["difference"])) == (0.0, "0.0")


def test_square_brackets_and_bars_in_names_are_shown_as_they_are():
    found = summary_table(study({"random": [6.0]}, **(DEMO | {"data": "my[bold]|data"})))
    assert "my[bold]|data" in render_text(found)
    assert "my[bold]|data" in render_markdown(found)
    named = summary_table(study({"mine:a|b": [6.0]}, **DEMO))
    assert "| mine:a\\|b |" in render_markdown(named)
