"""What a study of the paper prints at its end."""

import pytest

from carpediem.lab.plans import PLANS
from carpediem.lab.recipes import network_of
from carpediem.lab.tables import study_tables
from lab.record_makers import run
from lab.table_readers import row, rows, table

EPOCHS = 10
FIELDS = [
    {
        "training_set_loss": 1 / (n + 1),
        "uncertainty_counts": [[0.0, 60 + n], [0.25, 30 - n], [1.0, 10]],
        "pressure": 2.0 + n,
        "loss_quantiles": {"0.05": 0.1 * n, "0.5": 0.2 * n, "0.95": 0.4 * n},
        "distinct": 0.5,
    }
    for n in range(EPOCHS)
]


def of_plan(name, *, datasets=None, seeds=2, methods=None, **changes):
    """The runs of a study, or of it with other settings, as `reproduce` would train them."""
    plan = PLANS[name]
    recipe = changes.pop("recipe", plan.recipe)
    base = {"recipe": recipe, "net": network_of(recipe, plan.net), "optimizer": plan.optimizer}
    base |= {"precision": "bf16"}
    errors = [9.0 - 0.1 * n for n in range(EPOCHS)]
    return [
        run(method, seed, [e + seed for e in errors], fields=FIELDS, data=data, **base | options | changes)
        for data in datasets or plan.datasets
        for method in methods or plan.methods
        for options in plan.sets_of_options(method)
        for seed in range(seeds)
    ]


def titles(name, records):
    return [one.title.partition(":")[0] for one in study_tables(PLANS[name], records)]


SHOWN = {
    "densenet-momentum": ["Table 2"],
    "densenet-sgd": ["Table 2"],
    "resnet-momentum": ["Table 3"],
    "resnet-sgd": ["Table 3"],
    "fine-tuning": ["Table 4", "Table 5"],
    "fine-tuning-flowers": [
        "Table 4 with Flowers-102 and EfficientNet-Lite0",
        "Table 5 with Flowers-102 and EfficientNet-Lite0",
    ],
    "pressure-ablation": ["Table 6", "Table 7"],
    "grid-search": ["Figure 7"],
    "loss-distribution": ["Figure 4"],
    "index-comparison": ["Figure 3"],
}


@pytest.mark.parametrize("name", PLANS)
def test_a_study_ends_with_the_papers_table_and_nothing_else(name):
    records = of_plan(name)
    assert titles(name, records) == SHOWN[name]
    for one in study_tables(PLANS[name], records):
        assert "bf16" in one.note
        assert len(rows(one)) <= 32
        assert any(line.get("seeds") == 2 for line in rows(one))


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dropout": 0.0}, "dropout 0"),
        ({"iterations": 13}, "13 iterations"),
        ({"augmentation": "crop-flip", "draws": "systematic"}, "augmentation crop-flip and systematic draws"),
    ],
)
def test_a_study_with_other_settings_is_titled_by_them_and_keeps_the_papers_column(name, changes, said):
    own, other = (study_tables(PLANS[name], of_plan(name, **changed)) for changed in ({}, changes))
    for papers, one in zip(own, other, strict=True):
        head = papers.title.partition(":")[0]
        what = f"{head} and {said}".replace(" and ", ", ", 1) if " with " in head else f"{head} with {said}"
        assert one.title.partition(":")[0].replace(", ", " and ") == what.replace(", ", " and ")
        assert one.columns == papers.columns
        printed = [[line.get(key) for key in ("paper", "paper_rival_seconds")] for line in rows(papers)]
        assert [[line.get(key) for key in ("paper", "paper_rival_seconds")] for line in rows(one)] == printed


def test_data_that_was_not_run_has_no_rows():
    (found,) = study_tables(PLANS["resnet-sgd"], of_plan("resnet-sgd", datasets=["cifar10"]))
    assert {(line["optimizer"], line["data"]) for line in rows(found)} == {("SGD", "CIFAR-10")}
    assert len(rows(found)) == 4


def test_a_method_that_was_not_run_is_a_dash_beside_the_papers_number():
    records = of_plan("resnet-momentum", datasets=["mnist"], methods=["recency"])
    (found,) = study_tables(PLANS["resnet-momentum"], records)
    line = row(found, method="Random Batch")
    assert (line["ours"], line["paper"]) == (None, 0.64)


def test_a_study_with_another_window_keeps_the_other_methods_beside_it():
    records = of_plan("resnet-momentum", datasets=["cifar10"])
    for one in records:
        if one.config["method"] == "recency":
            one.config["window"] = 5
    assert titles("resnet-momentum", records) == ["Table 3 with window 5"]


@pytest.mark.parametrize("name", ["densenet-momentum", "resnet-sgd", "pressure-ablation", "grid-search"])
def test_a_study_with_the_released_recipe_is_titled_by_it(name):
    for one in study_tables(PLANS[name], of_plan(name, recipe="released")):
        assert ", recipe released: " in one.title
        assert ", released code" in one.title


@pytest.mark.parametrize("name", ["fine-tuning", "pressure-ablation", "grid-search", "index-comparison"])
def test_plain_sgd_in_a_study_of_momentum_is_named(name):
    found = study_tables(PLANS[name], of_plan(name, optimizer="sgd"))
    assert all(" with the optimizer SGD: " in one.title and ", momentum" not in one.title for one in found)
    if name == "fine-tuning":
        assert row(found[0], data="MIT-67", method="Random Batch")["paper"] == 28.85


def test_the_papers_studies_of_both_optimizers_make_one_table():
    records = of_plan("resnet-momentum", datasets=["mnist"]) + of_plan("resnet-sgd", datasets=["mnist"])
    (found,) = study_tables(PLANS["resnet-momentum"], records)
    assert [line["optimizer"] for line in rows(found, method="Random Batch")] == ["momentum", "SGD"]


def test_data_that_is_not_the_papers_is_named():
    (found,) = study_tables(PLANS["index-comparison"], of_plan("index-comparison", datasets=["cifar10"]))
    assert found.title.startswith("Figure 3 with CIFAR-10: ")
    (found,) = study_tables(PLANS["resnet-momentum"], of_plan("resnet-momentum", datasets=["./photos"]))
    assert found.title.startswith("Table 3 with ./photos: ")
    assert {line["paper"] for line in rows(found)} == {None}


def test_what_has_no_place_in_the_table_is_summarised():
    records = of_plan("pressure-ablation", datasets=["cifar10"])
    random = of_plan("pressure-ablation", datasets=["cifar10"], methods=["random"])
    *_, last = study_tables(PLANS["pressure-ablation"], records + random)
    assert last.title == "CIFAR-10, DenseNet (L=40, k=12), momentum, recipe paper"


def test_figure_4_has_the_losses_of_what_was_drawn_at_30_and_at_70_percent():
    found = table(study_tables(PLANS["loss-distribution"], of_plan("loss-distribution")), "Figure 4")
    assert found.title.startswith("Figure 4: losses of the drawn samples, DenseNet (L=40, k=12), momentum")
    assert [line["epoch"] for line in rows(found, method="Online Batch")] == ["3 (30%)", "7 (70%)"]
    line = row(found, epoch="7 (70%)", method="Recency Bias")
    assert (line["loss"], line["low"], line["median"], line["high"]) == pytest.approx((1 / 7, 0.6, 1.2, 2.4))
    assert (line["distinct"], line["seeds"]) == (50, 2)


def test_figure_3_has_the_mean_of_both_indices_at_30_and_at_70_percent():
    found = table(study_tables(PLANS["index-comparison"], of_plan("index-comparison")), "Figure 3")
    assert {line["data"] for line in rows(found)} == {"CIFAR-100"}
    early, late = rows(found)
    assert (early["epoch"], early["settled"], late["settled"]) == ("3 (30%)", 62, 66)
    # 62 samples have index 100, 28 have 75, ten have 0.
    assert early["quantised"] == pytest.approx(62 + 0.28 * 75)
    assert early["rank"] == late["rank"] == pytest.approx(50.5)
    assert early["uncertainty"] == pytest.approx(0.28 * 0.25 + 0.1)
    assert (early["pressure"], early["seeds"]) == (4, 2)


def test_the_studies_of_figures_3_and_4_tell_of_runs_without_such_records():
    for name in ("loss-distribution", "index-comparison"):
        records = of_plan(name, datasets=["cifar10"])
        for epoch in (epoch for one in records for epoch in one.epochs):
            for field in FIELDS[0]:
                del epoch[field]
        (found,) = study_tables(PLANS[name], records)
        assert {line.get("median", line.get("rank")) for line in rows(found)} == {None}


def test_an_unfinished_study_has_a_table_with_dashes():
    records = [one for one in of_plan("loss-distribution") if one.config["seed"] == 0]
    waiting = [type(one)(one.hash, one.config, one.epochs[:2], None) for one in records]
    (found,) = study_tables(PLANS["loss-distribution"], waiting)
    assert {line["seeds"] for line in rows(found)} == {None}
    assert found.note.endswith("Left out: 4 unfinished runs.")
