"""Results against numpy and scipy, on records made by hand."""

import numpy as np
import pytest
from scipy import stats

from carpediem.lab.results import (
    baselines,
    best_error,
    estimate,
    group_cells,
    mean_curve,
    method_name,
    paired_difference,
    relative_reduction,
    student_t,
    time_on_mean_curves,
    time_to_error,
)
from lab.record_makers import run


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("degrees", [1, 1.2, 2, 2.5, 3, 4, 5.75, 9, 10, 29, 30, 101])
def test_student_t_agrees_with_scipy(degrees, confidence):
    assert student_t(degrees, confidence) == pytest.approx(
        stats.t.ppf((1 + confidence) / 2, degrees), rel=1e-9
    )


def test_student_t_refuses_what_has_no_answer():
    with pytest.raises(ValueError, match="degrees must be at least 1, got 0"):
        student_t(0)
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1, got 1"):
        student_t(3, 1)


def test_an_estimate_is_the_mean_with_its_standard_error():
    values = np.random.default_rng(0).normal(size=7)
    found = estimate(list(values))
    assert found.mean == pytest.approx(values.mean())
    assert found.error == pytest.approx(stats.sem(values))
    assert estimate([4.0]) == estimate((4.0,))
    assert estimate([4.0]).error is None
    with pytest.raises(ValueError, match="at least one"):
        estimate([])


def test_the_best_error_is_the_lowest_of_any_epoch():
    assert best_error(run("random", 0, [9.0, 6.5, 7.0])) == 6.5
    broken = run("random", 0, [])
    with pytest.raises(ValueError, match=f"run {broken.hash} has no finished epoch"):
        best_error(broken)


def test_the_relative_reduction_is_the_papers():
    assert relative_reduction(ours=3936, rival=5218) == pytest.approx(24.6, abs=0.05)
    assert relative_reduction(ours=12.0, rival=10.0) == pytest.approx(-20)
    assert relative_reduction(ours=1.0, rival=0.0) is None


def test_the_paired_difference_agrees_with_scipys_paired_test():
    rng = np.random.default_rng(1)
    ours, theirs = rng.uniform(5, 6, 4), rng.uniform(5, 6, 4)
    records = [run("recency", s, [9.0, e]) for s, e in enumerate(ours)]
    records += [run("random", s, [9.0, e]) for s, e in enumerate(theirs)]
    random, recency = group_cells(records)
    found = paired_difference(recency, random)
    expected = stats.ttest_rel(ours, theirs)
    interval = expected.confidence_interval(0.95)
    assert found.mean == pytest.approx((ours - theirs).mean())
    assert (found.low, found.high, found.count) == (
        pytest.approx(interval.low),
        pytest.approx(interval.high),
        4,
    )


def test_only_seeds_that_both_have_finished_are_paired():
    records = [run("random", 0, [5.0]), run("random", 1, [6.0]), run("random", 2, [7.0], done=False)]
    records += [run("recency", 1, [5.5]), run("recency", 2, [1.0]), run("recency", 3, [1.0])]
    random, recency = group_cells(records)
    found = paired_difference(recency, random)
    assert (found.mean, found.low, found.high, found.count) == (-0.5, None, None, 1)
    (alone,) = group_cells([run("recency", 9, [1.0])])
    assert paired_difference(alone, random) is None


def test_cells_hold_one_run_a_seed_and_keep_unfinished_ones_apart():
    cells = group_cells(
        [
            run("recency", 1, [4.0]),
            run("recency", 0, [5.0]),
            run("recency", 2, [0.1], done=False),
            run("recency", 0, [6.0], schedule="constant"),
            run("random", 0, [6.0], pressure=1.0),
            run("random", 0, [6.0], pressure=100.0),
        ]
    )
    assert [(cell.method, cell.is_default, len(cell.runs), len(cell.unfinished)) for cell in cells] == [
        ("random", True, 1, 0),
        ("recency", True, 2, 1),
        ("recency", False, 1, 0),
    ]
    assert [item.config["seed"] for item in cells[1].runs] == [0, 1]
    assert cells[1].best_error.mean == pytest.approx(4.5)


def test_runs_that_differ_in_anything_but_the_seed_are_never_averaged():
    cells = group_cells([run("random", 0, [5.0]), run("random", 1, [9.0], iterations=500)])
    assert [len(cell.runs) for cell in cells] == [1, 1]


def test_a_cell_of_unfinished_runs_has_no_error():
    (cell,) = group_cells([run("random", 0, [5.0], done=False)])
    assert cell.best_error is None
    assert cell.method == "random"
    assert time_to_error(cell, cell) is None
    with pytest.raises(ValueError, match="at least one finished run"):
        mean_curve(cell)


def test_the_time_to_an_error_is_a_mean_over_the_seeds_of_each_ones_own_time():
    rng = np.random.default_rng(2)
    theirs, ours = rng.uniform(5, 9, (3, 20)), rng.uniform(4, 9, (3, 20))
    ours[:, -1] = 1.0  # so that all seeds come there
    records = [run("random", s, list(row), seconds=11.0 + s) for s, row in enumerate(theirs)]
    records += [run("recency", s, list(row), seconds=12.0 + s) for s, row in enumerate(ours)]
    random, recency = group_cells(records)
    found = time_to_error(recency, random)
    target = theirs.min(axis=1).mean()
    best = theirs.argmin(axis=1) + 1
    reached = (ours <= target).argmax(axis=1) + 1
    assert len(set(reached)) > 1
    assert found.error == pytest.approx(target)
    assert found.rival == pytest.approx((best * [11, 12, 13]).mean())
    assert found.ours == pytest.approx((reached * [12, 13, 14]).mean())
    assert found.reduction == pytest.approx((found.rival - found.ours) / found.rival * 100)
    assert found.rival_iterations == pytest.approx(5 * best.mean())
    assert found.our_iterations == pytest.approx(5 * reached.mean())
    assert (found.seeds, found.missed) == (3, 0)


def test_the_epoch_of_the_rivals_best_error_is_the_first_that_has_it():
    random, recency = group_cells([run("random", 0, [5.0, 3.0, 3.0]), run("recency", 0, [3.0, 9.0, 9.0])])
    found = time_to_error(recency, random)
    assert (found.rival_iterations, found.our_iterations, found.reduction) == (10, 5, 50)


def test_an_error_that_all_seeds_share_is_reached_although_their_mean_is_rounded():
    records = [run(method, s, [0.35]) for s in range(3) for method in ("random", "recency")]
    random, recency = group_cells(records)
    assert time_to_error(recency, random).error < 0.35
    assert time_to_error(recency, random).missed == 0


@pytest.mark.parametrize("time", [time_to_error, time_on_mean_curves])
def test_the_time_to_an_error_goes_by_the_seeds_that_both_have(time):
    records = [run("random", 0, [9.0, 5.0, 4.0]), run("random", 1, [9.0, 3.0, 2.0])]
    records += [run("recency", 0, [9.0, 4.0, 3.0])]
    random, recency = group_cells(records)
    found = time(recency, random)
    assert (found.error, found.our_iterations, found.seeds) == (4.0, 10, 1)
    (other,) = group_cells([run("recency", 2, [9.0, 4.0, 3.0])])
    assert time(other, random) is None


def test_one_seed_that_never_reaches_the_error_leaves_no_time():
    records = [run("random", s, [5.0, 3.0]) for s in range(3)]
    records += [run("recency", s, [5.0, best]) for s, best in enumerate([2.0, 3.1, 2.5])]
    random, recency = group_cells(records)
    found = time_to_error(recency, random)
    assert (found.ours, found.our_iterations, found.reduction, found.fewer_iterations) == (None,) * 4
    assert (found.rival_iterations, found.seeds, found.missed) == (10, 3, 1)


def test_the_time_on_mean_curves_is_when_ours_is_as_low_as_the_rivals_ever_was():
    rng = np.random.default_rng(2)
    theirs, ours = rng.uniform(5, 9, (3, 20)), rng.uniform(4.5, 9, (3, 20))
    records = [run("random", s, list(row), seconds=11.0) for s, row in enumerate(theirs)]
    records += [run("recency", s, list(row), seconds=12.0 + s) for s, row in enumerate(ours)]
    random, recency = group_cells(records)
    found = time_on_mean_curves(recency, random)
    mean = theirs.mean(axis=0)
    reached = np.flatnonzero(ours.mean(axis=0) <= mean.min())
    assert found.error == pytest.approx(mean.min())
    assert found.rival == pytest.approx(11.0 * (mean.argmin() + 1))
    assert found.ours == pytest.approx(13.0 * (reached[0] + 1))
    assert time_on_mean_curves(random, random).reduction == 0


def test_an_error_that_the_mean_curve_never_reaches_has_no_time():
    random, recency = group_cells([run("random", 0, [5.0, 3.0]), run("recency", 0, [5.0, 4.0])])
    found = time_on_mean_curves(recency, random)
    assert (found.ours, found.reduction) == (None, None)


def test_draws_are_named_where_both_kinds_occur_and_options_where_they_are_not_the_papers():
    records = [run("random", 0, [5.0]), run("recency", 0, [5.0])]
    assert [method_name(cell, group_cells(records)) for cell in group_cells(records)] == [
        "Random Batch",
        "Recency Bias",
    ]
    records += [run("random", 0, [5.0], draws="systematic"), run("recency", 0, [5.0], draws="systematic")]
    records += [
        run("active", 0, [5.0], mode="reweight"),
        run("online", 0, [5.0], pressure=10.0, schedule="constant"),
    ]
    cells = group_cells(records)
    assert {method_name(cell, cells) for cell in cells} == {
        "Random Batch (independent draws)",
        "Random Batch (shuffle)",
        "Recency Bias (independent draws)",
        "Recency Bias (systematic draws)",
        "Active Bias (independent draws, loss re-weighted)",
        "Online Batch (independent draws, pressure 10, constant pressure)",
    }


@pytest.mark.parametrize(("recipe", "first"), [("paper", "independent"), ("modern", "systematic")])
def test_the_first_baseline_is_drawn_as_the_recipe_says(recipe, first):
    cells = group_cells(
        run("random", 0, [5.0], draws=draws, recipe=recipe) for draws in ("systematic", "independent")
    )
    assert baselines(cells)[0].draws == first


def test_seeds_that_all_differ_by_the_same_give_no_interval():
    ours, theirs = (
        group_cells([run(m, s, [e + shift]) for s, e in enumerate((5.0, 6.1, 4.3))])[0]
        for m, shift in (("recency", 0.28), ("random", 0.0))
    )
    difference = paired_difference(ours, theirs)
    assert difference.mean == pytest.approx(0.28)
    assert (difference.low, difference.high, difference.count) == (None, None, 3)
