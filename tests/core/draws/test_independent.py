"""Draws follow the law that they promise: the distribution, without replacement inside a batch."""

import time
import tracemalloc
from collections import Counter

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from carpediem import AdaptiveSampler, OnlineBatch, RecencyBias, WeightedBatch
from carpediem.core.distribution import Levels, Uniform, Weights
from carpediem.core.draws import independent
from carpediem.core.draws.distinct import race
from carpediem.core.draws.independent import IndependentDraws
from reference import paper
from reference.selectors import SELECTORS, observed

SKEWED = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=torch.float64)


def assert_law(counts, probabilities):
    """Counts that a fair draw would give in all but one of a thousand runs, and nothing of probability 0."""
    counts, probabilities = np.asarray(counts, float), np.asarray(probabilities, float)
    assert counts[probabilities == 0].sum() == 0
    seen = probabilities > 0
    expected = probabilities[seen] / probabilities[seen].sum() * counts.sum()
    assert expected.min() > 5, "too few draws to tell"
    assert chisquare(counts[seen], expected).pvalue > 1e-3


def assert_batches_follow(batches, probabilities):
    """Ordered batches against the exactly enumerated law of successive sampling."""
    law = paper.successive_sampling(probabilities, len(batches[0]))
    counts = Counter(map(tuple, batches))
    assert set(counts) <= set(law)
    assert_law([counts[batch] for batch in law], list(law.values()))


def distributions(num_samples):
    generator = torch.Generator().manual_seed(3)
    levels = torch.randint(0, 3, (num_samples,), generator=generator).to(torch.uint8)
    weights = torch.rand(num_samples, generator=generator, dtype=torch.float64) + 0.02
    return {
        "uniform": Uniform(num_samples),
        "levels": Levels(levels, np.array([1.0, 0.3, 0.05])),
        "weights": Weights(weights),
    }


@pytest.mark.parametrize("make", SELECTORS, ids=lambda make: make.__name__)
def test_a_million_draws_follow_the_distribution_of_each_selector(make, generator):
    distribution = observed(make).distribution
    drawn = IndependentDraws(distribution).batches(10**6, 1, generator)
    assert_law(torch.bincount(drawn[:, 0], minlength=60), distribution.probabilities())


@pytest.mark.parametrize("kind", ["uniform", "levels", "weights"])
def test_a_million_draws_of_a_large_data_set_follow_the_distribution(kind, generator):
    distribution = distributions(5_000)[kind]
    drawn = IndependentDraws(distribution).batches(10**6, 1, generator)
    assert_law(torch.bincount(drawn[:, 0], minlength=5_000), distribution.probabilities())


def test_the_stream_of_a_sampler_follows_the_distribution():
    n = 100_000
    selector = WeightedBatch(n)
    selector.set_weights(torch.arange(n) % 100 + 1)
    sampler = AdaptiveSampler(selector, batch_size=50, seed=3)
    drawn = torch.cat([sampler.next_epoch() for _ in range(10)])
    assert_law(torch.bincount(drawn % 100), torch.arange(1, 101) / 5050)


def test_weights_over_many_orders_of_magnitude_are_drawn_right(generator):
    # Sums of many small weights beside a few large ones, where float32 tables go wrong.
    weights = torch.cat(
        (torch.full((3,), 1.0), torch.full((1000,), 1e-3), torch.full((200_000,), 4e-6), torch.zeros(10))
    ).double()
    drawn = IndependentDraws(Weights(weights)).batches(10**6, 1, generator)[:, 0]
    groups = torch.bucketize(drawn, torch.tensor([1, 2, 3, 1003, 101_003, 201_003]), right=True)
    assert_law(torch.bincount(groups, minlength=7), [1.0, 1.0, 1.0, 1.0, 0.4, 0.4, 0.0])


@pytest.mark.parametrize("kind", ["uniform", "levels", "weights"])
def test_a_batch_of_two_is_drawn_without_replacement(kind, generator):
    # Redrawn, since 2 is few among 16: the last place is the one that was drawn first.
    distribution = distributions(16)[kind]
    batches = IndependentDraws(distribution).batches(200_000, 2, generator).flip(1).tolist()
    assert_batches_follow(batches, distribution.probabilities().tolist())


def batches_by(kind, distribution, count, size, generator, monkeypatch):
    """Batches that are redrawn, or raced, as small as the data set is; in the order of successive draws."""
    monkeypatch.setattr(distribution, "support", distribution.num_samples * (64 if kind == "redrawn" else 1))
    drawn = IndependentDraws(distribution).batches(count, size, generator)
    return drawn.flip(1) if kind == "redrawn" else drawn


@pytest.mark.parametrize("kind", ["levels", "weights"])
def test_two_of_four_by_redrawing_follow_successive_sampling(kind, generator, monkeypatch):
    levels = Levels(torch.tensor([0, 1, 1, 2]), np.array([4.0, 2, 1]))
    distribution = Weights(SKEWED) if kind == "weights" else levels
    rows = batches_by("redrawn", distribution, 200_000, 2, generator, monkeypatch)
    assert_batches_follow(rows.tolist(), distribution.probabilities().tolist())


def test_two_of_four_by_a_race_follow_successive_sampling(generator):
    batches = race(SKEWED, 50_000, 2, generator).tolist()
    assert_batches_follow(batches, SKEWED.tolist())
    assert_batches_follow(
        IndependentDraws(Weights(SKEWED)).batches(50_000, 2, generator).tolist(), SKEWED.tolist()
    )


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_batches_that_redrawing_leaves_unfinished_keep_the_law(rounds, generator, monkeypatch):
    monkeypatch.setattr(independent, "ROUNDS", rounds)
    rows = batches_by("redrawn", Weights(SKEWED), 30_000, 3, generator, monkeypatch)
    assert_batches_follow(rows.tolist(), SKEWED.tolist())


def test_redrawing_and_racing_include_each_sample_equally_often(generator, monkeypatch):
    # Five of forty: the largest batch that is redrawn, compared with the race by inclusion counts.
    weights, batches = torch.logspace(0, -3, 40, dtype=torch.float64), 40_000
    one, other = (
        torch.bincount(
            batches_by(kind, Weights(weights), batches, 5, generator, monkeypatch).flatten(), minlength=40
        ).double()
        / batches
        for kind in ("redrawn", "raced")
    )
    middle = (one + other) / 2
    assert ((one - other).abs() < 4.5 * (2 * middle * (1 - middle) / batches).sqrt()).all()


@pytest.mark.parametrize("draws", ["independent", "systematic"])
@pytest.mark.parametrize(("num_samples", "batch_size"), [(10, 9), (10, 10), (1000, 900), (1, 1), (2, 1)])
@pytest.mark.filterwarnings("ignore:OnlineBatch has not observed")
def test_batches_that_are_most_of_the_data_set_are_distinct(num_samples, batch_size, draws):
    selector = OnlineBatch(num_samples, 2, 50, warm_up=0, pressure=100, schedule="constant")
    sampler = AdaptiveSampler(selector, batch_size=batch_size, draws=draws)
    for _ in range(20):
        drawn = sampler.next_epoch()
        assert len(drawn) == num_samples
        for batch in drawn.split(batch_size):
            assert len(batch.unique()) == len(batch)


def test_samples_of_nearly_all_the_mass_are_redrawn_among_many_and_raced_among_few(monkeypatch, generator):
    raced = []

    def counted(*args):
        raced.append(args)
        return race(*args)

    monkeypatch.setattr("carpediem.core.draws.distinct.race", counted)
    for n, is_raced in ((20_000, True), (2_000_000, False)):
        weights = torch.ones(n, dtype=torch.float64)
        weights[:20] = n / 2  # nine tenths of the mass
        batches = IndependentDraws(Weights(weights)).batches(3, 128, generator)
        assert bool(raced) == is_raced
        assert all(len(batch.unique()) == 128 for batch in batches)
        raced.clear()


@pytest.mark.parametrize("draws", ["independent", "systematic"])
def test_batches_are_distinct_when_128_samples_hold_almost_all_of_the_mass(draws):
    n, heavy = 10_000, 128
    selector = WeightedBatch(n)
    selector.set_weights(torch.where(torch.arange(n) < heavy, 1.0, 1e-6 * heavy / (n - heavy)))
    assert float(selector._weights[:heavy].sum() / selector._weights.sum()) == pytest.approx(
        1 - 1e-6, rel=1e-9
    )
    sampler = AdaptiveSampler(selector, batch_size=heavy, draws=draws)
    begin = time.perf_counter()
    drawn = sampler.next_epoch()
    assert time.perf_counter() - begin < 20
    full = drawn[: n // heavy * heavy].reshape(-1, heavy)
    assert all(len(batch.unique()) == heavy for batch in full)
    # A light one comes before the last heavy one in about one batch of 1,500.
    assert (full < heavy).double().mean() > 0.99


def test_a_sample_of_weight_0_is_never_drawn_even_beside_the_tiniest_weights(generator):
    distribution = Weights(torch.tensor([1.0, 1e-310, 0.0, 0.0, 5e-324], dtype=torch.float64))
    assert distribution.support == 3
    drawn = IndependentDraws(distribution).batches(500, 3, generator)
    assert set(drawn.flatten().tolist()) == {0, 1, 4}
    with pytest.raises(ValueError, match=r"batch_size must lie in \[1, 3\].* got 4"):
        IndependentDraws(distribution).batches(1, 4, generator)


def test_an_uncertain_sample_is_drawn_pressure_times_as_often(generator):
    selector = RecencyBias(200, 2, 10, window=2, warm_up=2, pressure=20, schedule="constant")
    everyone, logits = torch.arange(200), torch.zeros(200, 2)
    for label in (0, 1):
        logits[:, 0] = 1.0
        logits[:100, label] = 2.0
        selector.observe(everyone, logits, everyone * 0)
        logits.zero_()
    selector.refresh(2)
    drawn = IndependentDraws(selector.distribution).batches(10**6, 1, generator)
    ratio = float((drawn < 100).sum() / (drawn >= 100).sum())
    assert ratio == pytest.approx(20, rel=0.02)


def test_a_race_among_few_possible_samples_draws_only_these(generator):
    weights = torch.zeros(100_000, dtype=torch.float64)
    possible = torch.arange(0, 100_000, 500)
    weights[possible] = torch.rand(200, generator=generator, dtype=torch.float64) + 0.1
    drawn = IndependentDraws(Weights(weights)).batches(50, 150, generator)
    assert set(drawn.flatten().tolist()) <= set(possible.tolist())
    assert all(len(set(row)) == 150 for row in drawn.tolist())


def test_a_batch_of_many_samples_takes_no_more_memory_than_a_few_of_its_size(generator):
    weights = Weights(torch.rand(1 << 20, generator=generator) + 1)
    tracemalloc.start()
    try:
        drawn = IndependentDraws(weights).batches(1, 1 << 15, generator)
        assert tracemalloc.get_traced_memory()[1] < 64 * drawn.nbytes
    finally:
        tracemalloc.stop()
    assert len(drawn.unique()) == 1 << 15
