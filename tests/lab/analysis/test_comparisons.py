"""One number below another: in the paper's tables, and in records made by hand."""

import math

import pytest

from carpediem.lab.analysis.comparisons import Above, Below, LargerGain, Measured, judge
from carpediem.lab.analysis.measures import (
    CONVERGED_LOSS,
    DRAWN_LOSS,
    EARLY,
    LATE,
    MEAN_ERROR,
    SETTLED_SHARE,
    TRAINING_LOSS,
    Arm,
    epoch_at,
)
from lab.analysis.claim_makers import DENSENET, runs
from lab.record_makers import run

RANDOM, ONLINE, ACTIVE, RECENCY = (
    Arm("resnet-50", "cifar10", "momentum", method) for method in ("random", "online", "active", "recency")
)


def test_yes_where_the_interval_lies_below_zero():
    measured = Measured(runs("random", [10.0, 10.1, 10.2]) + runs("recency", [9.0, 9.2, 9.1]))
    verdict, difference = judge(Below(RECENCY, RANDOM), measured)
    assert verdict == "yes"
    assert difference.mean == pytest.approx(-1.0)
    assert difference.high < 0


def test_no_where_the_interval_lies_above_zero_whatever_the_size_of_the_papers_difference():
    worse = Measured(runs("random", [9.0, 9.1, 9.2]) + runs("recency", [10.0, 10.2, 10.1]))
    assert judge(Below(RECENCY, RANDOM), worse)[0] == "no"
    # The paper has -0.43 there: [-0.24, +0.24] leaves that out, though not that there is a difference at all.
    even = Measured(runs("random", [9.0, 9.0, 9.0]) + runs("recency", [8.9, 9.1, 9.0]))
    assert judge(Below(RECENCY, RANDOM), even)[0] == "undecided"


def test_undecided_where_the_seeds_disagree_or_there_is_one_alone():
    wide = Measured(runs("random", [9.0, 9.0, 9.0]) + runs("recency", [8.0, 10.0, 9.0]))
    assert judge(Below(RECENCY, RANDOM), wide)[0] == "undecided"
    alone = Measured(runs("random", [9.0], seeds=[0]) + runs("recency", [2.0], seeds=[0]))
    assert judge(Below(RECENCY, RANDOM), alone)[0] == "undecided"


@pytest.mark.parametrize(
    "records",
    [
        [],
        runs("recency", [9.0, 9.1, 9.2]),
        runs("random", [9.0], seeds=[0]) + runs("recency", [8.0], seeds=[1]),
        [run(method, 0, [9.0], done=False) for method in ("random", "recency")],
    ],
    ids=["nothing", "one method", "other seeds", "unfinished"],
)
def test_what_was_not_run_is_not_measured(records):
    assert judge(Below(RECENCY, RANDOM), Measured(records)) == ("not measured", None)


@pytest.mark.parametrize(
    "change",
    [
        {"recipe": "modern"},
        {"draws": "systematic"},
        {"iterations": 500},
        {"dropout": 0.0},
        {"pressure": 10.0},
        {"schedule": "constant"},
        {"warm_up": 15},
        {"optimizer": "sgd"},
        {"data": "cifar100"},
    ],
    ids=str,
)
def test_what_was_not_trained_as_the_paper_says_does_not_count(change):
    measured = Measured(runs("random", [9.0, 9.1, 9.2]) + runs("recency", [8.0, 8.2, 8.3], **change))
    assert judge(Below(RECENCY, RANDOM), measured)[0] == "not measured"


def test_runs_that_differ_in_anything_else_are_not_compared():
    bf16 = runs("random", [9.0, 9.1, 9.2], precision="bf16")
    recency = runs("recency", [8.0, 8.2, 8.3], precision="float32")
    assert judge(Below(RECENCY, RANDOM), Measured(bf16 + recency))[0] == "not measured"
    both = Measured(bf16 + recency + runs("random", [7.0], seeds=[0], precision="float32"))
    assert judge(Below(RECENCY, RANDOM), both)[1].mean == pytest.approx(1.0)


def test_a_point_of_the_grid_may_have_a_longer_warm_up_and_a_pressure_of_1_any_window():
    def point(pressure, window):
        return Arm(
            "resnet-50", "cifar10", "momentum", "recency", (("pressure", pressure), ("window", window))
        )

    best = runs("recency", [8.0, 8.1], seeds=[0, 1])
    wide = runs("recency", [9.0, 9.3], seeds=[0, 1], window=15, warm_up=15)
    uniform = runs("recency", [7.0, 7.3], seeds=[0, 1], pressure=1.0)
    measured = Measured(best + wide + uniform)
    assert judge(Below(point(100.0, 10), point(100.0, 15)), measured)[1].mean == pytest.approx(-1.1)
    for window in (5, 10, 15):
        assert judge(Below(point(100.0, window), point(1.0, window)), measured)[0] == (
            "not measured" if window == 5 else "undecided"
        )
    # Of two that may be compared, the one with the same warm-up.
    same = runs("recency", [9.0, 9.1], seeds=[0, 1], warm_up=15)
    found = judge(Below(point(100.0, 10), point(100.0, 15)), Measured(best + wide + same))[1]
    assert found.mean == pytest.approx(-0.1)


def test_the_training_loss_counts_after_the_warm_up_and_by_its_logarithm():
    def records(method, loss, last):
        fields = {
            "training_set_loss": lambda epoch, seed: 5.0 if epoch < 10 else last if epoch == 19 else loss
        }
        return runs(method, [9.0, 9.1, 9.2], fields=fields)

    measured = Measured(records("random", 0.1, 0.2) + records("online", 0.01, 0.3))
    loss = Below(ONLINE, RANDOM, TRAINING_LOSS).by_seed(measured)
    expected = (9 * math.log10(0.01) + math.log10(0.3) - 9 * math.log10(0.1) - math.log10(0.2)) / 10
    assert list(loss.values()) == [pytest.approx(expected)] * 3
    last = Below(ONLINE, RANDOM, CONVERGED_LOSS).by_seed(measured)
    assert list(last.values()) == [pytest.approx(0.1)] * 3


def test_a_training_loss_of_some_epochs_or_of_zero_counts_and_one_that_is_no_number_does_not():
    told = {3: 4.0, 11: 0.1, 13: 0.0, 15: math.nan}
    fields = {"training_set_loss": lambda epoch, seed: told.get(epoch)}
    (one,) = runs("random", [9.0], seeds=[0], fields=fields)
    # After a warm-up of ten: on the line from 4.0 in epoch 3 to 0.1 in 11, half-way to 1e-8, and at 1e-8 from 13 on.
    tenth = math.log10(4) + 7 / 8 * (-1 - math.log10(4))
    after = [tenth, -1, -4.5, *[-8] * (len(one.epochs) - 13)]
    assert TRAINING_LOSS.of(one) == pytest.approx(sum(after) / len(after))
    assert CONVERGED_LOSS.of(one) == 0.0
    (none,) = runs("random", [9.0], seeds=[0])
    assert (TRAINING_LOSS.of(none), CONVERGED_LOSS.of(none)) == (None, None)


def test_how_often_the_training_loss_was_recorded_decides_nothing():
    def falling(every):
        fields = {"training_set_loss": lambda epoch, seed: 10.0**-epoch if (epoch + 1) % every == 0 else None}
        return runs("random", [9.0], seeds=[0], fields=fields)[0]

    assert TRAINING_LOSS.of(falling(2)) == pytest.approx(TRAINING_LOSS.of(falling(1)), abs=0.2)


def test_a_run_that_ended_in_its_warm_up_has_no_mean_error():
    (whole,) = runs("random", [9.0], seeds=[0])
    assert MEAN_ERROR.of(whole) == pytest.approx(9.0 + 4.5)
    assert MEAN_ERROR.of(run("random", 0, [9.0] * 10)) is None


def test_what_is_drawn_is_looked_at_at_30_and_70_percent_of_the_epochs():
    long = run("random", 0, [9.0] * 103)
    assert [epoch_at(len(long.epochs), share) + 1 for share in (EARLY, LATE)] == [31, 72]
    assert [epoch_at(1, share) for share in (EARLY, LATE)] == [0, 0]

    def drawn(method, early, late):
        fields = {"train_loss": lambda epoch, seed: {5: early, 13: late}.get(epoch, 100.0) + 0.001 * seed}
        return runs(method, [9.0, 9.1, 9.2], fields=fields)

    measured = Measured(drawn("random", 1.0, 0.5) + drawn("recency", 2.0, 0.25))
    found = {share: Below(RECENCY, RANDOM, DRAWN_LOSS[share]).by_seed(measured)[0] for share in (EARLY, LATE)}
    assert found == {EARLY: pytest.approx(1.0), LATE: pytest.approx(-0.25)}


def test_the_settled_share_is_read_where_it_was_recorded():
    shares = {5: 0.4, 13: 0.8}
    fields = {"settled_share": lambda epoch, seed: shares.get(epoch, 0.0) + 0.01 * seed}
    measured = Measured(runs("active", [9.0, 9.1, 9.2], fields=fields))
    above = Above(ACTIVE, SETTLED_SHARE[LATE], 0.5)
    verdict, difference = judge(above, measured)
    assert (verdict, difference.mean) == ("yes", pytest.approx(-0.31))
    assert judge(Above(ACTIVE, SETTLED_SHARE[EARLY], 0.5), measured)[0] == "no"
    rising = Below(ACTIVE, ACTIVE, SETTLED_SHARE[EARLY], SETTLED_SHARE[LATE])
    assert list(rising.by_seed(measured).values()) == [pytest.approx(-0.4)] * 3
    assert judge(above, Measured(runs("active", [9.0, 9.1, 9.2])))[0] == "not measured"


def test_a_gain_is_compared_between_the_optimizers_in_percent():
    momentum = runs("random", [10.0, 10.0], seeds=[0, 1]) + runs("recency", [9.0, 9.5], seeds=[0, 1])
    sgd = runs("random", [20.0, 20.0], seeds=[0, 1], optimizer="sgd")
    sgd += runs("recency", [15.0, 14.0], seeds=[0, 1], optimizer="sgd")
    gain = LargerGain("resnet-50", "cifar10", "random")
    assert gain.by_seed(Measured(momentum + sgd)) == {0: pytest.approx(10 - 25), 1: pytest.approx(5 - 30)}
    assert gain.by_seed(Measured(momentum)) == {}
    assert gain.printed.difference == pytest.approx(4.21 - 8.64, abs=0.01)


def test_a_strategy_has_the_papers_numbers_of_its_table():
    def strategy(pressure, schedule):
        options = (("pressure", pressure), ("schedule", schedule))
        return Arm("densenet-40-12", "cifar10", "momentum", "recency", options)

    decayed, constant = strategy(10.0, "decayed"), strategy(10.0, "constant")
    assert Below(decayed, constant).printed.difference == pytest.approx(7.13 - 6.81)
    assert Below(constant, decayed, CONVERGED_LOSS).printed.difference == pytest.approx(0.0059 - 0.0120)
    measured = Measured(
        runs("recency", [6.0, 6.1, 6.2], pressure=10.0, schedule="constant", **DENSENET)
        + runs("recency", [7.0, 7.2, 7.1], pressure=10.0, **DENSENET)
    )
    verdict, difference = judge(Below(constant, decayed), measured)
    assert (verdict, difference.mean) == ("yes", pytest.approx(-1.0))
