"""Recency Bias in plain DDP (extra lab, for the data): torchrun --nproc-per-node 2 examples/ddp.py"""

import os

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from carpediem import AdaptiveSampler, Indexed, RecencyBias
from carpediem.distributed import synchronise

EPOCHS, BATCH = 12, 64  # the batch of all ranks together


def main() -> None:
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    x, y = (torch.as_tensor(a) for a in load_digits(return_X_y=True))
    x = x.float() / 16
    train, test = TensorDataset(x[:1400], y[:1400]), (x[1400:], y[1400:])
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    selector = RecencyBias(num_samples=len(train), num_classes=10, epochs=EPOCHS, window=3, warm_up=3)
    sampler = AdaptiveSampler(selector, batch_size=BATCH, seed=0, rank=rank, world_size=world)
    synchronise(sampler)
    loader = DataLoader(Indexed(train), batch_size=BATCH // world, sampler=sampler)

    for epoch in range(EPOCHS):
        for indices, (images, labels) in loader:
            logits = model(images)
            loss = F.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            selector.observe(indices, logits, labels)
        with torch.no_grad():
            error = (model(test[0]).argmax(1) != test[1]).float().mean()
        if rank == 0:
            print(f"epoch {epoch:2d}  test error {100 * error:5.2f}% on {world} ranks", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    os._exit(0)  # without waiting for gloo's threads, which may abort the interpreter on its way out
