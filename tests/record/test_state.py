"""Stopping and going on, and states that nobody can have left."""

import copy
import io

import pytest
import torch

from carpediem import RandomBatch
from carpediem.record import Record, TimesSeen
from record import damage
from record.material import every_column, full_record, history, same, trained


@pytest.mark.parametrize("stop", [0, 1, 13, 39])
def test_a_record_that_was_stopped_goes_on_as_if_it_had_not_been(stop):
    batches = history(30, 4, steps=40, seed=3)
    whole, first = full_record(30, 4), full_record(30, 4)
    for batch in batches:
        whole.observe(*batch)
    for batch in batches[:stop]:
        first.observe(*batch)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second = full_record(30, 4)
    second.observe(*batches[5])  # forgotten by loading
    second.load_state_dict(torch.load(file, weights_only=True))
    for batch in batches[stop:]:
        second.observe(*batch)
    assert same(whole.state_dict(), second.state_dict())


def test_a_state_has_the_same_keys_always_and_is_no_view():
    fresh, record = full_record(30, 4), trained()
    assert fresh.state_dict().keys() == record.state_dict().keys()
    state = record.state_dict()
    before = copy.deepcopy(state)
    for batch in history(30, 4, steps=5, seed=0):
        record.observe(*batch)
    record.scores()
    assert same(before, state)
    assert not same(before, record.state_dict())


@pytest.mark.parametrize("kind", damage.KINDS, ids=lambda kind: kind.__name__)
def test_a_damaged_state_is_refused_in_one_sentence_and_leaves_all_as_it_was(kind):
    record = Record(damage.N, damage.K, columns=every_column(damage.WINDOW))
    odd = {
        seed: word
        for seed in range(40)
        if (word := damage.verdict(record, kind, seed)) not in ("taken", "refused")
    }
    assert odd == {}


def test_the_damage_is_seen_where_nothing_looks(monkeypatch):
    """The program that damages states finds what it is there to find."""
    monkeypatch.setattr("carpediem.record.record.check_state", lambda state, *_: state)
    record = Record(damage.N, damage.K, columns=every_column(damage.WINDOW))
    words = {damage.verdict(record, kind, seed) for kind in damage.KINDS for seed in range(10)}
    assert any("though no training leaves it behind" in word for word in words)
    assert any(word.startswith("ends in") for word in words)
    assert "is left half loaded" in words


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            lambda: trained(31),
            "of a record with num_samples=30, as this one, got num_samples=31; build it with that",
        ),
        (lambda: trained(30, 5), "of a record with num_classes=4, as this one, got num_classes=5"),
        (lambda: trained(keys=range(30)), "hand in the keys that it was made with"),
        (
            lambda: trained(window=3),
            "it alone holds ['LastLabels(window=3).began', 'LastLabels(window=3).cursor'",
        ),
        (lambda: RandomBatch(30, 4, 9), "it is no state of a Record"),
        (lambda: Record(30, 4, columns=[TimesSeen()]), "build the record with the columns of the state"),
    ],
)
def test_a_state_of_something_else_says_of_what(other, words):
    with pytest.raises(ValueError) as caught:
        full_record(30, 4).load_state_dict(other().state_dict())
    assert words in str(caught.value)
