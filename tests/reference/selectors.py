"""Every selector with its options, small enough to test all of them against the same contract."""

import torch

from carpediem import ActiveBias, OnlineBatch, RandomBatch, RecencyBias, WeightedBatch

SAMPLES, CLASSES, EPOCHS = 60, 4, 8


def steps(selector, epoch, size=8):
    """Batches of an epoch's training, the same whenever they are asked for: some samples flip, some settle."""
    n, k = selector.num_samples, selector.num_classes or CLASSES
    generator = torch.Generator().manual_seed(500 + epoch)
    for indices in torch.randperm(n, generator=generator).split(size):
        logits = torch.randn(len(indices), k, generator=generator)
        logits[torch.arange(len(indices)), indices % k] += 3.0 * (indices % 3)
        yield indices, logits, (indices * 7) % k


def observe_epoch(selector, epoch):
    for step in steps(selector, epoch):
        selector.observe(*step)


def observed(make):
    """A selector that has been through its warm-up and one epoch more, and stands in the next."""
    selector = make()
    for epoch in range(selector.warm_up + 1):
        selector.refresh(epoch)
        observe_epoch(selector, epoch)
    selector.refresh(selector.warm_up + 1)
    return selector


def random_batch():
    return RandomBatch(SAMPLES, CLASSES, EPOCHS)


def random_batch_independent():
    return RandomBatch(SAMPLES, CLASSES, EPOCHS, draws="independent", on_nonfinite="skip")


def online_batch():
    return OnlineBatch(SAMPLES, CLASSES, EPOCHS, warm_up=2)


def online_batch_constant():
    return OnlineBatch(SAMPLES, CLASSES, EPOCHS, warm_up=0, schedule="constant", pressure=20)


def online_batch_evaluate():
    selector = OnlineBatch(SAMPLES, CLASSES, EPOCHS, warm_up=1, losses="evaluate")
    selector.set_losses(torch.arange(SAMPLES) * 37 % SAMPLES / SAMPLES)
    return selector


def active_bias():
    return ActiveBias(SAMPLES, CLASSES, EPOCHS, warm_up=2)


def active_bias_smooth():
    return ActiveBias(SAMPLES, CLASSES, EPOCHS, warm_up=0, smoothness=0.5, on_nonfinite="skip")


def active_bias_reweight():
    return ActiveBias(SAMPLES, CLASSES, EPOCHS, warm_up=2, mode="reweight")


def active_bias_renewed():
    return ActiveBias(SAMPLES, CLASSES, EPOCHS, warm_up=2, mode="reweight", renewal="step")


def online_batch_late():
    return OnlineBatch(SAMPLES, CLASSES, EPOCHS, warm_up=2, pressure_lag=1)


def recency_bias_zeros():
    return RecencyBias(SAMPLES, CLASSES, EPOCHS, window=3, warm_up=3, window_start="zeros")


def recency_bias():
    return RecencyBias(SAMPLES, CLASSES, EPOCHS, window=3, warm_up=3)


def recency_bias_constant():
    return RecencyBias(SAMPLES, CLASSES, EPOCHS, window=2, warm_up=4, schedule="constant", pressure=8)


def recency_bias_skip():
    return RecencyBias(SAMPLES, 300, EPOCHS, window=1, warm_up=1, on_nonfinite="skip")


def weighted_batch():
    selector = WeightedBatch(SAMPLES)
    selector.set_weights(torch.linspace(0.1, 1, SAMPLES))
    return selector


def weighted_batch_zeros():
    selector = WeightedBatch(SAMPLES, EPOCHS, warm_up=1)
    selector.set_weights((torch.arange(SAMPLES) % 3).float())
    return selector


SELECTORS = (
    random_batch,
    random_batch_independent,
    online_batch,
    online_batch_constant,
    online_batch_evaluate,
    active_bias,
    active_bias_smooth,
    active_bias_reweight,
    active_bias_renewed,
    online_batch_late,
    recency_bias,
    recency_bias_constant,
    recency_bias_skip,
    recency_bias_zeros,
    weighted_batch,
    weighted_batch_zeros,
)
