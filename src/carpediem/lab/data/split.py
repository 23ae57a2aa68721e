"""A split into training and test samples that is the same on every machine and in every year."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction


def stratified_split(
    labels: Sequence[int], keys: Sequence[str], *, test_share: Fraction
) -> tuple[list[int], list[int]]:
    """Indices of the training and of the test samples, each in ascending order.

    Every class gives the same share to the test set (largest remainders, ceil(N · share) in all), and
    keeps a training sample, unless other classes send all of its keys to the test set. Inside a class the
    samples stand in the order of their keys' sha256, and the first go to the test set: no random generator,
    whose stream might change with a version. Samples with one key (two crops of a photograph) always land on
    the same side.

    Args:
        labels: N class numbers.
        keys: N names, such as file names.
        test_share: strictly between 0 and 1.

    >>> stratified_split([0, 0, 0, 0, 1, 1, 1, 1], list("abcdefgh"), test_share=Fraction(1, 4))
    ([0, 1, 2, 4, 6, 7], [3, 5])
    """
    if not 0 < test_share < 1:
        raise ValueError(f"test_share must lie strictly between 0 and 1, got {test_share}")
    members: dict[int, list[int]] = {}
    for index, label in enumerate(labels):
        members.setdefault(label, []).append(index)
    quota = _quotas({label: len(found) for label, found in members.items()}, test_share)
    in_test: dict[str, bool] = {}
    for label in sorted(members):
        taken = sum(in_test.get(keys[index], False) for index in members[label])
        for index in sorted(members[label], key=lambda i: hashlib.sha256(keys[i].encode()).digest()):
            if keys[index] not in in_test:
                in_test[keys[index]] = taken < quota[label]
                taken += in_test[keys[index]]
    train = [index for index, key in enumerate(keys) if not in_test[key]]
    test = [index for index, key in enumerate(keys) if in_test[key]]
    return train, test


def _quotas(sizes: dict[int, int], share: Fraction) -> dict[int, int]:
    """How many samples of each class go to the test set: largest remainders, one always left to train."""
    quota = {label: int(size * share) for label, size in sizes.items()}
    total = math.ceil(sum(sizes.values()) * share)
    by_remainder = sorted(sizes, key=lambda label: (quota[label] - sizes[label] * share, label))
    for label in by_remainder[: total - sum(quota.values())]:
        quota[label] += 1
    return {label: min(count, sizes[label] - 1) for label, count in quota.items()}
