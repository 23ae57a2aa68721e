"""The contract that every selector keeps, as checks to run on your own.

    from carpediem.testing import CONTRACT, check_selector

    def make():
        return MySelector(num_samples=60, num_classes=4, epochs=8)

    check_selector(make)                                      # everything at once, or with pytest:

    @pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
    def test_my_selector_keeps_the_contract(check):
        check(make)

`make` gives a new selector, built the same way every time, ready for its first epoch. A small one serves best:
some 20 to 1,000 samples, and two epochs more than the warm-up, on the CPU (an accelerator reports bad
batches later, at the next refresh). A broken promise is an `AssertionError` that says which.
"""

from __future__ import annotations

import inspect
import io
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from carpediem.sampler import AdaptiveSampler
from carpediem.selectors.base import DRAWS, Selector, check_measured

Make = Callable[[], Selector]
Check = Callable[[Make], None]
Batch = tuple[Tensor, Tensor, Tensor]
PLAIN = (str, int, float, bool, type(None))
_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


# -- the checks ----------------------------------------------------------------------------------------------


def keep_takes_what_was_measured(make: Make) -> None:
    """`measure` gives one value a sample, which `keep` can write where it keeps them."""
    selector = make()
    if selector.num_classes is None:  # nothing is measured
        return
    indices, logits, targets = next(_batches(selector, epoch=0))
    values = selector.measure(logits.clone(), targets)
    if values is None:
        return
    try:
        check_measured(values, len(indices))
    except (TypeError, ValueError) as error:
        raise AssertionError(str(error)) from None
    try:
        selector.keep(indices, values)
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        raise AssertionError(
            f"keep must take what measure returned, here {values.dtype} of shape {tuple(values.shape)}, it says "
            f"{str(error).splitlines()[0]!r}; let measure return the type of the tensor that keep writes into"
        ) from error


def distribution_sums_to_one(make: Make) -> None:
    """Every epoch's probabilities are float64, at least 0, sum to 1, and `support` of them are positive."""
    selector = make()
    for epoch in _epochs(selector):
        selector.refresh(epoch)
        distribution = selector.distribution
        p = distribution.probabilities()
        assert p.dtype == torch.float64, (
            f"probabilities must be float64, epoch {epoch} has {p.dtype}; let `weights` of the distribution return "
            "float64, or build a carpediem.Weights, which takes any real type"
        )
        assert p.shape == (selector.num_samples,), (
            f"probabilities must have shape ({selector.num_samples},), epoch {epoch} has {tuple(p.shape)}"
        )
        assert bool((p >= 0).all()), f"probabilities must be at least 0, epoch {epoch} has {float(p.min())}"
        total = float(p.sum())
        assert abs(total - 1) < 1e-9, f"probabilities must sum to 1, in epoch {epoch} they sum to {total}"
        positive = int((p > 0).sum())
        assert positive == distribution.support, (
            f"`support` must count the samples that can be drawn: epoch {epoch} has {positive} positive "
            f"probabilities and a support of {distribution.support}"
        )
        some = torch.arange(selector.num_samples - 1, -1, -2, device=p.device)
        assert torch.equal(distribution.probabilities(some), p[some]), (
            "probabilities(indices) must be those entries of probabilities()"
        )
        _observe_epoch(selector, epoch)


def distribution_stays_as_it_is_within_an_epoch(make: Make) -> None:
    """What is observed during an epoch changes nothing before the next refresh."""
    selector = make()
    for epoch in _epochs(selector):
        selector.refresh(epoch)
        before = selector.distribution.probabilities()
        _observe_epoch(selector, epoch)
        assert torch.equal(before, selector.distribution.probabilities()), (
            f"observe must not change the distribution that epoch {epoch} is being drawn from; build a new "
            "one in `build`, from copies"
        )


def inputs_stay_unmodified(make: Make) -> None:
    """`observe` changes neither indices nor logits nor targets."""
    selector = make()
    selector.refresh(0)
    for batch in _batches(selector, epoch=0):
        copies = [t.clone() for t in batch]
        selector.observe(*batch)
        for name, given, copy in zip(("indices", "logits", "targets"), batch, copies, strict=True):
            assert torch.equal(given, copy), f"observe must leave {name} as they were, it changed them"


def gradients_stay_untouched(make: Make) -> None:
    """Logits come with gradients attached; `observe` keeps no graph and changes no gradient."""
    selector = make()
    selector.refresh(0)
    indices, logits, targets = next(_batches(selector, epoch=0))
    leaf = logits.clone().requires_grad_()
    attached = leaf * 1.0
    loss = attached.square().sum() / 2
    selector.observe(indices, attached, targets)
    assert attached.requires_grad, "observe must leave the logits attached to their graph"
    try:
        (gradient,) = torch.autograd.grad(loss, leaf)
    except RuntimeError as error:
        raise AssertionError(f"observe must leave the graph of the logits usable: {error}") from error
    assert torch.equal(gradient, logits), "observe must not change any gradient"
    for name, value in selector.state_dict().items():
        assert not (isinstance(value, Tensor) and value.requires_grad), (
            f"the state must hold no gradients, {name!r} requires one"
        )


def observe_takes_any_floating_type(make: Make) -> None:
    """Logits of bfloat16, float16, float32 and float64, with gradients, and tensors with gaps are taken in."""
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        selector = make()
        for epoch in _epochs(selector):
            try:
                selector.refresh(epoch)
                _observe_with_gaps(selector, epoch, dtype)
            except Exception as error:
                raise AssertionError(
                    f"logits of {dtype} must be taken in: {error}; in measure cast what is kept to your state's type"
                ) from error
            p = selector.distribution.probabilities()
            assert bool(p.isfinite().all()), f"logits of {dtype} must lead to finite probabilities"


def observe_takes_repeated_and_empty_batches(make: Make) -> None:
    """One `observe` may hold an index many times, or nothing at all."""
    selector = make()
    classes = selector.num_classes or 3
    for epoch in _epochs(selector):
        selector.refresh(epoch)
        generator = torch.Generator().manual_seed(epoch)
        indices = torch.randint(0, min(3, selector.num_samples), (50,), generator=generator)
        targets = indices % classes
        selector.observe(indices, torch.randn(50, classes, generator=generator), targets)
        before = selector.state_dict()
        selector.observe(indices[:0], torch.empty(0, classes), targets[:0])
        assert same_state(before, selector.state_dict()), "observing an empty batch must change nothing"
        total = float(selector.distribution.probabilities().sum())
        assert abs(total - 1) < 1e-9, (
            f"repeated indices must leave a distribution that sums to 1, got {total}"
        )


def draws_are_distinct_and_in_range(make: Make) -> None:
    """A batch holds int64 indices in [0, N), each at most once, whatever its size and however it is drawn."""
    for draws in DRAWS:
        largest = _largest_batch(make)
        for size in sorted({1, max(1, largest // 10), max(1, largest // 2), largest}):
            selector = make()
            sampler = AdaptiveSampler(selector, batch_size=size, draws=draws)
            for epoch in _epochs(selector):
                drawn = sampler.next_epoch().cpu()
                n, where = selector.num_samples, f"epoch {epoch}, batch_size {size}, draws={draws!r}"
                assert drawn.dtype == torch.int64, f"draws must be int64, got {drawn.dtype} ({where})"
                assert len(drawn) == n, f"an epoch must hold {n} draws, got {len(drawn)} ({where})"
                low, high = int(drawn.min()), int(drawn.max())
                assert 0 <= low <= high < n, f"draws must lie in [0, {n}), got {low} to {high} ({where})"
                p = selector.distribution.probabilities().cpu()
                assert bool((p[drawn] > 0).all()), f"a sample of probability 0 was drawn ({where})"
                for batch in _runs(drawn, size):
                    assert len(set(batch.tolist())) == len(batch), f"a batch holds a sample twice ({where})"
                _observe_epoch(selector, epoch)


def same_seed_gives_same_batches(make: Make) -> None:
    """Batches depend on the seed, the epoch and what was observed, and on no global random generator."""
    for draws in DRAWS:
        runs = []
        for global_seed, seed in ((1, 5), (2, 5), (1, 6)):
            with _global_generator(global_seed):
                runs.append(_trained(make, seed=seed, draws=draws))
        first, again, other = runs
        for epoch, (one, two) in enumerate(zip(first, again, strict=True)):
            assert torch.equal(one, two), (
                f"the same seed must give the same batches, epoch {epoch} differs (draws={draws!r}): does "
                "something read a global random generator?"
            )
        together, apart = torch.cat(first), torch.cat(other)
        assert not torch.equal(together, apart), f"another seed must give other batches (draws={draws!r})"


def global_generator_is_left_alone(make: Make) -> None:
    """Neither building, observing, refreshing nor drawing reads or seeds torch's global generator."""
    with _global_generator(3):
        before = torch.get_rng_state()
        for draws in DRAWS:
            _trained(make, seed=0, draws=draws)
        assert torch.equal(before, torch.get_rng_state()), (
            "the global random generator moved; draw from `torch.Generator`s of your own"
        )


def state_holds_tensors_and_plain_values(make: Make) -> None:
    """`state_dict` is flat, holds tensors, numbers and strings, shares no memory with the selector."""
    selector = _observed(make)
    state = selector.state_dict()
    for name, value in state.items():
        assert isinstance(name, str), f"a state's keys must be strings, got {name!r}"
        assert isinstance(value, (Tensor, *PLAIN)), (
            f"a state must hold tensors and plain values, {name!r} is a {type(value).__name__}"
        )
    kept = {k: v.clone() if isinstance(v, Tensor) else v for k, v in state.items()}
    _observe_epoch(selector, epoch=99)
    assert same_state(state, kept), "a state must be a copy, a later observe changed it"


def resume_equals_never_having_stopped(make: Make) -> None:
    """A state saved in the middle of any epoch and loaded elsewhere gives the same batches from there on."""
    for draws in DRAWS:
        last, batch_size = _epochs(make()).stop, _batch_size(make)
        for stop in range(last):
            selector = make()
            sampler = AdaptiveSampler(selector, batch_size=batch_size, seed=4, draws=draws)
            for epoch in range(stop):
                sampler.next_epoch()
                _observe_epoch(selector, epoch)
            stream = iter(sampler)
            for _ in range(sampler.batch_size):
                next(stream)
            batches = list(_batches(selector, stop))
            for batch in batches[: len(batches) // 2]:
                selector.observe(*batch)
            saved = _saved_and_loaded({"selector": selector.state_dict(), "sampler": sampler.state_dict()})

            copy = make()
            copied = AdaptiveSampler(copy, batch_size=sampler.batch_size, draws=draws)
            copy.load_state_dict(saved["selector"])
            copied.load_state_dict(saved["sampler"])
            assert same_state(copy.state_dict(), selector.state_dict()), (
                f"loading a state of epoch {stop} must restore all of it"
            )
            where = f"after a resume in epoch {stop} (draws={draws!r})"
            assert list(stream) == list(copied), f"the rest of the epoch differs {where}"
            for batch in batches[len(batches) // 2 :]:
                selector.observe(*batch)
                copy.observe(*batch)
            for epoch in range(stop + 1, last):
                one, two = sampler.next_epoch(), copied.next_epoch()
                assert torch.equal(
                    selector.distribution.probabilities(), copy.distribution.probabilities()
                ), (
                    f"the probabilities of epoch {epoch} differ {where}: is every tensor that `build` reads "
                    "named with add_state, and only written in place?"
                )
                assert torch.equal(one, two), f"the batches of epoch {epoch} differ {where}"
                indices = torch.arange(min(8, selector.num_samples), device=selector.device)
                _same_loss_weights(selector, copy, indices, where)
                _observe_epoch(selector, epoch)
                _observe_epoch(copy, epoch)


def states_of_others_are_refused(make: Make) -> None:
    """A state of another size or method is refused with a message that names both sides, changing nothing."""
    donor = _observed(make)
    state = donor.state_dict()
    changes: list[tuple[str, Any]] = [
        ("num_samples", donor.num_samples + 1),
        ("method", "SomethingElse"),
    ]
    for name, other in changes:
        selector = make()
        before = selector.state_dict()
        error = _refused(
            partial(selector.load_state_dict, {**state, name: other}),
            f"load_state_dict must refuse a state whose {name} is {other!r}",
        )
        for side in (str(other), str(state[name])):
            assert side in error, (
                f"a refused state's {name} must be named on both sides; {side!r} not in {error!r}"
            )
        assert same_state(before, selector.state_dict()), "a refused state must change nothing"
    for name, value in state.items():
        if isinstance(value, Tensor) and name.startswith("state."):
            selector = make()
            before = selector.state_dict()
            wrong = torch.cat((value, value[:1]))
            error = _refused(
                partial(selector.load_state_dict, {**state, name: wrong}),
                f"load_state_dict must refuse a state whose {name!r} has another shape",
            )
            assert name.removeprefix("state.") in error, f"the error must name {name!r}, it says {error!r}"
            assert same_state(before, selector.state_dict()), "a refused state must change nothing"


def epochs_out_of_order_are_refused(make: Make) -> None:
    """`refresh` goes forwards: an epoch again, an earlier one, or one beyond `epochs` is refused."""
    selector = _observed(make)
    last = selector.epoch
    wrong = [last, last - 1, -1]
    if selector.epochs is not None:
        wrong.append(selector.epochs)
    for epoch in wrong:
        before = selector.state_dict()
        error = _refused(
            partial(selector.refresh, epoch), f"refresh({epoch}) after epoch {last} must be refused"
        )
        for part in ("epoch", str(epoch)):
            assert part in error, f"the error must name epoch {epoch}, it says {error!r}"
        assert same_state(before, selector.state_dict()), "a refused epoch must change nothing"


def bad_batches_are_refused_whole(make: Make) -> None:
    """A bad batch is a TypeError or ValueError that names the argument, and leaves the state as it was."""
    selector = make()
    if selector.num_classes is None:  # it reads no logits, so there is nothing to refuse
        return
    selector.refresh(0)
    _observe_epoch(selector, 0)
    indices, logits, targets = next(_batches(selector, epoch=1))
    n, k = selector.num_samples, selector.num_classes

    def put(tensor: Tensor, value: float) -> Tensor:
        changed = tensor.clone()
        changed.view(-1)[-1] = value
        return changed

    bad: list[tuple[str, str, type[Exception], tuple[Any, Any, Any]]] = [
        ("indices", "that are floats", TypeError, (indices.float(), logits, targets)),
        ("indices", "in a list", TypeError, (indices.tolist(), logits, targets)),
        ("indices", "beyond the data set", ValueError, (put(indices, n), logits, targets)),
        ("indices", "below 0", ValueError, (put(indices, -1), logits, targets)),
        ("indices", "of two dimensions", ValueError, (indices[:, None], logits, targets)),
        ("logits", "of too few rows", ValueError, (indices, logits[1:], targets)),
        ("logits", "of too many classes", ValueError, (indices, torch.cat((logits, logits), 1), targets)),
        ("logits", "that are integers", TypeError, (indices, logits.long(), targets)),
        ("targets", "beyond the classes", ValueError, (indices, logits, put(targets, k))),
        ("targets", "below 0", ValueError, (indices, logits, put(targets, -1))),
        ("targets", "that are too few", ValueError, (indices, logits, targets[1:])),
        ("targets", "that are floats", TypeError, (indices, logits, targets.float())),
    ]
    for name, what, kind, batch in bad:
        before = selector.state_dict()
        error = _refused(
            partial(selector.observe, *batch),
            f"observe must refuse {name} {what} with a {kind.__name__}",
            kind,
        )
        assert name in error, f"the error about {name} {what} must name them, it says {error!r}"
        assert same_state(before, selector.state_dict()), f"refused {name} {what} must change nothing"


def nothing_but_finite_logits_is_kept(make: Make) -> None:
    """A batch with NaN or infinite logits is refused, or passed over and counted with on_nonfinite="skip"."""
    selector = make()
    if selector.num_classes is None:
        return
    selector.refresh(0)
    _observe_epoch(selector, 0)
    indices, logits, targets = next(_batches(selector, epoch=1))
    for value in (float("nan"), float("inf"), -float("inf")):
        spoilt = logits.clone()
        spoilt[len(spoilt) // 2, -1] = value
        before, count = selector.state_dict(), selector.skipped
        if selector.on_nonfinite == "skip":
            selector.observe(indices, spoilt, targets)
            assert selector.skipped == count + 1, (
                f"a batch with a logit of {value} must be counted in `skipped`"
            )
            before["state.faults"] = selector.state_dict()["state.faults"]
        else:
            error = _refused(
                partial(selector.observe, indices, spoilt, targets), f"logits with a {value} must be refused"
            )
            assert "logits" in error, (
                f"the error about a logit of {value} must name logits, it says {error!r}"
            )
        assert same_state(before, selector.state_dict()), f"a logit of {value} must leave the state as it was"


def what_is_to_be_dropped_changes_no_sample(make: Make) -> None:
    """`keep` takes the index N, as an accelerator marks a batch that must not be kept, and forgets it."""
    selector = _observed(make)
    if selector.num_classes is None or selector.epoch < selector.warm_up:
        return
    indices, logits, targets = next(_batches(selector, epoch=1))
    values = selector.measure(logits, targets)
    if values is None:
        return
    before = selector.build(selector.epoch).probabilities()
    remedy = "give every tensor of add_state that `keep` writes into one row more than there are samples"
    try:
        selector.keep(torch.full_like(indices, selector.num_samples), values)
    except (IndexError, RuntimeError, ValueError) as error:
        raise AssertionError(
            f"keep must take the index num_samples = {selector.num_samples}, which on an accelerator marks a batch "
            f"to be dropped, it says {str(error).splitlines()[0]!r}; {remedy}"
        ) from error
    assert torch.equal(before, selector.build(selector.epoch).probabilities()), (
        f"values kept for the index num_samples = {selector.num_samples} must change no probability; {remedy}"
    )


def repeats_of_one_keep_count_as_later_steps(make: Make) -> None:
    """With `keeps_repeats`, steps that come in one `keep` leave what they leave one after the other."""
    together, apart = _observed(make), _observed(make)
    if together.num_classes is None or not together.keeps_repeats or together.epoch < together.warm_up:
        return
    batches = [next(_batches(together, epoch)) for epoch in (1, 2, 3)]
    indices = batches[0][0]
    steps = [together.measure(logits, targets) for _, logits, targets in batches]
    values = [step for step in steps if isinstance(step, Tensor) and step.shape == indices.shape]
    if len(values) < len(steps):
        return
    together.keep(indices.repeat(len(values)), torch.cat(values))
    for step in values:
        apart.keep(indices, step)
    found, wanted = (one.build(one.epoch).probabilities() for one in (together, apart))
    # As near as sums of single precision come.
    assert torch.allclose(found, wanted, rtol=1e-3, atol=0.0), (
        "with keeps_repeats a later value of a sample in one keep must count as a later step, it leaves other "
        "probabilities than one keep a step does; leave keeps_repeats False, or keep the later value"
    )


def loss_weights_are_positive_or_none(make: Make) -> None:
    """`loss_weights` gives None or one finite positive number a sample."""
    selector = make()
    for epoch in _epochs(selector):
        selector.refresh(epoch)
        indices = torch.arange(selector.num_samples, device=selector.device)[::3]
        weights = selector.loss_weights(indices)
        if weights is not None:
            assert weights.shape == indices.shape, (
                f"loss_weights must have shape {tuple(indices.shape)}, got {tuple(weights.shape)}"
            )
            assert bool((weights.isfinite() & (weights > 0)).all()), "loss_weights must be finite and above 0"
        _observe_epoch(selector, epoch)


CONTRACT: tuple[Check, ...] = (
    keep_takes_what_was_measured,
    distribution_sums_to_one,
    distribution_stays_as_it_is_within_an_epoch,
    inputs_stay_unmodified,
    gradients_stay_untouched,
    observe_takes_any_floating_type,
    observe_takes_repeated_and_empty_batches,
    draws_are_distinct_and_in_range,
    same_seed_gives_same_batches,
    global_generator_is_left_alone,
    state_holds_tensors_and_plain_values,
    resume_equals_never_having_stopped,
    states_of_others_are_refused,
    epochs_out_of_order_are_refused,
    bad_batches_are_refused_whole,
    nothing_but_finite_logits_is_kept,
    what_is_to_be_dropped_changes_no_sample,
    repeats_of_one_keep_count_as_later_steps,
    loss_weights_are_positive_or_none,
)


def check_selector(make: Make) -> None:
    """Runs the whole contract on the selectors that `make` gives.

    >>> from carpediem import RandomBatch
    >>> check_selector(lambda: RandomBatch(num_samples=30, num_classes=3, epochs=3))
    """
    _refuse_what_makes_nothing(make)
    selector = make()
    assert isinstance(selector, Selector), f"make must give a Selector, got {type(selector).__name__}"
    assert hasattr(selector, "num_samples"), (
        f"{type(selector).__name__}.__init__ must call super().__init__(num_samples, num_classes, epochs)"
    )
    for check in CONTRACT:
        check(make)


# -- what the checks have in common --------------------------------------------------------------------------


def _refuse_what_makes_nothing(make: object) -> None:
    """A selector or a class in the place of the function that makes one."""
    rule = "make must be a function that takes no arguments and gives a new selector each time"
    if not callable(make):
        kind = type(make).__name__
        found = f"a selector; pass lambda: {kind}(...)" if isinstance(make, Selector) else kind
        raise TypeError(f"{rule}, got {found}")
    taken = inspect.signature(make).parameters.values()
    if needed := [one.name for one in taken if one.default is one.empty and one.kind not in _ANY_NUMBER]:
        name = getattr(make, "__name__", type(make).__name__)
        raise TypeError(
            f"{rule}, got {name}, which takes {', '.join(needed)}; pass lambda: {name}({needed[0]}=..., ...)"
        )


def same_state(one: dict[str, Any], two: dict[str, Any]) -> bool:
    """Whether two states hold the same, tensors bit for bit.

    >>> same_state({"a": torch.ones(2)}, {"a": torch.ones(2)}), same_state({"a": 1}, {"a": 2})
    (True, False)
    """
    return one.keys() == two.keys() and all(_same(value, two[name]) for name, value in one.items())


def _same(one: object, two: object) -> bool:
    if isinstance(one, Tensor) and isinstance(two, Tensor):
        return one.dtype == two.dtype and torch.equal(one, two)
    return type(one) is type(two) and one == two


def _epochs(selector: Selector) -> range:
    """The epochs to go through: the warm-up and two more, if there are as many."""
    wanted = selector.warm_up + 2
    return range(wanted if selector.epochs is None else min(wanted, selector.epochs))


def _largest_batch(make: Make) -> int:
    """The largest batch that every epoch can be drawn in, whichever way."""
    selector = make()
    n, largest = selector.num_samples, selector.num_samples
    for epoch in _epochs(selector):
        selector.refresh(epoch)
        # A systematic epoch holds each sample at most once a batch: N draws need N / support batches or more.
        largest = min(largest, n // math.ceil(n / selector.distribution.support))
        _observe_epoch(selector, epoch)
    return largest


def _batch_size(make: Make) -> int:
    """A batch of a few samples."""
    return max(1, _largest_batch(make) // 10)


def _batches(selector: Selector, epoch: int, size: int = 7) -> Iterator[Batch]:
    """A pass over most of the samples, with predictions that settle for some and flip for others."""
    n, k = selector.num_samples, selector.num_classes or 3
    generator = torch.Generator().manual_seed(1000 + epoch)
    order = torch.randperm(n, generator=generator)[: max(1, n - n // 5)]
    for indices in _runs(order, size):
        logits = torch.randn(len(indices), k, generator=generator)
        logits[torch.arange(len(indices)), indices % k] += 4.0 * (indices % 3)
        yield indices.clone(), logits, (indices * 7) % k


def _runs(values: Tensor, size: int) -> list[Tensor]:
    return [values[start : start + size] for start in range(0, len(values), size)]


def _observe_epoch(selector: Selector, epoch: int) -> None:
    for batch in _batches(selector, epoch):
        selector.observe(*batch)


def _trained(make: Make, *, seed: int, draws: Any) -> list[Tensor]:
    """The indices of each epoch of a new selector, as a sampler draws them."""
    batch_size = _batch_size(make)
    selector = make()
    sampler = AdaptiveSampler(selector, batch_size=batch_size, seed=seed, draws=draws)
    out = []
    for epoch in _epochs(selector):
        out.append(sampler.next_epoch().cpu())
        _observe_epoch(selector, epoch)
    return out


def _observe_with_gaps(selector: Selector, epoch: int, dtype: torch.dtype) -> None:
    for indices, logits, targets in _batches(selector, epoch):
        gaps = torch.zeros(len(logits), 2 * logits.shape[1], dtype=dtype)[:, ::2]
        gaps.copy_(logits)
        selector.observe(
            torch.stack((indices, indices), dim=1)[:, 1],
            gaps.requires_grad_(),
            torch.stack((targets, targets), dim=1)[:, 1],
        )


def _observed(make: Make) -> Selector:
    """A selector that stands in the last epoch to go through."""
    selector = make()
    for epoch in _epochs(selector):
        selector.refresh(epoch)
        _observe_epoch(selector, epoch)
    return selector


def _saved_and_loaded(state: dict[str, Any]) -> dict[str, Any]:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    loaded: dict[str, Any] = torch.load(buffer, weights_only=True)
    return loaded


def _same_loss_weights(one: Selector, two: Selector, indices: Tensor, where: str) -> None:
    first, second = one.loss_weights(indices), two.loss_weights(indices)
    if first is None or second is None:
        assert first is second, f"loss_weights are None on one side only {where}"
    else:
        assert torch.equal(first, second), f"loss_weights differ {where}"


def _refused(call: Callable[[], object], promise: str, *kinds: type[Exception]) -> str:
    """The message of the error that `call` raises; no error breaks the promise."""
    try:
        call()
    except Exception as error:
        raised = error
    else:
        raise AssertionError(f"{promise}; it was accepted")
    assert isinstance(raised, kinds or (TypeError, ValueError)), (
        f"{promise}; it raised {type(raised).__name__}: {raised}"
    )
    return str(raised)


@contextmanager
def _global_generator(seed: int) -> Iterator[None]:
    """torch's global generator at `seed`, put back afterwards."""
    before = torch.get_rng_state()
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(before)
