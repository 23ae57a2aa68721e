"""Selectors whose state lives on a CUDA device."""

import pytest
import torch

from carpediem import ActiveBias, AdaptiveSampler, OnlineBatch, RandomBatch, RecencyBias, WeightedBatch
from carpediem.lab.observer import SampleObserver

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

N, K, EPOCHS, WARM_UP = 5000, 10, 30, 2


def weighted(size, _classes, epochs, *, warm_up, device):
    selector = WeightedBatch(size, epochs, warm_up=warm_up, device=device)
    selector.set_weights(torch.arange(size).double() % 17)
    return selector


def recency(*size, warm_up, device):
    return RecencyBias(*size, window=2, warm_up=warm_up, device=device)


METHODS = pytest.mark.parametrize("method", [RandomBatch, OnlineBatch, ActiveBias, recency, weighted])


def trained(method, device):
    """A selector that has watched two epochs of the same predictions wherever it lives."""
    selector = method(N, K, EPOCHS, warm_up=WARM_UP, device=device)
    random = torch.Generator().manual_seed(1)
    for epoch in range(2):
        selector.refresh(epoch)
        for start in range(0, N, 500):
            indices = torch.arange(start, start + 500)
            logits = torch.randn(500, K, generator=random) * 3
            selector.observe(*(t.to(device) for t in (indices, logits, indices % K)))
    selector.refresh(2)
    return selector


@METHODS
def test_both_devices_give_the_same_probabilities(method):
    here, there = (trained(method, device).distribution.probabilities().cpu() for device in ("cpu", "cuda"))
    torch.testing.assert_close(there, here, rtol=1e-5, atol=0)  # softmax is float32 on both


def test_both_devices_give_the_same_levels():
    here, there = (trained(recency, device).history.levels().cpu() for device in ("cpu", "cuda"))
    assert torch.equal(here, there)


@METHODS
@pytest.mark.parametrize("draws", ["independent", "systematic"])
def test_observing_and_drawing_an_epoch_never_wait_for_the_device(method, draws):
    selector = trained(method, "cuda")
    sampler = AdaptiveSampler(selector, batch_size=100, draws=draws)
    sampler.set_epoch(3)
    batch = (
        torch.arange(100, device="cuda"),
        torch.randn(100, K, device="cuda"),
        torch.zeros(100, device="cuda").long(),
    )
    selector.refresh(3)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        selector.observe(*batch)
        drawn = sampler.next_epoch()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert drawn.device.type == "cuda"
    assert all(len(row.unique()) == 100 for row in drawn.view(-1, 100))


@METHODS
@pytest.mark.parametrize("draws", ["independent", "systematic"])
def test_a_seed_gives_the_same_epoch_again(method, draws):
    epochs = []
    for _ in range(2):
        sampler = AdaptiveSampler(trained(method, "cuda"), batch_size=128, draws=draws, seed=5)
        sampler.set_epoch(2)
        epochs.append(sampler.next_epoch())
    assert torch.equal(*epochs)


@METHODS
def test_draws_follow_the_probabilities(method):
    distribution = trained(method, "cuda").distribution
    drawn = distribution.draw(400_000, 1, torch.Generator("cuda").manual_seed(0)).flatten()
    counts = torch.bincount(drawn, minlength=N).double()
    expected = distribution.probabilities() * len(drawn)
    likely = expected > 0
    assert counts[~likely].sum() == 0
    chi_square = ((counts - expected)[likely].square() / expected[likely]).sum()
    freedom = int(likely.sum()) - 1
    assert abs(chi_square - freedom) < 5 * (2 * freedom) ** 0.5


def test_bad_values_never_reach_the_history_and_are_reported_by_the_next_refresh():
    selector = trained(recency, "cuda")
    before = {name: value.clone() for name, value in selector.state_dict().items() if name == "state.labels"}
    batch = (
        torch.arange(100, device="cuda"),
        torch.randn(100, K, device="cuda"),
        torch.zeros(100, device="cuda").long(),
    )
    selector.observe(batch[0], batch[1].log(), batch[2])
    selector.observe(batch[0] + N, batch[1], batch[2])
    assert torch.equal(selector.state_dict()["state.labels"][:, :N], before["state.labels"][:, :N])
    with pytest.raises(ValueError, match="1 batches held an index outside"):
        selector.refresh(3)
    with pytest.raises(ValueError, match="1 batches held values that are not"):
        selector.refresh(3)
    selector.refresh(3)


def test_what_is_kept_about_samples_is_the_same_on_both_devices():
    states = []
    for device in ("cpu", "cuda"):
        random = torch.Generator().manual_seed(3)
        observer = SampleObserver(500, K, window=4, epochs=3, device=device)
        for _ in range(3):
            batches = torch.stack([torch.randperm(500, generator=random)[:100] for _ in range(5)])
            predictions = torch.randint(K, (5, 100), generator=random, dtype=torch.int32)
            losses = torch.rand(5, 100, generator=random)
            observer.take_in(*(tensor.to(device) for tensor in (batches, predictions, losses)))
        states.append(observer.state_dict())
    here, there = states
    for name in ("windows", "latest", "drawn", "change", "loss"):
        torch.testing.assert_close(there[name], here[name], rtol=0, atol=0, equal_nan=True)
    for name, trail in here["trails"].items():
        torch.testing.assert_close(there["trails"][name], trail)
