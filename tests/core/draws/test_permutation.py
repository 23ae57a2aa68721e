import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carpediem.core.draws.permutation import Permutations

ALL_IN_ONE = np.array([0])


def permuted(size, seed):
    return Permutations(np.array([size]), seed)(np.arange(size), ALL_IN_ONE)


@given(st.integers(1, 3000), st.integers(0, 2**63 - 1))
def test_every_number_comes_up_once(size, seed):
    assert sorted(permuted(size, seed).tolist()) == list(range(size))


@pytest.mark.parametrize("size", [2**20 + 1, 2**40 - 1])
def test_a_large_permutation_can_be_looked_up_anywhere(size):
    places = np.linspace(0, size - 1, 10_000).astype(np.int64)
    found = Permutations(np.array([size]), 5)(places, ALL_IN_ONE)
    assert found.max() < size
    assert len(np.unique(found)) == len(np.unique(places))
    # Places in order are not sent to places in order.
    assert abs(np.corrcoef(places.astype(float), found.astype(float))[0, 1]) < 4.5 / len(places) ** 0.5


def test_permutations_of_several_sizes_are_looked_up_together():
    sizes = np.array([1, 2, 5, 300, 300])
    permutations = Permutations(sizes, 3)
    which = np.repeat(np.arange(5), sizes)
    places = np.concatenate([np.arange(size) for size in sizes])
    found = permutations(places, which)
    for number, size in enumerate(sizes):
        own = found[which == number]
        assert sorted(own.tolist()) == list(range(size))
        assert own.tolist() == permutations(np.arange(size), np.array([number])).tolist()
    assert found[which == 3].tolist() != found[which == 4].tolist()


@pytest.mark.parametrize("size", [2, 3, 6, 11])
def test_over_the_seeds_every_place_is_sent_everywhere_as_often(size):
    seeds = 4000
    met = np.zeros((size, size))
    for seed in range(seeds):
        met[np.arange(size), permuted(size, seed)] += 1
    share = 1 / size
    assert np.abs(met / seeds - share).max() < 4.5 * (share * (1 - share) / seeds) ** 0.5


@pytest.mark.parametrize("size", [16, 64, 100, 1000])
def test_places_that_differ_by_little_are_sent_as_far_apart_as_any_two(size):
    seeds = 200_000 // size
    near, opposite = np.zeros(size), np.zeros(size)
    for seed in range(seeds):
        found = permuted(size, seed)
        near += np.bincount(np.abs(np.diff(found)), minlength=size)
        opposite += np.bincount(np.abs(found[size // 2 :] - found[: size // 2]), minlength=size)
    distance = np.arange(1, size // 2)
    for met, pairs in ((near, size - 1), (opposite, size // 2)):
        # Of a random permutation, two places are sent this far apart with probability 2 (n - d) / (n (n - 1)).
        wanted = seeds * pairs * 2 * (size - distance) / (size * (size - 1))
        assert (np.abs(met[distance] - wanted) < 5 * wanted**0.5).all()
