"""A small Lightning training that remembers every batch: called by tests, or started by torchrun as a program.

lightning_training.py OUT SCENARIO... trains each named scenario on all ranks, one after the other.
"""

import json
import logging
import os
import sys
import warnings
from pathlib import Path

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from safe_workers import fork_workers_elsewhere
from torch import nn
from torch.nn import functional as F
from torch.utils.data import BatchSampler, DataLoader, Sampler, TensorDataset

from carpediem import AdaptiveSampler, Indexed, RecencyBias
from carpediem.integrations.lightning import AdaptiveBatches

SAMPLES, BATCH, CLASSES, EPOCHS = 100, 16, 4, 5
STEPS = 7  # of an epoch: six whole batches and one of four
QUIET = {
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "accelerator": "cpu",
    "num_sanity_val_steps": 0,
}
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def problem(samples=SAMPLES):
    random = torch.Generator().manual_seed(0)
    x = torch.randn(samples, 6, generator=random, dtype=torch.float64)
    y = (x @ torch.randn(6, CLASSES, generator=random, dtype=torch.float64)).argmax(dim=1)
    y[::5] = torch.randint(0, CLASSES, (len(y[::5]),), generator=random)
    return TensorDataset(x, y)


def network():
    torch.manual_seed(0)
    return nn.Linear(6, CLASSES, dtype=torch.float64)


def adaptive(samples=SAMPLES, epochs=EPOCHS, batch=BATCH):
    selector = RecencyBias(samples, CLASSES, epochs, window=2, warm_up=2)
    return AdaptiveSampler(selector, batch_size=batch, seed=3)


class Classifier(LightningModule):
    """Remembers what it was trained on: (epoch, indices) for each step of this rank."""

    def __init__(self):
        super().__init__()
        self.network, self.steps = network(), []

    def training_step(self, batch, batch_idx):
        indices, (x, y) = batch
        self.steps.append((self.current_epoch, indices.tolist()))
        logits = self.network(x)
        # DDP averages the ranks' means: weighted by their shares they are the mean of the whole batch.
        whole = self.all_gather(torch.tensor(float(len(y)))).sum()
        loss = F.cross_entropy(logits, y, reduction="sum") * self.trainer.world_size / whole
        return {"loss": loss, "logits": logits}

    def configure_optimizers(self):
        return torch.optim.SGD(self.network.parameters(), lr=0.5)


class Validated(Classifier):
    """Remembers what it was validated on too."""

    def __init__(self):
        super().__init__()
        self.validated = []

    def validation_step(self, batch, batch_idx):
        self.validated += batch.tolist()


def build(samples=SAMPLES, epochs=EPOCHS, **loading):
    """The callback and the loader of a user."""
    sampler = adaptive(samples, epochs)
    loading = {"batch_size": BATCH} | loading
    if loading.get("num_workers"):
        if "WORLD_SIZE" in os.environ:
            fork_workers_elsewhere("lightning.pytorch", "carpediem.integrations.lightning")
        else:
            loading["multiprocessing_context"] = "fork"
    return AdaptiveBatches(sampler), DataLoader(Indexed(problem(samples)), sampler=sampler, **loading)


def fit(callback, loader, *, ckpt_path=None, model=None, callbacks=(), validation=None, **options):
    """One run of a real Trainer; returns the module with what it remembers."""
    model = model or Classifier()
    options = QUIET | {"max_epochs": EPOCHS, "enable_checkpointing": False, "devices": 1} | options
    if any(isinstance(other, ModelCheckpoint) for other in callbacks):
        options["enable_checkpointing"] = True
    trainer = Trainer(callbacks=[callback, *callbacks], **options)
    trainer.fit(model, loader, validation, ckpt_path=ckpt_path)
    return model


def saves(folder, **when):
    """Lightning's own callback, keeping every checkpoint that it makes."""
    return ModelCheckpoint(folder, filename="{step}", auto_insert_metric_name=True, save_top_k=-1, **when)


def alone(samples=SAMPLES, epochs=EPOCHS, limit=STEPS, accumulate=1):
    """The loop without a framework: what every run of a Trainer must equal."""
    sampler = adaptive(samples, epochs)
    loader = DataLoader(Indexed(problem(samples)), batch_size=BATCH, sampler=sampler)
    model, steps = network(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(epochs):
        for number, (indices, (x, y)) in enumerate(loader, start=1):
            steps.append((epoch, indices.tolist()))
            logits = model(x)
            (F.cross_entropy(logits, y) / accumulate).backward()
            if number % accumulate == 0 or number == limit:
                optimizer.step()
                optimizer.zero_grad()
            sampler.selector.observe(indices, logits, y)
            if number == limit:
                break
    return steps


# -- what torchrun starts ------------------------------------------------------------------------------------


def ranks(**options):
    return {"strategy": "ddp", "devices": 2} | options


def whole(out):
    return fit(*build(batch_size=BATCH // 2), **ranks())


def left_to_us(out):
    """The setting that a user need not touch, touched."""
    return fit(*build(batch_size=BATCH // 2), **ranks(use_distributed_sampler=False))


def uneven(out):
    return fit(*build(samples=99, batch_size=BATCH // 2), **ranks())


def saved(out):
    # Six steps into the third epoch: its distribution is no longer uniform, and the workers have drawn to its end.
    callback, loader = build(batch_size=BATCH // 2, num_workers=2, persistent_workers=True)
    return fit(callback, loader, callbacks=[saves(out, every_n_train_steps=5)], **ranks())


def resumed(out):
    callback, loader = build(batch_size=BATCH // 2, num_workers=2, persistent_workers=True)
    return fit(callback, loader, ckpt_path=out / "step=20.ckpt", **ranks())


def shuffled(out):
    """What Lightning does with an index sampler that is not handed to the callback."""
    sampler = adaptive()
    loader = DataLoader(Indexed(problem()), batch_size=BATCH // 2, sampler=sampler)
    return fit(saves(out), loader, **ranks(max_epochs=1, enable_checkpointing=True))


class TakesSampler(BatchSampler):
    """A batch sampler as users write them, around our stream."""

    def __init__(self, sampler, batch_size=BATCH // 2, drop_last=False):
        super().__init__(sampler, batch_size, drop_last)


class TakesNone(Sampler):
    """One without the argument that Lightning looks for."""

    def __init__(self, stream):
        self.stream = stream

    def __len__(self):
        return STEPS

    def __iter__(self):
        return iter(BatchSampler(self.stream, BATCH // 2, False))


def refused(out):
    """What becomes of loaders that do not fit, with the callback."""
    said = {}
    for name, loading in {
        "too large": lambda sampler: {"batch_size": BATCH, "sampler": sampler},
        "batch sampler": lambda sampler: {"batch_sampler": TakesSampler(sampler)},
        "its own batch sampler": lambda sampler: {"batch_sampler": TakesNone(sampler)},
    }.items():
        callback = AdaptiveBatches(adaptive())
        try:
            fit(callback, DataLoader(Indexed(problem()), **loading(callback.sampler)), **ranks())
        except (TypeError, ValueError) as error:
            said[name] = f"{type(error).__name__}: {error}"
    (out / "refused.txt").write_text(json.dumps(said))
    return Classifier()


def replaced(out):
    """A batch sampler around our stream, without the callback: trained on without an error."""
    sampler = adaptive()
    loader = DataLoader(Indexed(problem()), batch_sampler=TakesSampler(sampler))
    model = fit(saves(out), loader, **ranks(max_epochs=1, enable_checkpointing=True))
    assert sampler.selector.epoch == -1  # nothing was ever drawn from it
    return model


def main():
    warnings.filterwarnings("error", message="You're resuming")
    out, *names = sys.argv[1:]
    torch.set_num_threads(1)
    for name in names:
        model = globals()[name](Path(out))
        file = Path(out) / f"{name}-{torch.distributed.get_rank()}.json"
        file.write_text(json.dumps(model.steps))


if __name__ == "__main__":
    main()
    # gloo's threads may still hold tensors when the interpreter is torn down, and abort it: this leaves without.
    os._exit(0)
