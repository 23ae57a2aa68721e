"""Selectors whose state lives on a CUDA device."""

import warnings

import pytest
import torch

from carpediem import ActiveBias, AdaptiveSampler, OnlineBatch, RandomBatch, RecencyBias, WeightedBatch
from carpediem.core.distribution import distribution_from_state
from carpediem.core.draws.independent import independent_epoch
from carpediem.core.draws.systematic import systematic_epoch
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
def test_observing_and_shuffling_never_wait_for_the_device(method):
    selector = trained(method, "cuda")
    shuffle = AdaptiveSampler(RandomBatch(N, K, device="cuda"), batch_size=100)
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
        drawn = shuffle.next_epoch()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert drawn.device.type == "cuda"
    assert torch.equal(drawn.sort().values, torch.arange(N, device="cuda"))


@METHODS
@pytest.mark.parametrize("draws", ["independent", "systematic"])
def test_an_epoch_is_on_the_device_and_waits_for_it_once_at_most(method, draws):
    selector = trained(method, "cuda")
    sampler = AdaptiveSampler(selector, batch_size=100, draws=draws)
    sampler.set_epoch(3)
    selector.refresh(3)
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as waits:
            warnings.simplefilter("always")
            drawn = sampler.next_epoch()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len([wait for wait in waits if "synchroniz" in str(wait.message)]) <= 1
    assert drawn.device.type == "cuda"
    assert all(len(row.unique()) == 100 for row in drawn.view(-1, 100))


@METHODS
@pytest.mark.parametrize("draws", ["independent", "systematic"])
def test_the_same_probabilities_give_the_same_epoch_on_both_devices(method, draws):
    here = trained(method, "cuda").distribution
    if here.is_uniform and draws == "systematic":
        return  # a shuffle is made where the data lives
    state = {name: v.cpu() if torch.is_tensor(v) else v for name, v in here.state_dict().items()}
    there = distribution_from_state(state, N, torch.device("cpu"))
    way = {"independent": independent_epoch, "systematic": systematic_epoch}[draws]
    one, other = (torch.cat([part for _, part in d.draw_epoch(way, 128, 5, 0)]) for d in (here, there))
    assert torch.equal(one, other)


@METHODS
@pytest.mark.parametrize("draws", ["independent", "systematic"])
def test_a_seed_gives_the_same_epoch_again(method, draws):
    epochs = []
    for _ in range(2):
        sampler = AdaptiveSampler(trained(method, "cuda"), batch_size=128, draws=draws, seed=5)
        sampler.set_epoch(2)
        epochs.append(sampler.next_epoch())
    assert torch.equal(*epochs)


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
