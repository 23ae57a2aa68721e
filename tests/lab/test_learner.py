"""The training step and the records, against a plain training loop."""

import math
from collections import Counter, deque
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from carpediem import AdaptiveSampler, RandomBatch
from carpediem.lab import source
from carpediem.lab.augment import normalisation
from carpediem.lab.learner import Learner
from carpediem.lab.methods import build_selector
from carpediem.lab.network import Network
from carpediem.lab.networks import build
from carpediem.lab.source import Streamed, place

CPU = torch.device("cpu")
normalise = normalisation("per-image")


@pytest.fixture
def make(toy, make_configs):
    """A learner on the toy data, without dropout unless it is asked for."""

    def learner(method="random", *, data=None, streamed=False, test_dropout=False, **changes):
        (config,) = make_configs(method, **{"dropout": 0.0, **changes})
        if data is None:
            data = Streamed(toy, normalise, CPU, workers=0) if streamed else place(toy, "per-image", CPU)
        network = Network(config, 3, 1, CPU, test_dropout=test_dropout)
        return Learner(config, network, data, [build_selector(config, 48, 3, CPU)])

    return learner


def train_epoch(learner):
    steps = learner.begin_epoch()
    for _ in range(steps):
        learner.set_rate()
        learner.step()
        learner.iteration += 1
    return learner.end_epoch(steps) | learner.evaluate()()


def fresh_net(learner):
    """The network that a learner of this seed starts from, as an ordinary module."""
    with torch.random.fork_rng():
        torch.manual_seed(learner.config.seed)
        return build(learner.config.net, num_classes=3, in_channels=1, dropout=0.0)


def current_net(learner):
    """An ordinary module with the learner's tensors."""
    net, state = fresh_net(learner), learner.state_dict()
    missing, unexpected = net.load_state_dict(state["parameters"] | state["buffers"], strict=False)
    assert all("num_batches" in name for name in missing)
    assert all(name.endswith(".seed") for name in unexpected)
    return net.eval()


def drawn(learner, epochs):
    """The batches of each epoch, as a sampler of the same seed draws them."""
    config = learner.config
    sampler = AdaptiveSampler(
        RandomBatch(48, 3, epochs, warm_up=config.warm_up),
        batch_size=config.batch_size,
        seed=config.seed,
        draws=config.draws,
    )
    return [sampler.next_epoch().view(-1, config.batch_size) for _ in range(epochs)]


def assert_same_tensors(learner, net, *, rtol=1e-4, atol=1e-5):
    state = learner.state_dict()
    for name, value in net.state_dict().items():
        if "num_batches" not in name:
            found = (state["parameters"] | state["buffers"])[name]
            torch.testing.assert_close(found, value, rtol=rtol, atol=atol, msg=lambda m, n=name: f"{n}: {m}")


# One step


OPTIMIZERS = {
    "nesterov": {"optimizer": "momentum", "momentum": 0.9, "nesterov": True, "weight_decay": 5e-4},
    "momentum": {"optimizer": "momentum", "momentum": 0.7, "nesterov": False, "weight_decay": 1e-2},
    "momentum without decay": {"optimizer": "momentum", "nesterov": True, "weight_decay": 0.0},
    "plain": {"optimizer": "sgd", "weight_decay": 1e-2},
}


@pytest.mark.parametrize("settings", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
def test_steps_equal_those_of_torchs_own_optimizer(make, toy, settings):
    learner = make("random", epochs=4, **settings)
    config, net = learner.config, fresh_net(learner).train()
    plain = config.optimizer == "sgd"
    optimizer = torch.optim.SGD(
        net.parameters(),
        lr=1.0,
        momentum=0.0 if plain else config.momentum,
        nesterov=False if plain else config.nesterov,
        weight_decay=config.weight_decay,
    )
    iteration = 0
    for batches in drawn(learner, 4):
        for indices in batches:
            # A tenth from half of the 24 steps on, a hundredth from three quarters on.
            optimizer.param_groups[0]["lr"] = 0.05 * (
                1 if iteration < 12 else 0.1 if iteration < 18 else 0.01
            )
            logits = net(normalise(toy.train_images[indices].float()))
            loss = F.cross_entropy(logits, toy.train_labels[indices])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            iteration += 1
        train_epoch(learner)
        assert_same_tensors(learner, net)
    assert iteration == learner.iteration == 24


def test_a_wrong_rate_would_be_seen(make):
    one, other = make("random"), make("random", learning_rate=0.051)
    train_epoch(one)
    train_epoch(other)
    with pytest.raises(AssertionError):
        assert_same_tensors(one, current_net(other))


def test_batches_that_a_loader_reads_are_the_same_batches(make):
    resident, streamed = make("recency", dropout=0.2), make("recency", dropout=0.2, streamed=True)
    for _ in range(4):
        assert train_epoch(resident) == train_epoch(streamed)


def test_runs_side_by_side_read_their_own_batches_of_one_streamed_set(make, toy):
    alone = [make("random", seeds=[seed], streamed=True) for seed in (0, 1)]
    expected = [train_epoch(learner) for learner in alone]
    shared = Streamed(toy, normalise, CPU, workers=0)
    together = [make("random", seeds=[seed], data=shared) for seed in (0, 1)]
    steps = [learner.begin_epoch() for learner in together]
    for _ in range(steps[0]):
        for learner in together:
            learner.set_rate()
            learner.step()
            learner.iteration += 1
    assert [learner.end_epoch(steps[0]) | learner.evaluate()() for learner in together] == expected


def test_neighbouring_seeds_take_their_dropout_from_far_apart(make):
    first = sorted(int(make("random", seeds=[s]).state_dict()["steps"]["dropout_seed"]) for s in range(12))
    gaps = [b - a for a, b in pairwise(first)]
    assert min(gaps) > 10 * 40_000


def test_dropout_changes_with_every_step_and_survives_a_resume(make):
    learner = make("random", dropout=0.5)
    before = int(learner.state_dict()["steps"]["dropout_seed"])
    train_epoch(learner)
    assert int(learner.state_dict()["steps"]["dropout_seed"]) == before + learner.steps


@pytest.mark.parametrize("streamed", [False, True])
def test_a_run_reads_and_moves_no_global_generator(make, streamed):
    records = []
    for seed in (1, 2):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            before = torch.get_rng_state()
            learner = make("recency", dropout=0.3, augmentation="crop-flip", streamed=streamed)
            records.append([train_epoch(learner) for _ in range(3)])
            assert torch.equal(torch.get_rng_state(), before)
    assert records[0] == records[1]


def test_a_state_continues_bit_for_bit(make):
    settings = {"method": "recency", "dropout": 0.3, "augmentation": "crop-flip"}
    learner = make(**settings)
    for _ in range(3):
        train_epoch(learner)
    other = make(**settings)
    other.load_state_dict(learner.state_dict())
    for _ in range(2):
        assert train_epoch(learner) == train_epoch(other)
    one, two = learner.state_dict(), other.state_dict()
    assert all(torch.equal(one["parameters"][name], two["parameters"][name]) for name in one["parameters"])


# Evaluation


@pytest.mark.parametrize("size", [1000, 25, 10, 7, 1])
def test_evaluation_is_that_of_every_test_image_once(make, toy, monkeypatch, size):
    monkeypatch.setattr(source, "part_size", lambda _: size)
    learner = make("random")
    for _ in range(2):
        train_epoch(learner)
    with torch.no_grad():
        logits = current_net(learner)(normalise(toy.test_images.float()))
    found = learner.evaluate()()
    assert found["test_loss"] == pytest.approx(F.cross_entropy(logits, toy.test_labels).item(), rel=1e-5)
    wrong = sum(int(row.argmax()) != int(label) for row, label in zip(logits, toy.test_labels, strict=True))
    assert found["test_error"] == 100 * wrong / 25
    assert 0 < wrong < 25


def test_dropout_left_on_is_tested_beside_and_changes_nothing_else(make):
    plain, both = make("recency", dropout=0.5), make("recency", dropout=0.5, test_dropout=True)
    found, usual = [], []
    for _ in range(4):
        record = train_epoch(both)
        found.append(record.pop("test_error_dropout"))
        usual.append(record["test_error"])
        assert record == train_epoch(plain)
    assert found != usual
    again = both.evaluate()()["test_error_dropout"]
    assert again == found[-1], "the masks are those of the run and the step"


@pytest.mark.parametrize("net", ["resnet-50", "densenet-40-12", "small-cnn", "efficientnet-lite0"])
def test_dropout_left_on_drops_and_norms_as_in_testing(make_configs, net):
    (config,) = make_configs("random", net=net, dropout=0.5)
    network = Network(config, 3, 3, CPU, test_dropout=True)
    parameters, buffers = network.fresh_tensors(0)
    before = {name: tensor.clone() for name, tensor in buffers.items()}
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))

    def logits(seed):
        seeds = dict.fromkeys(network.seed_names, torch.tensor(seed, dtype=torch.int32))
        with torch.no_grad():
            return network.dropping_logits(parameters | buffers | seeds, images)

    assert torch.equal(logits(1), logits(1))
    assert not torch.allclose(logits(1), logits(2))
    assert all(torch.equal(before[name], buffers[name]) for name in buffers), "no statistics are taken"
    (undropped,) = make_configs("random", net=net, dropout=0.0)
    with torch.no_grad():
        plain = Network(undropped, 3, 3, CPU).test_logits(parameters | buffers, images)
        torch.testing.assert_close(network.test_logits(parameters | buffers, images), plain)


def test_each_part_of_the_test_set_has_masks_of_its_own(make, toy, monkeypatch):
    monkeypatch.setattr(source, "part_size", lambda _: 5)
    learner, seeds = make("random", dropout=0.5, test_dropout=True), []
    dropping = learner.network.dropping_logits

    def watched(tensors, images):
        seeds.append(int(tensors[learner.network.seed_names[0]]))
        return dropping(tensors, images)

    learner.network.dropping_logits = watched
    for _ in range(2):
        train_epoch(learner)
    assert len(set(seeds)) == len(seeds) == 2 * 5
    assert max(seeds) < 0, "steps have theirs above"


def test_evaluation_changes_nothing(make):
    learner = make("random", dropout=0.3, test_dropout=True)
    train_epoch(learner)
    before = learner.state_dict()
    learner.evaluate()()
    after = learner.state_dict()
    assert all(torch.equal(before["buffers"][name], after["buffers"][name]) for name in before["buffers"])


# Methods whose options reach into the training loop


@pytest.mark.parametrize("size", [1000, 20])
def test_online_batch_ranks_by_an_evaluation_pass_when_told_so(make, toy, monkeypatch, size):
    monkeypatch.setattr(source, "part_size", lambda _: size)
    learner = make("online", losses="evaluate")
    for _ in range(3):
        train_epoch(learner)
    with torch.no_grad():
        logits = current_net(learner)(normalise(toy.train_images.float()))
        losses = F.cross_entropy(logits, toy.train_labels, reduction="none")
    learner.begin_epoch()
    by_probability = learner.selectors[0].distribution.probabilities().argsort(descending=True)
    assert torch.equal(by_probability, losses.argsort(descending=True, stable=True))


def test_online_batch_ranks_by_the_losses_of_its_steps_otherwise(make):
    learner, evaluating = make("online"), make("online", losses="evaluate")
    for _ in range(3):
        train_epoch(learner)
        train_epoch(evaluating)
    learner.begin_epoch()
    evaluating.begin_epoch()
    one, other = (x.selectors[0].distribution.probabilities() for x in (learner, evaluating))
    assert not torch.equal(one, other)


def test_active_bias_weights_the_loss_when_told_so(make, toy):
    learner = make("active", mode="reweight", epochs=4, weight_decay=0.0, optimizer="sgd")
    for _ in range(2):
        train_epoch(learner)
    net = current_net(learner).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1 * 0.05)
    batches = drawn(learner, 3)[2]
    steps = learner.begin_epoch()
    weights = [learner.selectors[0].loss_weights(indices) for indices in batches]
    assert all(w.std() > 0.01 for w in weights)
    for indices, weight in zip(batches, weights, strict=True):
        logits = net(normalise(toy.train_images[indices].float()))
        loss = (F.cross_entropy(logits, toy.train_labels[indices], reduction="none") * weight).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for _ in range(steps):
        learner.set_rate()
        learner.step()
        learner.iteration += 1
    assert_same_tensors(learner, net)


def test_active_bias_draws_by_its_weights_otherwise(make):
    learner = make("active")
    for _ in range(2):
        train_epoch(learner)
    learner.begin_epoch()
    assert learner.selectors[0].loss_weights(torch.arange(48)) is None
    assert learner.selectors[0].distribution.probabilities().std() > 0


# Records


def test_a_record_says_what_was_drawn_and_how_it_was_learned(make, toy):
    """A plain loop over the same batches keeps every loss and prediction by hand."""
    learner = make("recency", epochs=6, window=2, warm_up=2, pressure=50.0, draws="independent")
    config, net = learner.config, fresh_net(learner).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
    history = [deque(maxlen=2) for _ in range(48)]
    for epoch in range(6):
        steps = learner.begin_epoch()
        assert steps == 6
        batches = learner._batches.clone()
        for _ in range(steps):
            learner.set_rate()
            learner.step()
            learner.iteration += 1
        record = learner.end_epoch(steps)
        losses, rate = [], None
        for number, indices in enumerate(batches):
            done = 6 * epoch + number
            rate = 0.05 * (1 if done < 18 else 0.1 if done < 27 else 0.01)
            optimizer.param_groups[0]["lr"] = rate
            logits = net(normalise(toy.train_images[indices].float()))
            each = F.cross_entropy(logits, toy.train_labels[indices], reduction="none")
            optimizer.zero_grad()
            each.mean().backward()
            optimizer.step()
            losses += each.tolist()
            for index, label in zip(indices.tolist(), logits.argmax(1).tolist(), strict=True):
                history[index].append(label)
        assert record["train_loss"] == pytest.approx(np.mean(losses), rel=1e-4)
        assert record["learning_rate"] == pytest.approx(rate, rel=1e-9)
        assert record["distinct"] == len(set(batches.flatten().tolist())) / 48
        quantiles = {q: np.quantile(losses, float(q)) for q in ("0.05", "0.25", "0.5", "0.75", "0.95")}
        assert record["loss_quantiles"] == pytest.approx(quantiles, rel=1e-3, abs=1e-5)
        edges = record["loss_histogram"]["edges_log10"]
        counts = np.histogram(np.log10(losses), edges)[0]
        assert sum(record["loss_histogram"]["counts"]) == len(losses) == 48
        assert np.abs(np.array(record["loss_histogram"]["counts"]) - counts).sum() <= 2  # on an edge
        assert record["uncertainty"] == pytest.approx(np.mean([entropy(h) for h in history]), abs=1e-6)
        counted = dict(map(tuple, record["uncertainty_counts"]))
        assert counted == Counter(round(entropy(h), 12) for h in history)
        # Eq. 9, e counted from 1: the pressure falls to 1 in the last epoch.
        expected = None if epoch < 2 else 50 * math.exp(math.log(1 / 50) / (6 - 2)) ** (epoch + 1 - 2)
        assert record["pressure"] == pytest.approx(expected)
        assert config.warm_up == 2
    assert 0 < record["uncertainty"] < 1


def entropy(labels):
    """Eq. 6 of the window of one sample; a sample never predicted is wholly uncertain."""
    if not labels:
        return 1.0
    shares = [count / len(labels) for count in Counter(labels).values()]
    return -sum(p * math.log(p) for p in shares) / math.log(3)


def test_what_a_method_does_not_have_is_none_in_its_record(make):
    for method in ("random", "active"):
        record = train_epoch(make(method))
        assert record["pressure"] is record["uncertainty"] is record["uncertainty_counts"] is None


def test_online_batch_records_its_pressure(make):
    learner = make("online", epochs=4, warm_up=2, pressure=9.0)
    assert [train_epoch(learner)["pressure"] for _ in range(4)] == [None, None, pytest.approx(3), 1]


def test_a_shuffle_reaches_every_sample_and_independent_draws_fewer(make):
    assert train_epoch(make("random", draws="systematic"))["distinct"] == 1
    assert train_epoch(make("random", draws="independent"))["distinct"] < 1


def test_the_last_epoch_ends_with_the_last_iteration(make):
    learner = make("random", iterations=15)
    records = [train_epoch(learner) for _ in range(3)]
    assert learner.iteration == 15
    assert learner.epoch == 3
    assert sum(records[-1]["loss_histogram"]["counts"]) == 3 * 8
    assert records[-1]["distinct"] <= 3 * 8 / 48
