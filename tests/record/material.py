"""Histories and records for the tests of records."""

import torch

from carpediem.record import (
    FirstLearnt,
    Forgetting,
    GivenLabel,
    LastLabels,
    LastLoss,
    LastTurn,
    MeanMargin,
    Moments,
    Record,
    RunningMargin,
    TimesRight,
    TimesSeen,
)

SCORES = (
    *("label", "majority", "agreement", "uncertainty", "confidence", "variability", "correctness"),
    *("mean_margin", "running_margin", "times_seen", "times_right"),
    *("last_loss", "forgotten", "learnt_at", "turned_at"),
)


def every_column(window=10, decay=0.7):
    """One of each of the library's columns."""
    first = [GivenLabel(), LastLabels(window), Moments(), TimesSeen(), TimesRight(), MeanMargin()]
    return [*first, RunningMargin(decay), LastTurn(), LastLoss(), Forgetting(), FirstLearnt()]


def full_record(num_samples, num_classes, *, window=10, decay=0.7, **options):
    """A record with every column."""
    return Record(num_samples, num_classes, columns=every_column(window, decay), **options)


def history(num_samples, num_classes, *, steps, seed, most=12, dtype=torch.float32):
    """Batches of (indices, logits, targets): some samples never occur, some several times in a batch.

    A sample's logits lean towards a class that changes now and then, so that predictions persist and turn.
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(num_classes, (num_samples,), generator=generator)
    reach = max(1, num_samples - num_samples // 8)
    batches = []
    for _ in range(steps):
        size = int(torch.randint(most + 1, (1,), generator=generator))
        indices = torch.randint(reach, (size,), generator=generator)
        logits = torch.randn(size, num_classes, generator=generator) * 2
        logits[torch.arange(size), (indices + labels[indices]) % num_classes] += 1.5
        batches.append((indices, logits.to(dtype), labels[indices]))
    return batches


def trained(num_samples=30, num_classes=4, *, steps=40, seed=0, **options):
    """A record with every column after some steps."""
    record = full_record(num_samples, num_classes, **options)
    for batch in history(num_samples, num_classes, steps=steps, seed=seed):
        record.observe(*batch)
    return record


def same(first, second):
    """Whether two states hold the same, bit for bit."""
    return first.keys() == second.keys() and all(
        type(value) is type(second[name])
        and (
            torch.equal(value.view(torch.uint8), second[name].view(torch.uint8))
            if isinstance(value, torch.Tensor)
            else value == second[name]
        )
        for name, value in first.items()
    )
