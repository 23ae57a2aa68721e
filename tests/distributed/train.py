"""Small DDP trainings that write down every batch, started by torchrun: train.py OUT "OPTIONS" "OPTIONS"…"""

import argparse
import json
import os
import shlex
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from carpediem import ActiveBias, AdaptiveSampler, Indexed, OnlineBatch, RecencyBias, WeightedBatch
from carpediem.distributed import merge, synchronise

BATCH, CLASSES, TIMEOUT = 16, 4, 5  # how many seconds a lost rank is waited for


def problem(samples):
    random = torch.Generator().manual_seed(0)
    x = torch.randn(samples, 6, generator=random, dtype=torch.float64)
    y = (x @ torch.randn(6, CLASSES, generator=random, dtype=torch.float64)).argmax(dim=1)
    y[::5] = torch.randint(0, CLASSES, (len(y[::5]),), generator=random)
    return x, y


def build(options, rank, world, group):
    if options.method == "recency":
        pressure = 50.0 + rank if options.fault == "differ" else 100.0
        selector = RecencyBias(
            options.samples, CLASSES, options.epochs, window=2, warm_up=2, pressure=pressure
        )
    elif options.method == "weighted":
        selector = WeightedBatch(options.samples, options.epochs)
        selector.set_weights(torch.arange(options.samples) + rank)
    else:
        method = {"online": OnlineBatch, "active": ActiveBias}[options.method]
        selector = method(options.samples, CLASSES, options.epochs, warm_up=1)
    sampler = AdaptiveSampler(
        selector, batch_size=BATCH, seed=3, draws=options.draws, rank=rank, world_size=world
    )
    synchronise(sampler, group)
    return selector, sampler


def lose(out, sign):
    """This rank is lost, now."""
    (out / "lost").write_text(str(time.time()))
    os.kill(os.getpid(), sign)


def parsed(line):
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--method", default="recency")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--draws", default="independent")
    parser.add_argument("--stop", default="", help="EPOCH,STEP: write a checkpoint and leave, or be killed")
    parser.add_argument("--resume", default="", help="NAME of the run to go on from")
    parser.add_argument("--fault", default="")
    return parser.parse_args(shlex.split(line))


def train(out, options):
    rank, world = dist.get_rank(), dist.get_world_size()
    # Not for the group of all processes, which may be slow to meet on a busy machine.
    group = dist.new_group(timeout=timedelta(seconds=TIMEOUT if options.name == "lost" else 60))
    x, y = problem(options.samples)
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(
        nn.Linear(6, CLASSES, dtype=torch.float64), process_group=group
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    try:
        selector, sampler = build(options, rank, world, group)
    except ValueError as error:
        (out / f"{options.name}-{world}-{rank}.json").write_text(json.dumps(str(error)))
        return
    first_epoch = 0
    if options.resume:
        state = torch.load(out / f"{options.resume}.pt", weights_only=True)
        selector.load_state_dict(state["selector"])
        sampler.load_state_dict(state["sampler"])
        model.load_state_dict(state["model"])
        first_epoch = state["sampler"]["epoch"]
    loader = DataLoader(Indexed(TensorDataset(x, y)), batch_size=BATCH // world, sampler=sampler)
    stop = [int(number) for number in options.stop.split(",")] if options.stop else None
    with (out / f"{options.name}-{world}-{rank}.jsonl").open("w", buffering=1) as log:
        for epoch in range(first_epoch, options.epochs):
            for step, (indices, (images, labels)) in enumerate(loader):
                if stop == [epoch, step]:
                    merge(sampler)
                    if rank == 0:
                        state = {"selector": selector.state_dict(), "model": model.state_dict()}
                        # This batch has been drawn, but not trained on.
                        state["sampler"] = sampler.state_dict(position=step * BATCH)
                        torch.save(state, out / f"{options.name}.pt")
                    dist.barrier()
                    if options.fault == "kill" and rank == world - 1:
                        os.kill(os.getpid(), signal.SIGKILL)
                    if options.fault != "kill":
                        return
                logits = model(images)
                # DDP averages the ranks' means: weighted by their shares they are the mean of the whole batch.
                whole = torch.tensor([float(len(labels))])
                dist.all_reduce(whole, group=group)
                loss = F.cross_entropy(logits, labels, reduction="sum") * world / whole.item()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if not (options.fault == "silent" and rank == 1):
                    selector.observe(indices, logits, labels)
                    if options.fault == "twice":
                        selector.observe(indices[:1].repeat(2), logits[:1].repeat(2, 1), labels[:1].repeat(2))
                log.write(json.dumps([epoch, indices.tolist()]) + "\n")
                if options.fault == "die inside" and (epoch, step) == (1, 3) and rank == world - 1:
                    lose(out, signal.SIGKILL)
            if options.fault in ("die", "freeze") and epoch == 1 and rank == world - 1:
                lose(out, signal.SIGKILL if options.fault == "die" else signal.SIGSTOP)
    merge(sampler)
    if options.method == "recency":
        known = selector.history.uncertainty().tolist()
        (out / f"{options.name}-{world}-{rank}.json").write_text(json.dumps(known))


def main(out, *lines):
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    for line in lines:
        train(out, parsed(line))
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), *sys.argv[2:])
    finally:
        Path(sys.argv[1], "ended").touch()
    # gloo's threads may still hold tensors when the interpreter is torn down, and abort it: this leaves without.
    os._exit(0)
