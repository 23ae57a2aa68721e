# ruff: noqa: NPY002 (that numpy's global generator stays as it is can only be seen by asking it)
import gc
import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import BatchSampler, DataLoader

from carpediem import (
    ActiveBias,
    AdaptiveSampler,
    Indexed,
    OnlineBatch,
    RandomBatch,
    RecencyBias,
    WeightedBatch,
)
from carpediem.core.distribution import Uniform, Weights
from carpediem.core.draws.candidates import Candidates
from carpediem.core.draws.independent import FIRST_CHUNK, IndependentDraws
from carpediem.core.draws.lookup import LookedUpEpoch
from reference.selectors import SELECTORS, observe_epoch, steps

DRAWS = ("independent", "systematic")
every_selector = pytest.mark.parametrize("make", SELECTORS, ids=lambda make: make.__name__)
both_draws = pytest.mark.parametrize("draws", DRAWS)


@both_draws
@every_selector
def test_next_epoch_equals_the_iterated_stream(make, draws):
    one, two = (AdaptiveSampler(make(), batch_size=8, seed=2, draws=draws) for _ in range(2))
    for epoch in range(6):
        iterated = list(one)
        assert iterated == two.next_epoch().tolist()
        assert all(type(index) is int for index in iterated)
        for sampler in (one, two):
            observe_epoch(sampler.selector, epoch)


@both_draws
@given(
    num_samples=st.integers(1, 80),
    batch_size=st.integers(1, 80),
    world_size=st.integers(1, 4),
    data=st.data(),
)
def test_the_length_is_honest_and_every_batch_is_distinct(draws, num_samples, batch_size, world_size, data):
    batch_size = min(batch_size * world_size, num_samples // world_size * world_size)
    if batch_size == 0:
        return
    weights = data.draw(st.lists(st.integers(1, 9), min_size=num_samples, max_size=num_samples))
    streams = []
    for rank in range(world_size):
        selector = WeightedBatch(num_samples)
        selector.set_weights(torch.tensor(weights))
        sampler = AdaptiveSampler(
            selector, batch_size=batch_size, draws=draws, rank=rank, world_size=world_size
        )
        streams.append(list(sampler))
        assert len(streams[-1]) == len(sampler)
    share, tail = batch_size // world_size, num_samples % batch_size
    # What is left out is all that would let some ranks make a step, or a full one, that others do not.
    lengths = list(map(len, streams))
    assert len({length // share for length in lengths}) == 1
    assert len({-(-length // share) for length in lengths}) == 1
    uneven = tail < world_size or tail > batch_size - world_size
    assert sum(lengths) == num_samples - (tail % world_size if uneven else 0)
    for start in range(0, len(streams[0]), share):
        batch = [index for stream in streams for index in stream[start : start + share]]
        assert len(set(batch)) == len(batch)


@both_draws
@every_selector
def test_torchs_default_device_changes_nothing(make, draws):
    usual, other = (AdaptiveSampler(make(), batch_size=8, draws=draws) for _ in range(2))
    for epoch in range(4):
        with torch.device("meta"):  # stands for any but the selector's
            drawn = list(other)
        assert drawn == list(usual)
        for sampler in (usual, other):
            observe_epoch(sampler.selector, epoch)


@every_selector
def test_torchs_default_type_leaves_that_of_the_state(make):
    def types(selector):
        return {name: value.dtype for name, value in selector.state_dict().items() if torch.is_tensor(value)}

    usual, before = make(), torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        selector = make()
        for epoch in range(3):
            for one in (selector, usual):
                one.refresh(epoch)
                observe_epoch(one, epoch)
        assert types(selector) == types(usual)
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize("drop_last", [False, True])
def test_loaders_of_all_ranks_make_as_many_steps(drop_last):
    # Seven of eight are left for the last batch: a full share for the first rank, and none for the second.
    def steps(rank):
        sampler = AdaptiveSampler(RandomBatch(1799, 2, 2), batch_size=8, rank=rank, world_size=2)
        loader = DataLoader(Indexed(range(1799)), batch_size=4, sampler=sampler, drop_last=drop_last)
        assert len(loader) == len(list(loader))
        return len(loader)

    assert steps(0) == steps(1) == 224 + (not drop_last)


@both_draws
@pytest.mark.parametrize("world_size", [2, 4])
@every_selector
def test_the_ranks_together_give_the_single_stream_batch_for_batch(make, world_size, draws):
    single = AdaptiveSampler(make(), batch_size=8, seed=5, draws=draws)
    ranks = [
        AdaptiveSampler(make(), batch_size=8, seed=5, draws=draws, rank=rank, world_size=world_size)
        for rank in range(world_size)
    ]
    for epoch in range(5):
        whole = single.next_epoch()
        parts = [list(sampler) for sampler in ranks]
        share = 8 // world_size
        for number, batch in enumerate(whole.split(8)):
            for rank, part in enumerate(parts):
                assert part[number * share : (number + 1) * share] == batch[rank::world_size].tolist()
        for sampler in (single, *ranks):
            observe_epoch(sampler.selector, epoch)


@both_draws
def test_the_last_batch_of_several_ranks_is_that_of_one_less_what_does_not_go_round(draws):
    weights = torch.arange(1.0, 86)  # of 85 samples, so that five are left for the last batch
    for seed in range(20):
        parts = []
        for rank, world_size in ((0, 1), (0, 4), (1, 4), (2, 4), (3, 4)):
            selector = WeightedBatch(85)
            selector.set_weights(weights)
            place = {"rank": rank, "world_size": world_size}
            parts.append(list(AdaptiveSampler(selector, batch_size=8, seed=seed, draws=draws, **place)))
        single, *ranks = parts
        assert [part[-1] for part in ranks] == single[80:84]


@both_draws
@every_selector
def test_no_global_generator_is_read_or_moved(make, draws):
    streams = []
    before = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        for seed in (1, 2):
            torch.manual_seed(seed)
            np.random.seed(seed)
            random.seed(seed)
            states = torch.get_rng_state(), np.random.get_state(), random.getstate()
            sampler = AdaptiveSampler(make(), batch_size=8, seed=2, draws=draws)
            epochs = []
            for epoch in range(5):
                epochs.append(list(sampler))
                observe_epoch(sampler.selector, epoch)
            streams.append(epochs)
            assert torch.equal(states[0], torch.get_rng_state())
            assert all(np.array_equal(a, b) for a, b in zip(states[1], np.random.get_state(), strict=True))
            assert states[2] == random.getstate()
        assert streams[0] == streams[1]
    finally:
        torch.set_rng_state(before[0])
        np.random.set_state(before[1])
        random.setstate(before[2])


def test_without_a_word_on_it_every_method_draws_systematically_but_weights_of_ones_own():
    for make in (RandomBatch, RecencyBias, OnlineBatch, ActiveBias):
        selector = make(20, 4, 15)
        assert AdaptiveSampler(selector, batch_size=5).draws == "systematic"
        assert AdaptiveSampler(selector, batch_size=5, draws="independent").draws == "independent"
    weighted = WeightedBatch(20)
    weighted.set_weights((torch.arange(20) < 6).float())
    sampler = AdaptiveSampler(weighted, batch_size=5)
    assert sampler.draws == "independent"
    assert max(sampler) < 6


def test_a_distribution_that_says_how_it_is_drawn_is_drawn_so():
    class InOrder(Uniform):
        def draw_epoch(self, draw, batch_size, seed, position=0):
            for start in range(position // batch_size * batch_size, self.num_samples, batch_size):
                yield start, torch.arange(start, min(start + batch_size, self.num_samples))

    class Ordered(RandomBatch):
        def build(self, epoch):
            return InOrder(self.num_samples)

    for draws in DRAWS:
        sampler = AdaptiveSampler(Ordered(14, 2, 2), batch_size=4, draws=draws)
        assert list(sampler) == list(range(14))
        sampler.load_state_dict(sampler.state_dict(6))
        assert list(sampler) == list(range(6, 14))
        halves = [
            list(AdaptiveSampler(Ordered(14, 2, 1), batch_size=4, draws=draws, rank=r, world_size=2))
            for r in range(2)
        ]
        assert halves == [list(range(0, 14, 2)), list(range(1, 14, 2))]


@both_draws
def test_when_the_selector_is_refreshed_no_table_of_an_earlier_epoch_is_left(draws):
    def tables():
        return sum(type(thing) in (Candidates, LookedUpEpoch) for thing in gc.get_objects())

    alive = []

    class Skewed(RandomBatch):
        def build(self, epoch):
            alive.append(tables())
            return Weights(torch.arange(self.num_samples) % 7 + 1.0)

    sampler = AdaptiveSampler(Skewed(3000, 2, 3), batch_size=50, draws=draws)
    list(sampler)
    stream = iter(sampler)
    next(stream)
    assert tables() == (draws == "independent")  # a systematic epoch of this size needs none
    stream = iter(sampler)  # the one before is left halfway
    next(stream)
    assert alive == [0, 0, 0]


def test_seeds_and_epochs_have_streams_of_their_own():
    streams = set()
    for seed in range(20):
        sampler = AdaptiveSampler(RandomBatch(40, 2, 20), batch_size=8, seed=seed)
        streams |= {tuple(sampler) for _ in range(20)}
    assert len(streams) == 400


def test_a_batch_sampler_gets_whole_batches_and_each_iteration_is_the_next_epoch():
    # BatchSampler asks the sampler's iterator for its iterator again at every batch.
    sampler = AdaptiveSampler(RandomBatch(10, 2, 3), batch_size=4)
    batches = BatchSampler(sampler, 4, drop_last=False)
    epochs = [list(batches) for _ in range(3)]
    assert [[len(batch) for batch in epoch] for epoch in epochs] == [[4, 4, 2]] * 3
    assert len({str(epoch) for epoch in epochs}) == 3
    assert sampler.epoch == 3


def test_the_first_batch_of_a_large_data_set_comes_before_the_others_are_drawn(monkeypatch):
    drawn = []

    def counted(self, count, batch_size, generator, batches=IndependentDraws.batches):
        drawn.append(count * batch_size)
        return batches(self, count, batch_size, generator)

    monkeypatch.setattr(IndependentDraws, "batches", counted)
    sampler = AdaptiveSampler(RandomBatch(10**6, 2, 1), batch_size=128, draws="independent")
    stream = iter(sampler)
    first = [next(stream) for _ in range(128)]
    assert len(set(first)) == 128
    assert sum(drawn) <= FIRST_CHUNK
    for _ in range(200_000):
        next(stream)
    assert sum(drawn) < 400_000


@pytest.mark.parametrize("num_samples", [FIRST_CHUNK - 1, FIRST_CHUNK, FIRST_CHUNK + 1, 30_001])
@pytest.mark.parametrize("batch_size", [1, 100, 128, 3000])
def test_batches_stay_distinct_across_the_parts_that_are_drawn_at_a_time(num_samples, batch_size):
    selector = RecencyBias(num_samples, 2, 4, window=1, warm_up=1)
    sampler = AdaptiveSampler(selector, batch_size=batch_size, draws="independent")
    drawn = torch.tensor(list(sampler))
    assert len(drawn) == num_samples
    full = drawn[: num_samples // batch_size * batch_size].reshape(-1, batch_size).sort(dim=1).values
    assert (full.diff(dim=1) > 0).all()
    assert len(drawn[full.numel() :].unique()) == num_samples % batch_size


def test_a_refresh_happens_when_an_iteration_begins_and_at_no_other_time():
    selector = RandomBatch(10, 2, 5)
    sampler = AdaptiveSampler(selector, batch_size=5)
    iter(sampler)
    sampler.set_epoch(0)
    assert selector.epoch == -1
    list(sampler)
    assert selector.epoch == 0
    sampler.set_epoch(1)
    assert selector.epoch == 0
    next(iter(sampler))
    assert selector.epoch == 1


def test_setting_the_epoch_is_harmless_however_often_it_is_done():
    plain, told = (AdaptiveSampler(RandomBatch(20, 2, 5), batch_size=5) for _ in range(2))
    for epoch in range(5):
        for _ in range(3):
            told.set_epoch(epoch)
        stream, again = iter(plain), iter(told)
        first = [next(again) for _ in range(7)]
        told.set_epoch(epoch)
        assert first + list(again) == list(stream)


def test_an_epoch_that_is_set_while_it_is_drawn_can_be_begun_again():
    plain, told = (AdaptiveSampler(RandomBatch(20, 2, 5), batch_size=5) for _ in range(2))
    epochs = [list(plain) for _ in range(3)]
    for epoch in range(3):
        assert next(iter(told)) == epochs[epoch][0]
        told.set_epoch(epoch)
        assert told.state_dict()["position"] == 1
        assert list(told) == epochs[epoch]
        assert told.state_dict()["epoch"] == epoch + 1


def test_a_share_can_be_named_after_the_sampler_was_made():
    early = AdaptiveSampler(RandomBatch(20, 2, 5), batch_size=4, rank=1, world_size=2)
    late = AdaptiveSampler(RandomBatch(20, 2, 5), batch_size=4)
    late.share(1, 2)
    assert len(late) == len(early) == 10
    assert list(late) == list(early)
    with pytest.raises(ValueError, match="batch_size must be a multiple of world_size = 3"):
        late.share(0, 3)
    assert (late.rank, late.world_size) == (1, 2)


def test_setting_the_epoch_skips_epochs():
    plain, told = (AdaptiveSampler(RandomBatch(20, 2, 5), batch_size=5) for _ in range(2))
    epochs = [list(plain) for _ in range(4)]
    told.set_epoch(3)
    assert told.epoch == 3
    assert list(told) == epochs[3]


def test_an_abandoned_epoch_is_followed_by_the_next_one():
    plain, other = (AdaptiveSampler(RandomBatch(20, 2, 5), batch_size=5) for _ in range(2))
    epochs = [list(plain) for _ in range(2)]
    next(iter(other))
    assert list(other) == epochs[1]


def test_an_epoch_out_of_order_is_refused_by_the_iteration_and_nothing_moves():
    selector = RandomBatch(20, 2, 5)
    sampler = AdaptiveSampler(selector, batch_size=5)
    for _ in range(3):
        list(sampler)
    sampler.set_epoch(1)
    with pytest.raises(ValueError, match=r"epoch must come after epoch 2, .* got 1"):
        list(sampler)
    assert selector.epoch == 2
    sampler.set_epoch(3)
    assert len(list(sampler)) == 20


def test_an_epoch_beyond_the_last_is_refused():
    sampler = AdaptiveSampler(RandomBatch(20, 2, epochs=1), batch_size=5)
    list(sampler)
    with pytest.raises(ValueError, match="epoch must be less than epochs = 1, got 1"):
        list(sampler)


def test_weights_set_during_an_epoch_count_from_the_next_one():
    selector = WeightedBatch(10)
    sampler = AdaptiveSampler(selector, batch_size=2)
    stream = iter(sampler)
    first = [next(stream) for _ in range(2)]
    selector.set_weights((torch.arange(10) >= 8).float())
    rest = list(stream)
    twin = AdaptiveSampler(WeightedBatch(10), batch_size=2)
    assert first + rest == list(twin)
    assert set(sampler) == {8, 9}


def test_observations_made_during_an_epoch_do_not_change_it():
    selectors = [RecencyBias(60, 4, 8, window=1, warm_up=1) for _ in range(2)]
    samplers = [AdaptiveSampler(selector, batch_size=8) for selector in selectors]
    for epoch in range(3):
        streams = [iter(sampler) for sampler in samplers]
        lazy = []
        for step in steps(selectors[0], epoch):
            lazy += [next(streams[0]) for _ in range(len(step[0]))]
            selectors[0].observe(*step)
        eager = list(streams[1])
        observe_epoch(selectors[1], epoch)
        assert lazy == eager


@pytest.mark.parametrize(
    ("samples", "batch", "world"), [(1001, 100, 4), (41, 20, 2), (103, 100, 4), (100, 20, 4)]
)
def test_all_ranks_make_the_same_number_of_steps(samples, batch, world):
    steps = set()
    drawn = []
    for rank in range(world):
        selector = RandomBatch(samples, 3, 2)
        sampler = AdaptiveSampler(selector, batch_size=batch, rank=rank, world_size=world)
        indices = list(sampler)
        assert len(indices) == len(sampler)
        drawn += indices
        steps.add(-(-len(indices) // (batch // world)))
    assert len(steps) == 1
    tail = samples % batch
    assert len(set(drawn)) == samples - (tail if tail < world else 0)


def test_a_sampler_shows_how_it_was_built():
    sampler = AdaptiveSampler(RandomBatch(12, 3, 4), batch_size=4, seed=7, rank=1, world_size=2)
    named = repr(sampler)
    assert eval(named) is not sampler
    assert repr(eval(named)) == named
