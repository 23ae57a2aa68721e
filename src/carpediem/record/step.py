"""One training step as it came in, and what follows from it, each computed once however many columns ask."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

# What a step says of each sample, and columns may share.
QUANTITIES = ("targets", "predictions", "losses", "true_probability", "margins", "right")


class Missing(Exception):
    """A column asked a step for what was not handed in; the message says what would do."""


class Step:
    """What a column measures from. Everything lies where the logits are.

    >>> step = Step(logits=torch.tensor([[2.0, 0.0, 1.0]]), targets=torch.tensor([2]))
    >>> step.predictions, step.right
    (tensor([0]), tensor([False]))
    >>> step.margins
    tensor([-0.4205])

    Args:
        logits: (b, k), finite.
        targets: (b,), int64, the labels that the data set gives.
        outcomes: (b,), int64, what the network said, where there are no logits.
        losses: (b,), where they are not the cross entropy of the logits.
    """

    def __init__(
        self,
        *,
        logits: Tensor | None = None,
        targets: Tensor | None = None,
        outcomes: Tensor | None = None,
        losses: Tensor | None = None,
    ) -> None:
        self._logits, self._targets, self._outcomes, self._losses = logits, targets, outcomes, losses

    @property
    def logits(self) -> Tensor:
        """(b, k), as they came."""
        if self._logits is None:
            raise Missing("logits")
        return self._logits

    @property
    def targets(self) -> Tensor:
        """(b,), int64: the labels that the data set gives."""
        if self._targets is None:
            raise Missing("targets")
        return self._targets

    @cached_property
    def predictions(self) -> Tensor:
        """(b,), int64: the outcomes, or the class of the largest logit."""
        if self._outcomes is not None:
            return self._outcomes
        if self._logits is None:
            raise Missing("logits or outcomes=")
        return self._logits.argmax(dim=1)

    @cached_property
    def probabilities(self) -> Tensor:
        """(b, k), float32 or, of float64 logits, float64."""
        return self._log_probabilities.exp().t()

    @cached_property
    def losses(self) -> Tensor:
        """(b,): the losses handed in, or the cross entropy of logits and targets."""
        if self._losses is not None:
            return self._losses
        if self._logits is None or self._targets is None:
            raise Missing("losses= or logits and targets")
        return -self._true_log_probability

    @cached_property
    def true_probability(self) -> Tensor:
        """(b,): the probability of the given label."""
        return self._true_log_probability.exp()

    @cached_property
    def margins(self) -> Tensor:
        """(b,), in [-1, 1]: the probability of the given label minus the largest of the others."""
        others = self._log_probabilities.scatter(0, self.targets[None], -torch.inf)
        return self.true_probability - others.amax(dim=0).exp()

    @cached_property
    def right(self) -> Tensor:
        """(b,), bool: whether the prediction is the given label."""
        return self.predictions == self.targets

    @cached_property
    def _log_probabilities(self) -> Tensor:
        """(k, b): on a host a softmax along the first axis takes a fourth of the time of one along the last."""
        logits = self.logits
        if logits.dtype not in (torch.float32, torch.float64):
            logits = logits.float()  # so that what is finite stays finite
        return logits.t().log_softmax(dim=0)

    @cached_property
    def _true_log_probability(self) -> Tensor:
        return self._log_probabilities.gather(0, self.targets[None])[0]
