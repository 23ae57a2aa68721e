"""Splits into training and test samples that are the same on every machine and in every year."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction

from .errors import DataError


def stratified_split(
    labels: Sequence[int], keys: Sequence[str], *, test_share: Fraction
) -> tuple[list[int], list[int]]:
    """Indices of the training and of the test samples, each in ascending order.

    Every class gives the same share to the test set (largest remainders, ceil(N · share) in all), and
    keeps a training sample. Inside a class the samples stand in the order of their keys' sha256, and the first go
    to the test set: no random generator, whose stream might change with a version.

    Args:
        labels: N class numbers.
        keys: N names that differ, such as file names.
        test_share: strictly between 0 and 1.

    >>> stratified_split([0, 0, 0, 0, 1, 1, 1, 1], list("abcdefgh"), test_share=Fraction(1, 4))
    ([0, 1, 2, 4, 6, 7], [3, 5])
    """
    if not 0 < test_share < 1:
        raise ValueError(f"test_share must lie strictly between 0 and 1, got {test_share}")
    members = _members(labels)
    quota = _quotas({label: len(found) for label, found in members.items()}, test_share)
    tested = {
        index
        for label, found in members.items()
        for index in sorted(found, key=lambda i: _digest(keys[i]))[: quota[label]]
    }
    return [index for index in range(len(keys)) if index not in tested], sorted(tested)


def counted_split(
    labels: Sequence[int], keys: Sequence[str], *, train: int, test: int
) -> tuple[list[int], list[int]]:
    """Indices of `train` training and `test` test samples of every class, in ascending order; others are left out.

    The sha256 of its key says whether a sample is taken, and another one on which side. Samples of several classes
    with one key (a photograph of two things) never fall on both sides: smaller classes choose first, and a sample
    that would overfill its side of a larger one is passed over there.

    Args:
        labels: N class numbers.
        keys: N names, such as file names, that differ within a class.

    >>> counted_split([0, 0, 0, 1, 1], list("abccd"), train=1, test=1)
    ([2, 3], [1, 4])
    """
    members = _members(labels)
    is_test: dict[str, bool] = {}
    sides: dict[bool, list[int]] = {False: [], True: []}
    for label in sorted(members, key=lambda label: (len(members[label]), label)):
        free: list[int] = []
        room = {False: train, True: test}
        for index in sorted(members[label], key=lambda i: _digest(keys[i])):
            if len(free) == sum(room.values()):
                break
            side = is_test.get(keys[index])
            if side is None:
                free.append(index)
            elif room[side]:
                room[side] -= 1
                sides[side].append(index)
        if len(free) < sum(room.values()):
            raise DataError(
                f"class {label} must have {train} training and {test} test samples that no other class has on the "
                f"other side, got {len(members[label])} samples; split into fewer"
            )
        for place, index in enumerate(sorted(free, key=lambda i: _digest(f"side of {keys[i]}"))):
            is_test[keys[index]] = place < room[True]
            sides[is_test[keys[index]]].append(index)
    return sorted(sides[False]), sorted(sides[True])


def _members(labels: Sequence[int]) -> dict[int, list[int]]:
    """The indices of each class's samples."""
    members: dict[int, list[int]] = {}
    for index, label in enumerate(labels):
        members.setdefault(label, []).append(index)
    return members


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="surrogateescape")).digest()


def _quotas(sizes: dict[int, int], share: Fraction) -> dict[int, int]:
    """How many samples of each class go to the test set: largest remainders, one always left to train."""
    quota = {label: int(size * share) for label, size in sizes.items()}
    total = math.ceil(sum(sizes.values()) * share)
    by_remainder = sorted(sizes, key=lambda label: (quota[label] - sizes[label] * share, label))
    for label in by_remainder[: total - sum(quota.values())]:
        quota[label] += 1
    return {label: min(count, sizes[label] - 1) for label, count in quota.items()}
