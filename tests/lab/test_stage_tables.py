import pytest

from carpediem.lab.stage_tables import stage_tables
from carpediem.lab.table import DASH, row_texts
from lab.record_makers import run

RATES = [0.1, 0.1, 0.1, 0.01, 0.01, 0.001, 0.001, 0.001]


def trained(method, seed, errors, **config):
    made = run(method, seed, errors, warm_up=1, **config)
    for epoch, rate in zip(made.epochs, RATES, strict=True):
        epoch |= {"learning_rate": rate, "distinct": 0.5 + 0.05 * epoch["epoch"]}
    return made


def rows(*runs):
    (made,) = stage_tables(runs)
    keys = [column.key for column in made.columns]
    return {
        (texts["stage"], texts["method"]): texts
        for row in made.rows
        for texts in [dict(zip(keys, row_texts(made, row), strict=True))]
    }


def test_each_learning_rate_after_the_warm_up_is_a_stage_then_come_the_last_epochs_and_the_best():
    found = rows(trained("random", 0, [90.0, 40.0, 20.0, 12.0, 10.0, 8.0, 6.0, 7.0]))
    assert {stage: texts["error"] for (stage, _), texts in found.items()} == {
        "2 to 3, rate 0.1": "30.00",
        "4 to 5, rate 0.01": "11.00",
        "6 to 8, rate 0.001": "7.00",
        "4 to 8, last 5": "8.60",
        "8, last": "7.00",
        "best": "6.00",
    }


def test_a_stage_says_what_was_drawn_and_the_others_do_not():
    found = rows(trained("random", 0, [9.0] * 8))
    stage = found["4 to 5, rate 0.01", "Random Batch"]
    assert (stage["distinct"], stage["loss"]) == ("67.5", "0.225")  # (0.65 + 0.70) / 2, (1/4 + 1/5) / 2
    assert {found[last, "Random Batch"]["distinct"] for last in ("4 to 8, last 5", "8, last", "best")} == {
        DASH
    }


def test_differences_are_taken_seed_by_seed_within_the_stage():
    runs = [
        trained("random", seed, [50.0, 30.0, 30.0, 10.0 + seed, 10.0 + seed, 8.0, 8.0, 8.0])
        for seed in range(2)
    ]
    runs += [trained("recency", 0, [50.0, 29.0, 29.0, 9.0, 9.0, 9.0, 9.0, 9.0])]
    runs += [trained("recency", 1, [50.0, 28.0, 28.0, 8.0, 8.0, 8.5, 8.5, 8.5])]
    found = rows(*runs)
    assert found["2 to 3, rate 0.1", "Recency Bias"]["difference"].startswith("-1.50 [")
    assert found["4 to 5, rate 0.01", "Recency Bias"]["difference"].startswith("-2.00 [")
    assert found["6 to 8, rate 0.001", "Recency Bias"]["difference"].startswith("+0.75 [")
    assert found["best", "Random Batch"]["difference"] == DASH


def test_the_best_says_how_much_sooner_the_baselines_best_was_reached():
    baseline = trained("random", 0, [50.0, 30.0, 30.0, 10.0, 10.0, 8.0, 8.0, 7.0])
    sooner = trained("recency", 0, [50.0, 30.0, 30.0, 10.0, 10.0, 7.0, 7.0, 6.0])
    never = trained("online", 0, [50.0, 30.0, 30.0, 10.0, 10.0, 9.0, 9.0, 9.0])
    found = rows(baseline, sooner, never)
    assert found["best", "Recency Bias"]["fewer_iterations"] == "25.0"
    assert found["best", "Online Batch"]["fewer_iterations"] == "never"


def test_methods_are_compared_with_what_draws_alike_and_a_shuffle_with_the_recipes_own_draws():
    flat = [[50.0] + [error] * 7 for error in (10.0, 8.0, 9.0)]
    found = rows(
        trained("random", 0, flat[0], draws="independent"),
        trained("random", 0, flat[1], draws="systematic"),
        trained("recency", 0, flat[2], draws="systematic"),
    )
    assert found["best", "Random Batch (independent draws)"]["difference"] == DASH
    assert found["best", "Random Batch (shuffle)"]["difference"] == "-2.00"
    assert found["best", "Recency Bias (systematic draws)"]["difference"] == "+1.00"


@pytest.mark.parametrize("length", [1, 2])
def test_a_run_no_longer_than_its_warm_up_has_its_ends_alone(length):
    short = run("random", 0, [9.0, 8.0][:length], warm_up=2)
    for epoch in short.epochs:
        epoch |= {"learning_rate": 0.1, "distinct": 0.6}
    assert [stage for stage, _ in rows(short)] == ["2, last", "best"][2 - length :]


def test_settings_have_tables_of_their_own_and_what_has_not_finished_has_none():
    runs = [
        trained("random", 0, [9.0] * 8),
        trained("random", 0, [9.0] * 8, data="cifar100"),
        trained("random", 0, [9.0] * 8, data="mnist", done=False),
    ]
    assert [table.title for table in stage_tables(runs)] == [
        "Stages: CIFAR-10, ResNet (L=50), momentum, recipe paper with warm-up 1",
        "Stages: CIFAR-100, ResNet (L=50), momentum, recipe paper with warm-up 1",
    ]


def test_records_that_say_less_give_dashes_and_one_stage():
    bare = run("random", 0, [9.0, 8.0, 7.0], warm_up=None)
    found = rows(bare)
    assert [stage for stage, _ in found] == ["1 to 3", "3, last", "best"]
    assert (found["1 to 3", "Random Batch"]["error"], found["1 to 3", "Random Batch"]["distinct"]) == (
        "8.00",
        DASH,
    )


@pytest.mark.parametrize("shorter", ["random", "recency"])
def test_the_stages_are_those_that_all_runs_have(shorter):
    runs = [trained(method, 0, [9.0] * 8) for method in ("random", "recency")]
    for one in runs:
        if one.config["method"] == shorter:
            del one.epochs[5:]
    assert [stage for stage, method in rows(*runs) if method == "Random Batch"] == [
        "2 to 3, rate 0.1",
        "4 to 5, rate 0.01",
        "5, last",
        "best",
    ]


def test_a_loss_that_is_no_number_is_none_for_programs():
    lost = trained("random", 0, [9.0] * 8)
    lost.epochs[1]["train_loss"] = float("nan")
    (made,) = stage_tables([lost])
    assert [row["loss"] for row in made.to_dict()["rows"]][:2] == [None, 0.225]


def test_only_the_best_says_how_much_sooner():
    found = rows(trained("random", 0, [9.0] * 8), trained("recency", 0, [8.0] * 8))
    sooner = {stage: texts["fewer_iterations"] for (stage, name), texts in found.items() if name[:2] == "Re"}
    assert [stage for stage, text in sooner.items() if text != DASH] == ["best"]
