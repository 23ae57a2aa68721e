import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from carpediem import AdaptiveSampler, RandomBatch
from carpediem.core.distribution import Levels, Uniform, Weights
from carpediem.core.draws import lookup
from carpediem.core.draws.lookup import LookedUpEpoch, is_looked_up
from carpediem.core.draws.systematic import systematic_epoch
from reference.epochs import assert_epoch, seeded


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """So small that small data sets have several."""
    monkeypatch.setattr(lookup, "PART", 256)
    monkeypatch.setattr(lookup, "FEWEST_PARTS", 1)


@st.composite
def levels(draw):
    batch_size = draw(st.integers(1, 4))
    n = draw(st.integers(512, 900))
    chosen = torch.randint(0, draw(st.integers(1, 5)), (n,), generator=seeded(draw(st.integers(0, 99))))
    weights = draw(st.lists(st.sampled_from([0.0, 0.01, 0.3, 1.0, 7.0]), min_size=5, max_size=5))
    weights[int(chosen[0])] = 1.0  # something can be drawn
    return Levels(chosen.to(torch.uint8), np.array(weights)), batch_size, draw(st.integers(0, 2**32))


@settings(max_examples=150)
@given(levels())
def test_every_count_is_the_expected_one_rounded_and_batches_are_distinct(case):
    distribution, batch_size, seed = case
    if not is_looked_up(distribution, batch_size):
        return
    parts = dict(systematic_epoch(distribution, batch_size, seed))
    assert len(parts) > 1
    expected = distribution.probabilities().numpy() * distribution.num_samples
    assert_epoch(torch.cat(list(parts.values())), expected, batch_size)


def test_a_part_is_the_same_without_the_parts_before_it():
    distribution = Levels(torch.arange(2000) % 3, np.array([1.0, 4.0, 0.2]))
    parts = dict(systematic_epoch(distribution, 4, 3))
    late = dict(systematic_epoch(distribution, 4, 3, 1000))
    assert sorted(parts) == [0, 64, 256, 512, 768, 1024, 1280, 1536]
    assert sorted(late) == [768, 1024, 1280, 1536]
    for start, drawn in late.items():
        assert torch.equal(drawn, parts[start])


def test_parts_are_whole_batches_and_the_last_takes_what_is_left():
    distribution = Levels(torch.zeros(1000, dtype=torch.uint8), np.array([1.0]))
    parts = [(start, len(drawn)) for start, drawn in systematic_epoch(distribution, 3, 0)]
    assert parts == [(0, 63), (63, 192), (255, 255), (510, 490)]


def test_equal_probabilities_give_a_shuffle_that_differs_between_epochs():
    sampler = AdaptiveSampler(RandomBatch(1000, 2, 3), batch_size=2)
    epochs = [sampler.next_epoch().tolist() for _ in range(3)]
    assert is_looked_up(Uniform(1000), 2)
    for drawn in epochs:
        assert sorted(drawn) == list(range(1000))
    assert len({tuple(drawn) for drawn in epochs}) == 3


def test_expected_counts_are_right_on_average_and_in_every_part():
    n, batch_size, epochs = 1024, 2, 1000
    distribution = Levels(torch.arange(n) % 3, np.array([1.0, 2.5, 0.3]))
    counts, met = torch.zeros(n), torch.zeros(4, 3)
    for seed in range(epochs):
        for start, drawn in systematic_epoch(distribution, batch_size, seed):
            counts += torch.bincount(drawn, minlength=n)
            met[start // 256] += torch.bincount(drawn % 3, minlength=3)
    expected = (distribution.probabilities() * n).float()
    # A count takes two neighbouring values, so that its deviation is at most 1/2.
    assert ((counts / epochs - expected).abs() < 4.5 * 0.5 / epochs**0.5).all()
    share = met / met.sum(dim=1, keepdim=True)
    assert (share - share.mean(dim=0)).abs().max() < 0.005


def test_who_gets_one_copy_more_is_left_to_chance():
    """Two samples of a level are extra together as often as in a random choice of that many."""
    n, epochs = 600, 1500
    distribution = Levels(torch.arange(n) % 2, np.array([1.0, 2.0]))
    together = torch.zeros(299)
    for seed in range(epochs):
        drawn = torch.cat([part for _, part in systematic_epoch(distribution, 2, seed)])
        extra = torch.bincount(drawn, minlength=n)[1::2] == 2
        assert extra.sum() in (99, 100, 101)
        together += (extra[1:] & extra[:-1]).float()
    wanted = epochs * 100 * 99 / (300 * 299)
    assert (together - wanted).abs().max() < 5 * wanted**0.5


def test_a_large_data_set_has_its_first_batch_when_one_part_is_made(monkeypatch):
    monkeypatch.undo()  # the parts are as large as they are
    made = []

    def noted(self, position=0, parts=LookedUpEpoch.parts):
        for start, drawn in parts(self, position):
            made.append(start)
            yield start, drawn

    monkeypatch.setattr(LookedUpEpoch, "parts", noted)
    sampler = AdaptiveSampler(RandomBatch(2_500_001, 2, 1), batch_size=128)
    stream = iter(sampler)
    drawn = [next(stream) for _ in range(128)]
    assert made == [0]
    drawn += stream
    assert made == [0, 1 << 18, 1 << 20]
    assert torch.equal(torch.tensor(drawn).sort().values, torch.arange(2_500_001))


def test_a_sampler_resumes_inside_a_part():
    def sampler():
        return AdaptiveSampler(RandomBatch(1000, 2, 3), batch_size=3, seed=5)

    whole = list(sampler())
    for position in (0, 3, 254, 255, 700, 999):
        resumed = sampler()
        resumed.selector.refresh(0)
        resumed.load_state_dict(resumed.state_dict(position))
        assert list(resumed) == whole[position:]


def test_what_would_meet_too_often_or_is_too_small_is_not_looked_up():
    level = torch.zeros(1000, dtype=torch.uint8)
    level[0] = 1
    assert is_looked_up(Levels(level, np.array([1.0, 141.0])), 2)
    assert not is_looked_up(Levels(level, np.array([1.0, 144.0])), 2)  # in every fourth batch
    assert not is_looked_up(Levels(level[:255], np.array([1.0, 1.0])), 2)
    assert not is_looked_up(Uniform(10**9), 5000)


def test_levels_that_are_empty_or_tiny_get_what_they_are_due():
    random = np.random.default_rng(0)
    counts = random.choice([0, 0, 0, 1, 5, 2000], 900)
    levels = torch.from_numpy(np.repeat(np.arange(900), counts))
    distribution = Levels(levels, random.random(900) + 0.1)
    assert is_looked_up(distribution, 4)
    drawn = torch.cat([part for _, part in systematic_epoch(distribution, 4, 7)])
    assert_epoch(drawn, distribution.probabilities().numpy() * len(levels), 4)


def test_shuffles_come_in_parts_sooner_than_other_epochs_and_weights_of_their_own_never(monkeypatch):
    monkeypatch.setattr(lookup, "FEWEST_PARTS", 4)
    level = torch.zeros(1024, dtype=torch.uint8)
    assert is_looked_up(Uniform(256), 2)
    assert not is_looked_up(Levels(level[:1023], np.ones(1)), 2)
    assert is_looked_up(Levels(level, np.ones(1)), 2)
    assert not is_looked_up(Weights(torch.rand(1024) + 1), 2)
