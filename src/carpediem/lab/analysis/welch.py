"""The difference of two means whose runs are not paired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from carpediem.lab.results import estimate, student_t


@dataclass(frozen=True)
class UnpairedDifference:
    """The mean of ours minus the mean of theirs, with its 95% confidence interval.

    Where one of both is of a single run there is no interval.
    """

    mean: float
    low: float | None
    high: float | None


def welch(ours: Sequence[float], theirs: Sequence[float]) -> UnpairedDifference | None:
    """The difference of means by Welch's t, or None where one of both is empty.

        d ± t sqrt(a + b),  a = s²/n of ours, b = s²/n of theirs
        degrees of freedom = (a + b)² / (a² / (n_ours - 1) + b² / (n_theirs - 1))

    >>> welch([1.0, 2.0], [5.0])
    UnpairedDifference(mean=-3.5, low=None, high=None)
    """
    if not ours or not theirs:
        return None
    one, other = estimate(ours), estimate(theirs)
    mean = one.mean - other.mean
    if one.error is None or other.error is None:
        return UnpairedDifference(mean, None, None)
    a, b = one.error**2, other.error**2
    if a + b < 1e-18:  # all runs alike: that says how coarse the test set is, not how sure the means are
        return UnpairedDifference(mean, None, None)
    degrees = (a + b) ** 2 / (a**2 / (one.count - 1) + b**2 / (other.count - 1))
    half = student_t(max(degrees, 1.0)) * (a + b) ** 0.5
    return UnpairedDifference(mean, mean - half, mean + half)
