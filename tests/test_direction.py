"""What the methods are for, on scikit-learn's digits with a small network and the loop that users write."""

import pytest
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from carpediem import ActiveBias, AdaptiveSampler, Indexed, OnlineBatch, RandomBatch, RecencyBias

SAMPLES, WINDOW, WARM_UP, EPOCHS = 600, 5, 5, 16


@pytest.fixture(scope="module")
def digits():
    images, labels = load_digits(return_X_y=True)
    images = torch.tensor(images[:SAMPLES] / 16.0, dtype=torch.float32)
    return TensorDataset(images, torch.tensor(labels[:SAMPLES]))


class Log:
    """Remembers every prediction, for the tests to look at."""

    def __init__(self):
        self.labels = [[] for _ in range(SAMPLES)]

    def observe(self, indices, logits, targets):
        for index, label in zip(indices.tolist(), logits.argmax(dim=1).tolist(), strict=True):
            self.labels[index].append(label)


def train(digits, selector, rates, *, listeners=(), listen_from=0):
    """Trains an epoch for each learning rate; yields after each how often every sample was drawn in it."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 24), torch.nn.ReLU(), torch.nn.Linear(24, 10))
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
    sampler = AdaptiveSampler(selector, batch_size=32, seed=1)
    loader = DataLoader(Indexed(digits), batch_size=32, sampler=sampler)
    for epoch, rate in enumerate(rates):
        optimizer.param_groups[0]["lr"] = rate
        drawn = torch.zeros(SAMPLES)
        for indices, (x, y) in loader:
            logits = model(x)
            loss = cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            selector.observe(indices, logits, y)
            for listener in listeners if epoch >= listen_from else ():
                listener.observe(indices, logits, y)
            drawn[indices] += 1
        yield drawn


def flipping_over_settled(digits, selector):
    """How many times as often samples of a mixed window were drawn as samples of a full and pure one."""
    draws, log = {True: [], False: []}, Log()
    windows = [[] for _ in range(SAMPLES)]
    for epoch, drawn in enumerate(train(digits, selector, [0.5] * EPOCHS, listeners=[log])):
        if epoch >= WARM_UP:
            for count, window in zip(drawn.tolist(), windows, strict=True):
                if len(window) == WINDOW:
                    draws[len(set(window)) > 1].append(count)
        windows = [labels[-WINDOW:] for labels in log.labels]
    assert min(len(values) for values in draws.values()) > 300
    flipping, settled = (sum(draws[key]) / len(draws[key]) for key in (True, False))
    return flipping / settled


def test_samples_whose_predictions_flip_are_drawn_more_often_under_recency_bias(digits):
    selector = RecencyBias(SAMPLES, 10, EPOCHS, window=WINDOW, warm_up=WARM_UP, schedule="constant")
    assert flipping_over_settled(digits, selector) > 2.5


@pytest.mark.parametrize("draws", ["systematic", "independent"])
def test_samples_whose_predictions_flip_are_drawn_no_more_often_under_random_batch(digits, draws):
    selector = RandomBatch(SAMPLES, 10, EPOCHS, draws=draws)
    assert 0.8 < flipping_over_settled(digits, selector) < 1.2


def test_what_was_inconsistent_long_ago_is_favoured_by_active_bias_and_not_by_recency_bias(digits):
    log = Log()
    recency = RecencyBias(SAMPLES, 10, 30, window=WINDOW, warm_up=WARM_UP, schedule="constant")
    active = ActiveBias(SAMPLES, 10, 30, warm_up=WARM_UP)
    # The network learns unobserved; then a high rate makes it waver, and a low one settles it.
    rates = [0.1] * 12 + [0.5] * 4 + [0.05] * 4 + [0.01] * 8
    for _ in train(
        digits, RandomBatch(SAMPLES, 10, 30), rates, listeners=[log, recency, active], listen_from=12
    ):
        pass
    recency.refresh(20)
    active.refresh(20)
    settled_now = torch.tensor([len(set(labels[-WINDOW:])) == 1 for labels in log.labels])
    always = torch.tensor([len(set(labels)) == 1 for labels in log.labels])
    long_ago = settled_now & ~always
    assert min(int(long_ago.sum()), int(always.sum())) > 20
    by_active, by_recency = (s.distribution.probabilities() for s in (active, recency))
    assert by_active[long_ago].mean() > 2 * by_active[always].mean()
    assert len(by_recency[settled_now].unique()) == 1
    assert by_recency[~settled_now].min() > by_recency[settled_now].max()


def test_a_hard_sample_is_drawn_more_often_under_online_batch(digits):
    selector = OnlineBatch(SAMPLES, 10, EPOCHS, warm_up=WARM_UP, schedule="constant")
    images, labels = digits.tensors
    noisy = TensorDataset(images, torch.where(torch.arange(SAMPLES) < 40, (labels + 1) % 10, labels))
    drawn = sum(list(train(noisy, selector, [0.5] * EPOCHS))[WARM_UP:])
    assert drawn[:40].mean() > 2 * drawn[40:].mean()


@pytest.mark.parametrize("draws", ["systematic", "independent"])
@pytest.mark.parametrize("method", [RecencyBias, OnlineBatch])
def test_without_pressure_a_method_draws_as_random_batch_does_index_by_index(digits, method, draws):
    window = {"window": WINDOW} if method is RecencyBias else {}
    pressed = [
        method(SAMPLES, 10, epochs=EPOCHS, warm_up=WARM_UP, pressure=s, **window) for s in (1.0, 100.0)
    ]
    selectors = [RandomBatch(SAMPLES), *pressed]
    samplers = [AdaptiveSampler(one, batch_size=32, seed=1, draws=draws) for one in selectors]
    _, labels = digits.tensors
    noise = torch.Generator().manual_seed(0)
    for epoch in range(WARM_UP + 3):
        random, uniform, selected = (list(sampler) for sampler in samplers)
        assert uniform == random
        assert (selected == random) == (epoch < WARM_UP)
        for selector, drawn in zip(pressed, (uniform, selected), strict=True):
            for batch in torch.tensor(drawn).split(32):
                logits = torch.randn(len(batch), 10, generator=noise)
                selector.observe(batch, logits, labels[batch])
