"""The given label, and the samples whose label the record contradicts."""

import numpy as np
import pytest
import torch

from carpediem.record import GivenLabel, Record
from record.material import full_record, history


def shown(confidence, labels, record):
    """Show each sample once, at a confidence in label 0 of two."""
    logits = torch.tensor(confidence).logit()[:, None] * torch.tensor([1.0, 0.0])
    record.observe(torch.arange(len(labels)), logits, torch.tensor(labels))
    return record


def test_suspects_are_those_whose_label_is_contradicted_the_worst_first():
    record = shown([0.9, 0.2, 0.05, 0.6, 0.95], [0, 0, 0, 1, 1], Record(6, 2))
    assert record.suspects().tolist() == [2, 4, 1, 3]
    assert record.suspects(below=-0.5).tolist() == [2, 4, 1]
    assert record.suspects(count=2).tolist() == [2, 4]
    assert record.suspects(count=99).tolist() == [2, 4, 1, 3, 0]
    assert record.suspects(0.0, count=99).tolist() == [2, 4, 1, 3]
    assert record.suspects(count=0).tolist() == []


def test_of_equal_margins_the_lower_index_comes_first_and_none_is_a_suspect_before_it_is_seen():
    record = shown([0.2] * 4, [0] * 4, Record(9, 2))
    assert record.suspects().tolist() == [0, 1, 2, 3]
    assert Record(9, 2).suspects(count=9).tolist() == []


def test_suspects_can_be_named_by_their_keys():
    record = shown([0.9, 0.2, 0.05], [0, 0, 0], Record(3, 2, keys=["a.png", "b.png", "c.png"]))
    assert record.suspects(keys=True).tolist() == ["c.png", "b.png"]
    numbered = shown([0.9, 0.2, 0.05], [0, 0, 0], Record(3, 2, keys=np.array([7, 5, 9])))
    assert numbered.suspects(keys=True).tolist() == [9, 5]


def test_a_flipped_label_is_a_suspect_once_the_others_are_learnt():
    """What it is for: a network that has learnt the rule contradicts the samples that break it."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(600, 8, generator=generator)
    true = x[:, :4].argmax(1)
    wrong = torch.rand(600, generator=generator) < 0.3
    given = torch.where(wrong, (true + 1 + torch.randint(3, (600,), generator=generator)) % 4, true)
    weight = torch.zeros(8, 4, requires_grad=True)
    record = Record(600, 4)
    for _ in range(20):
        for indices in torch.randperm(600, generator=generator).split(50):
            logits = x[indices] @ weight
            loss = torch.nn.functional.cross_entropy(logits, given[indices])
            (gradient,) = torch.autograd.grad(loss, weight)
            weight.data -= 0.5 * gradient
            record.observe(indices, logits, given[indices])
    found = record.suspects(count=int(wrong.sum()))
    assert wrong[found].float().mean() > 0.85


def test_labels_can_be_said_before_training_by_position_or_by_key():
    record = Record(4, 3, keys=["a", "b", "c", "d"])
    record.set_labels(torch.tensor([2, 0, 1, 1]), keys=["d", "a", "c", "b"])
    assert record.scores()["label"].tolist() == [0, 1, 1, 2]
    record.set_labels(torch.tensor([0, 1, 1, 2]))
    with pytest.raises(
        ValueError, match=r"labels must be the labels .* sample 1 has label 1, got 0; hand in"
    ):
        record.set_labels(torch.tensor([0, 0, 1, 2]))
    with pytest.raises(ValueError, match="keys must be known ones, got 'x' and 0 more that are not"):
        record.set_labels(torch.tensor([0, 1, 1, 2]), keys=["a", "b", "c", "x"])
    with pytest.raises(ValueError, match=r"targets must be the labels .* sample 3 has label 2, got 1"):
        record.observe(torch.tensor([3]), torch.zeros(1, 3), torch.tensor([1]))
    assert record.scores()["label"].tolist() == [0, 1, 1, 2]


def test_labels_that_a_program_made_up_never_replace_the_given_ones():
    record, given = full_record(20, 5), {}
    for indices, logits, targets in history(20, 5, steps=20, seed=0):
        record.observe(indices, logits, targets)
        given |= dict(zip(indices.tolist(), targets.tolist(), strict=True))
        if len(indices):
            with pytest.raises(ValueError, match="which stay"):
                record.observe(indices, logits, (targets + 1) % 5)
    label = record.column(GivenLabel()).values
    assert [label[index] for index in given] == list(given.values())
