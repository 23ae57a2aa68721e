"""The training loop in the authors' world: whole last batches, dropout in testing, the whole training set's loss."""

import pytest
import torch
from torch.nn import functional as F

from carpediem.lab import source
from carpediem.lab.augment import normalisation
from carpediem.lab.learner import Learner
from carpediem.lab.methods import build_selector
from carpediem.lab.network import Network
from carpediem.lab.source import place

CPU = torch.device("cpu")
METHODS = ("random", "online", "active", "recency")


@pytest.fixture
def make(toy, make_configs):
    def learner(method="random", **changes):
        (config,) = make_configs(method, **{"dropout": 0.0, **changes})
        network = Network(config, 3, 1, CPU)
        return Learner(config, network, place(toy, "per-image", CPU), [build_selector(config, 48, 3, CPU)])

    return learner


def train_epoch(learner):
    steps = learner.begin_epoch()
    batches = learner._batches[:steps].clone()
    for _ in range(steps):
        learner.set_rate()
        learner.step()
        learner.iteration += 1
    return batches, learner.end_epoch(steps)


@pytest.mark.parametrize("method", METHODS)
def test_the_last_batch_is_filled_with_samples_drawn_anew(make, method):
    settings = {"draws": "independent", "batch_size": 10, "epochs": 5}
    learner, cut = (make(method, last_batch=how, **settings) for how in ("filled", "dropped"))
    last = []
    for _ in range(5):
        batches, _ = train_epoch(learner)
        others, _ = train_epoch(cut)
        assert (len(batches), len(others)) == (5, 4), "48 samples are four batches of 10 and eight more"
        assert all(len(set(batch)) == 10 for batch in batches.tolist())
        last.append(tuple(batches[-1].tolist()))
    assert len(set(last)) == 5
    again = make(method, last_batch="filled", **settings)
    assert tuple(train_epoch(again)[0][-1].tolist()) == last[0]


def test_the_filling_batch_is_drawn_by_the_rule(make):
    learner = make("online", last_batch="filled", draws="independent", batch_size=10, pressure=1e6, epochs=60)
    found = []
    for _ in range(40):
        batches, _ = train_epoch(learner)
        if learner.selectors[0].epoch >= 2:
            likely = learner.selectors[0].distribution.probabilities().argsort(descending=True)[:24]
            found += torch.isin(batches[-1], likely).tolist()
    assert sum(found) / len(found) > 0.9, "half of the samples have nearly all of the probability"


def test_dropout_stays_at_work_in_testing_where_the_run_says_so(make):
    plain, dropping = (make(dropout=0.5, dropout_in_testing=on) for on in (False, True))
    for learner in (plain, dropping):
        train_epoch(learner)
    assert plain.evaluate()()["test_loss"] != dropping.evaluate()()["test_loss"]
    assert dropping.evaluate()() == dropping.evaluate()(), "the masks are those of the run and the step"
    before = dropping.evaluate()()
    train_epoch(dropping)
    assert dropping.evaluate()() != before
    state, other = plain.state_dict(), make(dropout=0.5, dropout_in_testing=True).state_dict()
    assert state["parameters"].keys() == other["parameters"].keys()


def test_the_losses_that_online_batch_ranks_by_have_the_dropout_of_testing_too(make):
    plain, dropping = (
        make("online", losses="evaluate", dropout=0.5, dropout_in_testing=on) for on in (False, True)
    )
    found = [learner._training_losses() for learner in (plain, dropping)]
    assert not torch.equal(*found)


@pytest.mark.parametrize("size", [1000, 20, 7])
def test_the_loss_over_the_training_set_is_that_of_every_sample_once_in_test_mode(
    make, toy, monkeypatch, size
):
    monkeypatch.setattr(source, "part_size", lambda _: size)
    learner = make(dropout=0.3)
    train_epoch(learner)
    images = normalisation("per-image")(toy.train_images.float())
    with torch.no_grad():
        logits = learner.network.test_logits(learner._tensors(), images)
    found = learner.evaluate(test=False)()
    assert found["training_set_loss"] == pytest.approx(
        F.cross_entropy(logits, toy.train_labels).item(), rel=1e-5
    )
    wrong = int((logits.argmax(1) != toy.train_labels).sum())
    assert found["training_set_error"] == 100 * wrong / 48


def test_the_share_of_settled_samples_is_that_of_the_tenth_with_the_highest_deviation(make, toy):
    learner = make("active", epochs=6)
    for epoch in range(6):
        _, record = train_epoch(learner)
        if epoch < 2:
            assert "settled_share" not in record, "nothing is selected yet"
            continue
        most = learner.selectors[0].moments.deviation().argsort(descending=True)[:4].tolist()
        window = learner.observer.window
        held = [learner.observer._history.predictions(i)[-window:] for i in most]
        settled = [h == [int(toy.train_labels[i])] * window for h, i in zip(held, most, strict=True)]
        assert record["settled_share"] == sum(settled) / 4
    assert "settled_share" not in train_epoch(make("recency"))[1]
