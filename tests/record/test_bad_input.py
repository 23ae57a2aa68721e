"""What a record refuses: at the call that brings it in, by one sentence, holding what it held before."""

import math
import re

import numpy as np
import pytest
import torch

from carpediem.record import (
    GivenLabel,
    LastLabels,
    LastLoss,
    Latest,
    MeanMargin,
    Record,
    RunningMargin,
    TimesSeen,
)
from record.material import full_record, same

INDICES, LOGITS, TARGETS = torch.tensor([3, 7, 5]), torch.zeros(3, 4), torch.tensor([0, 3, 1])
SPARSE = LOGITS.to_sparse()


def logits(value):
    return LOGITS.index_put((torch.tensor(1), torch.tensor(2)), torch.tensor(value))


@pytest.mark.parametrize(
    ("build", "kind", "words"),
    [
        (lambda: Record(-1), ValueError, "num_samples must be at least 1, got -1"),
        (lambda: Record(0, 4), ValueError, "num_samples must be at least 1, got 0"),
        (lambda: Record(True), TypeError, "num_samples must be an integer, got True"),
        (lambda: Record(10.0), TypeError, "num_samples must be an integer, got 10.0"),
        (lambda: Record(2**63), ValueError, f"num_samples must be at most {2**48}, got {2**63}"),
        (
            lambda: Record(2**47),
            ValueError,
            "num_samples must be so small that TimesSeen() fits the memory of cpu",
        ),
        (lambda: Record(torch.utils.data.TensorDataset(torch.zeros(7))), TypeError, "; its length is 7"),
        (lambda: Record(20, 1), ValueError, "num_classes must be at least 2, got 1"),
        (lambda: Record(20, 2**63), ValueError, f"num_classes must be at most {2**31 - 1}, got {2**63}"),
        (lambda: Record(20, "4"), TypeError, "num_classes must be an integer, got '4'"),
        (
            lambda: Record(20, 4, on_nonfinite="x"),
            ValueError,
            "on_nonfinite must be 'raise' or 'skip', got 'x'",
        ),
        (
            lambda: Record(20, 4, device="abacus"),
            ValueError,
            "device must be one that torch has here, got 'abacus'",
        ),
        (lambda: Record(20, 4, device="meta"), ValueError, "got 'meta' (holds no values); use device='cpu'"),
        (lambda: Record(20, 4, device=3.5), ValueError, "device must be one that torch has here, got 3.5"),
        (lambda: Record(20, columns=[LastLabels()]), ValueError, "LastLabels(window=10) needs num_classes"),
        (
            lambda: Record(20, 4, columns=LastLabels()),
            TypeError,
            "columns must be a list of columns, got LastLabels",
        ),
        (
            lambda: Record(20, 4, columns=[LastLabels]),
            TypeError,
            "column must be a Column, such as LastLabels(10)",
        ),
        (lambda: Record(20, 4, columns=3), TypeError, "columns must be a list of columns, got 3"),
        (
            lambda: Record(20, 4, columns=[TimesSeen(), TimesSeen()]),
            ValueError,
            "columns must differ, got TimesSeen()",
        ),
        (lambda: LastLabels(0), ValueError, "window must be at least 1, got 0"),
        (lambda: LastLabels(33), ValueError, "window must be at most 32, got 33"),
        (lambda: LastLabels(2.0), TypeError, "window must be an integer, got 2.0"),
        (
            lambda: Record(20, 4, columns=[LastLabels(first=4)]),
            ValueError,
            "first must be a label below num_classes = 4",
        ),
        (lambda: RunningMargin(1.5), ValueError, "decay must lie in [0, 1], got 1.5"),
        (lambda: RunningMargin(math.nan), ValueError, "decay must lie in [0, 1], got nan"),
        (lambda: RunningMargin("x"), TypeError, "decay must be a number, got 'x'"),
        (lambda: Latest(3), TypeError, "function must take a step and give one value a sample, got 3"),
        (
            lambda: Latest(abs, initial="x"),
            TypeError,
            "initial must be a float, an integer or a boolean, got 'x'",
        ),
        (lambda: Latest(abs, name=3), TypeError, "name must be a string, got 3"),
        (lambda: Latest(abs, initial=2**63), ValueError, f"initial must fit 64 bits, got {2**63}"),
        (lambda: Record(3, keys=["a", "b"]), ValueError, "keys must be as many as samples = 3, got 2"),
        (lambda: Record(3, keys=["a", "b", "a"]), ValueError, "keys must be unique, got 'a' more than once"),
        (
            lambda: Record(3, keys=["a", "b", 3]),
            TypeError,
            "keys must be all strings or all integers, got 3 among them",
        ),
        (
            lambda: Record(3, keys=[1, 2, True]),
            TypeError,
            "keys must be all strings or all integers, got True",
        ),
        (lambda: Record(3, keys=[1, 2, ""]), TypeError, "keys must be all strings or all integers, got ''"),
        (
            lambda: Record(3, keys="abc"),
            TypeError,
            "keys must be a sequence of strings or of integers, got 'abc'",
        ),
        (lambda: Record(3, keys=7), TypeError, "keys must be a sequence of strings or of integers, got 7"),
        (lambda: Record(1, keys=[2**63]), ValueError, f"keys must fit 64 bits, got {2**63}"),
        (
            lambda: Record(1, keys=["\ud800"]),
            ValueError,
            "keys must be text that UTF-8 can write, got '\\ud800'",
        ),
    ],
)
def test_a_record_that_makes_no_sense_is_refused(build, kind, words):
    with pytest.raises(kind) as caught:
        build()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("batch", "kind", "words"),
    [
        (
            (INDICES + 15, LOGITS, TARGETS),
            ValueError,
            "being 20; got 22; the indices of a part of a data set are",
        ),
        (
            (INDICES - 4, LOGITS, TARGETS),
            ValueError,
            "indices must lie in [0, 20), num_samples being 20; got -1",
        ),
        (
            (INDICES.double(), LOGITS, TARGETS),
            TypeError,
            "indices must be a tensor of integers, got a tensor of torch.f",
        ),
        (
            (INDICES.bool(), LOGITS, TARGETS),
            TypeError,
            "indices must be a tensor of integers, got a tensor of torch.bool",
        ),
        (([3, 7, 5], LOGITS, TARGETS), TypeError, "got [3, 7, 5]; hand in torch.as_tensor(indices)"),
        (
            (INDICES[None], LOGITS, TARGETS),
            ValueError,
            "one dimension, got shape (1, 3); hand in indices.flatten()",
        ),
        ((INDICES[0], LOGITS, TARGETS), ValueError, "indices must have one dimension, got shape ()"),
        (
            (INDICES.to("meta"), LOGITS, TARGETS),
            TypeError,
            "indices must be a tensor of integers, got a meta tensor",
        ),
        (
            (INDICES.to_sparse(), LOGITS, TARGETS),
            TypeError,
            "got a sparse tensor; hand in indices.to_dense()",
        ),
        ((INDICES[:2], LOGITS, TARGETS), ValueError, "logits must have shape (2, 4), a row for each index"),
        ((INDICES, LOGITS[:, :3], TARGETS), ValueError, "a column for each class, got (3, 3)"),
        (
            (INDICES, torch.zeros(3, 5), TARGETS),
            ValueError,
            "got (3, 5); build the record with num_classes=5",
        ),
        ((INDICES, torch.zeros(4), TARGETS), ValueError, "a column for each class, got (4,)"),
        ((INDICES, LOGITS.long(), TARGETS), TypeError, "logits must be a tensor of floating-point numbers"),
        ((INDICES, LOGITS.tolist(), TARGETS), TypeError, "got [[0.0, 0.0, 0.0, 0.0]"),
        ((INDICES, SPARSE, TARGETS), TypeError, "got a sparse tensor; hand in logits.to_dense()"),
        (
            (INDICES, LOGITS.to("meta"), TARGETS),
            TypeError,
            "got a meta tensor; hand in a tensor that holds values",
        ),
        (
            (INDICES, LOGITS.to(torch.float8_e4m3fn), TARGETS),
            TypeError,
            "got a tensor of torch.float8_e4m3fn",
        ),
        (
            (INDICES, LOGITS, TARGETS + 1),
            ValueError,
            "targets must lie in [0, 4), num_classes being 4; got 4",
        ),
        (
            (INDICES, LOGITS, TARGETS - 1),
            ValueError,
            "got -1; leave samples without a label out of the batch",
        ),
        ((INDICES, LOGITS, TARGETS[:2]), ValueError, "targets must be as many as indices = 3, got 2"),
        (
            (INDICES, LOGITS, TARGETS.float()),
            TypeError,
            "targets must be a tensor of integers, got a tensor of torch.f",
        ),
        (
            (INDICES, LOGITS, torch.ones(3, 4)),
            TypeError,
            "of soft or one-hot labels hand in targets.argmax(dim=1)",
        ),
        (
            (INDICES, LOGITS, torch.ones(3, 4).long()),
            ValueError,
            "of soft or one-hot labels hand in targets.argmax",
        ),
        ((INDICES, LOGITS, TARGETS[:, None]), ValueError, "got shape (3, 1); hand in targets.flatten()"),
        (
            (INDICES, LOGITS, None),
            TypeError,
            "GivenLabel() needs targets, which this call lacks; hand in observe(ind",
        ),
        (
            (INDICES, None, TARGETS),
            TypeError,
            "LastLabels(window=10) needs logits or outcomes=, which this call lacks",
        ),
        ((INDICES,), TypeError, "GivenLabel() needs targets, which this call lacks"),
        ((INDICES, logits(math.nan), TARGETS), ValueError, "logits and losses must be finite"),
        (
            (INDICES, logits(-math.inf).half(), TARGETS),
            ValueError,
            "on_nonfinite='skip' passes over such batches",
        ),
        (
            (INDICES, LOGITS, TARGETS.flip(0)),
            ValueError,
            "sample 3 has label 0, got 1; hand in the data set's own labels",
        ),
        (
            (torch.tensor([9, 9, 8]), LOGITS, TARGETS),
            ValueError,
            "sample 9 has label 0, got 3; hand in the data set's",
        ),
    ],
)
def test_a_bad_batch_is_refused_whole(batch, kind, words):
    record = full_record(20, 4)
    record.observe(INDICES, LOGITS + torch.arange(4), TARGETS)
    before = record.state_dict()
    with pytest.raises(kind) as caught:
        record.observe(*batch)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert same(before, record.state_dict())


def test_nested_tensors_are_refused_in_one_sentence():
    nested = torch.nested.nested_tensor([torch.zeros(4)] * 3, layout=torch.jagged)
    with pytest.raises(
        TypeError, match=r"logits must be .* got a nested tensor; hand in a batch of one shape$"
    ):
        Record(20, 4).observe(INDICES, nested, TARGETS)


@pytest.mark.parametrize(
    ("named", "kind", "words"),
    [
        (
            {"outcomes": torch.tensor([0, 4, 1])},
            ValueError,
            "outcomes must lie in [0, 4), num_classes being 4; got 4",
        ),
        (
            {"outcomes": torch.zeros(3)},
            TypeError,
            "outcomes must be a tensor of integers, got a tensor of torch.float32",
        ),
        ({"losses": torch.zeros(2)}, ValueError, "losses must be as many as indices = 3, got 2"),
        ({"losses": torch.zeros(3).long()}, TypeError, "losses must be a tensor of floating-point numbers"),
        ({"losses": [1.0, 2.0, 3.0]}, TypeError, "hand in torch.as_tensor(losses)"),
        ({"losses": torch.tensor([0.0, math.nan, 1.0])}, ValueError, "logits and losses must be finite"),
        ({"epoch": -1}, ValueError, "epoch must be at least 0, got -1"),
        ({"epoch": 1.0}, TypeError, "epoch must be an integer, got 1.0"),
        ({"epoch": torch.tensor([1, 2])}, TypeError, "epoch must be an integer, got a tensor"),
        ({}, TypeError, "LastLoss() needs losses= or logits and targets, which this call lacks"),
    ],
)
def test_what_comes_by_name_is_looked_at_too(named, kind, words):
    record = Record(20, 4, columns=[LastLoss(), LastLabels(3)])
    good = {"outcomes": torch.tensor([0, 3, 1]), "losses": torch.zeros(3)}
    record.observe(INDICES, **good)
    before = record.state_dict()
    with pytest.raises(kind) as caught:
        record.observe(INDICES, **({**good, **named} if named else {}))
    assert words in str(caught.value)
    assert same(before, record.state_dict())


def test_logits_without_classes_say_what_to_build():
    with pytest.raises(ValueError, match=r"logits need num_classes, .* or hand in losses=$"):
        Record(20).observe(INDICES, LOGITS, TARGETS)


def test_batches_that_are_not_finite_are_skipped_and_counted_when_asked_to():
    record = full_record(20, 4, on_nonfinite="skip")
    record.observe(INDICES, LOGITS, TARGETS)
    before = record.scores()
    for value in (math.nan, math.inf):
        record.observe(INDICES, logits(value), TARGETS)
    assert record.skipped == 2
    for name, values in record.scores().items():
        np.testing.assert_array_equal(values, before[name])
    with pytest.raises(ValueError, match="indices must lie in"):
        record.observe(INDICES + 99, logits(math.nan), TARGETS)
    assert record.skipped == 2


def test_an_empty_batch_is_no_step():
    record = full_record(20, 4)
    before = record.state_dict()
    record.observe(torch.zeros(0, dtype=torch.int64), torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64))
    assert same(before, record.state_dict())


@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        (
            lambda step: step.logits,
            ValueError,
            "one value a sample, shape (3,) for this batch, got (3, 4); reduce over",
        ),
        (
            lambda step: step.losses.mean(),
            ValueError,
            "one value a sample, shape (3,) for this batch, got ()",
        ),
        (lambda step: 3.0, TypeError, "measures must be a tensor of one value a sample, got 3.0"),
        (
            lambda step: step.losses * 1j,
            TypeError,
            "must fit its torch.float32, got a tensor of torch.complex64",
        ),
    ],
)
def test_a_function_that_gives_something_else_is_refused(function, kind, words):
    record = Record(20, 4, columns=[TimesSeen(), Latest(function)])
    with pytest.raises(kind) as caught:
        record.observe(INDICES, LOGITS, TARGETS)
    assert words in str(caught.value)
    assert record.scores()["times_seen"].sum() == 0


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda r: r.suspects("x"), TypeError, "below must be a number, got 'x'"),
        (lambda r: r.suspects(math.nan), ValueError, "below must lie in [-inf, inf], got nan"),
        (lambda r: r.suspects(count=-1), ValueError, "count must be at least 0, got -1"),
        (lambda r: r.suspects(count=2.0), TypeError, "count must be an integer, got 2.0"),
        (lambda r: r.suspects(keys=True), ValueError, "keys must be False for a record that has none"),
        (lambda r: r.save("x.txt"), ValueError, "path must end in .csv, .parquet or .jsonl, got 'x.txt'"),
        (lambda r: r.save(3), TypeError, "path must be a path, got 3"),
        (
            lambda r: r.set_labels(torch.zeros(3).long()),
            ValueError,
            "labels must be as many as samples = 20, got 3",
        ),
        (
            lambda r: r.set_labels(torch.zeros(20)),
            TypeError,
            "labels must be a tensor of integers, got a tensor of",
        ),
        (lambda r: r.set_labels("x"), TypeError, "got 'x'; hand in torch.as_tensor(labels)"),
        (
            lambda r: r.set_labels(torch.full((20,), 4)),
            ValueError,
            "labels must lie in [0, 4), num_classes being 4; got 4",
        ),
        (
            lambda r: r.set_labels(torch.ones(20).long()),
            ValueError,
            "sample 3 has label 0, got 1; hand in the data set's",
        ),
        (
            lambda r: r.set_labels(torch.zeros(20).long(), keys=range(20)),
            ValueError,
            "keys must be those of the record, w",
        ),
        (
            lambda r: r.load_state_dict(3),
            TypeError,
            "state must be what state_dict gave, a dictionary, got 3",
        ),
    ],
)
def test_other_calls_are_refused_in_one_sentence_too(call, kind, words):
    record = full_record(20, 4)
    record.observe(INDICES, LOGITS, TARGETS)
    before = record.state_dict()
    with pytest.raises(kind) as caught:
        call(record)
    assert words in str(caught.value)
    assert same(before, record.state_dict())


def test_what_a_record_does_not_hold_is_named_where_it_is_needed():
    record = Record(20, 4, columns=[TimesSeen()])
    with pytest.raises(
        ValueError, match=re.escape("suspects needs the column MeanMargin, which this record does not")
    ):
        record.suspects()
    with pytest.raises(ValueError, match="set_labels needs the column GivenLabel"):
        record.set_labels(torch.zeros(20).long())
    with pytest.raises(ValueError, match="the data map needs confidence, variability, correctness"):
        record.save("map.jsonl")


def test_a_column_belongs_to_one_record():
    column = MeanMargin()
    Record(3, 2, columns=[column])
    with pytest.raises(ValueError, match=r"column must belong to no other record, got MeanMargin\(\) of one"):
        Record(3, 2, columns=[GivenLabel(), column])
