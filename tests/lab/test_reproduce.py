"""Every study of the paper, at a size that takes seconds."""

import json
import re
import shutil

import numpy as np
import pytest
import torch

from carpediem.cli import app
from carpediem.lab.checkpoint import load_checkpoint
from carpediem.lab.config import RunConfig
from carpediem.lab.networks import DenseNet121, EfficientNetLite0
from carpediem.lab.plans import PLANS, is_of_plan
from carpediem.lab.recipes import RECIPES, recipe
from carpediem.lab.records import RunRecord, export_runs, read_runs
from lab.data.makers import cifar10_binary, cifar100_binary, class_folders, mnist

METHODS = {"random", "online", "active", "recency"}
RECENCY = ("--datasets", "cifar10", "--methods", "recency")


@pytest.fixture
def reproduce(tmp_path, monkeypatch, capsys):
    """Calls `carpediem reproduce`, with the data in `data` and the runs in `runs`; returns what it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments, code=0):
        with pytest.raises(SystemExit) as ended:
            app(["reproduce", *arguments])
        out, err = capsys.readouterr()
        assert (ended.value.code or 0) == code, err
        return out if code == 0 else err

    yield call
    shutil.rmtree(tmp_path / "runs", ignore_errors=True)  # checkpoints of many megabytes


def tiny(name, *, batch, iterations=12, size=8):
    sizes = {"--batch-size": batch, "--iterations": iterations, "--image-size": size, "--seeds": 1}
    return [name, "--data-dir", "data", *(str(part) for option in sizes.items() for part in option)]


def finished(name):
    """The runs of a study, each of which must be done."""
    runs = read_runs(f"runs/{name}")
    assert all(run.finished for run in runs)
    assert all(run.config["recipe"] == PLANS[name].recipe for run in runs)
    return runs


@pytest.mark.parametrize(
    ("name", "net", "optimizer"),
    [
        ("densenet-momentum", "densenet-40-12", "momentum"),
        ("densenet-sgd", "densenet-40-12", "sgd"),
        ("resnet-momentum", "resnet-50", "momentum"),
        ("resnet-sgd", "resnet-50", "sgd"),
        ("loss-distribution", "densenet-40-12", "momentum"),
    ],
)
def test_the_four_methods_are_trained_with_the_papers_network(reproduce, tmp_path, name, net, optimizer):
    cifar10_binary(tmp_path / "data")
    printed = reproduce(*tiny(name, batch=20), "--datasets", "cifar10")
    runs = finished(name)
    assert {run.config["method"] for run in runs} == METHODS
    assert {(run.config["net"], run.config["optimizer"]) for run in runs} == {(net, optimizer)}
    assert {len(run.epochs) for run in runs} == {12}
    assert all(
        method in printed for method in ("Random Batch", "Online Batch", "Active Bias", "Recency Bias")
    )
    assert f"written to runs/{name}" in printed


def test_several_data_sets_make_one_study(reproduce, tmp_path):
    mnist(tmp_path / "data" / "MNIST" / "raw", zipped=False)
    cifar100_binary(tmp_path / "data")
    reproduce(*tiny("densenet-sgd", batch=20), "--datasets", "mnist", "--methods", "recency")
    reproduce(*tiny("densenet-sgd", batch=100), "--datasets", "cifar100", "--methods", "random,recency")
    runs = finished("densenet-sgd")
    found = sorted((run.config["data"], run.config["method"], len(run.epochs)) for run in runs)
    assert found == [("cifar100", "random", 12), ("cifar100", "recency", 12), ("mnist", "recency", 12)]
    listed = json.loads(reproduce("--list", "--json"))
    assert {row["name"] for row in listed} == set(PLANS)
    done = {row["data"]: (row["done"], row["runs"]) for row in listed if row["name"] == "densenet-sgd"}
    assert done == {"mnist": (0, 12), "cifar10": (0, 12), "cifar100": (0, 12)}
    others = {row["data"]: row["others"] for row in listed if row["name"] == "densenet-sgd"}
    assert others == {"mnist": 1, "cifar10": 0, "cifar100": 2}, "none of these is as long as the paper's"


def test_the_pressure_ablation_decays_and_keeps_both_pressures(reproduce, tmp_path):
    cifar10_binary(tmp_path / "data")
    reproduce(*tiny("pressure-ablation", batch=20, iterations=13), "--datasets", "cifar10")
    runs = finished("pressure-ablation")
    assert {run.config["method"] for run in runs} == {"recency"}
    pressures = {
        (run.config["schedule"], run.config["pressure"]): [epoch["pressure"] for epoch in run.epochs[10:]]
        for run in runs
    }
    assert len(pressures) == len(runs) == 4
    for start in (10.0, 100.0):
        assert pressures["constant", start] == [start] * 3
        assert pressures["decayed", start] == pytest.approx([start ** (2 / 3), start ** (1 / 3), 1])


def test_the_loss_over_the_whole_training_set_is_recorded_as_often_as_asked(reproduce, tmp_path):
    cifar10_binary(tmp_path / "data")
    small = [*tiny("resnet-momentum", batch=20), "--datasets", "cifar10", "--methods", "random"]
    reproduce(*small)
    reproduce(*small, "--training-loss-every", "5", "--out", "runs/fifth")
    reproduce(*small, "--training-loss-every", "0", "--out", "runs/never")
    (each,), (fifth,), (never,) = (read_runs(f"runs/{n}") for n in ("resnet-momentum", "fifth", "never"))
    assert each.hash == fifth.hash == never.hash, "what is looked at is no part of what is trained"
    assert [e["train_loss"] for e in each.epochs] == [e["train_loss"] for e in never.epochs]
    assert [e["epoch"] for e in fifth.epochs if "training_set_loss" in e] == [4, 9, 11]
    assert not any("training_set_loss" in e for e in never.epochs)
    assert all(e["training_set_loss"] > 0 and 0 <= e["training_set_error"] <= 100 for e in each.epochs)
    assert [e["training_set_loss"] for e in fifth.epochs[4::5]] == [
        e["training_set_loss"] for e in each.epochs[4::5]
    ]


def test_seeds_may_begin_later(reproduce, tmp_path):
    cifar10_binary(tmp_path / "data")
    small = [*tiny("resnet-momentum", batch=20), "--datasets", "cifar10", "--methods", "random"]
    reproduce(*small, "--seeds", "2", "--first-seed", "3")
    assert {run.config["seed"] for run in finished("resnet-momentum")} == {3, 4}


def test_the_grid_is_searched_with_one_warm_up_of_each_length(reproduce, tmp_path):
    cifar10_binary(tmp_path / "data")
    reproduce(*tiny("grid-search", batch=20, iterations=17), "--datasets", "cifar10")
    runs = finished("grid-search")
    assert len(runs) == 10
    for length in (10, 15):
        group = [run for run in runs if run.config["warm_up"] == length]
        assert len({tuple(epoch["train_loss"] for epoch in run.epochs[:length]) for run in group}) == 1
    assert len({run.epochs[-1]["train_loss"] for run in runs}) > 1


def test_the_index_comparison_records_the_uncertainties(reproduce, tmp_path):
    cifar10_binary(tmp_path / "data")
    reproduce(*tiny("index-comparison", batch=20), "--datasets", "cifar10")
    (run,) = finished("index-comparison")
    for epoch in run.epochs:
        assert sum(count for _, count in epoch["uncertainty_counts"]) == 20
        mean = sum(value * count for value, count in epoch["uncertainty_counts"]) / 20
        assert epoch["uncertainty"] == pytest.approx(mean, abs=1e-5)


def trained_weights(folder):
    """A file of weights for EfficientNet-Lite0, and what is in it."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        net = EfficientNetLite0(num_classes=1000, in_channels=3, dropout=0.0)
    arrays = {n: v.half().numpy() for n, v in net.state_dict().items() if "num_batches" not in n}
    np.savez(folder / "efficientnet_lite0.npz", **arrays)
    return arrays


def test_ones_own_images_are_fine_tuned_from_the_trained_weights_at_the_recipes_size(tmp_path, monkeypatch):
    class_folders(tmp_path / "photos", count=10)
    arrays = trained_weights(tmp_path)
    monkeypatch.chdir(tmp_path)
    options = ["--net", "efficientnet-lite0", "--recipe", "fine-tuning", "--data-dir", ".", "--out", "one"]
    options += ["--method", "random", "--batch-size", "8", "--epochs", "1"]
    with pytest.raises(SystemExit) as ended:
        app(["train", "--data", "./photos", *options])
    assert not ended.value.code
    (run,) = read_runs(tmp_path / "one")
    assert (run.config["weights"], run.config["image_size"]) == ("imagenet", 256)
    state = load_checkpoint(tmp_path / "one" / "runs" / run.hash / "checkpoint.pt")
    found = state["parameters"]["_conv_head.weight"]
    began = torch.from_numpy(arrays["_conv_head.weight"]).float()
    assert 0 < (found - began).abs().mean() < 0.1 * began.abs().mean()


def test_fine_tuning_starts_from_the_trained_weights(reproduce, tmp_path):
    class_folders(tmp_path / "data" / "flowers-102" / "train", count=6)
    class_folders(tmp_path / "data" / "flowers-102" / "test", count=2)
    arrays = trained_weights(tmp_path / "data")
    reproduce(*tiny("fine-tuning-flowers", batch=12, size=32))
    runs = finished("fine-tuning-flowers")
    assert {run.config["method"] for run in runs} == METHODS
    assert {(run.config["net"], run.config["weights"]) for run in runs} == {
        ("efficientnet-lite0", "imagenet")
    }
    # At a rate of 2e-4 twelve steps leave the weights near to where they began.
    state = load_checkpoint(
        tmp_path / "runs" / "fine-tuning-flowers" / "runs" / runs[0].hash / "checkpoint.pt"
    )
    found, began = (
        state["parameters"]["_conv_head.weight"],
        torch.from_numpy(arrays["_conv_head.weight"]).float(),
    )
    assert 0 < (found - began).abs().mean() < 0.1 * began.abs().mean()


SMALL = ("--batch-size", "2", "--iterations", "200")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fine-tuning-flowers", "--batch-size", "8"], "efficientnet_lite0.npz"),
        (["fine-tuning-flowers"], "batch_size must be at most the 10 training samples"),
        (
            ["resnet-sgd", "--datasets", "cifar10", *SMALL, "--window", "12"],
            "warm_up must be at least window = 12",
        ),
        (
            ["resnet-sgd", "--datasets", "cifar10", *SMALL, "--last-batch", "kept"],
            "last_batch must be one of",
        ),
        (["resnet-sgd", "--epochs", "1", "--iterations", "1"], "say the same thing twice"),
        (["resnet-sgd", "--datasets", "cifar11"], "got 'cifar11'"),
        (["resnet-sgd", "--datasets", "mnist"], "run `carpediem data fetch mnist`"),
        (["table-9"], "NAME must be one of densenet-momentum"),
        ([], "NAME is missing"),
    ],
)
def test_what_is_missing_is_said_in_one_line(reproduce, tmp_path, arguments, message):
    class_folders(tmp_path / "data" / "flowers-102" / "train")
    class_folders(tmp_path / "data" / "flowers-102" / "test")
    cifar10_binary(tmp_path / "data")
    said = reproduce(*arguments, "--data-dir", "data", code=2)
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert message in said


def mit67(folder):
    """Two classes of five training images and a test image."""
    classes = ("bakery", "casino")
    class_folders(folder / "Images", classes=classes, count=6)
    (folder / "TrainImages.txt").write_text("\n".join(f"{c}/{i}.jpg" for c in classes for i in range(5)))
    (folder / "TestImages.txt").write_text("\n".join(f"{c}/5.jpg" for c in classes))


def test_densenet_121_starts_from_the_published_weights(reproduce, tmp_path):
    mit67(tmp_path / "data")
    began = DenseNet121(num_classes=1000, in_channels=3, dropout=0.0).state_dict()
    torch.save(began, tmp_path / "data" / "densenet121-a639ec97.pth")
    reproduce(*tiny("fine-tuning", batch=10, size=32), "--datasets", "mit67", "--methods", "recency")
    (run,) = finished("fine-tuning")
    assert (run.config["net"], run.config["weights"]) == ("densenet-121", "imagenet")
    state = load_checkpoint(tmp_path / "runs" / "fine-tuning" / "runs" / run.hash / "checkpoint.pt")
    found, before = state["parameters"]["features.conv0.weight"], began["features.conv0.weight"]
    assert 0 < (found - before).abs().mean() < 0.1 * before.abs().mean()
    assert len(state["parameters"]["classifier.bias"]) == 2


def test_the_weights_that_are_looked_for_are_named(reproduce, tmp_path):
    mit67(tmp_path / "data")
    said = reproduce(*tiny("fine-tuning", batch=10, size=32), "--datasets", "mit67", code=2)
    assert said == (
        "error: the file of densenet-121's ImageNet weights (densenet121-a639ec97.pth or densenet121.pth, published at "
        "https://download.pytorch.org/models/densenet121-a639ec97.pth) is not in data; put it there, or set --data-dir "
        "or CARPEDIEM_DATA to the folder that holds it\n"
    )


def test_the_list_names_every_study_before_any_is_run(reproduce):
    printed = reproduce("--list")
    for name, plan in PLANS.items():
        assert any(line.startswith(f"{name} ") and plan.shows in line for line in printed.splitlines())
    assert "0 of 12 runs done" in printed


@pytest.fixture
def short_recipe(monkeypatch):
    """The paper's recipe, as long as `tiny` trains."""
    for name, value in {"iterations": 12, "batch_size": 20, "image_size": 8}.items():
        monkeypatch.setitem(RECIPES["paper"], name, value)


def test_a_stopped_study_is_listed_as_unfinished(reproduce, short_recipe, tmp_path):
    cifar10_binary(tmp_path / "data")
    reproduce(*tiny("loss-distribution", batch=20), *RECENCY)
    (done,) = (tmp_path / "runs" / "loss-distribution" / "runs").glob("*/done.json")
    done.unlink()
    assert "0 of 12 runs done, 1 unfinished" in reproduce("--list")
    reproduce(*tiny("loss-distribution", batch=20), *RECENCY)
    assert "1 of 12 runs done\n" in reproduce("--list")


def test_a_run_of_another_length_is_listed_as_such(reproduce, short_recipe, tmp_path):
    cifar10_binary(tmp_path / "data")
    for iterations in (12, 11):
        reproduce(*tiny("loss-distribution", batch=20, iterations=iterations), *RECENCY)
    assert "1 of 12 runs done, 1 of other settings\n" in reproduce("--list")


def test_the_list_of_one_study_looks_where_it_was_trained(reproduce, short_recipe, tmp_path):
    cifar10_binary(tmp_path / "data")
    reproduce(*tiny("loss-distribution", batch=20), *RECENCY, "--out", "elsewhere")
    line, where, _ = reproduce("loss-distribution", "--list", "--out", "elsewhere").splitlines()
    assert line.endswith("cifar10      1 of 12 runs done")
    assert where.startswith("counted in elsewhere;")
    (row,) = json.loads(reproduce("loss-distribution", "--list", "--out", "elsewhere", "--json"))
    assert (row["done"], row["folder"]) == (1, "elsewhere")
    assert "0 of 12 runs done" in reproduce("loss-distribution", "--list")
    assert "give its NAME too" in reproduce("--list", "--out", "elsewhere", code=2)
    assert "NAME must be one of" in reproduce("table-9", "--list", code=2)


def test_published_runs_are_counted_too(reproduce, short_recipe, tmp_path):
    cifar10_binary(tmp_path / "data")
    small = [*tiny("resnet-momentum", batch=20), "--datasets", "cifar10", "--methods", "random"]
    reproduce(*small, "--out", "runs/elsewhere")
    export_runs(["runs/elsewhere"], tmp_path / "results" / "one" / "runs.jsonl")
    line = next(
        one
        for one in reproduce("--list").splitlines()
        if one.startswith("resnet-momentum ") and "cifar10 " in one
    )
    assert line.endswith("0 of 12 runs done, 1 more published")
    reproduce(*small)
    line = next(
        one
        for one in reproduce("--list").splitlines()
        if one.startswith("resnet-momentum ") and "cifar10 " in one
    )
    assert line.endswith("1 of 12 runs done"), "the same run counts once"


def test_what_would_be_trained_is_shown_and_nothing_is_trained(reproduce, tmp_path):
    cifar10_binary(tmp_path / "data")
    small = [*tiny("resnet-momentum", batch=20), "--datasets", "cifar10", "--dry-run"]
    shown = reproduce(*small, "--dropout", "0.1")
    assert "4 runs would be trained" in shown
    assert re.search(r"dropout +0\.1\n", shown)
    planned = json.loads(reproduce(*small, "--json"))
    assert not (tmp_path / "runs").exists()
    assert {run["method"] for run in planned} == METHODS
    assert [RunConfig.from_dict({n: v for n, v in run.items() if n != "run"}).hash for run in planned] == [
        run["run"] for run in planned
    ]
    reproduce(*small[:-1])
    assert {run.hash for run in finished("resnet-momentum")} == {run["run"] for run in planned}


def test_the_authors_world_is_trained_by_one_word(reproduce, tmp_path):
    cifar10_binary(tmp_path / "data", rows=6)
    # 30 images in batches of 20: a second batch is drawn whole.
    reproduce(
        *tiny("densenet-momentum", batch=20, iterations=24), "--datasets", "cifar10", "--recipe", "released"
    )
    runs = read_runs("runs/densenet-momentum")
    assert {run.config["method"] for run in runs} == METHODS
    assert {run.config["net"] for run in runs} == {"densenet-40-12-released"}
    assert {len(run.epochs) for run in runs} == {12}
    assert all(sum(e["loss_histogram"]["counts"]) == 40 for run in runs for e in run.epochs)
    online = next(run for run in runs if run.config["method"] == "online")
    assert online.epochs[10]["pressure"] == pytest.approx(100), "that of the epoch before"


def test_what_belongs_to_a_study_of_the_paper():
    plan = PLANS["fine-tuning"]
    config = recipe("fine-tuning", data="mit67") | {
        "recipe": "fine-tuning",
        "data": "mit67",
        "net": "densenet-121",
        "optimizer": "momentum",
        "method": "active",
        "seed": 0,
    }

    def belongs(plan=plan, **changes):
        return is_of_plan(RunRecord("0123456789ab", config | changes, [], None), plan)

    assert belongs()
    assert not belongs(iterations=49 * 167)
    assert not belongs(image_size=224)
    assert not belongs(net="efficientnet-lite0")
    assert not belongs(optimizer="sgd")
    assert not belongs(recipe="modern")
    assert not belongs(batch_size=16)
    assert not belongs(draws="systematic")
    assert not belongs(smoothness=0.1)
    assert not belongs(dropout_in_testing=True)
    grid = PLANS["grid-search"]
    at = recipe("paper") | {"net": "resnet-50", "recipe": "paper", "method": "recency", "data": "cifar10"}
    assert belongs(grid, **at | {"window": 5, "pressure": 1000.0})
    assert belongs(grid, **at | {"window": 15, "pressure": 10.0, "warm_up": 15})
    assert not belongs(grid, **at | {"window": 15, "pressure": 10.0})
    assert not belongs(grid, **at | {"window": 6})
    assert not belongs(grid, **at | {"method": "random"})
