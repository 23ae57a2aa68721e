import copy
import pickle
import warnings

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, TensorDataset

from carpediem import AdaptiveSampler, Indexed, RandomBatch


class Fetching(Dataset):
    """Fetches batches at once and counts how often."""

    def __init__(self):
        self.calls = []

    def __len__(self):
        return 10

    def __getitem__(self, index):
        raise AssertionError("a data set that can fetch a batch is asked for batches")

    def __getitems__(self, indices):
        self.calls.append(list(indices))
        return [index * 10 for index in indices]


class Stream(IterableDataset):
    def __iter__(self):
        yield 1


class Unsized(Dataset):
    def __getitem__(self, index):
        return index


def test_items_come_with_their_index():
    data = Indexed(["a", "b", "c"])
    assert [data[i] for i in range(len(data))] == [(0, "a"), (1, "b"), (2, "c")]


def test_batches_are_fetched_at_once_where_the_data_set_can():
    inner = Fetching()
    (indices, values), *_ = DataLoader(Indexed(inner), batch_size=5, sampler=[3, 1, 4, 7, 5])
    assert inner.calls == [[3, 1, 4, 7, 5]]
    assert indices.tolist() == [3, 1, 4, 7, 5]
    assert torch.equal(values, indices * 10)


def test_batches_are_fetched_one_by_one_where_it_cannot():
    (indices, (x, y)), *_ = DataLoader(Indexed([(i, 2 * i) for i in range(5)]), batch_size=3)
    assert indices.tolist() == x.tolist() == [0, 1, 2]
    assert y.tolist() == [0, 2, 4]


def test_the_wrapper_survives_pickling_and_copying():
    data = Indexed(["a", "b"])
    for other in (pickle.loads(pickle.dumps(data)), copy.deepcopy(data), copy.copy(data)):
        assert other[1] == (1, "b")


def test_a_wrapper_that_is_being_unpickled_lacks_attributes_without_recursing():
    assert not hasattr(Indexed.__new__(Indexed), "dataset")
    assert not hasattr(Indexed.__new__(Indexed), "anything")


def test_a_stream_is_refused_by_name():
    with pytest.raises(TypeError, match=r"dataset must be map-style .* got the IterableDataset Stream"):
        Indexed(Stream())


def test_what_has_no_items_is_refused_by_type():
    with pytest.raises(
        TypeError, match="dataset must be map-style, with __getitem__ and __len__, got Unsized"
    ):
        Indexed(Unsized())
    with pytest.raises(TypeError, match="dataset must be map-style, with __getitem__ and __len__, got int"):
        Indexed(3)


def test_an_empty_data_set_is_refused():
    with pytest.raises(ValueError, match="dataset must hold at least one sample, got an empty one"):
        Indexed([])


def test_an_index_beyond_the_data_set_names_the_argument_that_made_it():
    sampler = AdaptiveSampler(RandomBatch(50), batch_size=10)
    with pytest.raises(IndexError, match=r"40 samples of the data set, got \d+; .* num_samples=40"):
        list(DataLoader(Indexed(TensorDataset(torch.arange(40))), batch_size=10, sampler=sampler))


def test_a_data_set_is_indexed_once():
    with pytest.raises(TypeError, match="dataset must not be Indexed already; wrap it once"):
        Indexed(Indexed(["a"]))


def test_an_index_below_zero_is_refused_since_no_selector_knows_it():
    data = Indexed(["a", "b"])
    with pytest.raises(IndexError, match="index must be at least 0, got -1"):
        data[-1]


def test_a_sampler_in_the_place_of_a_batch_sampler_is_named():
    sampler = AdaptiveSampler(RandomBatch(10), batch_size=5, seed=0)
    loader = DataLoader(Indexed(list(range(10))), batch_sampler=sampler)
    with pytest.raises(
        TypeError, match="give it the AdaptiveSampler as sampler=, with batch_size=, and not as"
    ):
        next(iter(loader))


def test_a_batch_sampler_in_the_place_of_a_sampler_is_named():
    sampler = AdaptiveSampler(RandomBatch(10), batch_size=5, seed=0)
    loader = DataLoader(
        Indexed(list(range(10))), batch_size=None, sampler=BatchSampler(sampler, 5, drop_last=False)
    )
    with pytest.raises(
        TypeError, match=r"must ask for one sample by one index, got \[.* with batch_size=, and not"
    ):
        next(iter(loader))


def test_collate_in_the_place_of_what_it_returns_is_named():
    loader = DataLoader(Indexed(list(range(10))), batch_size=5, collate_fn=Indexed.collate)
    with pytest.raises(
        TypeError, match=r"fn must be a function of a list of items, got list; .*collate\(fn\)"
    ):
        next(iter(loader))


def test_batches_may_be_asked_for_by_a_tensor():
    sampler = AdaptiveSampler(RandomBatch(10), batch_size=5, seed=0)
    batches = list(DataLoader(Indexed(list(range(10))), batch_sampler=list(sampler.next_epoch().split(5))))
    assert sorted(torch.cat([indices for indices, _ in batches]).tolist()) == list(range(10))


def epochs_of(loader, count):
    return [indices for _ in range(count) for indices, _ in loader]


def test_a_loader_with_larger_batches_than_the_sampler_cuts_is_told_of_once():
    sampler = AdaptiveSampler(RandomBatch(12), batch_size=4, seed=0, draws="independent")
    loader = DataLoader(Indexed(list(range(12))), batch_size=12, sampler=sampler)
    with pytest.warns(
        UserWarning, match="a batch holds the same sample twice, .* give the DataLoader its"
    ) as told:
        epochs_of(loader, 3)
    assert len(told) == 1


@pytest.mark.parametrize("size", [2, 4])
def test_the_samplers_own_batches_and_parts_of_them_are_not(size):
    sampler = AdaptiveSampler(RandomBatch(12), batch_size=4, seed=0, draws="independent")
    loader = DataLoader(Indexed(list(range(12))), batch_size=size, sampler=sampler)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(epochs_of(loader, 20)) == 20 * 12 // size
