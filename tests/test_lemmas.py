"""What the paper proves: nothing is lost for good, nothing is overdone, and weights undo the bias."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from carpediem import AdaptiveSampler, OnlineBatch, RecencyBias
from reference.selectors import SELECTORS, observed


@settings(max_examples=60)
@given(
    n=st.integers(1, 40),
    k=st.sampled_from([2, 3, 10, 300]),
    pressure=st.floats(1, 1e9),
    epoch=st.integers(3, 9),
    schedule=st.sampled_from(["decayed", "constant"]),
    seed=st.integers(0, 10**6),
)
@pytest.mark.parametrize("method", [RecencyBias, OnlineBatch])
def test_every_probability_is_positive_and_none_is_pressure_times_another(
    method, n, k, pressure, epoch, schedule, seed
):
    options = {"window": 3} if method is RecencyBias else {}
    selector = method(n, k, 10, warm_up=3, pressure=pressure, schedule=schedule, **options)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(4):
        indices = torch.randint(0, n, (n,), generator=generator)
        selector.observe(indices, torch.randn(n, k, generator=generator), indices % k)
    selector.refresh(epoch)
    p = selector.distribution.probabilities()
    assert (p > 0).all()
    assert float(p.sum()) == pytest.approx(1, abs=1e-12)
    assert p.max() / p.min() <= pressure * (1 + 1e-9)


def linear_problem():
    """A softmax regression, and the gradient of each of its samples, of shape (N, features * classes)."""
    generator = torch.Generator().manual_seed(4)
    inputs = torch.randn(60, 5, generator=generator, dtype=torch.float64)
    targets = torch.randint(0, 4, (60,), generator=generator)
    weight = torch.randn(4, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    rows = []
    for x, y in zip(inputs, targets, strict=True):
        (gradient,) = torch.autograd.grad(cross_entropy((weight @ x)[None], y[None]), weight)
        rows.append(gradient.flatten())
    return inputs, targets, weight, torch.stack(rows)


POSITIVE = [make for make in SELECTORS if make.__name__ != "weighted_batch_zeros"]


@pytest.mark.parametrize("make", POSITIVE, ids=lambda make: make.__name__)
def test_importance_weights_make_the_gradient_of_drawn_samples_unbiased(make):
    *_, gradients = linear_problem()
    selector = observed(make)
    sampler = AdaptiveSampler(selector, batch_size=1, seed=8, draws="independent")
    distribution = selector.distribution
    epoch = selector.epoch
    # Many streams of the same frozen distribution: what a seed decides is all that differs.
    drawn = torch.cat([_stream(sampler, seed, epoch) for seed in range(1500)])
    estimates = gradients[drawn] / (60 * distribution.probabilities(drawn))[:, None]
    error = estimates.std(dim=0) / len(drawn) ** 0.5
    bias = (estimates.mean(dim=0) - gradients.mean(dim=0)).abs()
    assert (bias < 4 * error).all()
    p = distribution.probabilities()
    if p.max() > 5 * p.min():
        unweighted = (gradients[drawn].mean(dim=0) - gradients.mean(dim=0)).abs()
        assert (unweighted > 6 * gradients[drawn].std(dim=0) / len(drawn) ** 0.5).any()


def _stream(sampler, seed, epoch):
    sampler.load_state_dict({**sampler.state_dict(), "seed": seed, "epoch": epoch, "position": 0})
    return sampler.next_epoch()
