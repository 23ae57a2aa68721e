"""On an accelerator a batch is checked without waiting for it: the same steps, tried on the host."""

import math

import pytest
import torch

from carpediem import ActiveBias, OnlineBatch, RecencyBias
from carpediem.testing import same_state
from reference.selectors import observe_epoch

METHODS = pytest.mark.parametrize("method", [OnlineBatch, ActiveBias, RecencyBias])
INDICES, TARGETS = torch.tensor([3, 7, 3]), torch.tensor([0, 3, 1])
NAN = torch.zeros(3, 4).index_fill(1, torch.tensor([2]), math.nan)
BAD = pytest.mark.parametrize(
    ("indices", "logits", "targets", "words"),
    [
        (INDICES, NAN, TARGETS, "logits must be finite, 1 batches held values that are not"),
        (INDICES + 17, torch.zeros(3, 4), TARGETS, r"1 batches held an index outside \[0, 20\)"),
        (INDICES - 9, torch.zeros(3, 4), TARGETS, r"1 batches held an index outside \[0, 20\)"),
        (INDICES, torch.zeros(3, 4), TARGETS - 1, r"or a target outside \[0, 4\)"),
        (INDICES, torch.zeros(3, 4), TARGETS + 1, r"or a target outside \[0, 4\)"),
    ],
    ids=["nan", "index beyond", "index below", "target below", "target beyond"],
)


def kept(selector):
    """What the state says of the samples: the last row takes what is dropped, the faults are counted."""
    state = selector.state_dict()
    del state["state.faults"]
    sized = {k: v for k, v in state.items() if isinstance(v, torch.Tensor) and v.shape[-1:] == (21,)}
    return {**state, **{name: value[..., :20].clone() for name, value in sized.items()}}


@BAD
@METHODS
def test_a_bad_batch_is_dropped_whole_and_reported_by_the_next_refresh(
    method, indices, logits, targets, words
):
    selector = method(20, 4, 30)
    observe_epoch(selector, 0)
    before, copies = kept(selector), (indices.clone(), targets.clone())
    _take(selector, indices, logits, targets)
    assert same_state(before, kept(selector))
    assert torch.equal(indices, copies[0])
    assert torch.equal(targets, copies[1])
    with pytest.raises(ValueError, match=words):
        selector._report_faults()
    selector._report_faults()


def _take(selector, indices, logits, targets):
    masked, clamped = selector._masked(indices, logits, targets)
    selector.keep(masked, selector.measure(logits, clamped))


@METHODS
def test_a_good_batch_is_kept_as_it_is(method):
    looking, blind = method(20, 4, 30), method(20, 4, 30)
    logits = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    looking.observe(INDICES, logits, TARGETS)
    _take(blind, INDICES, logits, TARGETS)
    assert same_state(kept(looking), kept(blind))
    blind._report_faults()


@METHODS
def test_dropped_batches_are_counted_when_they_may_be_skipped(method):
    selector = method(20, 4, 30, on_nonfinite="skip")
    for _ in range(3):
        _take(selector, INDICES, NAN, TARGETS)
    selector._report_faults()
    assert selector.skipped == 3
