"""A state taken anywhere and loaded into new objects: the same indices from there on."""

import io
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from carpediem import ActiveBias, AdaptiveSampler, OnlineBatch, RandomBatch, RecencyBias, WeightedBatch
from carpediem.testing import same_state
from reference.selectors import CLASSES, EPOCHS, SAMPLES, SELECTORS, observe_epoch, steps

BATCH = 8
every_selector = pytest.mark.parametrize("make", SELECTORS, ids=lambda make: make.__name__)
both_draws = pytest.mark.parametrize("draws", ["independent", "systematic"])


def through_torch(state):
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=True)


def through_safetensors(state):
    """Tensors as tensors, everything else as JSON in the header."""
    tensors = {name: value for name, value in state.items() if isinstance(value, torch.Tensor)}
    plain = {name: value for name, value in state.items() if name not in tensors}
    stored = save(tensors, metadata={"plain": json.dumps(plain)})
    length = int.from_bytes(stored[:8], "little")
    header = json.loads(stored[8 : 8 + length])
    return {**load(stored), **json.loads(header["__metadata__"]["plain"])}


WAYS = pytest.mark.parametrize("way", [through_torch, through_safetensors], ids=lambda way: way.__name__)


def stop_and_resume(make, draws, way, epoch, position, more=3, **ranks):
    """Trains to a position of an epoch, saves, loads, and compares the rest and the epochs after it."""
    selector = make()
    sampler = AdaptiveSampler(selector, batch_size=BATCH, seed=7, draws=draws, **ranks)
    for before in range(epoch):
        list(sampler)
        observe_epoch(selector, before)
    stream = iter(sampler)
    for _ in range(position // sampler.world_size):
        next(stream)
    some = list(steps(selector, epoch))
    for step in some[: position // BATCH]:
        selector.observe(*step)
    saved = way(selector.state_dict()), way(sampler.state_dict())

    copy = make()
    copied = AdaptiveSampler(copy, batch_size=BATCH, seed=0, draws=draws, **ranks)
    copied.load_state_dict(saved[1])
    copy.load_state_dict(saved[0])
    assert same_state(saved[0], copy.state_dict())
    assert saved[1] == copied.state_dict() == sampler.state_dict()

    if position == SAMPLES:
        assert list(stream) == []
        assert saved[1]["epoch"] == epoch + 1
    else:
        assert saved[1]["epoch"] == (epoch if position else sampler.epoch)
        assert saved[1]["position"] == position
        rest = list(stream)
        assert list(copied) == rest
        assert len(rest) == len(copied) - position // sampler.world_size
    for step in some[position // BATCH :]:
        selector.observe(*step)
        copy.observe(*step)
    for later in range(epoch + 1, min(epoch + 1 + more, EPOCHS)):
        assert list(sampler) == list(copied)
        assert torch.equal(selector.distribution.probabilities(), copy.distribution.probabilities())
        observe_epoch(selector, later)
        observe_epoch(copy, later)


@WAYS
@both_draws
@every_selector
def test_a_resumed_training_draws_the_same_indices(make, draws, way):
    for epoch, position in ((0, 0), (1, 16), (2, 19), (3, 56), (4, 59), (4, 60), (5, 1)):
        stop_and_resume(make, draws, way, epoch, position)


@both_draws
@every_selector
def test_a_resumed_rank_draws_the_same_indices(make, draws):
    for rank in (0, 1):
        for epoch, position in ((0, 16), (4, 22), (5, 32)):
            stop_and_resume(make, draws, through_torch, epoch, position, more=1, rank=rank, world_size=2)


@both_draws
@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1), (2, 4), (4, 1)])
def test_a_training_resumes_on_another_number_of_ranks(first, second, draws):
    def ranks(world_size):
        return [
            AdaptiveSampler(
                RecencyBias(SAMPLES, 4, EPOCHS, window=2, warm_up=2),
                batch_size=BATCH,
                seed=7,
                draws=draws,
                rank=rank,
                world_size=world_size,
            )
            for rank in range(world_size)
        ]

    def deal(samplers, streams, batches):
        """The next global batches, put together from the ranks' shares."""
        share, out = BATCH // len(samplers), []
        for _ in range(batches):
            parts = [[index for _, index in zip(range(share), stream, strict=False)] for stream in streams]
            batch = [None] * sum(map(len, parts))
            for rank, part in enumerate(parts):
                batch[rank :: len(parts)] = part
            out.append(batch)
        return out

    single = ranks(1)[0]
    before, after = ranks(first), ranks(second)
    for epoch in range(3):
        for sampler in (single, *before):
            list(sampler)
            observe_epoch(sampler.selector, epoch)
    whole = [batch.tolist() for batch in torch.tensor(list(single)).split(BATCH)]
    streams = [iter(sampler) for sampler in before]
    begun = deal(before, streams, 3)
    state = before[-1].state_dict(), before[-1].selector.state_dict()
    assert state[0]["position"] == 3 * BATCH
    for sampler in after:
        sampler.load_state_dict(state[0])
        sampler.selector.load_state_dict(state[1])
    assert begun + deal(after, [iter(sampler) for sampler in after], 5) == whole


def test_a_position_inside_a_batch_that_the_ranks_cannot_share_is_refused():
    sampler = AdaptiveSampler(RandomBatch(60, 4, 8), batch_size=8)
    stream = iter(sampler)
    for _ in range(11):
        next(stream)
    pair = AdaptiveSampler(RandomBatch(60, 4, 8), batch_size=8, world_size=2)
    with pytest.raises(ValueError, match=r"multiple of world_size = 2, the state holds 11"):
        pair.load_state_dict(sampler.state_dict())


@both_draws
@pytest.mark.parametrize("position", [0, 1, 4095, 4096, 4097, 4100, 20_481, 29_999])
def test_a_large_epoch_resumes_at_any_of_the_parts_that_are_drawn_at_a_time(position, draws):
    make = lambda: WeightedBatch(30_000)  # noqa: E731
    sampler = AdaptiveSampler(make(), batch_size=100, seed=1, draws=draws)
    stream = iter(sampler)
    for _ in range(position):
        next(stream)
    copied = AdaptiveSampler(make(), batch_size=100, draws=draws)
    copied.selector.load_state_dict(sampler.selector.state_dict())
    copied.load_state_dict(sampler.state_dict())
    resumed = iter(copied)
    middle = [next(resumed) for _ in range(min(150, 30_000 - position))]
    assert copied.state_dict() == {**copied.state_dict(), **_place(position + len(middle))}
    assert middle + list(resumed) == list(stream)


def _place(position):
    return {"epoch": 0, "position": position} if position < 30_000 else {"epoch": 1, "position": 0}


def test_a_position_given_by_hand_counts_what_was_trained_on():
    make = lambda: RecencyBias(SAMPLES, 4, EPOCHS, window=1, warm_up=1)  # noqa: E731
    sampler = AdaptiveSampler(make(), batch_size=BATCH)
    list(sampler)
    observe_epoch(sampler.selector, 0)
    ahead = list(sampler)  # as a loader with workers does: drawn to the end, trained on two batches
    copied = AdaptiveSampler(make(), batch_size=BATCH)
    copied.load_state_dict(sampler.state_dict(position=2 * BATCH))
    copied.selector.load_state_dict(sampler.selector.state_dict())
    assert list(copied) == ahead[2 * BATCH :]
    assert sampler.state_dict(position=SAMPLES)["epoch"] == 2
    assert sampler.state_dict(position=SAMPLES)["position"] == 0
    assert sampler.state_dict(position=SAMPLES + BATCH - 1)["epoch"] == 2  # steps times batch size
    for wrong in (-1, SAMPLES + BATCH):
        with pytest.raises(ValueError, match=f"position must be at .* got {wrong}"):
            sampler.state_dict(position=wrong)


@every_selector
def test_the_state_of_the_sampler_is_small(make):
    sampler = AdaptiveSampler(make(), batch_size=BATCH)
    next(iter(sampler))
    assert len(json.dumps(sampler.state_dict())) < 200


def test_a_sampler_inside_an_epoch_needs_the_selector_of_the_same_moment():
    sampler = AdaptiveSampler(RandomBatch(60, 4, 8), batch_size=8)
    next(iter(sampler))
    copied = AdaptiveSampler(RandomBatch(60, 4, 8), batch_size=8)
    copied.load_state_dict(sampler.state_dict())
    with pytest.raises(ValueError, match=r"sampler stands inside epoch 0, but the selector at epoch -1"):
        list(copied)


def two_alike(warm_up):
    """A sampler, and another to load its state into."""
    for _ in range(2):
        yield AdaptiveSampler(RecencyBias(SAMPLES, 4, EPOCHS, window=1, warm_up=warm_up), batch_size=BATCH)


@pytest.mark.parametrize("is_whole", [False, True])
def test_an_epoch_that_is_left_early_is_over_where_its_position_says_so(is_whole):
    sampler, copied = two_alike(warm_up=1)
    list(sampler)
    observe_epoch(sampler.selector, 0)
    if is_whole:
        sampler.next_epoch()
    else:
        next(iter(sampler))
    copied.load_state_dict(sampler.state_dict(position=SAMPLES))
    copied.selector.load_state_dict(sampler.selector.state_dict())
    assert list(copied) == list(sampler)
    assert copied.selector.epoch == 2


def test_inside_an_epoch_that_came_at_once_the_position_says_how_far_training_is():
    sampler, copied = two_alike(warm_up=1)
    drawn = sampler.next_epoch()
    copied.load_state_dict(sampler.state_dict(position=2 * BATCH))
    copied.selector.load_state_dict(sampler.selector.state_dict())
    assert list(copied) == drawn[2 * BATCH :].tolist()


def test_a_sampler_before_an_epoch_needs_what_its_selector_learnt():
    sampler, copied = two_alike(warm_up=1)
    list(sampler)
    observe_epoch(sampler.selector, 0)
    copied.load_state_dict(sampler.state_dict())
    with pytest.raises(
        ValueError, match=r"stands before epoch 1, but the selector at epoch -1; load the state of"
    ):
        list(copied)
    copied.selector.load_state_dict(sampler.selector.state_dict())
    assert list(copied) == list(sampler)


def test_states_taken_before_the_first_draw_load_whatever_epoch_is_to_come():
    sampler, copied = two_alike(warm_up=4)
    sampler.set_epoch(3)
    copied.load_state_dict(sampler.state_dict())
    copied.selector.load_state_dict(sampler.selector.state_dict())
    assert list(copied) == list(sampler)


REFUSED = [
    (
        RecencyBias(60, 4, 20),
        RecencyBias(61, 4, 20),
        "the state holds num_samples=60, this selector num_samples=61; build it with num_samples=60",
    ),
    (RecencyBias(60, 4, 20), RecencyBias(60, 5, 20), "num_classes=4, this selector num_classes=5"),
    (RecencyBias(60, 4, 20), RecencyBias(60, 4, 21), "epochs=20, this selector epochs=21"),
    (RecencyBias(60, 4, 20), RecencyBias(60, 4, 20, window=9), "window=10, this selector window=9"),
    (
        RecencyBias(60, 4, 20),
        RecencyBias(60, 4, 20, pressure=9),
        "pressure=100.0, this selector pressure=9.0",
    ),
    (
        RecencyBias(60, 4, 20),
        RecencyBias(60, 4, 20, schedule="constant"),
        "schedule='decayed', this selector schedule='constant'",
    ),
    (RecencyBias(60, 4, 20), RecencyBias(60, 4, 20, warm_up=11), "warm_up=10, this selector warm_up=11"),
    (
        RecencyBias(60, 4, 20),
        OnlineBatch(60, 4, 20),
        "the state is of RecencyBias, this selector is OnlineBatch",
    ),
    (
        WeightedBatch(60),
        RandomBatch(60, 4, 20),
        "the state is of WeightedBatch, this selector is RandomBatch",
    ),
    (
        ActiveBias(60, 4, 20),
        ActiveBias(60, 4, 20, smoothness=0.1),
        "smoothness=0.02, this selector smoothness=0.1",
    ),
    (
        ActiveBias(60, 4, 20),
        ActiveBias(60, 4, 20, mode="reweight"),
        "mode='sample', this selector mode='reweight'",
    ),
    (
        OnlineBatch(60, 4, 20),
        OnlineBatch(60, 4, 20, losses="evaluate"),
        "losses='observe', this selector losses='evaluate'",
    ),
    (
        RandomBatch(60, 4, 20),
        RandomBatch(60, 4, 20, draws="independent"),
        "draws='systematic', this selector draws='independent'",
    ),
]


@pytest.mark.parametrize(("donor", "other", "words"), REFUSED, ids=[words for *_, words in REFUSED])
def test_a_state_of_another_size_method_or_option_is_refused_naming_both_sides(donor, other, words):
    before = other.state_dict()
    with pytest.raises(ValueError) as caught:
        other.load_state_dict(donor.state_dict())
    assert words in str(caught.value)
    assert same_state(before, other.state_dict())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"num_samples": 61},
            "the state holds num_samples=60, this sampler num_samples=61; build it",
        ),
        (
            {"batch_size": 9},
            "the state holds batch_size=8, this sampler batch_size=9; build it with batch_size=8",
        ),
        ({"draws": "independent"}, "the state holds draws='systematic', this sampler draws='independent'"),
    ],
)
def test_a_sampler_refuses_a_state_of_another_size_or_option_naming_both_sides(options, words):
    state = AdaptiveSampler(RandomBatch(60, 4, 8), batch_size=8).state_dict()
    selector = RandomBatch(options.pop("num_samples", 60), 4, 8)
    sampler = AdaptiveSampler(selector, **{"batch_size": 8, "seed": 3, **options})
    before = sampler.state_dict()
    with pytest.raises(ValueError) as caught:
        sampler.load_state_dict(state)
    assert words in str(caught.value)
    assert sampler.state_dict() == before


@pytest.mark.parametrize("missing", ["epoch", "position", "seed", "batch_size", "draws", "num_samples"])
def test_a_sampler_refuses_what_is_no_state_of_its_own(missing):
    sampler = AdaptiveSampler(RandomBatch(60, 4, 8), batch_size=8)
    state = sampler.state_dict()
    del state[missing]
    with pytest.raises(
        ValueError, match=f"the state has no '{missing}'; it is no state of an AdaptiveSampler"
    ):
        sampler.load_state_dict(state)


@pytest.mark.parametrize(
    "missing", ["epoch", "method", "window", "state.labels", "state.cursor", "distribution.kind"]
)
def test_a_selector_refuses_what_is_no_state_of_its_own(missing):
    selector = RecencyBias(60, 4, 20)
    before = selector.state_dict()
    state = selector.state_dict()
    del state[missing]
    with pytest.raises(ValueError, match=missing.split(".")[0]):
        selector.load_state_dict(state)
    assert same_state(before, selector.state_dict())


@pytest.mark.parametrize("make", SELECTORS, ids=lambda make: make.__name__)
def test_a_selector_is_pickled_with_all_it_knows(make):
    import pickle

    selector = make()
    copy = pickle.loads(pickle.dumps(selector))
    assert same_state(copy.state_dict(), selector.state_dict())


def test_a_loaded_state_is_not_tied_to_the_dictionary_it_came_from():
    selector, fresh = WeightedBatch(4), WeightedBatch(4)
    selector.set_weights(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    selector.refresh(0)
    state = selector.state_dict()
    fresh.load_state_dict(state)
    for value in state.values():
        if isinstance(value, torch.Tensor):
            value.zero_()
    assert fresh.distribution.probabilities().tolist() == [0.1, 0.2, 0.3, 0.4]


@pytest.mark.parametrize("position", [100, 1000])
def test_a_position_beyond_the_epoch_is_refused(position):
    sampler = AdaptiveSampler(WeightedBatch(100), batch_size=10)
    with pytest.raises(ValueError, match="position must be less than num_samples = 100, the state holds"):
        sampler.load_state_dict(sampler.state_dict() | {"position": position})


def test_what_is_left_for_too_few_ranks_is_the_next_epoch():
    one = AdaptiveSampler(RandomBatch(10, 2, 3), batch_size=8)
    stream = iter(one)
    drawn = [next(stream) for _ in range(8)]
    assert len(drawn) == 8
    four = AdaptiveSampler(RandomBatch(10, 2, 3), batch_size=8, rank=1, world_size=4)
    four.selector.load_state_dict(one.selector.state_dict())
    four.load_state_dict(one.state_dict())
    assert four.epoch == 1
    assert len(four.next_epoch()) == 2


def test_a_state_from_inside_an_epoch_of_another_kind_of_device_is_refused():
    sampler = AdaptiveSampler(RandomBatch(24, 2, 3), batch_size=8)
    state = sampler.state_dict() | {"device": "cuda", "position": 8}
    with pytest.raises(
        ValueError, match=r"inside an epoch on device='cuda', .* device='cpu'; continue on cuda"
    ):
        sampler.load_state_dict(state)
    sampler.load_state_dict(state | {"position": 0})
    independent = AdaptiveSampler(RandomBatch(24, 2, 3), batch_size=8, draws="independent")
    independent.load_state_dict(state | {"draws": "independent"})


def test_an_interrupted_refresh_leaves_the_epoch_as_it_was(monkeypatch):
    selector = RecencyBias(SAMPLES, CLASSES, EPOCHS, window=1, warm_up=1)
    for epoch in range(3):
        selector.refresh(epoch)
        observe_epoch(selector, epoch)
    before = selector.state_dict()
    assert before["distribution.kind"] == "levels"

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(selector.history, "levels", interrupted)
    with pytest.raises(KeyboardInterrupt):
        selector.refresh(3)
    assert same_state(before, selector.state_dict())


def test_between_two_epochs_too_the_selector_must_be_of_the_same_moment():
    sampler, copied = two_alike(warm_up=1)
    old = None
    for epoch in range(4):
        list(sampler)
        observe_epoch(sampler.selector, epoch)
        old = old or sampler.selector.state_dict()
    copied.load_state_dict(sampler.state_dict())
    copied.selector.load_state_dict(old)
    with pytest.raises(
        ValueError, match=r"stands before epoch 4, but the selector at epoch 0; load the state of"
    ):
        list(copied)
    copied.set_epoch(2)  # whoever says so may go on from there
    assert len(list(copied)) == SAMPLES


def test_a_state_taken_right_after_another_was_loaded_is_the_same():
    sampler, copied = two_alike(warm_up=1)
    for epoch in range(2):
        list(sampler)
        observe_epoch(sampler.selector, epoch)
    copied.load_state_dict(sampler.state_dict())
    copied.selector.load_state_dict(sampler.selector.state_dict())
    assert copied.state_dict(position=0) == copied.state_dict() == sampler.state_dict()
    assert copied.state_dict(position=2 * BATCH)["epoch"] == 2
    assert copied.state_dict(position=SAMPLES) == copied.state_dict(), (
        "the end of the epoch before, saved again"
    )


def test_states_taken_after_an_epoch_was_passed_over_load_too():
    sampler, copied = two_alike(warm_up=1)
    list(sampler)
    observe_epoch(sampler.selector, 0)
    sampler.set_epoch(3)
    copied.load_state_dict(sampler.state_dict())
    copied.selector.load_state_dict(sampler.selector.state_dict())
    assert list(copied) == list(sampler)


def test_a_state_of_an_earlier_version_loads():
    sampler, copied = two_alike(warm_up=1)
    list(sampler)
    observe_epoch(sampler.selector, 0)
    state = sampler.state_dict()
    del state["selector_epoch"]
    copied.load_state_dict(state)
    copied.selector.load_state_dict(sampler.selector.state_dict())
    assert list(copied) == list(sampler)


def test_a_state_that_is_refused_for_its_last_entry_changes_nothing():
    sampler, _ = two_alike(warm_up=1)
    before = sampler.state_dict()
    with pytest.raises(TypeError, match="selector_epoch must be an integer, got 'x'"):
        sampler.load_state_dict(before | {"seed": 7, "epoch": 2, "selector_epoch": "x"})
    assert sampler.state_dict() == before


def test_an_epoch_counted_by_numpy_leaves_a_state_that_loads():
    selector = RandomBatch(60, 4, 8)
    for epoch in np.arange(3):
        selector.refresh(epoch)
    assert through_torch(selector.state_dict())["epoch"] == 2
