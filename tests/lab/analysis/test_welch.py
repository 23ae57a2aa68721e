import numpy as np
import pytest
from scipy import stats

from carpediem.lab.analysis.welch import UnpairedDifference, welch


@pytest.mark.parametrize("sizes", [(2, 2), (2, 8), (5, 8), (3, 40)])
@pytest.mark.parametrize("seed", range(5))
def test_the_interval_is_scipys(sizes, seed):
    rng = np.random.default_rng(seed)
    ours, theirs = rng.normal(1, 3, sizes[0]), rng.normal(0, 0.5, sizes[1])
    found = welch(ours.tolist(), theirs.tolist())
    expected = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.95)
    assert found.mean == pytest.approx(ours.mean() - theirs.mean())
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_one_side_without_spread_counts_with_the_spread_of_the_other():
    found = welch([1.0, 1.0], [2.0, 4.0])
    half = 12.706204736 * 1.0  # Student's t of one degree, times the standard error of the second
    assert (found.low, found.high) == (pytest.approx(-2 - half), pytest.approx(-2 + half))


def test_without_a_spread_or_with_a_single_run_there_is_no_interval():
    assert welch([1.0], [2.0, 3.0]) == UnpairedDifference(-1.5, None, None)
    assert welch([1.0, 1.0], [2.0, 2.0]) == UnpairedDifference(-1.0, None, None)
    assert welch([], [1.0, 2.0]) is None
