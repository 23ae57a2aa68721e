"""What is refused: at the call that brings it in, by a message with the argument, the rule and the value."""

import json
import math

import numpy as np
import pytest
import torch
from torch.utils.data import ChainDataset, DataLoader, TensorDataset

from carpediem import (
    ActiveBias,
    AdaptiveSampler,
    Indexed,
    OnlineBatch,
    RandomBatch,
    RecencyBias,
    WeightedBatch,
    Weights,
)
from carpediem.testing import same_state
from reference.selectors import SELECTORS, observe_epoch

# -- building a selector -------------------------------------------------------------------------------------

LEARNING = (RandomBatch, OnlineBatch, ActiveBias, RecencyBias)
SELECTING = (OnlineBatch, ActiveBias, RecencyBias)


@pytest.mark.parametrize("method", LEARNING)
@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"num_samples": 0}, ValueError, "num_samples must be at least 1, got 0"),
        ({"num_samples": -5}, ValueError, "num_samples must be at least 1, got -5"),
        ({"num_samples": 10.0}, TypeError, "num_samples must be an integer, got 10.0"),
        ({"num_samples": True}, TypeError, "num_samples must be an integer, got True"),
        ({"num_classes": 1}, ValueError, "num_classes must be at least 2, got 1"),
        ({"num_classes": 0}, ValueError, "num_classes must be at least 2, got 0"),
        ({"num_classes": "10"}, TypeError, "num_classes must be an integer, got '10'"),
        ({"epochs": 0}, ValueError, "epochs must be at least 1, got 0"),
        ({"epochs": 2.5}, TypeError, "epochs must be an integer, got 2.5"),
        ({"warm_up": -1}, ValueError, "warm_up must be at least 0, got -1"),
        ({"warm_up": 1.5}, TypeError, "warm_up must be an integer, got 1.5"),
        ({"on_nonfinite": "ignore"}, ValueError, "on_nonfinite must be 'raise' or 'skip', got 'ignore'"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(method, arguments, kind, words):
    with pytest.raises(kind) as caught:
        method(**{"num_samples": 20, "num_classes": 4, "epochs": 30, **arguments})
    assert words in str(caught.value)


@pytest.mark.parametrize("method", SELECTING)
@pytest.mark.parametrize("name", ["num_classes", "epochs"])
def test_a_method_that_learns_needs_to_know_classes_and_epochs(method, name):
    with pytest.raises(TypeError, match=f"^{name} must be an integer, got None$"):
        method(**{"num_samples": 20, "num_classes": 4, "epochs": 30, name: None})


@pytest.mark.parametrize("method", SELECTING)
def test_a_small_integer_type_is_taken_for_its_value(method):
    selector = method(np.uint8(255), np.uint8(4), 300, warm_up=np.uint8(10))
    selector.observe(torch.tensor([254]), torch.eye(4)[:1], torch.tensor([3]))
    selector.refresh(10)
    assert selector.distribution.num_samples == 255


@pytest.mark.parametrize("method", SELECTING)
@pytest.mark.parametrize("epochs", [9, 10])
def test_a_training_that_ends_within_the_warm_up_is_refused(method, epochs):
    with pytest.raises(ValueError, match=rf"epochs must exceed warm_up = 10 .* got {epochs}"):
        method(20, 4, epochs)


@pytest.mark.parametrize("method", [OnlineBatch, RecencyBias])
@pytest.mark.parametrize("pressure", [0.99, 0, -1, math.nan, math.inf])
def test_a_pressure_below_1_is_refused(method, pressure):
    with pytest.raises(
        ValueError, match=rf"pressure must be a finite number of at least 1 .* got {float(pressure)}"
    ):
        method(20, 4, 30, pressure=pressure)


@pytest.mark.parametrize(
    ("build", "kind", "words"),
    [
        (
            lambda: RecencyBias(20, 4, 30, warm_up=9),
            ValueError,
            "warm_up must be at least window = 10, so that",
        ),
        (lambda: RecencyBias(20, 4, 30, window=12), ValueError, "fill before they count, got 10"),
        (lambda: RecencyBias(20, 4, 30, window=0), ValueError, "window must be at least 1, got 0"),
        (lambda: RecencyBias(20, 4, 30, window=2.0), TypeError, "window must be an integer, got 2.0"),
        (lambda: RecencyBias(20, 4, 90, window=33, warm_up=40), ValueError, "window must lie in [1, 32]"),
        (lambda: RecencyBias(20, 4, 90, window=33), ValueError, "window must lie in [1, 32]"),
        (
            lambda: RecencyBias(20, 4, 30, schedule="linear"),
            ValueError,
            "one of constant, decayed, got 'linear'",
        ),
        (
            lambda: OnlineBatch(20, 4, 30, schedule="linear"),
            ValueError,
            "one of constant, decayed, got 'linear'",
        ),
        (
            lambda: OnlineBatch(20, 4, 30, losses="all"),
            ValueError,
            "losses must be 'observe' or 'evaluate', got 'all'",
        ),
        (
            lambda: ActiveBias(20, 4, 30, mode="both"),
            ValueError,
            "mode must be 'sample' or 'reweight', got 'both'",
        ),
        (
            lambda: ActiveBias(20, 4, 30, smoothness=0),
            ValueError,
            "smoothness must be more than 0 and finite, got 0",
        ),
        (lambda: ActiveBias(20, 4, 30, smoothness=math.nan), ValueError, "smoothness must be more than 0"),
        (
            lambda: RandomBatch(20, 4, 30, draws="all"),
            ValueError,
            "one of independent, systematic, got 'all'",
        ),
        (lambda: RecencyBias(20, 4, 30, pressure="100"), TypeError, "pressure must be a number, got '100'"),
        (lambda: OnlineBatch(20, 4, 30, pressure=None), TypeError, "pressure must be a number, got None"),
        (lambda: ActiveBias(20, 4, 30, smoothness="x"), TypeError, "smoothness must be a number, got 'x'"),
        (
            lambda: RecencyBias(20, 4, 30, schedule=["x"]),
            ValueError,
            "schedule must be one of constant, decayed",
        ),
        (lambda: WeightedBatch(5, num_classes=3), TypeError, "WeightedBatch takes no num_classes, since it"),
        (
            lambda: WeightedBatch(5).set_weights(None),
            TypeError,
            "values must be a tensor of numbers, got None",
        ),
        (
            lambda: Weights([1.0, 2.0]),
            TypeError,
            "weights must be a tensor of shape (N,), one number a sample, got [",
        ),
        (lambda: Weights(torch.ones(3, 3)), TypeError, "one number a sample, got shape (3, 3)"),
        (lambda: Weights(torch.ones(0)), TypeError, "one number a sample, got shape (0,)"),
        (
            lambda: WeightedBatch(5).load_state_dict(None),
            TypeError,
            "state must be what state_dict gave, a dictionary",
        ),
        (
            lambda: AdaptiveSampler(WeightedBatch(5), batch_size=2).load_state_dict([1]),
            TypeError,
            "state must be what state_dict gave, a dictionary, got [1]",
        ),
        (lambda: WeightedBatch(0), ValueError, "num_samples must be at least 1, got 0"),
        (lambda: WeightedBatch(5, epochs=0), ValueError, "epochs must be at least 1, got 0"),
    ],
)
def test_options_out_of_range_are_refused(build, kind, words):
    with pytest.raises(kind) as caught:
        build()
    assert words in str(caught.value)


# -- observing -----------------------------------------------------------------------------------------------

INDICES, LOGITS, TARGETS = torch.tensor([3, 7, 5]), torch.zeros(3, 4), torch.tensor([0, 3, 1])


def logits(value):
    changed = LOGITS.clone()
    changed[1, 2] = value
    return changed


BAD_BATCHES = [
    (INDICES + 15, LOGITS, TARGETS, ValueError, "being 20; got 22; the indices of a part of a data set are"),
    (INDICES - 4, LOGITS, TARGETS, ValueError, "indices must lie in [0, 20), num_samples being 20; got -1"),
    (INDICES.double(), LOGITS, TARGETS, TypeError, "indices must be a tensor of integers, got a tensor of torch.f"),
    (INDICES.bool(), LOGITS, TARGETS, TypeError, "indices must be a tensor of integers, got a tensor of torch.bool"),
    ([3, 7, 5], LOGITS, TARGETS, TypeError, "a tensor of integers, got [3, 7, 5]; hand in torch.as_tensor(indices)"),
    (INDICES[None], LOGITS, TARGETS, ValueError, "one dimension, got shape (1, 3); hand in indices.flatten()"),
    (INDICES[0], LOGITS, TARGETS, ValueError, "indices must have one dimension, got shape ()"),
    (INDICES[:2], LOGITS, TARGETS, ValueError, "logits must have shape (2, 4), a row for each index"),
    (INDICES, LOGITS[:, :3], TARGETS, ValueError, "a row for each index and a column for each class, got (3, 3)"),
    (INDICES, torch.zeros(3, 5), TARGETS, ValueError, "each class, got (3, 5); build the selector with num_classes=5"),
    (INDICES, torch.zeros(3, 4, 2), TARGETS, ValueError, "a column for each class, got (3, 4, 2)"),
    (INDICES, torch.zeros(4), TARGETS, ValueError, "a column for each class, got (4,)"),
    (INDICES, LOGITS.long(), TARGETS, TypeError, "logits must be a tensor of floating-point numbers, got a tensor"),
    (INDICES, LOGITS.tolist(), TARGETS, TypeError, "logits must be a tensor of floating-point numbers, got [["),
    (INDICES, LOGITS, TARGETS + 1, ValueError, "targets must lie in [0, 4), num_classes being 4; got 4"),
    (INDICES, LOGITS, TARGETS - 1, ValueError, "got -1; leave samples without a label out of the batch"),
    (INDICES, LOGITS, TARGETS[:2], ValueError, "targets must be as many as indices = 3, got 2"),
    (INDICES, LOGITS, TARGETS.float(), TypeError, "targets must be a tensor of integers, got a tensor of torch.f"),
    (INDICES, LOGITS, torch.ones(3, 4), TypeError, "float32; of soft or one-hot labels hand in targets.argmax(dim=1)"),
    (INDICES, LOGITS, torch.ones(3, 4).long(), ValueError, "(3, 4); of soft or one-hot labels hand in targets"),
    (INDICES, LOGITS, TARGETS[None], ValueError, "got shape (1, 3); hand in targets.flatten()"),
    (INDICES, LOGITS, TARGETS[:, None], ValueError, "got shape (3, 1); hand in targets.flatten()"),
    (INDICES, LOGITS, None, TypeError, "targets must be a tensor of integers, got None"),
    (INDICES, logits(math.nan), TARGETS, ValueError, "logits must be finite, got 1 values that are not"),
    (INDICES, logits(math.inf), TARGETS, ValueError, "on_nonfinite='skip' passes over such batches and counts them"),
    (INDICES, logits(-math.inf).half(), TARGETS, ValueError, "logits must be finite, got 1 values that are not"),
]  # fmt: skip


@pytest.mark.parametrize("method", LEARNING)
@pytest.mark.parametrize(
    ("indices", "logits", "targets", "kind", "words"), BAD_BATCHES, ids=[words for *_, words in BAD_BATCHES]
)
def test_a_bad_batch_is_refused_whole_and_leaves_the_state_as_it_was(
    method, indices, logits, targets, kind, words
):
    selector = method(20, 4, 30)
    selector.refresh(0)
    selector.observe(INDICES, LOGITS + torch.arange(4), TARGETS)
    before = selector.state_dict()
    with pytest.raises(kind) as caught:
        selector.observe(indices, logits, targets)
    assert words in str(caught.value)
    assert same_state(before, selector.state_dict())


@pytest.mark.parametrize("method", LEARNING)
def test_a_batch_that_was_refused_counts_as_none(method):
    """Else a program that catches the error would never be warned that nothing is observed."""
    selector = method(20, 4, 30)
    with pytest.raises(TypeError):
        selector.observe("x", None, None)
    with pytest.raises(ValueError, match="indices"):
        selector.observe(INDICES + 20, LOGITS, TARGETS)
    assert not selector.was_told
    selector.observe(INDICES, LOGITS, TARGETS)
    assert selector.was_told


def test_a_warning_that_nothing_was_observed_points_at_the_loop():
    sampler = AdaptiveSampler(OnlineBatch(20, 4, 30, warm_up=1), batch_size=4)
    list(sampler)
    with pytest.warns(UserWarning, match="has not observed a single step") as caught:
        list(sampler)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("device", ["abacus", "cuda:99", "hpu"])
def test_a_device_that_is_not_there_is_named_with_a_remedy(device):
    with pytest.raises(
        ValueError, match=f"device must be one that torch has here, got '{device}' .*use device='cpu'"
    ):
        RandomBatch(20, 4, 30, device=device)


def test_a_data_set_in_place_of_its_length_is_told_of_it():
    with pytest.raises(TypeError, match=r"num_samples must be an integer, got .*; its length is 7"):
        RandomBatch(TensorDataset(torch.zeros(7)), 4, 30)
    stream = ChainDataset([iter(())])  # has a length, which is an error
    for value in (torch.tensor(3), np.array(3), [1, 2], stream, "3"):
        with pytest.raises(TypeError, match=r"num_samples must be an integer, got [^;]*$"):
            RandomBatch(value, 4, 30)


def test_weights_of_the_loss_are_asked_for_by_indices_of_samples():
    selector = ActiveBias(20, 4, 30, mode="reweight")
    assert selector.loss_weights(INDICES).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(TypeError, match=r"hand in torch.as_tensor\(indices\)"):
        selector.loss_weights([1, 2])
    with pytest.raises(ValueError, match=r"indices must lie in \[0, 20\), num_samples being 20; got 22"):
        selector.loss_weights(INDICES + 15)


def test_a_collate_function_that_is_given_no_pairs_says_what_the_loader_lacks():
    with pytest.raises(TypeError, match=r"must be given \(index, item\) pairs, got 1; .* Indexed\(dataset\)"):
        next(iter(DataLoader([1, 2, 3], collate_fn=Indexed.collate(list))))
    pairs = TensorDataset(torch.rand(3, 2), torch.arange(3))  # of two, but no index is the first of them
    with pytest.raises(TypeError, match=r"must be given \(index, item\) pairs, got \(tensor"):
        next(iter(DataLoader(pairs, collate_fn=Indexed.collate(list))))
    assert Indexed.collate(list)([[4, "a"], [2, "b"]])[1] == ["a", "b"]


def test_weights_of_single_samples_count_at_once_and_never_leave_nothing_to_draw():
    selector = WeightedBatch(4)
    selector.set_weights(torch.zeros(3), torch.tensor([0, 1, 2]))
    selector.set_weights(torch.tensor([2.0]), torch.tensor([1]))
    for values, total in ((torch.zeros(2), 0.0), (torch.full((2,), 1.7e308, dtype=torch.float64), "inf")):
        with pytest.raises(ValueError, match=f"values must leave a finite sum of weights above 0, .*{total}"):
            selector.set_weights(values, torch.tensor([1, 3]))
    selector.set_weights(torch.tensor([]), torch.tensor([], dtype=torch.long))
    selector.refresh(0)
    assert selector.distribution.probabilities().tolist() == pytest.approx([0, 2 / 3, 0, 1 / 3])


@pytest.mark.parametrize("method", LEARNING)
def test_batches_of_nonfinite_logits_are_skipped_and_counted_when_asked_to(method):
    selector = method(20, 4, 30, on_nonfinite="skip")
    selector.observe(INDICES, LOGITS + torch.arange(4), TARGETS)
    before = selector.state_dict()
    for count, value in enumerate((math.nan, math.inf, -math.inf), start=1):
        selector.observe(INDICES, logits(value), TARGETS)
        assert selector.skipped == count
    after = selector.state_dict()
    assert after.pop("state.faults").tolist() == [3, 0]
    assert before.pop("state.faults").tolist() == [0, 0]
    assert same_state(before, after)
    copy = method(20, 4, 30, on_nonfinite="skip")
    copy.load_state_dict(selector.state_dict())
    assert copy.skipped == 3


@pytest.mark.parametrize("method", LEARNING)
def test_a_bad_index_is_refused_even_where_nonfinite_logits_are_skipped(method):
    selector = method(20, 4, 30, on_nonfinite="skip")
    with pytest.raises(ValueError, match="indices"):
        selector.observe(INDICES + 99, logits(math.nan), TARGETS)
    assert selector.skipped == 0


@pytest.mark.parametrize("method", SELECTING)
@pytest.mark.parametrize(
    "big",
    [
        torch.full((3, 4), 6e4).half(),
        torch.full((3, 4), 3e38),
        torch.full((3, 4), 1e300, dtype=torch.float64),
        torch.tensor([[3e38, -3e38, 3e38, -3e38]] * 3),
        torch.tensor([[1e308, -1e308, 0.0, 1e308]] * 3, dtype=torch.float64),
    ],
)
def test_finite_logits_are_taken_however_large_and_nothing_but_numbers_comes_of_them(method, big):
    selector = method(20, 4, 30)
    for _ in range(3):
        selector.observe(INDICES, big, TARGETS)
        selector.observe(INDICES, LOGITS, TARGETS)
    assert selector.skipped == 0
    selector.refresh(10)
    p = selector.distribution.probabilities()
    assert p.isfinite().all()
    assert (p > 0).all()
    for name, value in selector.state_dict().items():
        assert not isinstance(value, torch.Tensor) or not value.isnan().any(), name


# -- epochs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", SELECTORS, ids=lambda make: make.__name__)
def test_an_epoch_out_of_order_is_refused_and_leaves_the_state_as_it_was(make):
    selector = make()
    for epoch in range(4):
        selector.refresh(epoch)
        observe_epoch(selector, epoch)
    before = selector.state_dict()
    for wrong in (3, 0):
        with pytest.raises(ValueError, match=rf"epoch must come after epoch 3, .* got {wrong}"):
            selector.refresh(wrong)
    with pytest.raises(ValueError, match="epoch must be at least 0, got -1"):
        selector.refresh(-1)
    with pytest.raises(TypeError, match=r"epoch must be an integer, got 4\.0"):
        selector.refresh(4.0)
    if selector.epochs is not None:
        with pytest.raises(
            ValueError,
            match=r"epoch must be less than epochs = 8, got 8; .* sampler\.epoch",
        ):
            selector.refresh(8)
    assert same_state(before, selector.state_dict())


def test_evaluated_losses_that_never_came_are_missed_by_name():
    selector = OnlineBatch(20, 4, 30, warm_up=1, losses="evaluate")
    selector.refresh(0)
    with pytest.raises(ValueError, match="losses='evaluate' needs set_losses before epoch 1, none came"):
        selector.refresh(1)
    assert selector.epoch == 0


# -- scores that the user hands in ---------------------------------------------------------------------------

BAD_VALUES = [
    (torch.ones(5), None, ValueError, "values must have shape (6,), one a sample, got (5,)"),
    (torch.ones(6, 1), None, ValueError, "values must have shape (6,), one a sample, got (6, 1)"),
    (torch.tensor([1.0, -0.5]), torch.tensor([0, 1]), ValueError, "values must be finite and at least 0, got -0.5"),
    (torch.tensor([1.0, math.nan]), torch.tensor([0, 1]), ValueError, "values must be finite and at least 0, got nan"),
    (torch.tensor([1.0, math.inf]), torch.tensor([0, 1]), ValueError, "values must be finite and at least 0, got inf"),
    (torch.ones(6).bool(), None, TypeError, "values must be real numbers, got torch.bool"),
    (torch.ones(2), torch.tensor([0, 6]), ValueError, "indices must lie in [0, 6), num_samples being 6; got 6"),
    (torch.ones(2), torch.tensor([0, -1]), ValueError, "indices must lie in [0, 6), num_samples being 6; got -1"),
    (torch.ones(2), torch.tensor([0.0, 1.0]), TypeError, "indices must be integers, got torch.float32"),
    (torch.ones(2, 2), torch.tensor([[0, 1], [2, 3]]), ValueError, "indices must have one dimension, got shape (2, 2)"),
    (torch.ones(3), torch.tensor([0, 1]), ValueError, "values must have shape (2,), one a sample, got (3,)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "indices", "kind", "words"), BAD_VALUES, ids=[words for *_, words in BAD_VALUES]
)
def test_bad_scores_are_refused_and_leave_the_state_as_it_was(values, indices, kind, words):
    weighted = WeightedBatch(6)
    weighted.set_weights(torch.arange(6))
    online = OnlineBatch(6, 2, 30, losses="evaluate")
    online.set_losses(torch.arange(6))
    for selector, call in ((weighted, weighted.set_weights), (online, online.set_losses)):
        before = selector.state_dict()
        with pytest.raises(kind) as caught:
            call(values, indices)
        assert words in str(caught.value)
        assert same_state(before, selector.state_dict())


@pytest.mark.parametrize(("values", "total"), [([0.0] * 6, "0.0"), ([1e308] * 6, "inf")])
def test_weights_that_leave_nothing_to_draw_are_refused(values, total):
    selector = WeightedBatch(6)
    before = selector.state_dict()
    with pytest.raises(
        ValueError, match=f"values must leave a finite sum of weights above 0, .* got {total}"
    ):
        selector.set_weights(torch.tensor(values, dtype=torch.float64))
    assert same_state(before, selector.state_dict())


def test_losses_for_a_selector_that_observes_its_own_are_refused():
    with pytest.raises(ValueError, match="set_losses needs losses='evaluate'"):
        OnlineBatch(6, 2, 30).set_losses(torch.ones(6))


# -- the sampler ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"batch_size": 21}, ValueError, "must be at most num_samples = 20, a batch holds a sample once, got 21"),
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1, got 0"),
        ({"batch_size": 4.0}, TypeError, "batch_size must be an integer, got 4.0"),
        ({"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ({"seed": None}, TypeError, "seed must be an integer, got None"),
        ({"draws": "all"}, ValueError, "draws must be one of independent, systematic, got 'all'"),
        ({"world_size": 0}, ValueError, "world_size must be at least 1, got 0"),
        ({"world_size": 3}, ValueError, "batch_size must be a multiple of world_size = 3"),
        ({"world_size": 2, "rank": 2}, ValueError, "rank must be less than world_size = 2, got 2"),
        ({"rank": -1}, ValueError, "rank must be at least 0, got -1"),
    ],
)  # fmt: skip
def test_a_sampler_that_cannot_be_is_refused(arguments, kind, words):
    with pytest.raises(kind) as caught:
        AdaptiveSampler(RandomBatch(20, 4, 30), **{"batch_size": 4, **arguments})
    assert words in str(caught.value)


def test_a_sampler_of_something_else_is_refused():
    with pytest.raises(TypeError, match=r"selector must be a carpediem\.Selector, got range"):
        AdaptiveSampler(range(10), batch_size=2)


def test_a_batch_larger_than_the_samples_of_positive_weight_is_refused():
    selector = WeightedBatch(10)
    selector.set_weights((torch.arange(10) < 3).float())
    with pytest.raises(ValueError, match=r"batch_size must lie in \[1, 3\], .* got 5"):
        next(iter(AdaptiveSampler(selector, batch_size=5)))


@pytest.mark.parametrize("method", [RandomBatch, OnlineBatch, ActiveBias, RecencyBias])
def test_a_misspelt_option_is_refused(method):
    meant = r"; did you mean 'window'\?" if method is RecencyBias else ""
    with pytest.raises(
        TypeError, match=f"^{method.__name__} got an unexpected keyword argument 'windw'{meant}$"
    ):
        method(100, 10, 20, windw=5)


def test_draws_given_to_a_method_are_sent_to_the_sampler():
    with pytest.raises(TypeError, match=r"argument 'draws'; it is one of AdaptiveSampler's$"):
        RecencyBias(10, 2, 20, draws="systematic")


def test_a_method_that_builds_something_else_is_told_what_to_return():
    class Careless(RandomBatch):
        def build(self, epoch):
            return torch.ones(10)

    with pytest.raises(
        TypeError, match=r"build must return a Distribution, such as carpediem.Weights\(tensor\)"
    ):
        Careless(10, 2, 3).refresh(0)


@pytest.mark.parametrize("method", [RecencyBias, OnlineBatch, ActiveBias])
def test_a_program_that_never_observes_is_warned_once(method):
    selector = method(20, 2, 9, warm_up=2, **({"window": 2} if method is RecencyBias else {}))
    sampler = AdaptiveSampler(selector, batch_size=5)
    for _ in range(2):
        list(sampler)
    with pytest.warns(
        UserWarning, match=rf"{method.__name__} has not observed a single step up to epoch 2 .*observe\("
    ):
        list(sampler)
    list(sampler)


def test_a_method_that_learns_nothing_needs_no_observations():
    sampler = AdaptiveSampler(RandomBatch(20, 2, 3), batch_size=5)
    for _ in range(3):
        list(sampler)


def test_integers_of_numpy_are_integers():
    labels = np.arange(20) % 4
    selector = RecencyBias(np.int64(20), labels.max() + 1, np.int32(12))
    sampler = AdaptiveSampler(selector, batch_size=np.int16(5), seed=np.uint8(3))
    plain = AdaptiveSampler(RecencyBias(20, 4, 12), batch_size=5, seed=3)
    assert list(sampler) == list(plain)
    assert repr(sampler) == repr(plain)
    assert json.dumps(sampler.state_dict()) == json.dumps(plain.state_dict())
    with pytest.raises(TypeError, match=r"num_classes must be an integer, got np\.True_"):
        RecencyBias(20, np.True_, 12)
