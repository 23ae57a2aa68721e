"""Columns: which are held, which are equal, and those of one's own."""

import copy

import numpy as np
import pytest
import torch

from carpediem.record import Column, LastLabels, Latest, Record, RunningMargin, TimesSeen, watching
from record.material import full_record, history


class HighestLoss(Column):
    initial, name = 0.0, "highest_loss"

    def measure(self, step):
        return step.losses

    def keep(self, step):
        assert len(step.indices.unique()) == len(step.indices)
        self.values[step.indices] = step.values.maximum(self.values[step.indices])


def test_a_column_is_held_once():
    record = Record(5, 3)
    held = record.column(LastLabels(10))
    assert held in record.columns
    assert record.column(LastLabels(10)) is held
    assert record.column(LastLabels(4)) is not held
    assert len(record.columns) == 9
    assert RunningMargin(0.7) == RunningMargin() != RunningMargin(0.9)
    assert len({TimesSeen(), TimesSeen(), LastLabels(3), LastLabels(4)}) == 3


def test_the_default_columns_are_what_suspects_and_the_data_map_need():
    assert repr(list(Record(5, 3).columns)) == (
        "[GivenLabel(), LastLabels(window=10), Moments(), TimesSeen(), TimesRight(), MeanMargin(), "
        "RunningMargin(decay=0.7), LastTurn()]"
    )
    assert repr(list(Record(5).columns)) == "[TimesSeen(), LastLoss()]"
    assert Record(5, 3, columns=[]).scores() == {}


@pytest.mark.parametrize("together", [1, 8192])
def test_a_column_of_ones_own_is_five_lines(together, monkeypatch):
    monkeypatch.setattr(watching, "TOGETHER", together)
    record = Record(20, 5, columns=[HighestLoss(), TimesSeen()])
    highest = np.zeros(20, dtype=np.float32)
    for indices, logits, targets in history(20, 5, steps=30, seed=6):
        record.observe(indices, logits, targets)
        losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
        np.maximum.at(highest, indices.numpy(), losses.numpy())
    np.testing.assert_allclose(record.scores()["highest_loss"], highest, rtol=1e-6)
    fresh = Record(20, 5, columns=[HighestLoss(), TimesSeen()])
    fresh.load_state_dict(record.state_dict())
    np.testing.assert_array_equal(fresh.scores()["highest_loss"], record.scores()["highest_loss"])


def test_a_column_that_never_set_itself_up_is_told_of_it():
    class Forgetful(Column):
        def __init__(self):
            self.mine = 3

        def keep(self, step):
            pass

    with pytest.raises(
        TypeError, match=r"got a Forgetful whose __init__ never calls super\(\).__init__\(\)$"
    ):
        Record(4, columns=[Forgetful()])
    with pytest.raises(TypeError, match="abstract method"):
        Column()


def test_columns_share_what_a_step_says_of_each_sample_and_nothing_else():
    class LastTarget(Column):
        initial, quantity, name = -1, "targets", "target"

        def keep(self, step):
            self.values[step.indices] = step.values

    record, targets = Record(4, 2, columns=[LastTarget()]), torch.tensor([1, 0])
    record.observe(torch.tensor([3, 1]), torch.zeros(2, 2), targets)
    targets.fill_(7)
    assert record.scores()["target"].tolist() == [-1, 0, -1, 1]
    LastTarget.quantity = "logits"
    with pytest.raises(ValueError, match=r"quantity must be one of targets, predictions, .* got 'logits'$"):
        Record(4, 2, columns=[LastTarget()])


def test_the_latest_value_of_a_function_is_that_of_the_last_step():
    doubt = Latest(lambda step: 1 - step.probabilities.amax(dim=1), initial=1.0, name="doubt")
    target = Latest(lambda step: step.targets, initial=-1)
    record = Record(4, 2, columns=[doubt, target])
    logits = torch.tensor([[0.0, 0.0], [0.0, 9.0], [9.0, 0.0]])
    record.observe(torch.tensor([0, 2, 0]), logits, torch.tensor([1, 0, 1]))
    assert record.scores()["doubt"].round(2).tolist() == [0.0, 1.0, 0.0, 1.0]
    assert target.values.tolist() == [1, -1, 0, -1]
    assert list(record.scores()) == ["doubt"]


def test_columns_that_ask_for_one_quantity_have_it_computed_once():
    calls = []

    def function(step):
        calls.append((id(step.predictions), id(step.losses), id(step.margins)))
        return step.losses

    def other(step):
        return function(step)

    record = Record(4, 2, columns=[Latest(function), Latest(other)])
    record.observe(torch.tensor([0, 2]), torch.zeros(2, 2), torch.tensor([1, 0]))
    assert len(calls) == 2
    assert len(set(calls)) == 1


def test_a_column_added_later_knows_the_steps_from_then_on_and_the_state_loads():
    batches = history(20, 5, steps=20, seed=8)
    record = Record(20, 5, columns=[LastLabels(3)])
    for batch in batches[:10]:
        record.observe(*batch)
    seen = record.column(TimesSeen())
    for batch in batches[10:]:
        record.observe(*batch)
    expected = torch.bincount(torch.cat([indices for indices, *_ in batches[10:]]), minlength=20)
    assert seen.values.tolist() == expected.tolist()
    fresh = Record(20, 5, columns=[LastLabels(3), TimesSeen()])
    fresh.load_state_dict(record.state_dict())
    assert fresh.scores()["times_seen"].tolist() == expected.tolist()


def test_a_copy_of_a_record_goes_its_own_way():
    record = full_record(20, 5)
    first, *others = history(20, 5, steps=10, seed=9)
    record.observe(*first)
    twin = copy.deepcopy(record)
    for batch in others:
        twin.observe(*batch)
    assert record.scores()["times_seen"].sum() == len(first[0])
    assert twin.scores()["times_seen"].sum() == sum(len(batch[0]) for batch in [first, *others])


def test_the_levels_of_a_column_are_those_of_its_windows():
    record = Record(20, 5, columns=[LastLabels(4)])
    column = record.column(LastLabels(4))
    for batch in history(20, 5, steps=20, seed=10):
        record.observe(*batch)
        assert column.levels().tolist() == column.history.levels().tolist()
    by_level = column.shapes.uncertainties(5)
    np.testing.assert_array_equal(by_level[column.levels().long()], record.scores()["uncertainty"])


def test_windows_may_begin_with_a_label():
    record = Record(3, 5, columns=[LastLabels(4, first=2)])
    record.observe(torch.tensor([1]), outcomes=torch.tensor([4]))
    assert record.scores()["majority"].tolist() == [2, 2, 2]
    fresh = Record(3, 5, columns=[LastLabels(4, first=2)])
    fresh.load_state_dict(record.state_dict())
    assert fresh.scores()["uncertainty"][0] == 0 < fresh.scores()["uncertainty"][1]
