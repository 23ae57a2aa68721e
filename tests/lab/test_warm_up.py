"""A warm-up that several runs share leaves each of them as if it had been trained alone."""

import json

import pytest
import torch

from carpediem.lab.checkpoint import load_checkpoint
from carpediem.lab.learner import Learner
from carpediem.lab.methods import build_selector
from carpediem.lab.network import Network
from carpediem.lab.source import place
from carpediem.lab.study import Study

METHODS = ("random", "online", "active", "recency")
HARD = {"dropout": 0.3, "augmentation": "crop-flip", "epochs": 6}


def final(folder, config):
    return load_checkpoint(folder / "runs" / config.hash / "checkpoint.pt")


def assert_same_state(one, other):
    """Every tensor of two learners' states is the same, bit for bit."""
    for kind in ("parameters", "buffers", "velocity", "steps"):
        assert one[kind].keys() == other[kind].keys()
        for name, tensor in one[kind].items():
            assert torch.equal(tensor, other[kind][name]), f"{kind} {name}"
    assert torch.equal(one["generator"], other["generator"])
    assert one["sampler"] == other["sampler"]
    for mine, theirs in zip(one["selectors"], other["selectors"], strict=True):
        for name, value in mine.items():
            same = (
                torch.equal(value, theirs[name]) if isinstance(value, torch.Tensor) else value == theirs[name]
            )
            assert same, name
    for name, value in one["samples"].items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value.nan_to_num(-1.0), other["samples"][name].nan_to_num(-1.0)), name
    for name, value in one["samples"]["trails"].items():
        assert torch.equal(value, other["samples"]["trails"][name]), name


@pytest.mark.parametrize("settings", [{}, {"draws": "independent", "mode": "reweight", "losses": "evaluate"}])
def test_a_forked_run_equals_one_trained_alone_from_the_start(
    toy, make_configs, read_study, tmp_path, settings
):
    """Alone means: no study, no checkpoint, one learner with one selector from the first step to the last."""
    configs = make_configs(*METHODS, **HARD, **settings)
    Study(tmp_path, configs).train()
    forked = read_study(tmp_path)
    cpu = torch.device("cpu")
    for config in configs:
        data = place(toy, config.normalisation, cpu)
        learner = Learner(config, Network(config, 3, 1, cpu), data, [build_selector(config, 48, 3, cpu)])
        alone = []
        for epoch in range(6):
            steps = learner.begin_epoch()
            for _ in range(steps):
                learner.set_rate()
                learner.step()
                learner.iteration += 1
            record = {"epoch": epoch, "iteration": learner.iteration, "side_by_side": 1}
            alone.append(record | learner.end_epoch(steps) | learner.evaluate()())
        assert forked[config.hash] == json.loads(json.dumps(alone))
        assert_same_state(final(tmp_path, config), learner.state_dict())


def test_a_study_of_one_method_gives_what_the_study_of_all_gave(make_configs, read_study, tmp_path):
    configs = make_configs(*METHODS, **HARD)
    Study(tmp_path / "all", configs).train()
    for config in configs:
        folder = tmp_path / config.method
        Study(folder, [config]).train()
        assert read_study(folder)[config.hash] == read_study(tmp_path / "all")[config.hash]
        assert_same_state(final(folder, config), final(tmp_path / "all", config))


def test_runs_side_by_side_give_what_they_give_one_after_the_other(make_configs, read_study, tmp_path):
    configs = make_configs("random", "recency", seeds=(0, 1), **HARD)
    Study(tmp_path / "one", configs).train(side_by_side=1)
    Study(tmp_path / "four", configs).train(side_by_side=4)
    one, four = read_study(tmp_path / "one"), read_study(tmp_path / "four")
    for records in (*one.values(), *four.values()):
        for record in records:
            record.pop("side_by_side")
    assert one == four


def test_the_methods_part_after_the_warm_up_and_not_before(make_configs, read_study, tmp_path):
    configs = make_configs(*METHODS, **HARD)
    Study(tmp_path, configs).train()
    runs = read_study(tmp_path)
    losses = [[record["train_loss"] for record in runs[c.hash]] for c in configs]
    for epoch in range(6):
        assert len({own[epoch] for own in losses}) == (1 if epoch < 2 else 4)


def test_a_warm_up_is_trained_once_a_seed(make_configs, tmp_path):
    epochs = []
    configs = make_configs(*METHODS, seeds=(0, 1), epochs=4)
    Study(tmp_path, configs).train(on_epoch=lambda training, record: epochs.append(training.is_warm_up))
    assert (epochs.count(True), epochs.count(False)) == (2 * 2, 2 * 4 * 2)


def test_runs_without_a_warm_up_begin_on_their_own(make_configs, read_study, tmp_path):
    configs = make_configs("online", "active", warm_up=0, epochs=2)
    Study(tmp_path, configs).train()
    assert {len(records) for records in read_study(tmp_path).values()} == {2}
    assert not (tmp_path / "warm-ups").exists()


def test_a_run_as_short_as_its_warm_up_is_finished_with_it(make_configs, read_study, tmp_path):
    (config,) = make_configs("random", epochs=2, warm_up=4)
    study = Study(tmp_path, [config])
    study.train()
    assert study.pending() == []
    assert len(read_study(tmp_path)[config.hash]) == 2
