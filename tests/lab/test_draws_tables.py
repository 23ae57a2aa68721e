from carpediem.lab.stage_tables import stage_tables
from carpediem.lab.table import row_texts
from lab.record_makers import run

# By seed: the method's error with independent and with systematic draws, then Random Batch's.
ERRORS = {0: (9.0, 6.5, 10.0, 9.25), 1: (10.0, 8.0, 12.5, 10.25)}


def four(method, errors=ERRORS, **config):
    """The runs of a method and of Random Batch with both kinds of draws, two epochs each, the best the last."""
    made = []
    for seed, found in errors.items():
        kinds = [(name, draws) for name in (method, "random") for draws in ("independent", "systematic")]
        for (name, draws), best in zip(kinds, found, strict=True):
            options = {k: v for k, v in config.items() if name == method or k == "recipe"}
            made.append(run(name, seed, [best + 5, best], warm_up=1, draws=draws, **options))
    for one in made:
        for epoch in one.epochs:
            epoch |= {"learning_rate": 0.1, "distinct": 0.6}
    return made


def tables(runs):
    return [table for table in stage_tables(runs) if table.title.startswith("Draws")]


def lines(table, key):
    at = [column.key for column in table.columns].index(key)
    return {(text[0], text[1]): text[at] for row in table.rows for text in [row_texts(table, row)]}


def test_method_and_draws_are_taken_apart_seed_by_seed():
    (made,) = tables(four("recency"))
    assert made.title.startswith("Draws and Recency Bias: CIFAR-10, ResNet (L=50), momentum, recipe paper")
    means = {name: text.split()[0] for name, text in lines(made, "best").items()}
    assert means == {
        ("Recency Bias − Random Batch", "independent draws"): "-1.75",
        ("Recency Bias − Random Batch", "systematic draws"): "-2.50",
        ("Recency Bias − Random Batch", "both"): "-2.12",
        ("systematic − independent", "Random Batch"): "-1.50",
        ("systematic − independent", "Recency Bias"): "-2.25",
        ("systematic − independent", "both"): "-1.88",
        ("difference of differences", ""): "-0.75",
    }
    # By seed -1.5 and -2.25, and -1.75 and 0.25: s / sqrt(2) is half their distance, t of one degree 12.706.
    found = lines(made, "best")
    assert found["systematic − independent", "Random Batch"] == "-1.50 [-11.03, +8.03]"
    assert found["difference of differences", ""] == "-0.75 [-13.46, +11.96]"
    assert lines(made, "epochs_2_2") == lines(made, "last_1") == found
    assert [column.title for column in made.columns[3:]] == ["Epoch 2, rate 0.1", "Epoch 2, last", "Best"]


def test_the_seeds_are_those_that_all_four_have():
    runs = [one for one in four("recency") if (one.config["method"], one.config["seed"]) != ("random", 1)]
    (made,) = tables(runs)
    assert set(lines(made, "seeds").values()) == {"1"}
    assert lines(made, "best")["Recency Bias − Random Batch", "both"] == "-1.88"


def test_no_table_without_both_draws_of_both_or_without_a_shared_seed():
    runs = four("recency")
    assert tables([one for one in runs if one.config["draws"] == "systematic"]) == []
    lacking = [
        one for one in runs if (one.config["method"], one.config["draws"]) != ("random", "independent")
    ]
    assert tables(lacking) == []
    apart = [one for one in runs if one.config["seed"] == (0 if one.config["method"] == "random" else 1)]
    assert tables(apart) == []


def test_each_method_and_each_set_of_options_has_a_table():
    runs = four("recency") + four("online") + four("recency", pressure=7.0)
    assert {table.title.split(":")[0] for table in tables(runs)} == {
        "Draws and Recency Bias",
        "Draws and Recency Bias (pressure 7)",
        "Draws and Online Batch",
    }


def test_runs_that_do_not_say_how_they_draw_are_passed_over():
    unsaid = [run(name, 0, [9.0, 8.0], warm_up=1, draws=None) for name in ("recency", "random")]
    for one in unsaid:
        for epoch in one.epochs:
            epoch |= {"learning_rate": 0.1, "distinct": 0.6}
    systematic = [one for one in four("recency") if one.config["draws"] == "systematic"]
    assert tables(systematic + unsaid) == []
    assert len(tables(four("recency") + unsaid)) == 1


def test_the_method_is_named_without_the_draws_that_are_taken_from_it():
    (made,) = tables(four("recency", recipe="modern"))
    assert made.title.startswith("Draws and Recency Bias:")
    assert lines(made, "best")["Recency Bias − Random Batch", "both"].startswith("-2.12")
