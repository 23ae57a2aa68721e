"""What a DataLoader's workers do to the stream: nothing."""

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from carpediem import AdaptiveSampler, Indexed, RecencyBias, Selector
from carpediem.core.distribution import Uniform
from processes import python
from reference.padding import padded

# Four workers are more than some machines have cores; that torch says so is no concern of these tests.
pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]

SAMPLES, BATCH, CLASSES, EPOCHS = 70, 8, 3, 4
DATA = TensorDataset(torch.arange(SAMPLES).float()[:, None], torch.arange(SAMPLES) % CLASSES)


def trained(**loading):
    """The batches of indices of some epochs, with predictions that depend on the step and the sample."""
    selector = RecencyBias(SAMPLES, CLASSES, EPOCHS, window=1, warm_up=1)
    sampler = AdaptiveSampler(selector, batch_size=BATCH, seed=3)
    loader = DataLoader(Indexed(DATA), batch_size=BATCH, sampler=sampler, **loading)
    epochs = []
    for epoch in range(EPOCHS):
        batches = []
        for indices, (x, y) in loader:
            assert torch.equal(x[:, 0].long(), indices)
            logits = torch.sin(x * torch.tensor([[1.0, 2.0, 3.0]]) + len(batches) + epoch)
            selector.observe(indices, logits, y)
            batches.append(indices.tolist())
        epochs.append(batches)
    return epochs


@pytest.fixture(scope="module")
def alone():
    return trained()


@pytest.mark.parametrize("persistent_workers", [False, True])
@pytest.mark.parametrize("num_workers", [1, 4])
def test_any_number_of_workers_gives_the_same_batches(alone, num_workers, persistent_workers):
    epochs = trained(
        num_workers=num_workers, persistent_workers=persistent_workers, multiprocessing_context="fork"
    )
    assert epochs == alone
    assert [len(batches) for batches in epochs] == [9] * EPOCHS


def test_spawned_workers_give_the_same_batches(alone):
    assert trained(num_workers=1, persistent_workers=True, multiprocessing_context="spawn") == alone


TEXTS = [("a" * (1 + index % 5), index % CLASSES) for index in range(SAMPLES)]


@pytest.mark.parametrize(("num_workers", "context"), [(0, None), (2, "fork"), (2, "spawn")])
def test_a_collate_fn_of_ones_own_pads_text_beside_its_indices(num_workers, context):
    sampler = AdaptiveSampler(RecencyBias(SAMPLES, CLASSES, EPOCHS, window=1, warm_up=1), batch_size=BATCH)
    loading = {"num_workers": num_workers, "multiprocessing_context": context}
    collate = Indexed.collate(padded)
    loader = DataLoader(Indexed(TEXTS), batch_size=BATCH, sampler=sampler, collate_fn=collate, **loading)
    seen = []
    for indices, (letters, y) in loader:
        assert indices.dtype == torch.int64
        assert torch.equal((letters > 0).sum(dim=1), 1 + indices % 5)
        assert torch.equal(y, indices % CLASSES)
        sampler.selector.observe(indices, torch.zeros(len(y), CLASSES), y)
        seen += indices.tolist()
    assert sorted(seen) == list(range(SAMPLES))


class Diary(Selector):
    """Writes down what happens, in order."""

    def __init__(self, num_samples):
        super().__init__(num_samples, CLASSES)
        self.events = []

    def measure(self, logits, targets):
        return logits.sum(dim=1)

    def keep(self, indices, values):
        self.events.append("observe")

    def build(self, epoch):
        self.events.append(f"refresh {epoch}")
        return Uniform(self.num_samples)


@pytest.mark.parametrize(("num_workers", "persistent_workers"), [(0, False), (2, False), (2, True)])
def test_an_epoch_is_refreshed_after_the_last_observation_of_the_one_before(num_workers, persistent_workers):
    selector = Diary(SAMPLES)
    sampler = AdaptiveSampler(selector, batch_size=BATCH)
    context = "fork" if num_workers else None
    loader = DataLoader(
        Indexed(DATA),
        batch_size=BATCH,
        sampler=sampler,
        num_workers=num_workers,
        persistent_workers=persistent_workers,
        multiprocessing_context=context,
    )
    for _ in range(3):
        for indices, (_, y) in loader:
            selector.observe(indices, torch.zeros(len(indices), CLASSES), y)
    expected = []
    for epoch in range(3):
        expected += [f"refresh {epoch}"] + ["observe"] * 9
    assert selector.events == expected


@pytest.mark.parametrize("num_workers", [0, 2])
def test_training_resumes_where_it_stopped_though_workers_had_drawn_ahead(num_workers, alone):
    loading = {"num_workers": num_workers, "multiprocessing_context": "fork" if num_workers else None}
    for stop in (1, 5, 9):
        selector = RecencyBias(SAMPLES, CLASSES, EPOCHS, window=1, warm_up=1)
        sampler = AdaptiveSampler(selector, batch_size=BATCH, seed=3)
        loader = DataLoader(Indexed(DATA), batch_size=BATCH, sampler=sampler, **loading)
        for steps, (indices, (_, y)) in enumerate(loader, start=1):
            selector.observe(indices, torch.eye(CLASSES)[y], y)
            if steps == stop:
                state = sampler.state_dict(position=min(steps * BATCH, SAMPLES)), selector.state_dict()
                break
        copy = RecencyBias(SAMPLES, CLASSES, EPOCHS, window=1, warm_up=1)
        copied = AdaptiveSampler(copy, batch_size=BATCH, seed=99)
        copied.load_state_dict(state[0])
        copy.load_state_dict(state[1])
        loader = DataLoader(Indexed(DATA), batch_size=BATCH, sampler=copied, **loading)
        rest = [indices.tolist() for indices, _ in loader]
        if stop < 9:
            assert rest == alone[0][stop:]
        else:
            assert copy.epoch == 1
            assert len(rest) == 9


LARGER_BATCHES = """
import sys
from torch.utils.data import DataLoader
from carpediem import AdaptiveSampler, Indexed, RandomBatch

if __name__ == "__main__":
    workers = {"num_workers": 2, "multiprocessing_context": sys.argv[1]} if sys.argv[1:] else {}
    sampler = AdaptiveSampler(RandomBatch(200), batch_size=20, seed=0, draws="independent")
    loader = DataLoader(Indexed(list(range(200))), batch_size=50, sampler=sampler, **workers)
    for _ in range(4):
        for _ in loader:  # here
            pass
"""


@pytest.mark.parametrize(
    ("context", "at_most"),
    # Two workers that find the first such batch at the same moment both say so.
    [((), 1), (("fork",), 2), (("spawn",), 2)],
)
def test_batches_that_are_too_large_are_told_of_once_whatever_loads_them(context, at_most, tmp_path):
    script = tmp_path / "larger.py"
    script.write_text(LARGER_BATCHES)
    said = python("-W", "always::UserWarning", script, *context).stderr
    assert 1 <= said.count("a batch holds the same sample twice") <= at_most, said
    line = 1 + LARGER_BATCHES[: LARGER_BATCHES.index("# here")].count("\n")
    # A spawned worker knows no loop that it loads for.
    assert ("<string>:1: " if context == ("spawn",) else f"larger.py:{line}: UserWarning") in said
