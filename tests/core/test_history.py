from collections import Counter, deque

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from carpediem import LabelHistory
from carpediem.core.arrays import BLOCK
from carpediem.core.history import last_of_each
from carpediem.core.shapes import MAX_WINDOW, partitions, sorting_network, window_shapes
from reference import paper


def shape_of(window):
    return tuple(sorted(Counter(window).values(), reverse=True))


@pytest.mark.parametrize("window", range(1, 17))
def test_a_sorting_network_sorts_every_sequence(window):
    # A network that sorts all sequences of zeros and ones sorts everything.
    count = min(1 << window, 4096)
    numbers = (
        np.arange(count) if count == 1 << window else np.random.default_rng(0).integers(0, 1 << window, count)
    )
    rows = [(numbers >> i) & 1 for i in range(window)]
    for i, j in sorting_network(window):
        rows[i], rows[j] = np.minimum(rows[i], rows[j]), np.maximum(rows[i], rows[j])
    assert (np.diff(np.stack(rows), axis=0) >= 0).all()


def test_a_window_of_ten_has_139_shapes_the_empty_one_included():
    assert len(window_shapes(10)) == 139 == sum(len(list(partitions(n))) for n in range(11))


@pytest.mark.parametrize("window", [1, 2, 3, 5, 7, 10, 12, 15, 16, 20])
def test_every_shape_of_a_window_is_found_again(window):
    shapes = window_shapes(window)
    history = LabelHistory(len(shapes), num_classes=200, window=window)
    generator = np.random.default_rng(window)
    for index, shape in enumerate(shapes.counts):
        names = generator.permutation(200)[: len(shape)]
        labels = generator.permutation(np.repeat(names, shape))
        history.record(torch.full((len(labels),), index), torch.from_numpy(labels))
    assert history.levels().tolist() == list(range(len(shapes)))


@pytest.mark.parametrize("window", [21, 32])
def test_random_windows_find_their_shape_among_many_thousand(window):
    shapes = window_shapes(window)
    n = 3000
    history, windows = LabelHistory(n, 6, window), [deque(maxlen=window) for _ in range(n)]
    generator = torch.Generator().manual_seed(0)
    for _ in range(12):
        indices = torch.randint(0, n, (3 * n,), generator=generator)
        labels = torch.randint(0, 6, (3 * n,), generator=generator) // 2 * (indices % 3)
        history.record(indices, labels)
        for index, label in zip(indices.tolist(), labels.tolist(), strict=True):
            windows[index].append(label)
    levels = history.levels()
    assert levels.dtype == torch.int32
    for level, kept in zip(levels.tolist(), windows, strict=True):
        assert shapes.counts[level] == shape_of(kept)


def test_levels_agree_across_the_borders_of_blocks():
    n = 2 * BLOCK + 3
    history = LabelHistory(n, 10, 3)
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(0, 10, (3, n), generator=generator)
    for row in labels:
        history.record(torch.arange(n), row)
    distinct = 1 + (labels.sort(dim=0).values.diff(dim=0) != 0).sum(dim=0)
    entropy = history.uncertainty()
    expected = {d: float(paper.uncertainty(w, 10)) for d, w in ((1, "aaa"), (2, "aab"), (3, "abc"))}
    for d, value in expected.items():
        found = entropy[distinct == d]
        assert len(found) > 100
        torch.testing.assert_close(found, torch.full_like(found, value), rtol=1e-12, atol=1e-12)


@given(
    st.integers(1, 6),
    st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=30), max_size=6),
)
def test_the_history_keeps_the_last_predictions_in_their_order(window, batches):
    history, windows = LabelHistory(5, 4, window), paper.Windows(5, window)
    for batch in batches:
        indices, labels = zip(*batch, strict=True)
        history.record(torch.tensor(indices), torch.tensor(labels))
        windows.observe(indices, labels)
    for index in range(5):
        assert history.predictions(index) == list(windows.windows[index])
        expected = float(paper.uncertainty(windows.windows[index], 4))
        assert float(history.uncertainty()[index]) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_the_index_beyond_the_last_sample_is_dropped():
    history = LabelHistory(3, 4, 2)
    history.append(torch.tensor([3, 1, 3, 3]), torch.tensor([0, 2, 1, 3]))
    assert [history.predictions(i) for i in range(3)] == [[], [2], []]


@pytest.mark.parametrize(
    ("classes", "bytes_each"), [(2, 1), (255, 1), (256, 2), (32767, 2), (32768, 4), (100_000, 4)]
)
def test_labels_take_no_more_room_than_they_need(classes, bytes_each):
    history = LabelHistory(5, classes, 3)
    assert history.labels.element_size() == bytes_each
    history.record(torch.tensor([1, 1]), torch.tensor([classes - 1, 0]))
    assert history.predictions(1) == [classes - 1, 0]


def test_a_window_beyond_the_largest_is_refused_by_name():
    with pytest.raises(ValueError, match=rf"window must lie in \[1, {MAX_WINDOW}\].* got 33"):
        LabelHistory(5, 2, 33)


def test_only_the_last_of_each_index_is_kept():
    assert last_of_each(torch.tensor([1, 2, 1, 1, 0]), dropped=7).tolist() == [7, 2, 7, 1, 0]
    assert last_of_each(torch.tensor([1, 2]), dropped=7).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("indices", "labels", "words"),
    [
        ([-2], [0], r"indices must lie in \[0, 3\), got -2"),
        ([3], [0], "indices"),
        ([0], [10], r"labels must lie in \[0, 10\)"),
    ],
)
def test_what_is_out_of_range_is_refused_and_nothing_is_kept(indices, labels, words):
    history = LabelHistory(num_samples=3, num_classes=10, window=2)
    with pytest.raises(ValueError, match=words):
        history.record(torch.tensor([1, *indices]), torch.tensor([1, *labels]))
    assert [history.predictions(i) for i in range(3)] == [[], [], []]


@pytest.mark.parametrize("index", [999, 200, -1])
def test_the_predictions_of_a_sample_that_there_is_not_are_refused_with_the_number_of_samples(index):
    history = LabelHistory(200, num_classes=3, window=2)
    with pytest.raises(
        IndexError, match=rf"index must lie in \[0, 200\), the history being of 200 samples, got {index}"
    ):
        history.predictions(index)


def test_the_predictions_of_what_is_no_index_are_refused():
    history = LabelHistory(200, num_classes=3, window=2)
    history.record(torch.tensor([7]), torch.tensor([2]))
    for index in (7, np.int64(7), torch.tensor(7)):
        assert history.predictions(index) == [2]
    for wrong in (7.0, "7", torch.tensor([7, 8])):
        with pytest.raises(TypeError, match="index must be an integer, got"):
            history.predictions(wrong)
