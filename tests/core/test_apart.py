import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from carpediem.core.apart import put_apart
from reference.epochs import assert_distinct, seeded


@st.composite
def streams(draw):
    """Batches in which many copies meet; no sample occurs in more than a quarter of them."""
    batch_size = draw(st.integers(2, 6))
    batches = draw(st.integers(8, 30))
    length = batches * batch_size + draw(st.integers(0, batch_size - 1))
    most = batches // 4
    samples = np.repeat(np.arange(length), draw(st.integers(1, most)))[:length]
    random = np.random.default_rng(draw(st.integers(0, 99)))
    return random.permutation(samples).astype(draw(st.sampled_from([np.int32, np.int64]))), batch_size


@given(streams(), st.integers(0, 1000))
def test_afterwards_no_batch_holds_a_sample_twice_and_nothing_is_lost(case, seed):
    stream, batch_size = case
    before = stream.copy()
    put_apart(stream, batch_size, seeded(seed))
    assert sorted(stream.tolist()) == sorted(before.tolist())
    assert_distinct(torch.from_numpy(stream), batch_size)


def test_what_is_apart_already_stays_where_it_is():
    stream = np.array([3, 1, 2, 1, 4, 2, 0])
    put_apart(stream, 3, seeded(0))
    assert stream.tolist() == [3, 1, 2, 1, 4, 2, 0]


def test_only_the_copies_that_meet_and_those_they_change_with_move():
    stream = np.arange(400)
    stream[7] = stream[5]
    before = stream.copy()
    put_apart(stream, 10, seeded(1))
    assert (stream != before).sum() == 2
    assert stream[7] != 5
