"""The numbers that the paper derives from its tables, computed anew."""

import pytest

from carpediem.lab.analysis.comparisons import Measured
from carpediem.lab.analysis.derived import DERIVED, derived_data
from lab.analysis.claim_makers import DENSENET, runs
from lab.record_makers import run


def derived(*stated):
    return next(one for one in DERIVED if one.stated == stated)


@pytest.mark.parametrize(
    "stated",
    [
        ("20.97",),
        ("59.32",),
        ("3.22", "9.96"),
        ("2.94", "20.97"),
        ("2.88",),
        ("1.81",),
        ("24.6",),
        ("24.57", "47.16"),
        ("26.13", "59.32"),
        ("24.57",),
        ("37.11",),
        ("47.16",),
        ("26.13",),
        ("55.78",),
        ("2.51", "8.96"),
    ],
    ids=str,
)
def test_the_tables_give_what_the_text_states(stated):
    found = derived(*stated)
    assert found.agrees
    assert (found.computed, found.note) == (stated, "")


@pytest.mark.parametrize(
    ("stated", "computed", "note"),
    [
        (
            ("4.72", "5.71"),
            ("3.92", "5.71"),
            "3.92 is MNIST, DenseNet, momentum against Online Batch, "
            "4.72 is CIFAR-100, DenseNet, momentum against Online Batch",
        ),
        (
            ("2.32", "19.51"),
            ("2.32", "11.31"),
            "11.31 is CIFAR-10, DenseNet, SGD against Random Batch, "
            "19.51 is MNIST, DenseNet, SGD against Random Batch, which is left out here",
        ),
        (
            ("5.15", "14.64"),
            ("0.00", "14.64"),
            "0.00 is MNIST, ResNet, momentum against Active Bias, "
            "5.15 is CIFAR-100, ResNet, momentum against Active Bias",
        ),
    ],
    ids=str,
)
def test_three_ends_of_ranges_are_not_what_the_tables_give(stated, computed, note):
    found = derived(*stated)
    assert not found.agrees
    assert (found.computed, found.note) == (computed, note)


def test_the_six_percentages_of_table_5_are_all_there():
    stated = [one.stated[0] for one in DERIVED if one.where == "Table 5"]
    assert stated == ["24.57", "37.11", "47.16", "26.13", "55.78", "59.32"]


def test_runs_give_their_own_reduction_over_the_seeds_that_both_have():
    records = runs("random", [10.0, 20.0, 30.0], **DENSENET) + runs(
        "recency", [9.0, 9.0], seeds=[0, 1], **DENSENET
    )
    records += runs("random", [8.0, 8.0, 8.0], data="cifar100", **DENSENET)
    records += runs("recency", [10.0, 10.0, 10.0], data="cifar100", **DENSENET)
    found = derived("3.22", "9.96")
    assert found.ours(Measured(records)) == (pytest.approx(-25.0), pytest.approx(40.0))
    assert found.ours(Measured([])) == ()
    data = derived_data(found, Measured(records))
    assert (data["settings"], data["ours"], data["agrees"]) == (3, [-25.0, 40.0], True)


def test_the_time_saved_is_our_own_where_the_papers_fine_tuning_was_run():
    own = {"recipe": "fine-tuning", "data": "mit67", "net": "densenet-121"}
    records = [run("random", seed, [*[40] * 48, 30, 20], seconds=10.0, **own) for seed in (0, 1)]
    records += [run("recency", seed, [*[40] * 23, 20, *[30] * 26], seconds=10.0, **own) for seed in (0, 1)]
    found = derived("24.6")
    assert found.ours(Measured(records)) == (pytest.approx(100 * (50 - 24) / 50),)
    never = [run("recency", seed, [40] * 50, seconds=10.0, **own) for seed in (0, 1)]
    assert found.ours(Measured(records[:2] + never)) == ()
