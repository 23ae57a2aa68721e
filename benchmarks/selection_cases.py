"""What `bench_selection.py` measures. Each case is run in a process of its own and returns raw numbers."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from measure import in_turns, resident_bytes, seconds
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import BatchSampler, RandomSampler, Sampler, WeightedRandomSampler

from carpediem import AdaptiveSampler, RecencyBias
from carpediem.selectors.base import Draws

BATCH = 128
LARGE_BATCH = 4096
CLASSES = 10
EPOCHS = 100_000  # so many that the pressure stays at its start however many epochs are timed
FIRST_EPOCH = 12  # the warm-up of 10 is over
SETTLED = 0.78  # share of samples whose prediction never changes
PATTERN = 1 << 20  # samples whose histories are recorded; those of a larger data set repeat them
BLOCK = 1 << 16
MULTINOMIAL_LIMIT = 1 << 24  # the most categories that torch.multinomial takes
WHOLE_CHOICE = 2_000_000  # from there on only a part of an epoch is drawn by NumPy's choice

Raw = dict[str, Any]


def trained_selector(num_samples: int) -> RecencyBias:
    """Recency Bias as it is found in the middle of training: q = 10, k = 10, s = 100, windows of every shape.

    A sample was drawn a Poisson number of times, as independent draws make it, so that some windows are not
    full. Most samples are settled, the others flip at rates from never to always.
    """
    selector = RecencyBias(num_samples, CLASSES, EPOCHS)
    history, random = selector.history, np.random.default_rng(0)
    recorded = min(num_samples, PATTERN)
    for start in range(0, recorded, BLOCK):
        size = min(BLOCK, recorded - start)
        label = random.integers(0, CLASSES, size)
        flips = np.where(random.random(size) < SETTLED, 0.0, random.random(size))
        times = random.poisson(FIRST_EPOCH, size)
        for number in range(int(times.max())):
            drawn = np.flatnonzero(times > number)
            other = random.integers(0, CLASSES, len(drawn))
            predicted = np.where(random.random(len(drawn)) < flips[drawn], other, label[drawn])
            history.record(torch.from_numpy(drawn + start), torch.from_numpy(predicted))
    for start in range(recorded, num_samples, recorded):
        stop = min(start + recorded, num_samples)
        history.labels[:, start:stop] = history.labels[:, : stop - start]
        history.cursor[start:stop] = history.cursor[: stop - start]
    # A step of its own, lest it warn that nothing has been observed.
    selector.observe(torch.arange(2), torch.eye(2, CLASSES), torch.zeros(2, dtype=torch.int64))
    return selector


def adaptive_sampler(
    selector: RecencyBias, *, batch_size: int = BATCH, draws: Draws | None = None
) -> AdaptiveSampler:
    """The sampler over it, refreshed once and ready for the next epoch."""
    sampler = AdaptiveSampler(selector, batch_size=batch_size, draws=draws)
    sampler.set_epoch(max(selector.epoch + 1, FIRST_EPOCH))
    next(iter(sampler))
    return sampler


def whole_epoch(sampler: Sampler[int], batch_size: int = BATCH) -> Callable[[], None]:
    """An action that draws all batches of the sampler's next epoch."""
    return lambda: exhaust(BatchSampler(sampler, batch_size, False))


def exhaust(items: Iterable[object]) -> None:
    deque(items, maxlen=0)


def epoch_case(num_samples: int, budget: float) -> Raw:
    """A whole epoch, refresh included, beside what else draws one."""
    selector = trained_selector(num_samples)
    sampler = adaptive_sampler(selector)
    ours = whole_epoch(sampler)
    p = selector.distribution.probabilities()
    occupied = np.unique(selector.history.levels().numpy())
    raw: Raw = {
        "levels_that_occur": len(occupied),
        "likeliest_over_least_likely": float(p.max() / p.min()),
        "random": asdict(in_turns(ours, whole_epoch(RandomSampler(range(num_samples))), budget=budget)),
    }
    independent = whole_epoch(adaptive_sampler(selector, draws="independent"))
    raw["independent"] = asdict(
        in_turns(independent, whole_epoch(RandomSampler(range(num_samples))), budget=budget)
    )
    large = whole_epoch(adaptive_sampler(selector, batch_size=LARGE_BATCH), LARGE_BATCH)
    shuffled = whole_epoch(RandomSampler(range(num_samples)), LARGE_BATCH)
    raw["large_batches"] = asdict(in_turns(large, shuffled, budget=budget / 2))
    raw["refresh"] = [seconds(lambda: selector.refresh(selector.epoch + 1)) for _ in range(5)]
    sampler.set_epoch(selector.epoch + 1)
    if num_samples <= MULTINOMIAL_LIMIT:
        # Its weights are computed beforehand; ours are part of the refresh.
        weighted = WeightedRandomSampler(p, num_samples)  # type: ignore[arg-type]  # a tensor is documented
        raw["weighted"] = asdict(in_turns(ours, whole_epoch(weighted), budget=budget))
    raw["choice"] = _choice(ours, p.numpy(), budget)
    raw["released"] = _released(p.numpy(), budget)
    return raw


def _choice(ours: Callable[[], None], p: NDArray[np.float64], budget: float) -> Raw:
    """NumPy's `Generator.choice` for a whole epoch; its time is extrapolated where that takes too long."""
    generator, n = np.random.default_rng(0), len(p)
    if n <= WHOLE_CHOICE:
        return asdict(in_turns(ours, lambda: generator.choice(n, n, p=p), budget=budget / 4))
    fixed = min(seconds(lambda: generator.choice(n, 1, p=p)) for _ in range(2))
    part = seconds(lambda: generator.choice(n, WHOLE_CHOICE, p=p))
    return {
        "setup": fixed,
        "draws": WHOLE_CHOICE,
        "setup_and_draws": part,
        "extrapolated": fixed + max(part - fixed, 0) * n / WHOLE_CHOICE,
    }


def _released(p: NDArray[np.float64], budget: float) -> Raw:
    """The released code's draw of one batch, extrapolated to the batches of an epoch."""
    batches: list[float] = []
    begin = time.perf_counter()
    while len(batches) < 3 or (len(batches) < 50 and time.perf_counter() - begin < budget / 8):
        # The legacy generator is what the released code calls.
        batches.append(seconds(lambda: np.random.choice(len(p), BATCH, replace=False, p=p)))  # noqa: NPY002
    return {"batches": batches, "extrapolated": float(np.median(batches)) * -(-len(p) // BATCH)}


def first_batch_case(num_samples: int, budget: float) -> Raw:
    """From `iter` to the first batch, with and without the refresh, beside one `torch.randperm`."""
    selector = trained_selector(num_samples)
    sampler = adaptive_sampler(selector)

    def first_batch() -> list[int]:
        return next(iter(BatchSampler(sampler, BATCH, False)))

    pair = in_turns(first_batch, lambda: torch.randperm(num_samples), budget=budget, fewest=5)
    refreshed: list[float] = []
    for _ in range(3):
        selector.refresh(selector.epoch + 1)
        sampler.set_epoch(selector.epoch)
        refreshed.append(seconds(first_batch))
    return {"with_refresh": asdict(pair), "without_refresh": refreshed}


def observe_case(sizes: list[int], calls: int) -> Raw:
    """One `observe` and one `argmax` of a batch, the sizes in turns; indices are distinct and new each call."""
    selectors = [trained_selector(size) for size in sizes]
    random, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    logits = torch.randn(64, BATCH, CLASSES, generator=generator)
    targets = torch.randint(0, CLASSES, (BATCH,), generator=generator)
    argmax: list[float] = []
    observe: list[list[float]] = [[] for _ in sizes]

    def step(selector: RecencyBias, indices: Tensor, batch: Tensor) -> float:
        return seconds(lambda: selector.observe(indices, batch, targets))

    def argmax_of(batch: Tensor) -> float:
        return seconds(lambda: batch.argmax(dim=1))

    for call in range(calls):
        batch = logits[call % len(logits)]
        argmax.append(argmax_of(batch))
        for selector, timings in zip(selectors, observe, strict=True):
            indices = torch.from_numpy(random.choice(selector.num_samples, BATCH, replace=False))
            timings.append(step(selector, indices, batch))
    skip = calls // 10  # the first calls find nothing in the caches yet
    return {
        "argmax": argmax[skip:],
        "observe": {str(n): t[skip:] for n, t in zip(sizes, observe, strict=True)},
    }


def memory_case(num_samples: int) -> Raw:
    """Growth of the peak of resident memory from nothing to the end of the second selected epoch."""
    _train(1000, lambda stage: None)  # what is loaded on first use is no cost of a sample
    before, _ = resident_bytes()
    peaks: dict[str, int] = {}

    def note(stage: str) -> None:
        peaks[stage] = resident_bytes()[1] - before

    _train(num_samples, note)
    return {"before": before, "peaks": peaks}


def _train(num_samples: int, note: Callable[[str], None]) -> None:
    selector = trained_selector(num_samples)
    note("history")
    sampler = AdaptiveSampler(selector, batch_size=BATCH)
    sampler.set_epoch(FIRST_EPOCH)
    random = np.random.default_rng(0)
    targets = torch.zeros(BATCH, dtype=torch.int64)
    # The second refresh finds the first one's distribution still there: that is how training goes on.
    for stage in ("first epoch", "second epoch"):
        for _ in range(100):
            indices = torch.from_numpy(random.choice(num_samples, BATCH, replace=False))
            selector.observe(indices, torch.randn(BATCH, CLASSES), targets)
        exhaust(BatchSampler(sampler, BATCH, False))
        note(stage)


def random_memory_case(num_samples: int) -> Raw:
    """The same growth for `RandomSampler`, which holds the epoch as a list of Python integers."""
    exhaust(BatchSampler(RandomSampler(range(1000)), BATCH, False))
    before, _ = resident_bytes()
    next(iter(BatchSampler(RandomSampler(range(num_samples)), BATCH, False)))
    return {"before": before, "peak": resident_bytes()[1] - before}


def weighted_limit_case(num_samples: int) -> Raw:
    """What `WeightedRandomSampler` does with that many samples, all equally likely."""
    weights = torch.ones(num_samples, dtype=torch.float64)
    draws = 100_000
    start = time.perf_counter()
    try:
        drawn = np.array(list(WeightedRandomSampler(weights, draws)))  # type: ignore[arg-type]
    except RuntimeError as error:
        return {"outcome": f"RuntimeError: {str(error).splitlines()[0]}"}
    share = float((drawn >= num_samples // 2).mean())
    return {
        "outcome": f"{draws:,} draws, {share:.1%} from the upper half",
        "seconds": time.perf_counter() - start,
    }
