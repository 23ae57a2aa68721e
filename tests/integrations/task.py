"""What the programs of this folder learn, and how a plain loop learns it."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from carpediem import AdaptiveSampler, Indexed, RecencyBias

BATCH, CLASSES, EPOCHS, SAMPLES = 16, 4, 5, 96  # the batch of one optimizer step
SEED = 21  # with which Accelerate, that fills the last batch of 101 samples up, gives one of them twice in a batch


def problem(samples=SAMPLES):
    random = torch.Generator().manual_seed(0)
    x = torch.randn(samples, 6, generator=random, dtype=torch.float64)
    y = (x @ torch.randn(6, CLASSES, generator=random, dtype=torch.float64)).argmax(dim=1)
    y[::5] = torch.randint(0, CLASSES, (len(y[::5]),), generator=random)
    return x, y


def network(dtype=torch.float64):
    torch.manual_seed(0)
    return nn.Linear(6, CLASSES, dtype=dtype)


def adaptive(samples=SAMPLES):
    selector = RecencyBias(samples, CLASSES, EPOCHS, window=2, warm_up=2)
    return AdaptiveSampler(selector, batch_size=BATCH, seed=SEED)


def plain_steps(samples=SAMPLES):
    """(epoch, indices) of each step of a plain loop."""
    sampler, model = adaptive(samples), network()
    loader = DataLoader(Indexed(TensorDataset(*problem(samples))), batch_size=BATCH, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    steps = []
    for epoch in range(EPOCHS):
        for indices, (x, y) in loader:
            logits = model(x)
            optimizer.zero_grad()
            F.cross_entropy(logits, y).backward()
            optimizer.step()
            sampler.selector.observe(indices, logits, y)
            steps.append((epoch, indices.tolist()))
    return steps
