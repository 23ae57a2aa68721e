"""What two ranks observed becomes one state, whatever a rank skipped, took back or handed in."""

import json
from pathlib import Path

import pytest

from processes import python

SCRIPT = Path(__file__).with_name("journal.py")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each rank came to."""
    out = tmp_path_factory.mktemp("journal")
    python(SCRIPT, out, ranks=2)
    return [json.loads((out / f"{rank}.json").read_text()) for rank in range(2)]


def test_a_method_that_writes_by_index_keeps_the_last_step_of_every_sample(found):
    assert [one["last steps"] for one in found] == [[0, 0]] * 2


def test_a_step_that_a_rank_passes_over_leaves_the_others_in_their_order(found):
    assert [one["skipped"] for one in found] == [[0, 1, 3]] * 2


def test_notes_are_copies_of_what_was_observed(found):
    assert [one["reused"] for one in found] == [[2, 3]] * 2


def test_ranks_that_have_passed_over_different_batches_are_made_one_all_the_same(found):
    assert [one["unlike"] for one in found] == [0, 1]


def test_going_back_takes_the_steps_since_with_it(found):
    assert [one["undone"] for one in found] == [[1]] * 2


def test_a_rank_is_warned_where_no_rank_observes_and_not_where_another_does(found):
    assert [one["warned"] for one in found] == [[0, 1]] * 2


@pytest.mark.parametrize(("what", "who"), [("losses", "OnlineBatch"), ("weights", "WeightedBatch")])
def test_ranks_that_hand_in_different_values_are_told(found, what, who):
    expected = (
        f"what {who} is handed in must be the same on all ranks, rank 0 and rank 1 hold different values; hand those "
        "of all samples to every rank"
    )
    assert [one[what] for one in found] == [expected] * 2
