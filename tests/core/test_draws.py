"""Draws follow the law that they promise: the distribution, without replacement inside a batch."""

import math
import time
import tracemalloc
from collections import Counter

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from carpediem import AdaptiveSampler, OnlineBatch, RecencyBias, WeightedBatch
from carpediem.core import distinct
from carpediem.core.distinct import distinct_on_host, first_distinct, race, spare_candidates
from carpediem.core.distribution import Levels, Uniform, Weights, distribution_from_state
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
    drawn = distribution.draw(10**6, 1, generator)
    assert_law(torch.bincount(drawn[:, 0], minlength=60), distribution.probabilities())


@pytest.mark.parametrize("kind", ["uniform", "levels", "weights"])
def test_a_million_draws_of_a_large_data_set_follow_the_distribution(kind, generator):
    distribution = distributions(5_000)[kind]
    drawn = distribution.draw(10**6, 1, generator)
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
    drawn = Weights(weights).draw(10**6, 1, generator)[:, 0]
    groups = torch.bucketize(drawn, torch.tensor([1, 2, 3, 1003, 101_003, 201_003]), right=True)
    assert_law(torch.bincount(groups, minlength=7), [1.0, 1.0, 1.0, 1.0, 0.4, 0.4, 0.0])


@pytest.mark.parametrize("kind", ["uniform", "levels", "weights"])
def test_a_batch_of_two_is_drawn_without_replacement(kind, generator):
    # Redrawn, since 2 is few among 16: the last place is the one that was drawn first.
    distribution = distributions(16)[kind]
    batches = distribution.draw(200_000, 2, generator).flip(1).tolist()
    assert_batches_follow(batches, distribution.probabilities().tolist())


def test_two_of_four_by_redrawing_follow_successive_sampling(generator):
    distribution = Weights(SKEWED)
    rows = distinct_on_host(distribution._candidates, distribution.weights, 200_000, 2, generator)
    assert_batches_follow(rows[:, ::-1].tolist(), SKEWED.tolist())


def test_two_of_four_by_a_race_follow_successive_sampling(generator):
    batches = race(SKEWED, 50_000, 2, generator).tolist()
    assert_batches_follow(batches, SKEWED.tolist())
    assert_batches_follow(Weights(SKEWED).draw(50_000, 2, generator).tolist(), SKEWED.tolist())


@pytest.mark.parametrize("kind", ["levels", "weights"])
def test_two_of_four_by_first_distinct_follow_successive_sampling(kind, generator):
    distribution = (
        Weights(SKEWED) if kind == "weights" else Levels(torch.tensor([0, 1, 1, 2]), np.array([4.0, 2, 1]))
    )
    size, batches = 60, 50_000
    found, accepted = distribution._try(batches * size, generator)
    found = torch.from_numpy(found).reshape(batches, size)
    accepted = None if accepted is None else torch.from_numpy(accepted).reshape(batches, size)
    assert (accepted is None) == (kind == "levels")
    drawn = first_distinct(found, accepted, 2)
    assert_batches_follow(drawn.tolist(), distribution.probabilities().tolist())


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_batches_that_redrawing_leaves_unfinished_keep_the_law(rounds, generator, monkeypatch):
    monkeypatch.setattr(distinct, "ROUNDS", rounds)
    distribution = Weights(SKEWED)
    rows = distinct_on_host(distribution._candidates, distribution.weights, 30_000, 3, generator)
    assert_batches_follow(rows[:, ::-1].tolist(), SKEWED.tolist())


def test_three_paths_include_each_sample_equally_often(generator):
    # Five of forty: the largest batch that is redrawn, compared with the race by inclusion counts.
    weights = torch.logspace(0, -3, 40, dtype=torch.float64)
    distribution, batches, size = Weights(weights), 40_000, 5
    redrawn = torch.from_numpy(
        distinct_on_host(distribution._candidates, distribution.weights, batches, size, generator)
    )
    raced = race(weights, batches, size, generator)
    found, accepted = distribution._try(batches * 120, generator)
    first = first_distinct(
        torch.from_numpy(found).reshape(batches, 120), torch.from_numpy(accepted).reshape(batches, 120), size
    )
    by_race = torch.bincount(raced.flatten(), minlength=40).double() / batches
    for other in (redrawn, first):
        share = torch.bincount(other.flatten(), minlength=40).double() / batches
        middle = (share + by_race) / 2
        deviation = (2 * middle * (1 - middle) / batches).sqrt()
        assert ((share - by_race).abs() < 4.5 * deviation).all()


def test_first_distinct_takes_the_first_accepted_ones_in_their_order():
    candidates = torch.tensor([[5, 5, 2, 7, 2, 9], [1, 2, 3, 1, 2, 3]])
    assert first_distinct(candidates, None, 3).tolist() == [[5, 2, 7], [1, 2, 3]]
    accepted = torch.tensor([[0, 1, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1]]).bool()
    assert first_distinct(candidates, accepted, 3).tolist() == [[5, 7, 2], [3, 1, 2]]


@pytest.mark.parametrize("skew", [1.0, 100.0, 1e4])
def test_there_are_always_enough_spare_candidates(skew, generator):
    n, size, batches = 5_000, 128, 300
    distribution = Weights(torch.logspace(0, -math.log10(skew), n, dtype=torch.float64))
    count = spare_candidates(size, distribution._repeat_rate, distribution._acceptance)
    assert count is not None
    found, accepted = distribution._try(batches * count, generator)
    found, accepted = (torch.from_numpy(a).reshape(batches, count) for a in (found, accepted))
    drawn = first_distinct(found, accepted, size)
    for row, good, batch in zip(found.tolist(), accepted.tolist(), drawn.tolist(), strict=True):
        in_order = list(dict.fromkeys(v for v, ok in zip(row, good, strict=True) if ok))
        assert batch == in_order[:size]


@pytest.mark.parametrize(("n", "size"), [(10_000, 128), (4_096, 512), (100_000, 32)])
@pytest.mark.parametrize("share", [0.01, 0.5, 0.95])
def test_candidates_are_spared_only_where_they_hold_enough_samples(n, size, share, generator):
    """Where few samples hold a share of the mass, the spare ones are mostly these again."""
    outcomes = set()
    for heavy in (1, 8, size // 2, size, 4 * size, n // 2):
        weights = torch.full((n,), (1 - share) / (n - heavy), dtype=torch.float64)
        weights[-heavy:] = share / heavy
        distribution = Weights(weights)
        count = spare_candidates(size, distribution._repeat_rate, distribution._acceptance)
        outcomes.add(count is None)
        if count is not None:
            assert fewest_distinct(distribution, count, generator) >= size
    assert False in outcomes
    assert share < 0.95 or True in outcomes


@pytest.mark.parametrize("heavy", [0.06, 0.1, 0.3])
@pytest.mark.parametrize(
    "make", [Weights, lambda w: Levels((w < w.max()).long(), w.unique().flip(0).numpy())]
)
def test_candidates_are_spared_beside_one_heavy_sample(make, heavy, generator):
    n, size = 100_000, 128
    weights = torch.full((n,), (1 - heavy) / (n - 1), dtype=torch.float64)
    weights[7] = heavy
    distribution = make(weights)
    assert spare_candidates(size, distribution._repeat_rate, distribution._acceptance) is None
    share, rate = distribution._light
    assert share == pytest.approx(1 - heavy, rel=0.1)
    assert rate >= 1 / (n - 1) * 0.999
    count = spare_candidates(size, rate, distribution._acceptance * share)
    assert count is not None
    assert fewest_distinct(distribution, count, generator) >= size


def fewest_distinct(distribution, count, generator):
    found, accepted = distribution._try(50 * count, generator)
    found = (found if accepted is None else np.where(accepted, found, -1)).reshape(50, count)
    return min(len(set(row) - {-1}) for row in found.tolist())


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

    monkeypatch.setattr("carpediem.core.distinct.race", counted)
    for n, is_raced in ((20_000, True), (2_000_000, False)):
        weights = torch.ones(n, dtype=torch.float64)
        weights[:20] = n / 2  # nine tenths of the mass
        batches = Weights(weights).draw(3, 128, generator)
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
    drawn = distribution.draw(500, 3, generator)
    assert set(drawn.flatten().tolist()) == {0, 1, 4}
    with pytest.raises(ValueError, match=r"batch_size must lie in \[1, 3\].* got 4"):
        distribution.draw(1, 4, generator)


@pytest.mark.parametrize(
    "weights", [[0.0, 0.0], [1.0, -1.0], [1.0, math.nan], [1.0, math.inf], [1e308, 1e308]]
)
def test_weights_that_cannot_be_drawn_from_are_refused(weights):
    with pytest.raises(ValueError, match="weights must be finite and at least 0, not all 0"):
        Weights(torch.tensor(weights, dtype=torch.float64))


@pytest.mark.parametrize(
    "weights", [[0.0, 0.0, 1.0], [1.0, -1.0, 1.0], [1.0, math.nan, 1.0], [1.0, math.inf, 1.0]]
)
def test_weights_of_levels_that_cannot_be_drawn_from_are_refused(weights):
    with pytest.raises(
        ValueError, match="level_weights must be finite and at least 0, not 0 for all samples"
    ):
        Levels(torch.tensor([0, 1, 1, 0]), np.array(weights))


def test_levels_are_integers_with_a_weight_each_whatever_holds_the_weights():
    for bad in ([0, 1, 3], [-1, 0, 1]):
        with pytest.raises(
            ValueError, match=rf"levels must lie in \[0, 3\), .* got {min(bad)} to {max(bad)}"
        ):
            Levels(torch.tensor(bad), np.ones(3))
    with pytest.raises(TypeError, match=r"levels must be integers, got torch\.float32"):
        Levels(torch.tensor([0.0, 1.0]), np.ones(2))
    for weights in ([1, 3], (1.0, 3.0), torch.tensor([1, 3])):
        assert Levels(torch.tensor([0, 1]), weights).probabilities().tolist() == [0.25, 0.75]


@pytest.mark.parametrize("kind", ["uniform", "levels", "weights"])
def test_a_distribution_is_rebuilt_from_its_state(kind):
    distribution = distributions(300)[kind]
    copy = distribution_from_state(distribution.state_dict(), 300, torch.device("cpu"))
    assert torch.equal(distribution.probabilities(), copy.probabilities())
    drawn = [d.draw(50, 7, torch.Generator().manual_seed(1)) for d in (distribution, copy)]
    assert torch.equal(*drawn)


def test_a_distribution_of_another_size_is_refused_naming_both():
    state = distributions(300)["weights"].state_dict()
    with pytest.raises(ValueError, match="holds 300 samples, this selector 301"):
        distribution_from_state(state, 301, torch.device("cpu"))
    with pytest.raises(ValueError, match="must be one of uniform, levels, weights; the state holds 'other'"):
        distribution_from_state({"kind": "other"}, 301, torch.device("cpu"))


def test_an_uncertain_sample_is_drawn_pressure_times_as_often(generator):
    selector = RecencyBias(200, 2, 10, window=2, warm_up=2, pressure=20, schedule="constant")
    everyone, logits = torch.arange(200), torch.zeros(200, 2)
    for label in (0, 1):
        logits[:, 0] = 1.0
        logits[:100, label] = 2.0
        selector.observe(everyone, logits, everyone * 0)
        logits.zero_()
    selector.refresh(2)
    drawn = selector.distribution.draw(10**6, 1, generator)
    ratio = float((drawn < 100).sum() / (drawn >= 100).sum())
    assert ratio == pytest.approx(20, rel=0.02)


def test_a_race_among_few_possible_samples_draws_only_these(generator):
    weights = torch.zeros(100_000, dtype=torch.float64)
    possible = torch.arange(0, 100_000, 500)
    weights[possible] = torch.rand(200, generator=generator, dtype=torch.float64) + 0.1
    drawn = Weights(weights).draw(50, 150, generator)
    assert set(drawn.flatten().tolist()) <= set(possible.tolist())
    assert all(len(set(row)) == 150 for row in drawn.tolist())


def test_a_batch_of_many_samples_takes_no_more_memory_than_a_few_of_its_size(generator):
    weights = Weights(torch.rand(1 << 20, generator=generator) + 1)
    tracemalloc.start()
    try:
        drawn = weights.draw(1, 1 << 15, generator)
        assert tracemalloc.get_traced_memory()[1] < 64 * drawn.nbytes
    finally:
        tracemalloc.stop()
    assert len(drawn.unique()) == 1 << 15


@pytest.mark.parametrize("name", ["weights", "levels", "level_weights"])
def test_a_state_that_lacks_a_part_of_its_distribution_is_refused(name):
    state = distributions(300)["weights" if name == "weights" else "levels"].state_dict()
    del state[name]
    with pytest.raises(ValueError, match=f"must hold '{name}', a tensor, it holds NoneType"):
        distribution_from_state(state, 300, torch.device("cpu"))
