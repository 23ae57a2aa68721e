"""A small DDP training that writes down every global batch; started by torchrun, one process a rank.

train.py OUT [--samples N] [--method NAME] [--epochs E] [--stop EPOCH,STEP] [--resume] [--fault KIND] [--draws HOW]
"""

import argparse
import json
import os
import signal
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from carpediem import ActiveBias, AdaptiveSampler, Indexed, OnlineBatch, RecencyBias
from carpediem.distributed import merge, synchronise

BATCH, CLASSES = 16, 4


def problem(samples):
    random = torch.Generator().manual_seed(0)
    x = torch.randn(samples, 6, generator=random, dtype=torch.float64)
    y = (x @ torch.randn(6, CLASSES, generator=random, dtype=torch.float64)).argmax(dim=1)
    y[::5] = torch.randint(0, CLASSES, (len(y[::5]),), generator=random)
    return x, y


def build(options, rank, world):
    if options.method == "recency":
        pressure = 50.0 + rank if options.fault == "differ" else 100.0
        selector = RecencyBias(
            options.samples, CLASSES, options.epochs, window=2, warm_up=2, pressure=pressure
        )
    else:
        method = {"online": OnlineBatch, "active": ActiveBias}[options.method]
        selector = method(options.samples, CLASSES, options.epochs, warm_up=1)
    sampler = AdaptiveSampler(
        selector, batch_size=BATCH, seed=3, draws=options.draws, rank=rank, world_size=world
    )
    synchronise(sampler)
    return selector, sampler


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--method", default="recency")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--draws", default="independent")
    parser.add_argument("--stop", default="")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--fault", default="")
    options = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    rank, world = dist.get_rank(), dist.get_world_size()
    x, y = problem(options.samples)
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(6, CLASSES, dtype=torch.float64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    selector, sampler = build(options, rank, world)
    first_epoch = 0
    checkpoint = options.out / "checkpoint.pt"
    if options.resume:
        state = torch.load(checkpoint, weights_only=True)
        selector.load_state_dict(state["selector"])
        sampler.load_state_dict(state["sampler"])
        model.load_state_dict(state["model"])
        first_epoch = state["sampler"]["epoch"]
    loader = DataLoader(Indexed(TensorDataset(x, y)), batch_size=BATCH // world, sampler=sampler)
    stop = [int(number) for number in options.stop.split(",")] if options.stop else None
    with (options.out / f"batches-{world}-{rank}{'-resumed' if options.resume else ''}.jsonl").open(
        "w"
    ) as log:
        for epoch in range(first_epoch, options.epochs):
            for step, (indices, (images, labels)) in enumerate(loader):
                if stop == [epoch, step]:
                    merge(sampler)
                    if rank == 0:
                        state = {"selector": selector.state_dict(), "model": model.state_dict()}
                        # This batch has been drawn, but not trained on.
                        state["sampler"] = sampler.state_dict(position=step * BATCH)
                        torch.save(state, checkpoint)
                    dist.barrier()
                    if options.fault == "kill" and rank == world - 1:
                        os.kill(os.getpid(), signal.SIGKILL)
                    if options.fault != "kill":
                        return
                logits = model(images)
                # DDP averages the ranks' means: weighted by their shares they are the mean of the whole batch.
                whole = torch.tensor([float(len(labels))])
                dist.all_reduce(whole)
                loss = F.cross_entropy(logits, labels, reduction="sum") * world / whole.item()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if not (options.fault == "silent" and rank == 1):
                    selector.observe(indices, logits, labels)
                    if options.fault == "twice":
                        selector.observe(indices[:1].repeat(2), logits[:1].repeat(2, 1), labels[:1].repeat(2))
                log.write(json.dumps([epoch, indices.tolist()]) + "\n")
                log.flush()
            if options.fault == "die" and epoch == 1 and rank == world - 1:
                os.kill(os.getpid(), signal.SIGKILL)
    (options.out / f"probabilities-{world}-{rank}.json").write_text(
        json.dumps(selector.distribution.probabilities().tolist())
    )
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    # gloo's threads may still hold tensors when the interpreter is torn down, and abort it: this leaves without.
    os._exit(0)
