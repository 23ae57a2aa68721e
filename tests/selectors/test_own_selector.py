"""How to write a selector, and what the contract says when something in it is forgotten."""

import numpy as np
import pytest
import torch

from carpediem import AdaptiveSampler, Selector
from carpediem.core.distribution import Levels, Weights
from carpediem.testing import (
    CONTRACT,
    bad_batches_are_refused_whole,
    check_selector,
    distribution_stays_as_it_is_within_an_epoch,
    distribution_sums_to_one,
    global_generator_is_left_alone,
    gradients_stay_untouched,
    inputs_stay_unmodified,
    keep_takes_what_was_measured,
    nothing_but_finite_logits_is_kept,
    observe_takes_any_floating_type,
    repeats_of_one_keep_count_as_later_steps,
    resume_equals_never_having_stopped,
    same_seed_gives_same_batches,
    state_holds_tensors_and_plain_values,
    states_of_others_are_refused,
    what_is_to_be_dropped_changes_no_sample,
)


class LeastConfident(Selector):
    """Draws in proportion to 1 - the largest probability that the network gave to a sample last, plus a floor."""

    def __init__(self, num_samples, num_classes, epochs, *, floor=0.05, **common):
        super().__init__(num_samples, num_classes, epochs, options={"floor": floor}, **common)
        self.floor = floor
        # A row more than there are samples: on an accelerator batches to be dropped are written there.
        self.doubt = torch.ones(num_samples + 1, dtype=torch.float64, device=self.device)
        self.add_state("doubt", self.doubt)

    def measure(self, logits, targets):
        return 1 - logits.double().softmax(dim=1).amax(dim=1)

    def keep(self, indices, values):
        self.doubt[indices] = values

    def build(self, epoch):
        return Weights(self.doubt[:-1] + self.floor)


def make():
    return LeastConfident(num_samples=50, num_classes=4, epochs=6, warm_up=1)


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
def test_a_selector_of_twenty_lines_keeps_the_contract(check):
    check(make)


def test_a_selector_of_twenty_lines_draws_what_it_is_for():
    selector = make()
    sampler = AdaptiveSampler(selector, batch_size=5)
    sampler.next_epoch()
    logits = torch.zeros(50, 4)
    logits[:25, 0] = 9.0
    selector.observe(torch.arange(50), logits, torch.zeros(50, dtype=torch.int64))
    drawn = sampler.next_epoch()
    assert (drawn >= 25).sum() > 3 * (drawn < 25).sum()


class ForgetsItsState(LeastConfident):
    def add_state(self, name, tensor):
        if name != "doubt":
            super().add_state(name, tensor)


class RebindsItsState(LeastConfident):
    def keep(self, indices, values):
        self.doubt = self.doubt.clone()
        super().keep(indices, values)


class DrawsFromTheGlobalGenerator(LeastConfident):
    def build(self, epoch):
        return Weights(self.doubt[:-1] + torch.rand(self.num_samples))


class SeedsTheGlobalGenerator(LeastConfident):
    def build(self, epoch):
        torch.manual_seed(epoch)
        return super().build(epoch)


class ChangesTheLogits(LeastConfident):
    def measure(self, logits, targets):
        logits -= logits.amax(dim=1, keepdim=True)
        return super().measure(logits, targets)


class ChangesTheEpochUnderway(LeastConfident):
    def build(self, epoch):
        return Weights(self.doubt[:-1])


class KeepsNonfiniteLogits(LeastConfident):
    def observe(self, indices, logits, targets):
        self.keep(indices, self.measure(logits.detach(), targets))


class CannotDoHalfPrecision(LeastConfident):
    def measure(self, logits, targets):
        return super().measure(logits * 1e6 if logits.dtype == torch.float16 else logits, targets)


class TakesAnyState(LeastConfident):
    def load_state_dict(self, state):
        self.doubt.copy_(state["state.doubt"][: len(self.doubt)])
        self.epoch = state["epoch"]


class HandsOutItsOwnMemory(LeastConfident):
    def state_dict(self):
        return {**super().state_dict(), "state.doubt": self.doubt}


class SumsToTwo(LeastConfident):
    class Twice(Weights):
        def probabilities(self, indices=None):
            return 2 * super().probabilities(indices)

    def build(self, epoch):
        return self.Twice(self.doubt[:-1] + self.floor)


class MeasuresTheBatch(LeastConfident):
    def measure(self, logits, targets):
        return logits.mean()


class MeasuresANumber(LeastConfident):
    def measure(self, logits, targets):
        return float(logits.mean())


class MeasuresAnotherType(LeastConfident):
    def measure(self, logits, targets):
        return super().measure(logits, targets).float()


class IsNotDouble(LeastConfident):
    class Single(Weights):
        def probabilities(self, indices=None):
            return super().probabilities(indices).float()

    def build(self, epoch):
        return self.Single(self.doubt[:-1] + self.floor)


class HasOneRowTooFew(LeastConfident):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.doubt = torch.ones(self.num_samples, dtype=torch.float64)
        self.add_state("doubt", self.doubt)

    def build(self, epoch):
        return Weights(self.doubt + self.floor)


class DropsIntoTheLastSample(HasOneRowTooFew):
    def keep(self, indices, values):
        self.doubt[indices.clamp(max=self.num_samples - 1)] = values


class KeepsTheEarliest(LeastConfident):
    keeps_repeats = True

    def keep(self, indices, values):
        for index, value in reversed(list(zip(indices.tolist(), values, strict=True))):
            self.doubt[index] = value


BROKEN = (
    (KeepsTheEarliest, repeats_of_one_keep_count_as_later_steps, "must count as a later step"),
    (MeasuresTheBatch, keep_takes_what_was_measured, r"one value a sample, shape \(7,\) .* got \(\); reduce"),
    (MeasuresANumber, keep_takes_what_was_measured, "a tensor of one value a sample, or None, got "),
    (
        MeasuresAnotherType,
        keep_takes_what_was_measured,
        r"here torch.float32 of shape \(7,\), it says .*; let",
    ),
    (IsNotDouble, distribution_sums_to_one, "has torch.float32; let `weights` of the distribution return"),
    (HasOneRowTooFew, what_is_to_be_dropped_changes_no_sample, "keep must take the index .* one row more"),
    (DropsIntoTheLastSample, what_is_to_be_dropped_changes_no_sample, "must change no probability"),
    (ForgetsItsState, resume_equals_never_having_stopped, "restore all of it|probabilities of epoch"),
    (RebindsItsState, resume_equals_never_having_stopped, "probabilities of epoch"),
    (DrawsFromTheGlobalGenerator, same_seed_gives_same_batches, "global random generator"),
    (DrawsFromTheGlobalGenerator, global_generator_is_left_alone, "global random generator moved"),
    (SeedsTheGlobalGenerator, global_generator_is_left_alone, "global random generator moved"),
    (ChangesTheLogits, inputs_stay_unmodified, "leave logits as they were"),
    (ChangesTheLogits, gradients_stay_untouched, "leave the graph of the logits usable"),
    (ChangesTheEpochUnderway, distribution_stays_as_it_is_within_an_epoch, "observe must not change"),
    (KeepsNonfiniteLogits, nothing_but_finite_logits_is_kept, "must be refused"),
    (CannotDoHalfPrecision, observe_takes_any_floating_type, "float16"),
    (TakesAnyState, states_of_others_are_refused, "must refuse a state"),
    (HandsOutItsOwnMemory, state_holds_tensors_and_plain_values, "must be a copy"),
    (SumsToTwo, distribution_sums_to_one, "must sum to 1"),
)


@pytest.mark.parametrize(
    ("broken", "check", "words"), BROKEN, ids=lambda value: getattr(value, "__name__", None)
)
def test_a_broken_selector_fails_the_check_that_is_about_it(broken, check, words):
    with pytest.raises(AssertionError, match=words):
        check(lambda: broken(num_samples=50, num_classes=4, epochs=6, warm_up=1))


@pytest.mark.filterwarnings("ignore:.* has not observed")  # by an `observe` of its own
@pytest.mark.parametrize("broken", sorted({b for b, _, _ in BROKEN}, key=lambda b: b.__name__))
def test_a_broken_selector_fails_the_whole_contract(broken):
    with pytest.raises((AssertionError, ValueError)):
        check_selector(lambda: broken(num_samples=50, num_classes=4, epochs=6, warm_up=1))


def test_a_selector_that_checks_nothing_is_told_which_argument_it_let_through():
    class ChecksNothing(LeastConfident):
        def observe(self, indices, logits, targets):
            """Takes nothing in, so refuses nothing."""

    with pytest.raises(AssertionError, match="observe must refuse indices that are floats with a TypeError"):
        bad_batches_are_refused_whole(lambda: ChecksNothing(50, 4, 6))


def test_a_selector_that_was_not_set_up_is_told_so():
    class Bare(Selector):
        def __init__(self, num_samples, num_classes, epochs):
            pass

        def measure(self, logits, targets):
            return targets

        def keep(self, indices, values):
            pass

        def build(self, epoch):
            return None

    with pytest.raises(AssertionError, match=r"Bare.__init__ must call super\(\).__init__"):
        check_selector(lambda: Bare(50, 4, 6))
    with pytest.raises(AssertionError, match="make must give a Selector, got int"):
        check_selector(lambda: 5)


def test_a_selector_in_the_place_of_what_makes_one_is_named():
    rule = "make must be a function that takes no arguments and gives a new selector each time, got"
    with pytest.raises(TypeError, match=rf"{rule} a selector; pass lambda: LeastConfident\(\.\.\.\)"):
        check_selector(make())
    with pytest.raises(TypeError, match=rf"{rule} int$"):
        check_selector(5)


def test_a_class_in_the_place_of_what_makes_a_selector_is_told_what_it_takes():
    with pytest.raises(
        TypeError,
        match=r"got LeastConfident, which takes num_samples, num_classes, epochs; pass lambda: Least",
    ):
        check_selector(LeastConfident)


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (MeasuresTheBatch, ValueError, r"measure must return one value a sample, shape \(5,\) .* got \(\)"),
        (MeasuresANumber, TypeError, "measure must return a tensor of one value a sample, or None, got 0"),
    ],
)
def test_training_refuses_what_is_not_one_value_a_sample(wrong, error, words):
    selector = wrong(50, 4, 6)
    with pytest.raises(error, match=words):
        selector.observe(torch.arange(5), torch.zeros(5, 4), torch.zeros(5, dtype=torch.int64))


class InSingle(LeastConfident):
    def build(self, epoch):
        return Weights((self.doubt[:-1] + self.floor).float())


class InLevels(LeastConfident):
    def build(self, epoch):
        return Levels((self.doubt[:-1] > 0.5).to(torch.uint8), np.array([0.1, 0.7], dtype=np.float32))


@pytest.mark.parametrize("method", [InSingle, InLevels])
def test_weights_of_any_real_type_are_drawn_from_as_float64(method):
    check_selector(lambda: method(num_samples=50, num_classes=4, epochs=6, warm_up=1))


class ByPlace(Selector):
    """Reads no logits: the later a sample stands, the likelier it is."""

    learns = False
    keeps_repeats = True

    def measure(self, logits, targets):
        raise NotImplementedError

    def keep(self, indices, values):
        raise NotImplementedError

    def build(self, epoch):
        return Weights(torch.arange(1.0, self.num_samples + 1))


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
def test_a_selector_that_reads_no_logits_is_asked_to_measure_none(check):
    check(lambda: ByPlace(num_samples=50, num_classes=None, epochs=6))
