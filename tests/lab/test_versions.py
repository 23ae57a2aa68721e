"""Runs that differ from the paper's: which table they stand in, and what it is titled by."""

import pytest

from carpediem.lab.results import group_cells
from carpediem.lab.table import render_markdown
from carpediem.lab.tables import all_tables
from carpediem.lab.versions import ABLATION, TABLE_3, versions
from lab.record_makers import run, study
from lab.table_readers import row, rows, table

BOTH = {"random": [6.0, 6.5], "recency": [5.5, 5.8]}


def titles(records):
    return [one.title for one in all_tables(records)]


def methods(one):
    return [line["method"] for line in rows(one) if line["seeds"] is not None]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dropout": 0.0}, " with dropout 0"),
        ({"dropout": 0.0, "iterations": 13}, " with dropout 0 and 13 iterations"),
        ({"augmentation": "none", "batch_size": 64}, " with batch size 64 and no augmentation"),
        ({"warm_up": 5}, " with warm-up 5"),
        ({"draws": "systematic"}, " with systematic draws"),
        ({"last_batch": "filled"}, " with the last batch filled up"),
        ({"dropout_in_testing": True}, " with dropout in testing too"),
        ({"recipe": "released", "net": "resnet-50-released"}, ", recipe released"),
        ({"recipe": "released", "net": "resnet-50-released", "dropout": 0.2}, ", recipe released with dropout 0.2"),
        ({"recipe": "fine-tuning"}, ", recipe fine-tuning"),
        ({"net": "resnet-50-released"}, " with the network of the released code"),
    ],
)  # fmt: skip
def test_runs_that_differ_make_a_table_of_the_same_shape_that_is_titled_by_what_differs(changes, said):
    own, other = study(BOTH), study({"random": [7.0], "recency": [7.5]}, **changes)
    papers, found = all_tables(own + other)
    assert papers.title == "Table 3: best test error (%), ResNet (L=50), recipe paper, 40,000 iterations"
    assert found.title.startswith(f"Table 3{said}: best test error (%), ResNet (L=50)")
    assert [column.key for column in found.columns] == [column.key for column in papers.columns]
    where = {"optimizer": "momentum", "data": "CIFAR-10"}
    assert {line["paper"] for line in rows(found, **where)} == {10.22, 10.06, 10.55, 9.79}
    assert sorted(line["ours"] for line in rows(found) if line["seeds"]) == [7.0, 7.5]
    if "draws" not in changes:  # the paper's own table is the same without them
        assert render_markdown(papers) == render_markdown(all_tables(own)[0])
    assert titles(other) == [found.title]


def test_the_network_of_the_released_code_is_named():
    (found,) = all_tables(study(BOTH, recipe="released", net="densenet-40-12-released"))
    assert (
        found.title == "Table 2, recipe released: best test error (%), DenseNet (L=40, k=12), released code"
    )


def test_a_method_with_another_option_stands_beside_the_methods_that_have_none_such():
    own = study(BOTH | {"online": [6.2]})
    papers, found = all_tables(own + study({"recency": [4.0, 5.0]}, window=5))
    assert found.title == "Table 3 with window 5: best test error (%), ResNet (L=50)"
    assert methods(found) == ["Random Batch", "Online Batch", "Recency Bias (window 5)"]
    line = row(found, method="Recency Bias (window 5)")
    assert (line["difference"], line["paper"]) == (pytest.approx(-1.75), 9.79)
    assert row(papers, method="Recency Bias", data="CIFAR-10", optimizer="momentum")["ours"] == 5.65


def test_random_batch_that_draws_otherwise_is_compared_with_and_has_no_row():
    records = study({"random": [6.0, 7.0], "recency": [5.0, 5.5]})
    records += study({"random": [5.8, 6.0], "recency": [5.5, 5.7]}, draws="systematic")
    papers, found = all_tables(records)
    assert methods(papers) == ["Random Batch", "Recency Bias"]
    line = row(papers, optimizer="momentum", data="CIFAR-10", method="Recency Bias")
    assert (line["difference_independent"], line["difference_systematic"]) == pytest.approx((-1.25, -0.65))
    random = row(papers, optimizer="momentum", data="CIFAR-10", method="Random Batch")
    assert (random["difference_independent"], random["difference_systematic"]) == (None, pytest.approx(0.6))
    column_titles = [column.title for column in papers.columns]
    assert "Difference to Random Batch (shuffle)" in column_titles
    assert found.title.startswith("Table 3 with systematic draws: ")
    assert methods(found) == ["Random Batch (shuffle)", "Recency Bias (systematic draws)"]
    line = row(found, method="Recency Bias (systematic draws)")
    assert (line["difference_independent"], line["difference_systematic"]) == pytest.approx((-0.9, -0.3))


def test_one_option_of_several_methods_makes_one_table():
    changes = {"pressure": 10.0, "schedule": "constant", "window": 5}
    records = study({"random": [6.0], "online": [6.2], "active": [6.1], "recency": [5.0]}, **changes)
    for one in records:  # as the plan has it: what a method does not read is the recipe's
        if one.config["method"] == "online":
            one.config["window"] = 10
        elif one.config["method"] != "recency":
            one.config.update(window=10, pressure=100.0, schedule="decayed")
    (found,) = all_tables(records)
    assert found.title.startswith("Table 3 with window 5, pressure 10 and constant pressure: ")
    assert methods(found) == [
        "Random Batch",
        "Online Batch (pressure 10, constant pressure)",
        "Active Bias",
        "Recency Bias (window 5, pressure 10, constant pressure)",
    ]


def test_what_stands_in_a_table_of_the_paper_need_not_be_compared_with_what_differs_elsewhere():
    own = study(BOTH) + study(BOTH, data="mnist")
    papers, found = all_tables(own + study({"active": [6.4]}, mode="reweight"))
    assert {line["data"] for line in rows(found)} == {"CIFAR-10"}
    assert methods(found) == ["Random Batch", "Active Bias (loss re-weighted)", "Recency Bias"]
    assert {line["data"] for line in rows(papers) if line["seeds"]} == {"CIFAR-10", "MNIST"}


def test_what_a_recipe_has_for_one_method_alone_is_no_difference():
    config = {"recipe": "released", "net": "densenet-40-12-released"}
    active = study({"active": [5.0]}, **config)
    assert active[0].config["weight_decay"] == 0
    assert titles(study(BOTH, **config) + active) == [
        "Table 2, recipe released: best test error (%), DenseNet (L=40, k=12), released code"
    ]
    changed = study({"active": [5.0]}, **config, weight_decay=5e-4)
    found = table(all_tables(study(BOTH, **config) + changed), "Table 2, recipe released with")
    assert found.title.startswith("Table 2, recipe released with weight decay 0.0005: ")
    assert methods(found) == ["Random Batch", "Active Bias (weight decay 0.0005)", "Recency Bias"]


def test_other_recipes_and_data_have_summaries():
    records = study(BOTH, recipe="modern") + study(BOTH, data="./photos")
    assert titles(records) == [
        "./photos, ResNet (L=50), momentum, recipe paper",
        "CIFAR-10, ResNet (L=50), momentum, recipe modern",
    ]


def test_fine_tuning_on_other_data_is_titled_by_it_and_has_no_number_of_the_paper():
    config = {"recipe": "fine-tuning", "data": "flowers-102", "net": "efficientnet-lite0"}
    errors, times = all_tables(study(BOTH, **config))
    assert errors.title == "Table 4 with Flowers-102 and EfficientNet-Lite0: best test error (%), fine-tuning"
    assert times.title.startswith("Table 5 with Flowers-102 and EfficientNet-Lite0: ")
    line = row(errors, method="Recency Bias")
    assert (line["network"], line["ours"], line["paper"]) == ("EfficientNet-Lite0", 5.65, None)
    changed = study(BOTH, **config, dropout=0.0, augmentation="none")
    assert titles(changed)[0].startswith(
        "Table 4 with Flowers-102, EfficientNet-Lite0, dropout 0 and no augmentation: "
    )


def test_the_papers_times_stand_beside_those_of_runs_that_differ():
    config = {"recipe": "fine-tuning", "data": "mit67", "net": "densenet-121"}
    records = study({"random": [20.0], "recency": [19.0]}, **config, draws="systematic")
    times = table(all_tables(records), "Table 5 with systematic draws")
    assert row(times, rival="Random Batch (shuffle)")["paper_rival_seconds"] == 5218


def test_of_two_precisions_the_one_with_more_runs_stands_first_and_the_other_is_titled_by_itself():
    records = study({"random": [6.0, 6.0]}, precision="bf16") + study({"random": [9.0]}, precision="float32")
    papers, found = all_tables(records)
    own = row(papers, optimizer="momentum", data="CIFAR-10", method="Random Batch")
    assert (own["ours"], row(found, method="Random Batch")["ours"]) == (6.0, 9.0)
    assert found.title == "Table 3 with precision float32: best test error (%), ResNet (L=50)"
    assert papers.note.endswith("Trained in bf16; the paper: in float32.")
    assert found.note.endswith("Trained in float32, as in the paper.")


def test_a_note_says_which_data_was_trained_in_which_precision():
    records = study(BOTH, precision="bf16") + study(BOTH, precision="float32", data="mnist")
    (found,) = all_tables(records)
    assert found.note.endswith("Trained in bf16 (CIFAR-10) and float32 (MNIST); the paper: in float32.")


def test_runs_that_have_not_finished_are_of_a_version_too():
    (found,) = all_tables([run("recency", 0, [5.0], done=False, window=5)])
    assert found.title.startswith("Table 3 with window 5: ")
    assert found.note.endswith("Left out: 1 unfinished run.")


def test_settings_that_the_rows_tell_part_no_tables():
    config = {"net": "densenet-40-12"}
    cells = group_cells(
        study({"recency": [5.0]}, **config)
        + study({"recency": [5.0]}, **config, pressure=10.0, schedule="constant")
    )
    (one,) = versions(cells, ABLATION)
    assert one.is_own
    assert len(one.cells) == 2
    assert len(versions(cells, TABLE_3)) == 2
