"""What selection costs on two ranks of gloo on the CPU, beside the same training with a shuffling DistributedSampler.

    python benchmarks/bench_distributed.py [--samples N] [--epochs E] [--json FILE]

Both trainings run in the same two processes and take turns every few steps, so that a busy moment of the machine falls
on both. No timing makes the program fail: the table says which bars were kept.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
from machine import describe_machine, describe_versions
from measure import Pair
from torch import Tensor, nn
from torch.multiprocessing.spawn import spawn
from torch.nn import functional as F
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from carpediem import AdaptiveSampler, Indexed, RecencyBias
from carpediem.distributed import Journal, synchronise
from carpediem.lab.machine import source_fingerprint
from carpediem.lab.networks.small_cnn import SmallCNN

RANKS, BATCH, CLASSES, WINDOW = 2, 128, 10, 10
TURN = 10  # steps after which the other training has its turn
MERGING_BAR = 0.01
COLLECTIVES = ("all_gather", "all_gather_object", "all_reduce", "broadcast", "reduce", "barrier", "gather")


class Timed(Journal):
    """A journal that says how long its exchanges take, once all ranks are there."""

    seconds: float = 0.0

    def exchange(self) -> None:
        dist.monitored_barrier()  # the wait for a slower rank is no cost of merging: the next step would wait as well
        begin = time.perf_counter()
        super().exchange()
        self.seconds += time.perf_counter() - begin


class Training:
    """A small CNN under DDP, trained a step at a time."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        network = SmallCNN(num_classes=CLASSES, in_channels=1, dropout=0.0)
        self.model = nn.parallel.DistributedDataParallel(network)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)

    def step(self, images: Tensor, labels: Tensor) -> Tensor:
        logits: Tensor = self.model(images)
        loss = F.cross_entropy(logits, labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return logits


class Ours:
    """Recency Bias in the middle of training: the windows are full, the pressure is on."""

    def __init__(self, data: TensorDataset, rank: int, epochs: int) -> None:
        samples, first = len(data), WINDOW
        self.training = Training()
        self.selector = RecencyBias(samples, CLASSES, first + epochs, window=WINDOW, warm_up=first)
        random = torch.Generator().manual_seed(1)
        for _ in range(WINDOW):
            logits = torch.randn(samples, CLASSES, generator=random)
            self.selector.observe(torch.arange(samples), logits, data.tensors[1])
        self.sampler = AdaptiveSampler(self.selector, batch_size=BATCH, rank=rank, world_size=RANKS)
        self.sampler.set_epoch(first)
        synchronise(self.sampler)
        self.journal = self.selector.journal = Timed(self.selector)
        self.loader = DataLoader(Indexed(data), batch_size=BATCH // RANKS, sampler=self.sampler)

    def note(self, steps: int) -> None:
        """Write so many steps down that were not trained, to be merged before the next epoch."""
        share = BATCH // RANKS
        for _ in range(steps):
            indices = torch.randint(0, self.selector.num_samples, (share,))
            labels = torch.zeros(share, dtype=torch.int64)
            self.selector.observe(indices, torch.randn(share, CLASSES), labels)

    def epoch(self) -> Iterator[None]:
        for indices, (images, labels) in self.loader:
            logits = self.training.step(images, labels)
            self.selector.observe(indices, logits, labels)
            yield


class Shuffled:
    """The usual way."""

    def __init__(self, data: TensorDataset, rank: int) -> None:
        self.training = Training()
        self.sampler: DistributedSampler[Any] = DistributedSampler(data, RANKS, rank, shuffle=True)
        self.loader = DataLoader(data, batch_size=BATCH // RANKS, sampler=self.sampler)
        self.done = 0

    def epoch(self) -> Iterator[None]:
        self.sampler.set_epoch(self.done)
        self.done += 1
        for images, labels in self.loader:
            self.training.step(images, labels)
            yield


def counted(calls: Counter[str]) -> None:
    """Count every collective that Python code calls from now on; DDP's own are called from C++."""

    def counting(name: str, collective: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            return collective(*arguments, **options)

        return call

    for name in COLLECTIVES:
        setattr(dist, name, counting(name, getattr(dist, name)))


def in_turns(ours: Ours, shuffled: Shuffled) -> tuple[float, float]:
    """Seconds of one epoch of each."""
    runs, spent, left = [ours.epoch(), shuffled.epoch()], [0.0, 0.0], [True, True]
    turn = 0
    while any(left):
        for which in (0, 1) if turn % 2 else (1, 0):
            begin = time.perf_counter()
            for _ in range(TURN):
                if next(runs[which], StopIteration) is StopIteration:
                    left[which] = False
                    break
            spent[which] += time.perf_counter() - begin
        turn += 1
    return spent[0], spent[1]


def measure(rank: int, folder: str, samples: int, epochs: int) -> None:
    """One rank; rank 0 writes what it measured."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=RANKS)
    random = torch.Generator().manual_seed(0)
    images = torch.randn(samples, 1, 28, 28, generator=random)
    data = TensorDataset(images, torch.randint(0, CLASSES, (samples,), generator=random))
    ours, shuffled = Ours(data, rank, epochs + 1), Shuffled(data, rank)
    calls: Counter[str] = Counter()
    counted(calls)
    for run in (ours.epoch(), shuffled.epoch()):  # the first steps of each are not measured
        for _ in range(TURN):
            next(run)
    ours.note(len(ours.loader) - TURN)  # so that the first epoch that is measured merges as much as any other
    pair, merging, collectives = Pair(), [], []
    for _ in range(epochs):
        calls.clear()
        ours.journal.seconds = 0.0
        seconds = in_turns(ours, shuffled)
        pair.ours.append(seconds[0])
        pair.other.append(seconds[1])
        merging.append(ours.journal.seconds)
        collectives.append(sum(calls.values()))
    if rank == 0:
        raw = {"ours": pair.ours, "other": pair.other, "merging": merging, "collectives": collectives}
        (Path(folder) / "raw.json").write_text(json.dumps(raw), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    described = {
        "machine": describe_machine(),
        "versions": describe_versions(),
        "source": source_fingerprint(lab=False),
    }
    with tempfile.TemporaryDirectory() as folder:
        spawn(measure, (folder, options.samples, options.epochs), nprocs=RANKS)
        raw = json.loads((Path(folder) / "raw.json").read_text(encoding="utf-8"))
    pair = Pair(raw["ours"], raw["other"])
    steps = -(-options.samples // BATCH)
    share = median(merge / epoch for merge, epoch in zip(raw["merging"], pair.ours, strict=True))
    print(f"{RANKS} ranks, N = {options.samples:,}, {steps} steps an epoch, {options.epochs} epochs")
    print(f"epoch with Recency Bias, observing and merging   {median(pair.ours):8.2f} s")
    print(f"epoch with a shuffling DistributedSampler        {median(pair.other):8.2f} s")
    print(f"ratio                                            {pair.ratio:8.3f}")
    verdict = "ok" if share < MERGING_BAR else "MISSED"
    print(f"merging alone                                    {1e3 * median(raw['merging']):8.1f} ms")
    print(f"merging, share of the epoch                      {share:8.2%}   < {MERGING_BAR:.0%}  {verdict}")
    each = max(raw["collectives"])
    print(
        f"collectives an epoch, however many steps         {each:8d}   ≤ 2  {'ok' if each <= 2 else 'MISSED'}"
    )
    if options.json:
        text = json.dumps({**described, "samples": options.samples, **raw}, indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
