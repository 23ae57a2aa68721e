"""The paper's equations, transcribed word for word: lists, dictionaries and loops, nothing else.

Slow on purpose. What the fast code must agree with is here, written without a look at how it does it. Logarithms are
taken to fifty digits, so that Eq. 7 rounds up what lies above a whole number and nothing else: in float64 some
uncertainties that are exactly 1/3 or 1 come out a hair off, and the quantiser would make a whole step of it.
"""

import math
from collections import deque
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from functools import cache

PRECISE = Context(prec=50)


@cache
def _log(value):
    with localcontext(PRECISE):
        return Decimal(value).ln()


def label_shares(window):
    """Eq. 5: the share of each label among the predictions that the window holds."""
    shares = {}
    for label in window:
        count = 0
        for other in window:
            if other == label:
                count += 1
        shares[label] = (count, len(window))
    return shares


def uncertainty(window, num_classes):
    """Eq. 6: entropy of the shares, divided by log k; 1 for a sample never yet predicted."""
    if len(window) == 0:
        return Decimal(1)
    with localcontext(PRECISE):
        entropy = Decimal(0)
        for count, total in label_shares(window).values():
            entropy -= Decimal(count) / Decimal(total) * (_log(count) - _log(total))
        return entropy / _log(num_classes)


def quantisation_index(z, num_samples):
    """Eq. 7: Q(z) = ceil((1 - z) / D) with D = 1/N."""
    with localcontext(PRECISE):
        exact = ((1 - z) * num_samples).quantize(Decimal(10) ** -35)
        return int(exact.to_integral_value(ROUND_CEILING))


def recency_probabilities(windows, num_classes, pressure):
    """Eq. 8: P_i = s^(-Q(U_i)/N) / sum_j s^(-Q(U_j)/N)."""
    n = len(windows)
    weights = []
    for window in windows:
        weights.append(pressure ** (-quantisation_index(uncertainty(window, num_classes), n) / n))
    return normalised(weights)


def decayed_pressure(epoch, *, start, warm_up, epochs):
    """Eq. 9: s(e) = s0 exp(log(1/s0) / (e_end - e0))^(e - e0), e counted from 1; `epoch` is counted from 0."""
    e, e_0, e_end = epoch + 1, warm_up, epochs
    return start * math.exp(math.log(1 / start) / (e_end - e_0)) ** (e - e_0)


def online_probabilities(losses, pressure):
    """Eq. 1: P_i = s^(-rank_i/N) / sum_j s^(-rank_j/N), the largest loss having rank 1, ties by index.

    A sample without a loss (None) stands before all others.
    """
    n = len(losses)
    known = [math.inf if loss is None else loss for loss in losses]
    weights = []
    for i in range(n):
        rank = 1
        for j in range(n):
            if known[j] > known[i] or (known[j] == known[i] and j < i):
                rank += 1
        weights.append(pressure ** (-rank / n))
    return normalised(weights)


def active_deviation(probabilities):
    """The deviation of Eq. 2: sqrt(var + var^2 / (n - 1)) of the true label's probabilities so far."""
    n = len(probabilities)
    if n <= 1:
        return 0.0
    mean = math.fsum(probabilities) / n
    variance = math.fsum((p - mean) ** 2 for p in probabilities) / n
    return math.sqrt(variance + variance**2 / (n - 1))


def active_probabilities(histories, smoothness):
    """Eq. 2: P_i in proportion to the deviation plus epsilon."""
    return normalised([active_deviation(history) + smoothness for history in histories])


def normalised(weights):
    total = math.fsum(weights)
    return [weight / total for weight in weights]


class Windows:
    """The last q predictions of each sample."""

    def __init__(self, num_samples, window):
        self.windows = [deque(maxlen=window) for _ in range(num_samples)]

    def observe(self, indices, labels):
        for index, label in zip(indices, labels, strict=True):
            self.windows[index].append(label)


def successive_sampling(probabilities, size):
    """The probability of each ordered batch drawn one by one, never the same sample twice."""
    law = {(): 1.0}
    for _ in range(size):
        longer = {}
        for batch, chance in law.items():
            left = math.fsum(p for i, p in enumerate(probabilities) if i not in batch)
            for i, p in enumerate(probabilities):
                if i not in batch and p > 0:
                    longer[(*batch, i)] = chance * p / left
        law = longer
    return law
