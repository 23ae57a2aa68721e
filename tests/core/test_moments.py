import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from carpediem.core.moments import RunningMoments
from reference import paper


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 64)), max_size=20), max_size=5))
def test_running_moments_give_the_deviation_of_the_whole_list(batches):
    moments, histories = RunningMoments(4), [[] for _ in range(4)]
    for batch in batches:
        indices = torch.tensor([i for i, _ in batch], dtype=torch.int64)
        moments.record(indices, torch.tensor([v / 64 for _, v in batch]))
        for index, value in batch:
            histories[index].append(value / 64)
    expected = [paper.active_deviation(history) for history in histories]
    assert moments.deviation().tolist() == pytest.approx(expected, abs=1e-7)


def test_the_row_beyond_the_last_sample_is_dropped():
    moments = RunningMoments(2)
    moments.record(torch.tensor([2, 2, 0]), torch.tensor([0.1, 0.9, 0.5]))
    assert moments.deviation().tolist() == [0.0, 0.0]
    assert moments.count[:2].tolist() == [1, 0]
