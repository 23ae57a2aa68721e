from carpediem.lab.overview import overview_table
from carpediem.lab.table import DASH, row_texts
from lab.record_makers import run, study


def rows(folders, **options):
    made = overview_table(folders, **options)
    keys = [column.key for column in made.columns]
    return [dict(zip(keys, row_texts(made, row), strict=True)) for row in made.rows]


def test_an_experiment_has_a_line_of_ours_and_one_of_the_papers():
    ours, paper = rows({"here": study({"random": [10.0, 12.0], "recency": [9.0, 10.0]})})
    assert ours["experiment"] == paper["experiment"] == "CIFAR-10, ResNet (L=50), momentum, recipe paper"
    assert (ours["random"], ours["recency"]) == ("11.00 ± 1.00 (2)", "9.50 ± 0.50 (2)")
    assert ours["difference"].startswith("-1.50 [")
    assert (paper["random"], paper["recency"], paper["difference"]) == ("10.22 ± 0.12", "9.79 ± 0.04", DASH)


def test_a_difference_of_two_seeds_comes_with_a_warning():
    two = {"random": [10.0, 12.0], "recency": [9.0, 10.0]}
    three = {"random": [10.0, 12.0, 11.0], "recency": [9.0, 10.0, 11.0]}
    assert "Of two seeds" in overview_table({"here": study(two)}).note
    assert "Of two seeds" not in overview_table({"here": study(three)}).note


def test_means_over_different_numbers_of_seeds_come_with_a_warning():
    alike = study({"random": [10.0, 12.0], "recency": [9.0, 10.0]}, draws="systematic")
    uneven = study({"random": [10.0, 12.0], "recency": [9.0]}, draws="independent")
    assert "numbers of seeds differ" in overview_table({"here": alike + uneven}).note
    more = study({"random": [10.0], "recency": [9.0]}, draws="independent")
    assert "numbers of seeds differ" not in overview_table({"here": alike + more}).note


def test_each_kind_of_draws_has_a_line_of_its_own_and_is_compared_with_what_draws_alike():
    runs = study({"random": [8.0], "recency": [8.5], "online": [9.5]}, draws="independent")
    runs += study({"random": [10.0], "recency": [9.0]}, draws="systematic")
    independent, systematic, paper = rows({"here": runs}, links=True)
    assert [row["draws"] for row in (independent, systematic, paper)] == ["independent", "systematic", DASH]
    assert (independent["random"], independent["online"], independent["difference"]) == (
        "8.00 (1)",
        "9.50 (1)",
        "+0.50",
    )
    assert (systematic["random"], systematic["online"], systematic["difference"]) == (
        "10.00 (1)",
        DASH,
        "-1.00",
    )
    assert (systematic["experiment"], systematic["whose"], paper["whose"]) == ("", "ours", "paper")


def test_recency_bias_is_compared_with_nothing_where_random_batch_was_not_drawn_alike():
    runs = study({"random": [10.0]}, draws="independent") + study({"recency": [9.0]}, draws="systematic")
    assert {row["difference"] for row in rows({"here": runs})} == {DASH}


def test_what_was_not_run_or_not_finished_is_not_shown():
    (ours, _) = rows({"here": [*study({"random": [10.0]}), run("recency", 0, [9.0], done=False)]})
    assert set(ours) == {"experiment", "whose", "draws", "random", "difference"}
    assert ours["difference"] == DASH


def test_options_that_are_not_the_papers_are_named_and_give_way_to_the_papers():
    random, odd = study({"random": [10.0]}), study({"recency": [5.0]}, pressure=7.0)
    alone = overview_table({"here": random + odd})
    assert alone.note.endswith("Not with the paper's options: Recency Bias (pressure 7).")
    assert next(row["recency"] for row in rows({"here": random + odd})) == "5.00 (1)"
    both = random + odd + study({"recency": [6.0]})
    assert overview_table({"here": both}).note.endswith(
        "Left out: Recency Bias (pressure 7); carpediem tables without --overview shows them."
    )
    assert next(row["recency"] for row in rows({"here": both})) == "6.00 (1)"
    grid = random + odd + study({"recency": [4.0]}, pressure=8.0)
    assert next(row["recency"] for row in rows({"here": grid})) == DASH
    assert overview_table({"here": random}).note.endswith("Paper: its Tables 2 to 4.")


def test_of_many_sets_of_options_the_note_tells_the_number():
    runs = study({"random": [10.0], "recency": [6.0]}) + study({"online": [5.0]}, schedule="constant")
    runs += [one for window in range(3, 7) for one in study({"recency": [5.0]}, window=window)]
    runs += study({"online": [7.0]})
    note = overview_table({"here": runs}).note
    assert note.endswith(
        "Left out: Online Batch (constant pressure), Recency Bias with 4 other sets of options; "
        "carpediem tables without --overview shows them."
    )


def test_each_folder_is_named_and_the_paper_is_left_out_where_it_says_nothing():
    folders = {
        "one": study({"random": [10.0], "online": [9.5]}),
        "two": study({"random": [20.0]}, data="flowers-102", net="efficientnet-lite0"),
    }
    first, paper, second = rows(folders, links=True)
    assert first["experiment"] == "[CIFAR-10, ResNet (L=50), momentum, recipe paper](one/)"
    assert (paper["experiment"], paper["whose"]) == ("", "paper")
    assert second["experiment"].endswith("](two/)")
    assert (second["random"], second["online"]) == ("20.00 (1)", DASH)


def test_the_papers_numbers_stand_beside_its_own_recipe_and_length_alone():
    runs = study({"random": [10.0]}) + study({"random": [20.0]}, iterations=200)
    runs += study({"random": [14.0]}, augmentation="crop-flip", dropout=0.0)
    found = rows({"here": runs + study({"random": [15.0]}, recipe="modern")})
    name = "CIFAR-10, ResNet (L=50), momentum, recipe"
    assert {(row["experiment"], row["whose"]) for row in found} == {
        (f"{name} paper", "ours"),
        (f"{name} paper", "paper"),
        (f"{name} paper, 200 iterations", "ours"),
        (f"{name} paper with dropout 0 and augmentation crop-flip", "ours"),
        (f"{name} modern", "ours"),
    }


def test_programs_get_numbers():
    (ours, _) = overview_table({"here": study({"random": [10.0, 12.0]})}).to_dict()["rows"]
    assert (ours["random"], ours["random_standard_error"], ours["random_seeds"]) == (11.0, 1.0, 2)


def test_experiments_stand_in_the_papers_order_and_others_behind_them():
    settings = [
        {"data": "mine"},
        {"data": "cifar100"},
        {"data": "cifar10", "optimizer": "sgd"},
        {"data": "cifar10", "recipe": "modern"},
        {"data": "cifar10"},
    ]
    found = rows({str(n): study({"random": [9.0]}, **config) for n, config in enumerate(settings)})
    assert [row["experiment"].split(", ") for row in found if row["whose"] == "ours"] == [
        ["CIFAR-10", "ResNet (L=50)", "momentum", "recipe paper"],
        ["CIFAR-10", "ResNet (L=50)", "momentum", "recipe modern"],
        ["CIFAR-10", "ResNet (L=50)", "SGD", "recipe paper"],
        ["CIFAR-100", "ResNet (L=50)", "momentum", "recipe paper"],
        ["mine", "ResNet (L=50)", "momentum", "recipe paper"],
    ]


def test_one_setting_in_two_folders_is_told_apart_by_them():
    found = rows({name: study({"random": [9.0]}, recipe="modern") for name in ("here", "there")})
    assert [row["experiment"].rpartition(", ")[2] for row in found] == ["here", "there"]


def test_a_method_or_a_kind_of_draws_that_is_not_known_is_no_line_of_dashes():
    runs = study({"random": [9.0]}) + study({"newest": [8.0]}, draws="other")
    assert [row["draws"] for row in rows({"here": runs})] == ["independent", DASH]
    unsaid = study({"random": [9.0]}, draws=None) + study({"random": [8.0]}, draws="independent")
    assert [row["random"] for row in rows({"here": unsaid})][:2] == ["8.00 (1)", "9.00 (1)"]


def test_fine_tuning_has_the_papers_numbers_only_where_it_is_the_papers():
    own = {"data": "mit67", "net": "densenet-121", "recipe": "fine-tuning"}
    assert [row["whose"] for row in rows({"here": study({"random": [9.0]}, **own)})] == ["ours", "paper"]
    for change in ({"weights": None}, {"image_size": 224}, {"iterations": 10}, {"dropout": 0.0}):
        assert [row["whose"] for row in rows({"here": study({"random": [9.0]}, **(own | change))})] == [
            "ours"
        ]
