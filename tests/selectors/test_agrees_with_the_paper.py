"""The fast selectors against the slow transcription, on random histories, through the public calls alone."""

import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from carpediem import ActiveBias, OnlineBatch, RecencyBias
from reference import paper


@st.composite
def observed(draw, num_classes, most_samples=12, most_batches=6, most=40):
    """N and some batches of (indices, numbers): some samples never occur, some often, some twice in a batch."""
    n = draw(st.integers(1, most_samples))
    last = num_classes - 1
    labels = st.sampled_from(sorted({0, 1, last // 2, max(last - 1, 0), last})) | st.integers(0, last)
    index = st.integers(0, n - 1) | st.just(0)
    batch = st.lists(st.tuples(index, labels), max_size=most)
    return n, draw(st.lists(batch, max_size=most_batches))


def predicting(labels, num_classes):
    """Logits whose argmax are the labels."""
    logits = torch.zeros(len(labels), num_classes)
    logits[torch.arange(len(labels)), labels] = 1.0
    return logits


def columns(batch):
    return tuple(torch.tensor([row[i] for row in batch], dtype=torch.int64) for i in (0, 1))


def assert_probabilities(selector, expected, rtol=1e-9):
    torch.testing.assert_close(
        selector.distribution.probabilities(),
        torch.tensor(expected, dtype=torch.float64),
        rtol=rtol,
        atol=0,
    )


PRESSURES = st.sampled_from([1.0, 2.0, 100.0]) | st.floats(1, 1e6)


def check_recency(n, batches, q, k, pressure, schedule, after):
    warm_up, epochs = q + 1, q + 6
    selector = RecencyBias(n, k, epochs, window=q, warm_up=warm_up, pressure=pressure, schedule=schedule)
    windows = paper.Windows(n, q)
    for batch in batches:
        indices, labels = columns(batch)
        selector.observe(indices, predicting(labels, k), labels * 0)
        windows.observe(indices.tolist(), labels.tolist())
    epoch = warm_up + after
    selector.refresh(epoch)
    if schedule == "decayed":
        pressure = paper.decayed_pressure(epoch, start=pressure, warm_up=warm_up, epochs=epochs)
    assert_probabilities(selector, paper.recency_probabilities(windows.windows, k, pressure))
    for index, window in enumerate(windows.windows):
        assert selector.history.predictions(index) == list(window)


@pytest.mark.parametrize("k", [2, 10, 100, 1000])
@pytest.mark.parametrize("q", [1, 5, 10, 15, 32])
def test_recency_bias_agrees_with_equations_5_to_9(q, k):
    @settings(max_examples=10 if q == 32 else 25)
    @given(observed(k), PRESSURES, st.sampled_from(["decayed", "constant"]), st.integers(0, 4))
    @example((3, []), 100.0, "decayed", 0)
    @example((2, [[(0, 1)] * (3 * q + 1) + [(0, 0)]]), 100.0, "constant", 0)
    def agrees(history, pressure, schedule, after):
        check_recency(*history, q, k, pressure, schedule, after)

    agrees()


@pytest.mark.parametrize("k", [127, 128, 129, 254, 255, 256, 257, 300, 32767, 32768])
def test_recency_bias_agrees_where_the_storage_of_labels_changes_its_type(k):
    q = 4
    last = k - 1
    batches = [
        [(0, last), (0, last - 1), (1, last)],
        [(0, last), (0, 0), (1, last), (2, min(255, last))],
        [(2, min(254, last)), (2, last), (1, last), (1, last)],
    ]
    check_recency(5, batches, q, k, 100.0, "constant", 0)


@pytest.mark.parametrize("k", [3, 8, 9, 27, 32, 81, 1000])
def test_recency_bias_agrees_where_the_uncertainty_falls_on_a_step_of_the_quantiser(k):
    # 3 of 27 labels in equal shares have U = 1/3 exactly: the quantiser must not see 1/3 - 1e-16.
    q = 10
    windows = [[i % m for i in range(m * times)] for m in range(1, 11) for times in range(1, 11) if m <= k]
    windows = [window for window in windows if len(window) <= q]
    for n in (len(windows), 60, 120):
        batches = [[(i, label) for i, window in enumerate(windows) for label in window]]
        check_recency(n, batches, q, k, 1e6, "constant", 0)


def test_a_sample_never_predicted_is_as_likely_as_one_that_is_wholly_uncertain():
    selector = RecencyBias(4, 2, 10, window=2, warm_up=2)
    selector.observe(
        torch.tensor([0, 0, 1, 1]), predicting(torch.tensor([0, 1, 1, 1]), 2), torch.zeros(4).long()
    )
    selector.refresh(2)
    never, flipping, settled = (float(selector.distribution.probabilities()[i]) for i in (3, 0, 1))
    assert never == flipping > settled


@pytest.mark.parametrize("k", [2, 10, 1000])
@given(data=st.data(), pressure=PRESSURES, after=st.integers(0, 4))
@settings(max_examples=20)
def test_online_batch_agrees_with_equation_1(k, data, pressure, after):
    n, batches = data.draw(observed(17))
    selector = OnlineBatch(n, k, 7, warm_up=2, pressure=pressure)
    losses = [None] * n
    for batch in batches:
        indices, numbers = columns(batch)
        targets = torch.zeros_like(indices)
        logits = torch.zeros(len(batch), k)
        logits[torch.arange(len(batch)), targets] = numbers - 8.0
        selector.observe(indices, logits, targets)
        for index, number in batch:
            losses[index] = math.log1p((k - 1) * math.exp(-(number - 8.0)))
    selector.refresh(2 + after)
    now = paper.decayed_pressure(2 + after, start=pressure, warm_up=2, epochs=7)
    assert_probabilities(selector, paper.online_probabilities(losses, now))


@given(data=st.data(), pressure=PRESSURES)
def test_online_batch_with_evaluated_losses_agrees_with_equation_1(data, pressure):
    n = data.draw(st.integers(1, 12))
    selector = OnlineBatch(n, 3, 7, warm_up=1, pressure=pressure, schedule="constant", losses="evaluate")
    passes = data.draw(st.lists(st.lists(st.integers(0, 9), min_size=n, max_size=n), min_size=1, max_size=3))
    for epoch, losses in enumerate(passes, start=1):
        selector.set_losses(torch.tensor(losses) / 3)
        some = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, 9)), max_size=9))
        indices, values = columns(some)
        selector.set_losses(values / 3, indices)
        for index, value in some:
            losses[index] = value
        # What is observed in training does not count here.
        selector.observe(torch.zeros(1).long(), torch.tensor([[-9.0, 9.0, 9.0]]), torch.zeros(1).long())
        selector.refresh(epoch)
        assert_probabilities(selector, paper.online_probabilities(losses, pressure))


def test_online_batch_keeps_the_last_loss_of_an_index_repeated_many_times():
    # torch writes to repeated places in any order, as can be seen with two threads and many of them.
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        selector = OnlineBatch(3, 2, 5, warm_up=0, schedule="constant")
        for _ in range(3):
            size = 100_000
            indices = torch.arange(size) % 3
            logits = torch.randn(size, 2, generator=torch.Generator().manual_seed(1))
            logits[-3:] = torch.tensor([[9.0, 0.0], [0.0, 0.0], [-9.0, 0.0]])
            selector.observe(indices, logits, torch.zeros(size, dtype=torch.int64))
            easy, medium, hard = indices[-3:].tolist()
            p = OnlineBatch.build(selector, 1).probabilities()
            assert p[hard] > p[medium] > p[easy]
    finally:
        torch.set_num_threads(before)


@st.composite
def confidences(draw):
    n, batches = draw(observed(41))
    return n, [[(index, (number - 20) / 4) for index, number in batch] for batch in batches]


def observe_confidences(selector, n, batches, k, dtype):
    """The same logits for the selector and, as lists of the true label's probability, for the paper."""
    histories = [[] for _ in range(n)]
    for batch in batches:
        indices = torch.tensor([index for index, _ in batch], dtype=torch.int64)
        targets = (indices * 5 + 1) % k
        logits = torch.zeros(len(batch), k, dtype=dtype)
        logits[torch.arange(len(batch)), targets] = torch.tensor([v for _, v in batch], dtype=dtype)
        selector.observe(indices, logits, targets)
        for index, value in batch:
            histories[index].append(math.exp(value) / (math.exp(value) + k - 1))
    return histories


@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float64, 2e-6), (torch.float32, 2e-4)])
@pytest.mark.parametrize("k", [2, 10, 1000])
@given(history=confidences(), smoothness=st.sampled_from([0.02, 0.5]))
@settings(max_examples=20)
def test_active_bias_agrees_with_equation_2(dtype, rtol, k, history, smoothness):
    n, batches = history
    selector = ActiveBias(n, k, 5, warm_up=1, smoothness=smoothness)
    histories = observe_confidences(selector, n, batches, k, dtype)
    selector.refresh(1)
    assert_probabilities(selector, paper.active_probabilities(histories, smoothness), rtol=rtol)


@pytest.mark.filterwarnings("ignore:ActiveBias has not observed")  # in a history without a step
@given(history=confidences(), data=st.data())
def test_active_bias_that_reweights_agrees_with_equation_2(history, data):
    n, batches = history
    selector = ActiveBias(n, 4, 5, warm_up=1, mode="reweight")
    histories = observe_confidences(selector, n, batches, 4, torch.float64)
    batch = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True))
    selector.refresh(0)
    torch.testing.assert_close(selector.loss_weights(torch.tensor(batch)), torch.ones(len(batch)))
    selector.refresh(1)
    assert_probabilities(selector, [1 / n] * n)
    weights = [paper.active_deviation(histories[i]) + 0.02 for i in batch]
    expected = torch.tensor([w * len(weights) / sum(weights) for w in weights])
    torch.testing.assert_close(selector.loss_weights(torch.tensor(batch)), expected, rtol=1e-5, atol=0)


def test_active_bias_stays_exact_over_many_steps():
    # Running moments cancel: a sample that never moved must not look as if it had.
    selector = ActiveBias(2, 2, 5, warm_up=0)
    logits = torch.tensor([[0.3, 0.0], [0.3, 0.0]])
    for step in range(2_000):
        logits[1, 0] = 0.3 + 0.001 * (step % 2)
        selector.observe(torch.tensor([0, 1]), logits, torch.tensor([0, 0]))
    still, moving = selector.moments.deviation().tolist()
    assert still < 1e-7
    assert moving == pytest.approx(0.0005 * 0.2445, rel=1e-3)


@pytest.mark.parametrize("make", [RecencyBias, OnlineBatch, ActiveBias])
def test_the_warm_up_is_uniform_whatever_was_observed(make):
    selector = make(6, 3, 20)
    for epoch in range(10):
        selector.refresh(epoch)
        assert_probabilities(selector, [1 / 6] * 6)
        indices = torch.tensor([0, 1, 2])
        selector.observe(indices, predicting((indices + epoch) % 3, 3), indices)
    selector.refresh(10)
    assert len(selector.distribution.probabilities().unique()) > 1


@pytest.mark.parametrize("make", [RecencyBias, OnlineBatch])
def test_the_last_epoch_draws_uniformly_under_a_decaying_pressure(make):
    selector = make(6, 3, 20)
    selector.observe(torch.tensor([0, 0]), predicting(torch.tensor([0, 1]), 3), torch.tensor([0, 0]))
    selector.refresh(18)
    assert not selector.distribution.is_uniform
    selector.refresh(19)
    assert_probabilities(selector, [1 / 6] * 6)
