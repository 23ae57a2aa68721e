import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from carpediem import AdaptiveSampler, RandomBatch, RecencyBias, WeightedBatch
from carpediem.core.distribution import Levels, Uniform, Weights
from carpediem.core.draws import systematic
from carpediem.core.draws.systematic import systematic_epoch
from reference.epochs import assert_distinct, assert_epoch


def epoch_of(distribution, batch_size, seed):
    """The whole epoch."""
    return torch.cat([part for _, part in systematic_epoch(distribution, batch_size, seed)])


def room_for(expected, full, tail):
    """Expected counts for which there is room in `full` batches and one of `tail` samples."""
    fitted = capped(expected, full + (tail > 0), len(expected))
    excess = sum(max(e - full, 0) for e in fitted)
    if excess > tail:
        heavy = [e > full for e in fitted]
        rest = len(expected) - full * sum(heavy) - tail
        light = sum(e for e, h in zip(fitted, heavy, strict=True) if not h)
        scale = rest / light if light else 0.0
        others = iter(capped([e * scale for e, h in zip(fitted, heavy, strict=True) if not h], full, rest))
        fitted = [
            full + (e - full) * tail / excess if h else next(others)
            for e, h in zip(fitted, heavy, strict=True)
        ]
    return np.array(fitted)


def capped(expected, cap, total):
    expected, fixed = list(expected), set()
    while True:
        over = [i for i, e in enumerate(expected) if i not in fixed and e > cap]
        if not over:
            return expected
        fixed.update(over)
        rest = sum(e for i, e in enumerate(expected) if i not in fixed)
        factor = (total - cap * len(fixed)) / rest if rest else 0
        expected = [cap if i in fixed else e * factor for i, e in enumerate(expected)]


@st.composite
def weighted(draw):
    """Weights of few or many sizes, and a batch size that leaves a short last batch as often as not."""
    n = draw(st.integers(1, 70))
    pressure = draw(st.sampled_from([1.5, 10.0, 100.0, 1e6]))
    exponents = draw(st.lists(st.integers(0, 6) | st.just(6), min_size=n, max_size=n))
    weights = torch.tensor([pressure ** (-e / 6) for e in exponents], dtype=torch.float64)
    return weights, draw(st.integers(1, n)), draw(st.integers(0, 2**32))


@settings(max_examples=300)
@given(weighted())
def test_every_count_is_the_expected_one_rounded_up_or_down_and_batches_are_distinct(case):
    weights, batch_size, seed = case
    n = len(weights)
    drawn = epoch_of(Weights(weights), batch_size, seed)
    expected = (weights / weights.sum() * n).numpy()
    full, tail = divmod(n, batch_size)
    assert_epoch(drawn, room_for(expected, full, tail), batch_size)
    if expected.max() <= full + (tail > 0) and (expected - full).clip(min=0).sum() <= tail:
        assert_epoch(drawn, expected, batch_size)


def test_the_same_holds_in_thousands_of_cases_with_samples_that_are_too_heavy_and_some_that_weigh_nothing():
    random, crowded = np.random.default_rng(0), 0
    for seed in range(3000):
        n = int(random.integers(1, 90))
        batch_size = int(random.integers(1, min(n, 30) + 1))
        level_weights = np.append(random.choice([0.0, 1e-3, 0.2, 1.0, 5.0, 60.0], 3), 1.0)
        levels = random.integers(0, 4, n)
        levels[:batch_size] = 3  # enough of them can be drawn
        distribution = Levels(torch.from_numpy(levels), level_weights)
        drawn = epoch_of(distribution, batch_size, seed)
        expected, full, tail = distribution.probabilities().numpy() * n, *divmod(n, batch_size)
        assert_epoch(drawn, room_for(expected, full, tail), batch_size)
        assert (level_weights[levels[drawn.numpy()]] > 0).all()
        crowded += expected.max() > full
    assert 300 < crowded < 2700


@settings(max_examples=60)
@given(st.integers(2, 400), st.integers(1, 60), st.integers(0, 10**6))
def test_the_same_holds_for_levels_in_larger_epochs(n, batch_size, seed):
    batch_size = min(batch_size, n)
    generator = torch.Generator().manual_seed(seed)
    distribution = Levels(torch.randint(0, 4, (n,), generator=generator), np.array([1.0, 0.5, 0.1, 0.01]))
    drawn = epoch_of(distribution, batch_size, seed)
    expected = room_for(distribution.probabilities().numpy() * n, *divmod(n, batch_size))
    assert_epoch(drawn, expected, batch_size)


@given(st.integers(1, 200), st.integers(0, 1000))
def test_with_equal_probabilities_an_epoch_is_a_shuffle(n, seed):
    assert sorted(epoch_of(Uniform(n), min(3, n), seed).tolist()) == list(range(n))
    equal = Weights(torch.full((n,), 0.02, dtype=torch.float64))
    assert sorted(epoch_of(equal, min(3, n), seed).tolist()) == list(range(n))


@pytest.mark.filterwarnings("ignore:RecencyBias has not observed")
def test_random_batch_and_pressure_1_give_permutations_that_differ_between_epochs():
    for selector in (RandomBatch(50, 2, 4), RecencyBias(50, 2, 4, window=1, warm_up=1, pressure=1)):
        sampler = AdaptiveSampler(selector, batch_size=8, draws="systematic")
        epochs = [sampler.next_epoch() for _ in range(4)]
        for drawn in epochs:
            assert sorted(drawn.tolist()) == list(range(50))
        assert len({tuple(drawn.tolist()) for drawn in epochs}) == 4


def test_random_batch_shuffles_unless_told_to_draw_independently():
    shuffled = AdaptiveSampler(RandomBatch(300, 2, 1), batch_size=10).next_epoch()
    drawn = AdaptiveSampler(RandomBatch(300, 2, 1, draws="independent"), batch_size=10).next_epoch()
    assert len(shuffled.unique()) == 300
    assert 0.55 < len(drawn.unique()) / 300 < 0.72


def test_expected_counts_are_right_on_average_and_in_every_batch():
    weights = torch.tensor([8, 5, 3, 3, 2, 1, 1, 1, 0.5, 0.3, 0.1, 0.1, 0], dtype=torch.float64)
    n, batch_size, epochs = len(weights), 3, 3000
    expected = weights / weights.sum() * n
    assert expected.max() <= n // batch_size + 1
    counts = torch.zeros(n)
    light = torch.zeros(5)
    for seed in range(epochs):
        drawn = epoch_of(Weights(weights), batch_size, seed)
        counts += torch.bincount(drawn, minlength=n)
        for number, batch in enumerate(drawn.split(batch_size)):
            light[number] += ((batch >= 5) & (batch <= 7)).sum()
    wanted = torch.from_numpy(room_for(expected.numpy(), *divmod(n, batch_size))).float()
    # A count takes two neighbouring values, so that its deviation is at most 1/2.
    assert ((counts / epochs - wanted).abs() < 4.5 * 0.5 / epochs**0.5).all()
    assert counts[-1] == 0
    # A light sample is as likely in one batch as in the next; the last one holds a single sample.
    share = light / light.sum()
    assert (share[:4] - share[:4].mean()).abs().max() < 0.02
    # The heaviest sample is in each of the five batches every sixth time, and leaves no place in the last one then.
    assert share[4] == pytest.approx((1 - (8 / 25 * 13 - 4)) / 13, abs=0.02)


def test_a_sample_expected_more_often_than_there_are_batches_is_in_each_of_them():
    weights = torch.ones(20, dtype=torch.float64)
    weights[7] = 1000.0
    drawn = epoch_of(Weights(weights), 5, 1)
    assert (drawn.reshape(4, 5) == 7).sum(dim=1).tolist() == [1, 1, 1, 1]
    assert_epoch(drawn, np.where(np.arange(20) == 7, 4.0, 16 / 19), 5)


def test_a_batch_of_more_than_half_of_the_samples_still_favours_the_likely():
    weights = torch.ones(100, dtype=torch.float64)
    weights[:20] = 9.0  # expected 3.5 times each; there are two batches, and the second has room for 40
    drawn = epoch_of(Weights(weights), 60, 1)
    counts = torch.bincount(drawn, minlength=100)
    assert counts[:20].tolist() == [2] * 20
    assert counts[20:].sum() == 60
    assert_epoch(drawn, np.where(np.arange(100) < 20, 2.0, 0.75), 60)


@settings(max_examples=300)
@given(
    st.integers(1, 60),
    st.integers(1, 60),
    st.integers(0, 60),
    st.sampled_from([1.0, 1e-5, 1e-300]),
    st.integers(0, 99),
)
def test_as_many_as_a_batch_holds_are_enough_however_small_the_other_weights(b, more, rest, tiny, seed):
    n = b + more
    weights = torch.zeros(n, dtype=torch.float64)
    weights[:b] = torch.rand(b, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.1
    weights[b : b + rest] = tiny
    drawn = epoch_of(Weights(weights), b, seed)
    assert len(drawn) == n
    assert drawn.max() < min(b + rest, n)
    assert_distinct(drawn, b)


def test_as_many_samples_of_positive_weight_as_a_batch_holds_are_enough_and_fewer_are_refused():
    selector = WeightedBatch(200, epochs=2)
    sampler = AdaptiveSampler(selector, batch_size=12, draws="systematic")
    selector.set_weights((torch.arange(200) < 12).float())
    for batch in sampler.next_epoch().split(12):
        assert len(batch.unique()) == len(batch)
        assert batch.max() < 12
    selector.set_weights((torch.arange(200) < 11).float())
    with pytest.raises(ValueError, match=r"batch_size must lie in \[1, 11\], .* got 12"):
        sampler.next_epoch()


def test_every_batch_is_as_likely_for_a_sample():
    weights = torch.ones(43, dtype=torch.float64)
    weights[:5] = 2.5
    probabilities, epochs = weights / weights.sum(), 3000
    met, counts = torch.zeros(9), torch.zeros(43)
    for seed in range(epochs):
        drawn = epoch_of(Weights(weights), 5, seed)  # eight whole batches, and one of three samples
        counts += torch.bincount(drawn, minlength=43)
        for number, batch in enumerate(drawn.split(5)):
            met[number] += (batch < 5).sum()
    assert ((counts / epochs - probabilities * 43).abs() < 4.5 * 0.5 / epochs**0.5).all()
    share = met / met.sum()
    assert (share[:8] - share[:8].mean()).abs().max() < 0.006
    assert share[8] == pytest.approx(3 / 43, abs=0.01)


def test_pairs_meet_in_more_than_one_batch_about_as_often_as_the_decision_says():
    """docs/decisions/0009: of the pairs that meet in an epoch of 2,000 samples, about a fifth meets again."""
    n, batch_size = 2000, 50
    weights = 100.0 ** -torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    drawn = epoch_of(Weights(weights), batch_size, 0).reshape(-1, batch_size).sort(dim=1).values
    one, other = torch.triu_indices(batch_size, batch_size, 1)
    met = (drawn[:, one] * n + drawn[:, other]).flatten().unique(return_counts=True)[1]
    assert 0.1 < (met > 1).double().mean() < 0.3


def test_weights_that_are_too_small_beside_others_leave_batches_distinct():
    weights = torch.tensor([1e300, 1e300, 1e-200, 1e-200], dtype=torch.float64)
    for seed in range(20):
        epoch = epoch_of(Weights(weights), 3, seed)
        assert len(epoch[:3].unique()) == 3


@pytest.mark.parametrize("offset", [0.0, 1e-12, 0.5])
def test_what_rounding_leaves_over_goes_to_no_sample_of_weight_0(monkeypatch, offset):
    """Sums that drift as those of many millions do."""
    weights = torch.zeros(600)
    weights[::2] = 1.0
    distribution = Weights(weights)
    added_up = torch.Tensor.cumsum_
    monkeypatch.setattr(torch.Tensor, "cumsum_", lambda values, dim: added_up(values, dim).mul_(1 - 5e-4))
    monkeypatch.setattr(systematic, "uniform", lambda count, generator: np.full(count, offset))
    for seed in range(8):
        epoch = epoch_of(distribution, 6, seed)
        assert not (epoch % 2).any()
        assert ((epoch.bincount(minlength=600) - 2 * weights).abs() <= (offset < 0.5)).all()
