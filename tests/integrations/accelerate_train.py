"""Trainings with Accelerate that write down every batch: accelerate_train.py OUT "OPTIONS" "OPTIONS"…"""

import argparse
import json
import os
import shlex
import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import DataLoaderConfiguration
from safe_workers import fork_workers_elsewhere
from task import BATCH, EPOCHS, SAMPLES, adaptive, network, problem
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from carpediem import Indexed
from carpediem.integrations.accelerate import adapt


def parsed(line):
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--precision", default="no")
    parser.add_argument("--split", action="store_true")
    parser.add_argument("--dispatch", action="store_true")
    parser.add_argument("--set-epoch", action="store_true", help="as users may, several times an epoch")
    parser.add_argument("--save", default="", help="EPOCH,STEP or EPOCH: then save_state")
    parser.add_argument("--resume", default="", help="NAME-RANKS:EPOCH,BATCHES: load_state, skip so many")
    parser.add_argument(
        "--back", action="store_true", help="load_state again at the end of the epoch of the save"
    )
    return parser.parse_args(shlex.split(line))


def train(out, options):
    AcceleratorState._reset_state()
    accelerator = Accelerator(
        cpu=True,
        mixed_precision=options.precision,
        gradient_accumulation_steps=options.accumulate,
        dataloader_config=DataLoaderConfiguration(
            split_batches=options.split, dispatch_batches=options.dispatch or None
        ),
    )
    world, rank = accelerator.num_processes, accelerator.process_index
    name = f"{options.name}-{world}"
    x, y = problem(options.samples)
    dtype = torch.float64 if options.precision == "no" else torch.float32
    model, sampler = network(dtype), adaptive(options.samples)
    loader = DataLoader(
        Indexed(TensorDataset(x.to(dtype), y)),
        batch_size=BATCH // options.accumulate // (1 if options.split else world),
        sampler=sampler,
        num_workers=options.workers,
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    adapt(accelerator, loader)

    save = [int(number) for number in options.save.split(",") if number]
    first = skip = 0
    if options.resume:
        source, place = options.resume.split(":")
        first, skip = (int(number) for number in place.split(","))
        accelerator.load_state(out / source)
    epoch, back = first, options.back
    with (out / f"{name}-{rank}.jsonl").open("w", buffering=1) as log:
        while epoch < EPOCHS:
            if options.set_epoch:
                for _ in range(3):
                    loader.set_epoch(epoch)
            active = accelerator.skip_first_batches(loader, skip) if skip else loader
            skip = 0
            for step, (indices, (images, labels)) in enumerate(active):
                with accelerator.accumulate(model):
                    logits = model(images)
                    accelerator.backward(F.cross_entropy(logits, labels))
                    optimizer.step()
                    optimizer.zero_grad()
                assert indices.dtype == torch.int64
                sampler.selector.observe(indices, logits, labels)
                log.write(json.dumps([epoch, indices.tolist()]) + "\n")
                if save == [epoch, step + 1]:
                    accelerator.save_state(out / name)
            if save == [epoch]:
                accelerator.save_state(out / name)
            if back and save[0] == epoch:  # to the middle of the epoch that has just ended
                accelerator.load_state(out / name)
                back, skip = False, save[1]
            else:
                epoch += 1
    known = sampler.selector.history.uncertainty().tolist()
    (out / f"{name}-{rank}.json").write_text(json.dumps(known))
    accelerator.wait_for_everyone()


if __name__ == "__main__":
    if "WORLD_SIZE" in os.environ:
        fork_workers_elsewhere("accelerate", "carpediem.integrations.accelerate")
    for line in sys.argv[2:]:
        train(Path(sys.argv[1]), parsed(line))
    Accelerator(cpu=True).end_training()
    os._exit(0)  # without waiting for gloo's threads, which may abort the interpreter on its way out
