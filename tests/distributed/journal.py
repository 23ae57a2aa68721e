"""Two ranks that observe, skip, go back and hand in: what each comes to, written to a file of its own."""

import json
import os
import sys
import warnings
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist

from carpediem import OnlineBatch, RecencyBias, Selector, WeightedBatch, Weights
from carpediem.distributed import merge, synchronise

SAMPLES, BATCH, STEPS = 20_000, 64, 400


class LastStep(Selector):
    """Keeps of every sample the step that it was in, as a method of one's own would write it."""

    def __init__(self):
        super().__init__(SAMPLES, 2, 5)
        self.step = torch.full((SAMPLES + 1,), -1.0, dtype=torch.float64)
        self.add_state("step", self.step)
        self.repeats = 0

    def measure(self, logits, targets):
        return logits[:, 0].double()

    def keep(self, indices, values):
        # Which of two writes to one place comes last, torch leaves open.
        self.repeats += len(indices) - len(indices.unique())
        self.step[indices] = values

    def build(self, epoch):
        return Weights(self.step[:-1] + 2)


def last_steps(rank):
    """How many samples have a step that is not their last, and how many writes met another one's."""
    selector = LastStep()
    synchronise(selector)
    random, last = torch.Generator().manual_seed(0), torch.full((SAMPLES,), -1.0, dtype=torch.float64)
    for step in range(STEPS):
        batch = torch.randint(SAMPLES, (2 * BATCH,), generator=random).unique()
        last[batch] = step
        own = batch[rank::2]
        selector.observe(own, torch.full((len(own), 2), float(step)), torch.zeros_like(own))
    merge(selector)
    return [int((selector.step[:-1] != last).sum()), selector.repeats]


def said(selector, label, *, finite=True):
    logits = torch.eye(4)[[label]] if finite else torch.full((1, 4), torch.nan)
    selector.observe(torch.tensor([0]), logits, torch.tensor([0]))


def skipped(rank):
    """The labels of sample 0, which rank 0 passes over once and then sees, as one rank after the other comes to it."""
    selector = RecencyBias(4, 4, 9, window=3, warm_up=3, on_nonfinite="skip")
    synchronise(selector)
    if rank == 0:
        said(selector, 1, finite=False)
        selector.observe(
            torch.empty(0, dtype=torch.int64), torch.empty(0, 4), torch.empty(0, dtype=torch.int64)
        )
        said(selector, 3)
    else:
        said(selector, 0)
        said(selector, 1)
        selector.observe(torch.tensor([2]), torch.eye(4)[[2]], torch.tensor([0]))
    merge(selector)
    return selector.history.predictions(0)


def reused(rank):
    """What is kept of sample 0 where the program writes the next batch into the same tensors."""
    selector = RecencyBias(4, 4, 9, window=3, warm_up=3)
    synchronise(selector)
    indices, logits = torch.tensor([0]), torch.eye(4)[[2 + rank]]
    selector.observe(indices, logits, torch.tensor([0]))
    indices.fill_(1)
    logits.zero_()
    merge(selector)
    return selector.history.predictions(0)


def unlike(rank):
    """How many batches this rank has passed over when it is made one with the other."""
    selector = RecencyBias(4, 4, 9, window=3, warm_up=3, on_nonfinite="skip")
    for _ in range(rank):
        said(selector, 0, finite=False)
    synchronise(selector)
    return selector.skipped


def undone(rank):
    """The labels of sample 0 after a step, two that going back undoes, and one more; rank 0 observes alone."""
    selector = RecencyBias(4, 4, 9, window=4, warm_up=4)
    synchronise(selector)
    saved = selector.state_dict()
    for label in (2, 3):
        said(selector, label)
    selector.load_state_dict(saved)
    if rank == 0:
        said(selector, 1)
    merge(selector)
    return selector.history.predictions(0)


def warned(rank):
    """How many warnings of nothing observed this rank has, where rank 0 observes alone, and where nobody does."""
    counts = []
    for is_observed in (True, False):
        selector = RecencyBias(4, 4, 9, window=1, warm_up=1)
        synchronise(selector)
        selector.refresh(0)
        if rank == 0 and is_observed:
            said(selector, 1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            selector.refresh(1)
        counts.append(len(caught))
    return counts


def handed_in(rank, make, hand):
    """What refreshing says where every rank hands in its own."""
    selector = make()
    synchronise(selector)
    hand(selector, torch.arange(1.0, 5.0))
    selector.refresh(0)
    hand(selector, torch.arange(1.0, 5.0) + rank)
    try:
        selector.refresh(1)
    except ValueError as error:
        return str(error)
    return "nothing"


def main(out):
    dist.init_process_group("gloo")
    torch.set_num_threads(2)
    rank = dist.get_rank()
    online = partial(OnlineBatch, 4, 2, 5, warm_up=0, losses="evaluate")
    found = {
        "last steps": last_steps(rank),
        "skipped": skipped(rank),
        "reused": reused(rank),
        "unlike": unlike(rank),
        "undone": undone(rank),
        "warned": warned(rank),
        "losses": handed_in(rank, online, OnlineBatch.set_losses),
        "weights": handed_in(rank, partial(WeightedBatch, 4), WeightedBatch.set_weights),
    }
    (Path(out) / f"{rank}.json").write_text(json.dumps(found))
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
