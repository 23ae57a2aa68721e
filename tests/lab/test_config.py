"""Configurations, recipes and plans: what names a run, and which runs a study has."""

import json
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch

from carpediem.cli import app
from carpediem.lab import plans
from carpediem.lab.config import LATER_FIELDS, METHODS, SELECTION_OPTIONS, RunConfig
from carpediem.lab.data import ImageData
from carpediem.lab.groups import by_setting
from carpediem.lab.plans import PLANS, parse_method, plan_called, plan_configs, run_configs
from carpediem.lab.recipes import RECIPES, recipe
from carpediem.lab.records import RunRecord, read_runs
from carpediem.lab.results import group_cells, method_name, setting_of
from carpediem.lab.study import Study

RESULTS = Path(__file__).parents[2] / "results"

CONFIG = RunConfig(
    **recipe("paper"),
    recipe="paper",
    data="cifar10",
    data_fingerprint="0123456789abcdef",
    net="resnet-50",
    net_fingerprint="",
    optimizer="momentum",
    precision="float32",
    seed=0,
    method="recency",
)
OTHER = {
    "recipe": "modern",
    "data": "cifar100",
    "data_fingerprint": "fedcba9876543210",
    "image_size": 64,
    "net": "small-cnn",
    "net_fingerprint": "0123456789ab",
    "weights": "imagenet",
    "dropout": 0.1,
    "optimizer": "sgd",
    "momentum": 0.8,
    "nesterov": False,
    "weight_decay": 1e-4,
    "batch_size": 64,
    "iterations": 50,
    "learning_rate": 0.2,
    "decay": "constant",
    "augmentation": "none",
    "normalisation": "per-channel",
    "precision": "bf16",
    "seed": 1,
    "draws": "systematic",
    "warm_up": 11,
    "method": "online",
    "window": 5,
    "pressure": 10.0,
    "schedule": "constant",
    "smoothness": 0.1,
    "mode": "reweight",
    "losses": "evaluate",
    "dropout_in_testing": True,
    "last_batch": "filled",
    "window_start": "zeros",
    "pressure_lag": 1,
    "renewal": "step",
}
SELECTION = {"method", *SELECTION_OPTIONS}
ALONG = {"renewal": {"mode": "reweight"}}  # what a field's other value cannot do without
FIELDS = [f.name for f in fields(RunConfig)]


def data(samples=40, classes=10):
    x = torch.zeros(samples, 1, 8, 8, dtype=torch.uint8)
    y = torch.arange(samples) % classes
    return ImageData("made", x, y, x, y, classes=tuple(map(str, range(classes))))


def configs(data_name="made", **changes):
    settings = {
        "recipe_name": "paper",
        "net": "resnet-50",
        "optimizer": "momentum",
        "methods": list(METHODS),
        "seeds": range(2),
        "precision": "float32",
        "batch_size": 8,
    } | changes
    return run_configs(data_name, data(), **settings)


# Names


def test_the_hash_survives_a_round_trip_through_json():
    again = RunConfig.from_dict(json.loads(json.dumps(CONFIG.to_dict())))
    assert again == CONFIG
    assert again.hash == CONFIG.hash
    assert again.warm_up_hash == CONFIG.warm_up_hash


def test_the_hash_is_the_same_for_ever():
    assert (CONFIG.hash, CONFIG.warm_up_hash) == ("6b590636d49b", "26e9a0a963ef")


def test_equal_configurations_have_one_hash_however_their_numbers_are_written():
    assert replace(CONFIG, pressure=100) == CONFIG
    assert replace(CONFIG, pressure=100).hash == CONFIG.hash


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_changes_the_hash(name):
    assert getattr(CONFIG, name) != OTHER[name]
    beside = replace(CONFIG, **ALONG.get(name, {}))
    assert replace(beside, **{name: OTHER[name]}).hash != beside.hash


@pytest.mark.parametrize("name", FIELDS)
def test_a_warm_up_is_shared_by_runs_that_differ_in_selection_alone(name):
    changed = replace(CONFIG, **ALONG.get(name, {}) | {name: OTHER[name]})
    shared = changed.warm_up_hash == CONFIG.warm_up_hash
    assert shared == (name in SELECTION)


def test_a_field_that_came_later_renames_no_run():
    earlier = {name: value for name, value in CONFIG.to_dict().items() if name not in LATER_FIELDS}
    assert RunConfig.from_dict(earlier) == CONFIG
    assert len(earlier) == 29, "the fields of the first runs, which a new field must not join"


def published_runs():
    return read_runs(*sorted(file.parent for file in RESULTS.glob("*/runs.jsonl")))


def test_every_published_run_is_found_by_its_name():
    runs = published_runs()
    assert len(runs) >= 142
    lost = [run.hash for run in runs if run.hash not in RunConfig.from_dict(run.config).names]
    assert lost == []
    # The earliest runs were named before a field was there that is part of all other names.
    assert sum(run.hash != RunConfig.from_dict(run.config).hash for run in runs) == 8


def test_a_published_run_is_not_trained_again_where_it_lies_under_its_earliest_name(tmp_path):
    config = RunConfig.from_dict(next(run for run in published_runs() if run.hash == "07efdea03d63").config)
    study = Study(tmp_path, [config])
    assert study.pending() == [config]
    folder = tmp_path / "runs" / "07efdea03d63"
    folder.mkdir(parents=True)
    (folder / "done.json").write_text("{}")
    assert study.pending() == []


def test_unknown_and_missing_fields_are_named():
    values = CONFIG.to_dict()
    with pytest.raises(ValueError, match="unknown fields: colour, taste"):
        RunConfig.from_dict(values | {"taste": 1, "colour": 2})
    del values["net"], values["data"]
    with pytest.raises(ValueError, match="lacks the fields: data, net"):
        RunConfig.from_dict(values)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("method", "magic", "method must be one of random, online, active, recency, got 'magic'"),
        ("optimizer", "adam", "optimizer must be one of momentum, sgd, got 'adam'"),
        ("decay", "cosine", "decay must be one of step, constant, got 'cosine'"),
        ("precision", "fp8", "precision must be one of float32, bf16, got 'fp8'"),
        ("draws", "shuffle", "draws must be one of independent, systematic, got 'shuffle'"),
        ("weights", "mine", "weights must be one of none, imagenet, got 'mine'"),
        ("schedule", "rising", "schedule must be one of decayed, constant, got 'rising'"),
        ("mode", "weigh", "mode must be one of sample, reweight, got 'weigh'"),
        ("losses", "evaluated", "losses must be one of observe, evaluate, got 'evaluated'"),
        ("last_batch", "kept", "last_batch must be one of dropped, filled, got 'kept'"),
        ("window_start", "ones", "window_start must be one of empty, zeros, got 'ones'"),
        ("pressure_lag", 2, "pressure_lag must be one of 0, 1, got 2"),
        (
            "renewal",
            "step",
            "renewal must be 'epoch' with mode 'sample', got 'step'; ask for 'epoch' too, or for",
        ),
        ("batch_size", 0, "batch_size must be at least 1, got 0"),
        ("iterations", 0, "iterations must be at least 1, got 0"),
        ("seed", -1, "seed must be at least 0 and less than 2^63, got -1"),
        ("seed", 2**63, "seed must be at least 0 and less than 2^63, got 9223372036854775808"),
        ("learning_rate", -1, "learning_rate must be more than 0 and finite, got -1.0"),
        ("weight_decay", float("nan"), "weight_decay must be at least 0 and finite, got nan"),
        ("momentum", 1, "momentum must be in [0, 1), got 1.0"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(name, value, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        replace(CONFIG, **{name: value})


# Lengths and rates


@pytest.mark.parametrize(
    ("iterations", "samples", "batch", "steps", "epochs"),
    [
        (40_000, 50_000, 128, 390, 103),
        (10, 20, 4, 5, 2),
        (11, 20, 4, 5, 3),
        (1, 23, 4, 5, 1),
        (7, 4, 4, 1, 7),
    ],
)
def test_epochs_are_as_many_as_the_iterations_begin(iterations, samples, batch, steps, epochs):
    config = replace(CONFIG, iterations=iterations, batch_size=batch)
    assert config.steps_per_epoch(samples) == steps
    assert config.epochs(samples) == epochs


def test_a_last_batch_that_is_filled_makes_one_step_more():
    config = replace(CONFIG, last_batch="filled", iterations=39_100)
    assert (config.steps_per_epoch(50_000), config.epochs(50_000)) == (391, 100)
    assert config.steps_per_epoch(128 * 7) == 7
    with pytest.raises(ValueError, match="last_batch must be 'dropped' with systematic draws, got 'filled'"):
        replace(config, draws="systematic")


def test_a_batch_larger_than_the_training_set_is_refused():
    with pytest.raises(ValueError, match="batch_size must be at most the 100 training samples, got 128"):
        CONFIG.steps_per_epoch(100)


def test_the_rate_is_divided_by_ten_at_half_and_at_three_quarters():
    for iteration, rate in [
        (0, 0.1),
        (19_999, 0.1),
        (20_000, 0.01),
        (29_999, 0.01),
        (30_000, 0.001),
        (39_999, 0.001),
    ]:
        assert CONFIG.learning_rate_at(iteration) == pytest.approx(rate, rel=1e-12)


def test_the_rate_falls_at_the_first_whole_step_when_the_length_is_odd():
    config = replace(CONFIG, iterations=7)
    rates = [round(config.learning_rate_at(i), 6) for i in range(7)]
    assert rates == [0.1] * 4 + [0.01] * 2 + [0.001]


def test_a_constant_rate_stays():
    config = replace(CONFIG, decay="constant", iterations=8)
    assert {config.learning_rate_at(i) for i in range(8)} == {0.1}


# Recipes


def test_the_paper_recipe_holds_the_written_settings():
    assert recipe("paper") == {
        "dropout": 0.2,
        "momentum": 0.9,
        "batch_size": 128,
        "iterations": 40_000,
        "learning_rate": 0.1,
        "decay": "step",
        "augmentation": "flip-jitter",
        "normalisation": "per-image",
        "nesterov": True,
        "weight_decay": 5e-4,
        "draws": "independent",
        "warm_up": 10,
        "window": 10,
        "pressure": 100.0,
        "schedule": "decayed",
        "smoothness": 0.02,
        "mode": "sample",
        "losses": "observe",
        "weights": None,
        "image_size": None,
        "dropout_in_testing": False,
        "last_batch": "dropped",
        "window_start": "empty",
        "pressure_lag": 0,
        "renewal": "epoch",
    }


def test_the_modern_recipe_differs_in_augmentation_dropout_and_draws_alone():
    modern, paper = recipe("modern"), recipe("paper")
    assert {name: value for name, value in modern.items() if value != paper[name]} == {
        "augmentation": "crop-flip",
        "dropout": 0.0,
        "draws": "systematic",
    }


def test_fine_tuning_differs_from_task_one_in_what_the_paper_says_alone():
    tuning, paper = recipe("fine-tuning", data="mit67", net="densenet-121"), recipe("paper")
    assert {name: value for name, value in tuning.items() if value != paper[name]} == {
        "batch_size": 32,
        "learning_rate": 2e-4,
        "decay": "constant",
        "weights": "imagenet",
        "normalisation": "imagenet",
        "image_size": 256,
        "iterations": 50 * (5_360 // 32),
    }


def test_the_released_recipe_has_what_the_authors_code_does_otherwise():
    released, paper = recipe("released", net="resnet-50-released"), recipe("paper")
    assert {name: value for name, value in released.items() if value != paper[name]} == {
        "dropout": 0.3,
        "iterations": 100 * 391,
        "augmentation": "released-resnet",
        "normalisation": "unit",
        "dropout_in_testing": True,
        "last_batch": "filled",
        "window_start": "zeros",
        "pressure_lag": 1,
        "mode": "reweight",
        "losses": "evaluate",
        "renewal": "step",
    }
    dense = recipe("released", net="densenet-40-12-released")
    assert (dense["augmentation"], dense["normalisation"]) == ("released-densenet", "per-image-unit")
    assert not dense["dropout_in_testing"]


def test_active_bias_alone_has_no_weight_decay_with_the_authors_densenet_and_warms_up_alone():
    made = configs(recipe_name="released", net="densenet-40-12", seeds=[0])
    assert {c.method: c.weight_decay for c in made} == {m: 0.0 if m == "active" else 5e-4 for m in METHODS}
    assert len({c.warm_up_hash for c in made}) == 2
    assert len({c.warm_up_hash for c in made if c.method != "active"}) == 1
    # Yet it is compared with the others: this is how the recipe compares its methods.
    assert len({setting_of(c.to_dict()) for c in made}) == 1
    made = configs(recipe_name="released", net="resnet-50", seeds=[0])
    assert {c.weight_decay for c in made} == {5e-4}


def test_a_weight_decay_that_is_not_the_recipes_for_active_bias_makes_a_cell_of_its_own():
    plain, other = (
        configs(recipe_name="released", net="densenet-40-12", methods=["active"], seeds=[0], **changes)[0]
        for changes in ({}, {"weight_decay": 5e-4})
    )
    runs = [
        RunRecord(c.hash, c.to_dict(), [{"epoch": 0, "iteration": 1, "train_loss": 1.0, "test_error": e}], {})
        for c, e in ((plain, 10.0), (other, 20.0))
    ]
    cells = group_cells(runs)
    assert sorted(cell.best_error.mean for cell in cells) == [10.0, 20.0]
    assert {method_name(cell, cells) for cell in cells} == {
        "Active Bias",
        "Active Bias (weight decay 0.0005)",
    }


def test_runs_that_test_with_dropout_train_in_no_wave_with_others():
    made = [*configs(seeds=[0]), *configs(seeds=[0], dropout_in_testing=True)]
    assert len(by_setting(made)) == 2


@pytest.mark.usefixtures("any_data")
def test_another_window_takes_its_warm_up_along():
    made = plan_configs(PLANS["grid-search"], seeds=[0], datasets=["cifar10"], window=7)
    assert sorted((c.window, c.warm_up, c.pressure) for c in made) == [
        (7, 10, s) for s in (1.0, 10.0, 100.0, 1000.0)
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"augmentation": "mix"}, "augmentation must be one of"),
        ({"normalisation": "mine"}, "normalisation must be one of"),
        ({"dropout": 1.5}, "dropout must be in [0, 1), got 1.5"),
        ({"net": "resnet-51"}, "net must be one of"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_there_is_a_run(changes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        configs(**changes)


def test_the_released_recipe_trains_the_authors_networks_and_no_others():
    assert {c.net for c in configs(recipe_name="released")} == {"resnet-50-released"}
    assert {c.net for c in configs(recipe_name="released", net="densenet-10-4")} == {"densenet-10-4-released"}
    with pytest.raises(
        ValueError,
        match=r"recipe must not be 'released' for small-cnn: .* choose another recipe or one of these networks",
    ):
        configs(recipe_name="released", net="small-cnn")


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_makes_whole_configurations(name):
    net = "efficientnet-lite0" if name == "fine-tuning" else "resnet-50"
    (config,) = configs(recipe_name=name, net=net, methods=["recency"], seeds=[0])
    assert config.recipe == name


def test_fine_tuning_of_ones_own_data_starts_from_weights_and_lasts_fifty_epochs():
    for net, normalisation in (("efficientnet-lite0", "efficientnet"), ("densenet-121", "imagenet")):
        (made,) = configs(recipe_name="fine-tuning", net=net, methods=["random"], seeds=[0])
        assert (made.weights, made.normalisation) == ("imagenet", normalisation)
        assert made.epochs(data().num_samples) == 50
    (made,) = configs(
        recipe_name="fine-tuning", net="efficientnet-lite0", methods=["random"], seeds=[0], weights="none"
    )
    assert made.weights is None


def test_only_networks_with_known_weights_start_from_some():
    asked = {"methods": ["random"], "seeds": [0]}
    with pytest.raises(ValueError, match="weights must be none for resnet-50, got imagenet; take efficient"):
        configs(recipe_name="fine-tuning", **asked)
    with pytest.raises(ValueError, match="weights must be one of none, imagenet, got 'vgg'"):
        configs(weights="vgg", **asked)


def test_changing_a_recipe_that_was_handed_out_changes_no_other():
    recipe("paper")["dropout"] = 0.9
    assert recipe("paper")["dropout"] == 0.2


def test_an_unknown_recipe_or_study_gets_one_sentence_with_the_known_ones():
    with pytest.raises(ValueError, match=r"recipe must be one of paper, modern, .*, got 'old'") as error:
        recipe("old")
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match=r"NAME must be one of densenet-momentum, .*, got 'x'") as error:
        plan_called("x")
    assert "\n" not in str(error.value)


# Methods


@pytest.mark.parametrize(
    ("text", "method", "draws"),
    [
        ("recency", "recency", "independent"),
        ("random-shuffle", "random", "systematic"),
        ("active-systematic", "active", "systematic"),
        ("online-independent", "online", "independent"),
    ],
)
def test_a_method_may_say_how_it_draws(text, method, draws):
    assert parse_method(text, "independent") == {"method": method, "draws": draws}


def test_what_is_said_behind_a_method_goes_before_the_recipe():
    assert parse_method("random-independent", "systematic")["draws"] == "independent"


@pytest.mark.parametrize(
    "text", ["magic", "", "shuffle", "-shuffle", "random_shuffle", "random-shuffle-twice"]
)
def test_an_unknown_method_gets_one_sentence(text):
    with pytest.raises(
        ValueError, match=r"^method must be one of random, online, active, recency.*, got '.*'$"
    ):
        parse_method(text, "independent")


# Runs


def test_there_is_one_run_for_every_seed_and_method():
    made = configs(seeds=[3, 5])
    assert {(c.seed, c.method) for c in made} == {(s, m) for s in (3, 5) for m in METHODS}
    assert len({c.hash for c in made}) == len(made) == 8


def test_runs_of_a_seed_share_their_warm_up_and_seeds_and_draws_do_not():
    made = configs(methods=["random", "recency", "random-shuffle"], seeds=[0, 1])
    by_warm_up = {}
    for config in made:
        by_warm_up.setdefault(config.warm_up_hash, set()).add((config.seed, config.draws))
    assert all(len(kinds) == 1 for kinds in by_warm_up.values())
    assert len(by_warm_up) == 4


def test_a_folder_is_one_data_set_however_its_path_is_typed():
    names = ("photos", "photos/", "./photos", "other/../photos/")
    hashes = {configs(data_name=name, methods=["random"], seeds=[0])[0].hash for name in names}
    assert len(hashes) == 1
    # A folder that is called like a known set is not that set.
    (folder,) = configs(data_name="./digits/", methods=["random"], seeds=[0])
    assert folder.data == "./digits"


def test_epochs_set_the_iterations_by_whole_batches():
    (config,) = configs(epochs=7, batch_size=16, methods=["random"], seeds=[0])
    assert config.iterations == 7 * (40 // 16)
    assert config.epochs(40) == 7


def test_a_change_of_none_leaves_the_recipe():
    (config,) = configs(dropout=None, learning_rate=0.3, methods=["random"], seeds=[0])
    assert (config.dropout, config.learning_rate) == (0.2, 0.3)


def test_what_a_method_does_not_read_makes_no_second_run():
    variations = [
        {"window": q, "pressure": s, "schedule": c} for q in (5, 10) for s in (1.0, 9.0) for c in SCHEDULES
    ]
    made = configs(seeds=[0], variations=variations)
    count = {method: sum(c.method == method for c in made) for method in METHODS}
    assert count == {"random": 1, "active": 1, "online": 4, "recency": 8}


SCHEDULES = ("decayed", "constant")


def test_a_setting_that_a_method_does_not_read_names_the_run_it_always_named():
    plain = {c.method: c.hash for c in configs(seeds=[0])}
    pressed = {c.method: c.hash for c in configs(seeds=[0], pressure=7.0, window=3)}
    assert {m for m in METHODS if plain[m] == pressed[m]} == {"random", "active"}
    smoothed = {c.method: c.hash for c in configs(seeds=[0], smoothness=0.5)}
    assert {m for m in METHODS if plain[m] == smoothed[m]} == {"random", "online", "recency"}


# Plans


@pytest.fixture
def any_data(monkeypatch):
    asked = []

    def load(name, data_dir=None, *, image_size=None):
        asked.append((name, image_size))
        return data(samples=3200)

    monkeypatch.setattr(plans, "open_data", load)
    return asked


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("densenet-momentum", 3 * 4),
        ("densenet-sgd", 3 * 4),
        ("resnet-momentum", 3 * 4),
        ("resnet-sgd", 3 * 4),
        ("fine-tuning", 2 * 4),
        ("fine-tuning-flowers", 4),
        ("pressure-ablation", 2 * 4),
        ("grid-search", 2 * (1 + 9)),
        ("loss-distribution", 4),
        ("index-comparison", 1),
    ],
)
@pytest.mark.usefixtures("any_data")
def test_every_plan_builds_as_many_runs_as_it_has_cells(name, runs):
    made = plan_configs(PLANS[name], seeds=range(2))
    assert len({c.hash for c in made}) == len(made) == 2 * runs
    assert PLANS[name].runs_per_seed * len(PLANS[name].datasets) == runs


def test_the_plans_are_those_that_the_paper_has():
    assert set(PLANS) == {
        "densenet-momentum",
        "densenet-sgd",
        "resnet-momentum",
        "resnet-sgd",
        "fine-tuning",
        "fine-tuning-flowers",
        "pressure-ablation",
        "grid-search",
        "loss-distribution",
        "index-comparison",
    }


@pytest.mark.usefixtures("any_data")
def test_the_tables_are_made_with_the_paper_recipe_and_its_networks():
    for name, net, optimizer in [
        ("densenet-momentum", "densenet-40-12", "momentum"),
        ("densenet-sgd", "densenet-40-12", "sgd"),
        ("resnet-momentum", "resnet-50", "momentum"),
        ("resnet-sgd", "resnet-50", "sgd"),
    ]:
        for config in plan_configs(PLANS[name], seeds=[0]):
            assert (config.recipe, config.net, config.optimizer) == ("paper", net, optimizer)
            assert recipe("paper").items() <= config.to_dict().items()


@pytest.mark.usefixtures("any_data")
def test_the_grid_has_every_window_and_pressure_and_warms_up_as_long_as_the_window():
    made = plan_configs(PLANS["grid-search"], seeds=[0], datasets=["cifar10"])
    # A pressure of 1 draws uniformly whatever the window, and is trained once.
    assert sorted((c.window, c.pressure) for c in made) == sorted(
        [(10, 1.0), *((q, s) for q in (5, 10, 15) for s in (10.0, 100.0, 1000.0))]
    )
    assert {(c.window, c.warm_up) for c in made} == {(5, 10), (10, 10), (15, 15)}


@pytest.mark.usefixtures("any_data")
def test_the_ablation_has_the_four_strategies_of_recency_bias():
    made = plan_configs(PLANS["pressure-ablation"], seeds=[0], datasets=["cifar10"])
    assert {(c.net, c.optimizer, c.method) for c in made} == {("densenet-40-12", "momentum", "recency")}
    assert sorted((c.schedule, c.pressure) for c in made) == [
        ("constant", 10.0),
        ("constant", 100.0),
        ("decayed", 10.0),
        ("decayed", 100.0),
    ]


def test_fine_tuning_trains_fifty_epochs_each_set_with_its_network(any_data):
    made = [
        config
        for name in ("fine-tuning", "fine-tuning-flowers")
        for config in plan_configs(PLANS[name], seeds=[0], methods=["random"])
    ]
    assert {c.data: (c.net, c.weights, c.image_size) for c in made} == {
        "mit67": ("densenet-121", "imagenet", 256),
        "food100": ("densenet-121", "imagenet", 256),
        "flowers-102": ("efficientnet-lite0", "imagenet", 96),
    }
    assert {c.iterations for c in made} == {50 * 100}
    assert [size for _, size in any_data] == [256, 256, 96]


PAPERS_WORDS = {
    "densenet-momentum": {"net": "densenet-40-12", "optimizer": "momentum"},
    "densenet-sgd": {"net": "densenet-40-12", "optimizer": "sgd"},
    "resnet-momentum": {"net": "resnet-50", "optimizer": "momentum"},
    "resnet-sgd": {"net": "resnet-50", "optimizer": "sgd"},
    "pressure-ablation": {"net": "densenet-40-12", "optimizer": "momentum"},
    "grid-search": {"net": "resnet-50", "optimizer": "momentum"},
    "loss-distribution": {"optimizer": "momentum"},
    "index-comparison": {"optimizer": "momentum"},
    "fine-tuning": {
        "net": "densenet-121",
        "weights": "imagenet",
        "image_size": 256,
        "batch_size": 32,
        "learning_rate": 2e-4,
        "decay": "constant",
        "optimizer": "momentum",
    },
}
TASK_ONE = {"batch_size": 128, "iterations": 40_000, "learning_rate": 0.1, "decay": "step"}
EVERYWHERE = {"dropout": 0.2, "momentum": 0.9, "augmentation": "flip-jitter", "draws": "independent"}


@pytest.mark.parametrize("name", PAPERS_WORDS)
def test_a_study_at_full_size_has_the_settings_of_the_papers_words(name, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        app(["reproduce", name, "--dry-run", "--json", "--data-dir", str(tmp_path)])
    assert not ended.value.code
    planned = json.loads(capsys.readouterr().out)
    plan = PLANS[name]
    assert len(planned) == 3 * plan.runs_per_seed * len(plan.datasets)
    assert {run["data"] for run in planned} == set(plan.datasets)
    assert {run["seed"] for run in planned} == {0, 1, 2}
    for run in planned:
        wanted = EVERYWHERE | ({} if name == "fine-tuning" else TASK_ONE) | PAPERS_WORDS[name]
        assert wanted.items() <= run.items()
        assert run["warm_up"] == max(10, run["window"])
        if name == "fine-tuning":
            steps = {"mit67": 5_360, "food100": 7_000}[run["data"]] // 32
            assert run["iterations"] == 50 * steps
        if name not in ("pressure-ablation", "grid-search"):
            assert (run["window"], run["pressure"], run["schedule"]) == (10, 100.0, "decayed")
    assert {run["method"] for run in planned} == set(plan.methods)


@pytest.mark.usefixtures("any_data")
def test_a_study_takes_every_setting():
    plan = PLANS["grid-search"]
    made = plan_configs(plan, seeds=[0], datasets=["cifar10"], window=5, dropout=0.1, precision="bf16")
    assert {(c.window, c.dropout, c.precision) for c in made} == {(5, 0.1, "bf16")}
    assert {c.pressure for c in made} == {1.0, 10.0, 100.0, 1000.0}
    (made,) = plan_configs(
        PLANS["resnet-sgd"], seeds=[0], datasets=["mnist"], methods=["random"], recipe_name="released"
    )
    assert (made.recipe, made.net, made.optimizer) == ("released", "resnet-50-released", "sgd")


@pytest.mark.usefixtures("any_data")
def test_a_plan_can_be_made_smaller():
    made = plan_configs(
        PLANS["fine-tuning-flowers"],
        seeds=[4],
        datasets=["flowers-102"],
        methods=["recency"],
        iterations=4800,
        batch_size=8,
        image_size=32,
    )
    assert [(c.seed, c.data, c.method, c.iterations, c.batch_size, c.image_size) for c in made] == [
        (4, "flowers-102", "recency", 4800, 8, 32)
    ]
