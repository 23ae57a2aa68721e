"""Times one `Record.observe` beside `RecencyBias.observe` and the argmax alone: python benchmarks/bench_record.py."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch
from measure import seconds
from torch import Tensor

from carpediem import RecencyBias, Record
from carpediem.record import (
    Column,
    FirstLearnt,
    Forgetting,
    GivenLabel,
    LastLabels,
    LastLoss,
    LastTurn,
    MeanMargin,
    Moments,
    RunningMargin,
    TimesRight,
    TimesSeen,
)

SAMPLES, CLASSES, BATCH, STEPS, ROUNDS = 50_000, 10, 128, 128, 60


def every_column() -> list[Column]:
    """One of each of the library's columns."""
    first = [GivenLabel(), LastLabels(10), Moments(), TimesSeen(), TimesRight(), MeanMargin()]
    return [*first, RunningMargin(), LastTurn(), LastLoss(), Forgetting(), FirstLearnt()]


def main() -> None:
    """Time all in turns, and print each with its ratio to the selector, both beyond the argmax."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(CLASSES, (SAMPLES,), generator=generator)
    order = torch.randperm(SAMPLES, generator=generator)[: STEPS * BATCH].view(STEPS, BATCH)
    steps = [(i, torch.randn(BATCH, CLASSES, generator=generator), labels[i]) for i in order]

    def through(observe: Callable[[Tensor, Tensor, Tensor], object]) -> Callable[[], None]:
        def action() -> None:
            for step in steps:
                observe(*step)

        return action

    actions = {
        "the argmax": through(lambda indices, logits, targets: logits.argmax(dim=1)),
        "RecencyBias.observe": through(RecencyBias(SAMPLES, CLASSES, epochs=100).observe),
        "the last labels": through(Record(SAMPLES, CLASSES, columns=[LastLabels(10)]).observe),
        "the default columns": through(Record(SAMPLES, CLASSES).observe),
        "every column": through(Record(SAMPLES, CLASSES, columns=every_column()).observe),
    }
    timings: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(ROUNDS):
        for name, action in actions.items():
            timings[name].append(1e6 * seconds(action) / STEPS)
    argmax, selector = timings["the argmax"], timings["RecencyBias.observe"]
    print(
        f"microseconds for {BATCH} of {SAMPLES:,} samples, {CLASSES} classes; beyond the argmax, over RecencyBias's"
    )
    for name, taken in timings.items():
        ratios = [(t - a) / (s - a) for t, a, s in zip(taken, argmax, selector, strict=True)]
        print(f"{name:22} {statistics.median(taken):7.1f} {statistics.median(ratios):7.2f}")


if __name__ == "__main__":
    main()
