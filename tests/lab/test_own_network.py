"""Networks of the user's own, with all that they may be made of."""

import sys
from contextlib import suppress
from dataclasses import replace

import pytest
import torch
from torch import nn

from carpediem.lab.learner import Learner
from carpediem.lab.methods import build_selector
from carpediem.lab.network import Network
from carpediem.lab.networks import build, fingerprint, takes_dropout
from carpediem.lab.source import place
from carpediem.lab.study import Study

CPU = torch.device("cpu")
CODE = """
import torch
from torch import nn
from torch.nn import functional as F

def frozen(num_classes, in_channels):
    net = nn.Sequential(nn.Conv2d(in_channels, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, num_classes))
    net[0].requires_grad_(False)
    return net

def all_frozen(num_classes, in_channels):
    return frozen(num_classes, in_channels).requires_grad_(False)

def norms(num_classes, in_channels):
    return nn.Sequential(
        nn.BatchNorm2d(in_channels, momentum=None), nn.BatchNorm2d(in_channels), nn.Flatten(),
        nn.BatchNorm1d(64, momentum=None), nn.BatchNorm1d(64), nn.Linear(64, num_classes),
    )

def passing_on(**settings):
    return dropping_at(**settings)

def dropping_at(num_classes, in_channels, dropout):
    return nn.Sequential(nn.Flatten(), nn.Dropout(dropout), nn.Linear(64, num_classes))

class Dropping(nn.Module):
    def __init__(self, num_classes, in_channels):
        super().__init__()
        self.conv, self.last = nn.Conv2d(in_channels, 4, 3), nn.Linear(144, num_classes)
        self.drop = nn.Dropout2d(0.3)
        self.always = False

    def forward(self, images):
        hidden = self.drop(F.relu(self.conv(images)))
        return self.last(F.dropout(hidden.flatten(1), 0.3, training=self.training or self.always))

def narrow(num_classes, in_channels):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, num_classes - 1))

def paired(num_classes, in_channels):
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(64, num_classes)

        def forward(self, images):
            return self.linear(images.flatten(1)), images

    return Pair()

def lazy(num_classes, in_channels):
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(num_classes))

def dropping(num_classes, in_channels):
    return Dropping(num_classes, in_channels)

def always_dropping(num_classes, in_channels):
    net = Dropping(num_classes, in_channels)
    net.always = True
    return net
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The file with the networks, in the current folder."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "own_networks.py"
    file.write_text(CODE)
    yield file
    sys.modules.pop("own_networks", None)


@pytest.fixture
def make(own, toy, make_configs):
    def learner(net):
        (config,) = make_configs("random", net=f"own_networks:{net}")
        return Learner(
            config,
            Network(config, 3, 1, CPU),
            place(toy, "per-image", CPU),
            [build_selector(config, 48, 3, CPU)],
        )

    return learner


def train_epoch(learner):
    steps = learner.begin_epoch()
    for _ in range(steps):
        learner.set_rate()
        learner.step()
        learner.iteration += 1
    return learner.end_epoch(steps) | learner.evaluate()()


# Frozen parameters


def test_frozen_parameters_stay_as_they_were_and_out_of_the_optimizer(make):
    learner = make("frozen")
    before = learner.state_dict()
    train_epoch(learner)
    after = learner.state_dict()
    assert torch.equal(after["buffers"]["0.weight"], before["buffers"]["0.weight"])
    assert set(after["parameters"]) == set(after["velocity"]) == {"1.weight", "1.bias", "3.weight", "3.bias"}
    assert not torch.equal(after["parameters"]["3.weight"], before["parameters"]["3.weight"])
    assert not torch.equal(after["buffers"]["1.running_mean"], before["buffers"]["1.running_mean"])


def test_a_network_with_nothing_to_train_is_refused(make):
    with pytest.raises(
        ValueError, match="own_networks:all_frozen must have a parameter with requires_grad True"
    ):
        make("all_frozen")


@pytest.mark.parametrize(("net", "found"), [("narrow", r"\(8, 2\)"), ("paired", "tuple")])
def test_a_network_that_gives_no_logits_is_refused(make, net, found):
    with pytest.raises(
        ValueError, match=rf"own_networks:{net} must give logits of shape \(8, 3\), a row .* got {found}"
    ):
        train_epoch(make(net))


@pytest.mark.parametrize("net", ["narrow", "paired", "all_frozen"])
def test_a_network_that_cannot_be_trained_leaves_no_study_behind(own, make_configs, tmp_path, net):
    with pytest.raises(ValueError, match=f"own_networks:{net} must"):
        Study(tmp_path / "study", make_configs("random", net=f"own_networks:{net}")).train()
    assert not (tmp_path / "study").exists()


def test_a_network_with_lazy_layers_is_refused(make):
    with pytest.raises(ValueError, match="must give every layer its size, got lazy parameters such as"):
        make("lazy")


# Normalisation layers


def test_batches_are_counted_where_the_running_statistics_need_it_alone(make):
    learner = make("norms")
    train_epoch(learner)
    buffers = learner.state_dict()["buffers"]
    counted = {name: int(value) for name, value in buffers.items() if name.endswith("num_batches_tracked")}
    assert counted == {"0.num_batches_tracked": 6, "3.num_batches_tracked": 6}


def test_without_momentum_the_running_statistics_are_means_over_all_batches(make):
    learner = make("norms")
    plain, means = nn.BatchNorm2d(1, momentum=None), []
    steps = learner.begin_epoch()
    for indices in learner._batches[:steps]:
        images = learner.data.normalise(learner.data.images[indices].float())
        plain(images)
        means.append(images.mean())
        learner.set_rate()
        learner.step()
        learner.iteration += 1
    found = learner.state_dict()["buffers"]["0.running_mean"]
    torch.testing.assert_close(found, plain.running_mean)
    torch.testing.assert_close(found[0], torch.stack(means).mean(), atol=1e-6, rtol=1e-4)


# Torch's global generator


@pytest.mark.parametrize("net", ["dropping", "always_dropping"])
def test_layers_that_draw_from_the_global_generator_are_reproducible_and_leave_it_alone(make, net):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        one, first = make(net), None
        first = [train_epoch(one) for _ in range(2)]
        assert torch.equal(torch.get_rng_state(), torch.Generator().manual_seed(1).get_state())
        torch.manual_seed(2)
        other = make(net)
        assert [train_epoch(other) for _ in range(2)] == first
    for name, tensor in one.state_dict()["parameters"].items():
        assert torch.equal(tensor, other.state_dict()["parameters"][name])


def test_every_step_and_every_seed_draws_other_numbers(make, monkeypatch):
    learner, drawn = make("dropping"), []
    learner.begin_epoch()
    for seed in range(2):
        learner.config = replace(learner.config, seed=seed)
        for iteration in range(20):
            learner.iteration = iteration
            with learner._own_randomness():
                drawn.append(float(torch.rand(())))
    assert len(set(drawn)) == 40


class Stop(BaseException):
    """Stands for a kill."""


def test_runs_with_such_layers_go_on_bit_for_bit(own, make_configs, read_study, tmp_path):
    configs = make_configs("random", "recency", net="own_networks:dropping", epochs=4)
    Study(tmp_path / "whole", configs).train()
    stopped, told = Study(tmp_path / "stopped", configs), []

    def stop(training, record):
        torch.rand(3)  # what the user draws meanwhile changes nothing
        told.append(record)
        if len(told) == 3:
            raise Stop

    with suppress(Stop):
        stopped.train(on_epoch=stop)
    stopped.train()
    assert read_study(tmp_path / "stopped") == read_study(tmp_path / "whole")


# The version of the code


def test_dropout_goes_to_a_function_that_takes_it_and_is_refused_by_one_that_does_not(own, make_configs):
    (config,) = make_configs("random", net="own_networks:dropping_at", dropout=0.7)
    assert Network(config, 4, 1, CPU)._seeded(0)[1].rate == 0.7
    assert takes_dropout("own_networks:passing_on")
    with pytest.raises(
        ValueError, match=r"dropout must be left out, since own_networks:frozen takes none, got 0.7; give "
    ):
        make_configs("random", net="own_networks:frozen", dropout=0.7)
    make_configs("random", net="own_networks:frozen")


def test_a_network_is_named_by_its_source_too(own, make_configs):
    (before,) = make_configs("random", net="own_networks:frozen")
    assert len(before.net_fingerprint) == 12
    own.write_text(CODE + "# another version\n")
    (after,) = make_configs("random", net="own_networks:frozen")
    assert after.net_fingerprint != before.net_fingerprint
    assert after.hash != before.hash
    assert after.warm_up_hash != before.warm_up_hash
    own.write_text(CODE)
    assert make_configs("random", net="own_networks:frozen") == [before]


def test_the_labs_own_networks_have_no_fingerprint(make_configs):
    assert {config.net_fingerprint for config in make_configs()} == {""}
    assert fingerprint("densenet-40-12") == ""


def test_a_changed_network_is_refused(own, make_configs, tmp_path):
    configs = make_configs("random", net="own_networks:frozen")
    own.write_text(CODE + "# another version\n")
    study = Study(tmp_path / "study", configs)
    with pytest.raises(
        ValueError, match=f"{configs[0].net_fingerprint}.*start a new study in another folder"
    ):
        study.train()
    assert study.pending() == configs


def test_a_network_without_source_is_refused(monkeypatch):
    module = type(sys)("no_source")
    module.net = len
    monkeypatch.setitem(sys.modules, "no_source", module)
    with pytest.raises(ValueError, match="no_source must have source code"):
        fingerprint("no_source:net")


def test_a_decorated_function_is_asked_for_what_it_takes_itself(tmp_path, monkeypatch):
    (tmp_path / "decorated.py").write_text(
        "import functools\n"
        "from torch import nn\n"
        "def flat(classes):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, classes))\n"
        "@functools.wraps(flat)\n"
        "def net(num_classes, in_channels):\n"
        "    return flat(num_classes)\n"
    )
    monkeypatch.chdir(tmp_path)
    assert build("decorated:net", num_classes=3, in_channels=1, dropout=0.0)[1].out_features == 3
