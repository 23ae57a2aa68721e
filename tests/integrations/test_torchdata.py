"""torchdata's StatefulDataLoader, whose state says where training is though its workers are ahead."""

import pickle

import pytest
import torch
from torch.utils.data import TensorDataset
from torchdata.stateful_dataloader import StatefulDataLoader

from carpediem import AdaptiveSampler, Indexed, RecencyBias

pytestmark = [
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning"),  # torchdata's own, of torch
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]
SAMPLES, BATCH, CLASSES, EPOCHS, STEPS = 100, 8, 3, 4, 13
workers = pytest.mark.parametrize("num_workers", [0, 2])


def build(num_workers, samples=SAMPLES):
    data = TensorDataset(torch.arange(samples).float()[:, None], torch.arange(samples) % CLASSES)
    selector = RecencyBias(samples, CLASSES, EPOCHS, window=1, warm_up=1)
    sampler = AdaptiveSampler(selector, batch_size=BATCH, seed=3)
    context = "fork" if num_workers else None
    loading = {"num_workers": num_workers, "multiprocessing_context": context}
    return selector, StatefulDataLoader(Indexed(data), batch_size=BATCH, sampler=sampler, **loading)


def train(selector, loader, epochs, at_step=lambda step: None):
    """Batches of some epochs, with predictions that depend on the sample and on what was drawn so far."""
    batches = []
    for _ in range(epochs):
        for indices, (x, y) in loader:
            logits = torch.sin(x * torch.tensor([[1.0, 2.0, 3.0]]) + selector.epoch)
            selector.observe(indices, logits, y)
            batches.append(indices.tolist())
            at_step(len(batches))
    return batches


@pytest.fixture(scope="module", params=[0, 2])
def run(request):
    """A whole training, and the states taken after each of its steps."""
    selector, loader = build(request.param)
    states = {}

    def save(step):
        states[step] = pickle.dumps((loader.state_dict(), selector.state_dict()))

    batches = train(selector, loader, EPOCHS, save)
    assert len(batches) == EPOCHS * STEPS
    return request.param, batches, states


# The first and the last step of the first epoch, the middle of one that is not uniform, where the workers have
# drawn to its end, and the second but last of all.
@pytest.mark.parametrize("step", [1, 12, 13, 18, 25, 26, 50])
def test_a_state_of_mid_epoch_resumes_to_the_very_next_batch(run, step):
    num_workers, batches, states = run
    selector, loader = build(num_workers)
    of_loader, of_selector = pickle.loads(states[step])
    loader.load_state_dict(of_loader)
    selector.load_state_dict(of_selector)
    assert train(selector, loader, EPOCHS - step // STEPS) == batches[step:]


@workers
def test_a_state_taken_after_an_epoch_is_the_samplers_own(num_workers):
    # From the loader's, torchdata with workers would begin the next epoch twice.
    selector, loader = build(num_workers)
    train(selector, loader, 2)
    state = pickle.dumps((loader.sampler.state_dict(), selector.state_dict()))
    expected = train(selector, loader, 2)
    selector, loader = build(num_workers)
    of_sampler, of_selector = pickle.loads(state)
    loader.sampler.load_state_dict(of_sampler)
    selector.load_state_dict(of_selector)
    assert train(selector, loader, 2) == expected


def test_any_number_of_workers_trains_on_the_same_batches(run):
    assert train(*build(0), EPOCHS) == run[1]


@workers
def test_the_state_taken_at_every_batch_does_not_grow_with_the_data(num_workers):
    sizes = set()
    for samples in (SAMPLES, 100 * SAMPLES):
        _, loader = build(num_workers, samples)
        stream = iter(loader)
        for _ in range(3):
            next(stream)
        sizes.add(len(pickle.dumps(loader.state_dict())))
        del stream
    assert (
        max(sizes) - min(sizes) < 64
    )  # larger numbers take a few bytes more, a history some for each sample
    assert max(sizes) < 4096
