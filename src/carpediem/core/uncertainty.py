"""How inconsistent a window of predictions is, and the index it gets (Eq. 5 to 7)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ROUNDING = 2e-15  # more than the error of `window_uncertainty`, less than what tells two uncertainties apart


def window_uncertainty(counts: Sequence[int], num_classes: int) -> float:
    """Normalised entropy of a window whose labels occur `counts` times.

        p_j = counts_j / sum(counts)                   (Eq. 5)
        U   = -sum_j p_j log p_j / log k               (Eq. 6)

    Args:
        counts: how often each label that occurs was predicted; their order does not matter.
        num_classes: k, at least 2.

    Returns:
        U in [0, 1]. A sample never yet predicted (no counts) is wholly uncertain: 1.

    >>> window_uncertainty([5, 5], num_classes=2)
    1.0
    >>> window_uncertainty([10], num_classes=2)
    0.0
    """
    total = sum(counts)
    if total == 0:
        return 1.0
    entropy = math.fsum(c / total * math.log(total / c) for c in counts)
    return min(entropy / math.log(num_classes), 1.0)


def index_level(uncertainty: NDArray[np.float64], num_samples: int) -> NDArray[np.float64]:
    """Quantisation index of each uncertainty: 0 for the most uncertain, N for the settled.

        Q(z) = ceil((1 - z) / D),  D = 1/N             (Eq. 7)

    >>> index_level(np.array([1.0, 0.25, 0.0]), num_samples=10)
    array([ 0.,  8., 10.])
    """
    # float64: at N = 1,281,167 and q = 10, float32 puts some label-count patterns one index off. float64 is off
    # only where (1 - z) N is a whole number, as for three equal counts of k = 3: so z's rounding
    # error is taken off before rounding up. Adding 0 turns -0 into 0.
    certainty = 1.0 - np.asarray(uncertainty, dtype=np.float64)
    return np.ceil((certainty - ROUNDING) * num_samples) + 0.0


def pressed_weights(
    index: NDArray[np.float64] | NDArray[np.int64], num_samples: int, pressure: float
) -> NDArray[np.float64]:
    """Sampling weight of each index, not yet normalised.

        w = s^(-index / N)                             (Eq. 1 with the rank, Eq. 8 with Q)

    The index runs from 0 to N, so the likeliest sample is at most `pressure` times likelier than the
    least likely one, and no weight is zero (Lemma 1).

    >>> pressed_weights(np.array([0, 50, 100]), num_samples=100, pressure=100.0)
    array([1.  , 0.1 , 0.01])
    """
    weights: NDArray[np.float64] = np.exp(
        np.asarray(index, dtype=np.float64) * (-math.log(pressure) / num_samples)
    )
    return weights
