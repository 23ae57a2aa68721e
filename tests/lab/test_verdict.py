from carpediem.lab.report.verdict import verdict
from carpediem.lab.results import group_cells
from lab.record_makers import study

START = "Points of best test error against Random Batch, by the 95% interval of the paired difference: "


def said(errors, **config):
    return verdict(group_cells(study(errors, **config)))


def test_methods_are_better_or_worse_where_the_interval_says_so_and_else_neither():
    errors = {
        "random": [10.0, 11.0, 12.0],
        "online": [9.0, 10.1, 11.1],
        "active": [12.0, 13.1, 14.0],
        "recency": [9.0, 11.5, 12.5],
    }
    better, worse = "better: Online Batch -0.93", "worse: Active Bias +2.03"
    assert said(errors) == f"{START}{better}; {worse}; undecided: Recency Bias +0.00."


def test_one_seed_tells_nothing_apart():
    assert said({"random": [10.0], "recency": [1.0]}) == f"{START}without an interval: Recency Bias -9.00."


def test_without_a_baseline_or_a_rival_there_is_no_verdict():
    assert said({"recency": [10.0, 11.0]}) is None
    assert said({"random": [10.0, 11.0]}) is None


def test_a_method_is_compared_with_random_batch_as_it_draws_itself():
    # Not with that of the recipe, which draws independently.
    runs = study({"random": [10.0, 11.0], "recency": [9.0, 10.02]}, draws="systematic")
    runs += study({"random": [1.0, 2.01]}, draws="independent")
    assert "better: Recency Bias (systematic draws) -0.99" in verdict(group_cells(runs))
