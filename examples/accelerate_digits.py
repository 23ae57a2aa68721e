"""Recency Bias with Accelerate (extras lab, accelerate): torchrun --nproc-per-node 2 examples/accelerate_digits.py"""

import os

import torch
from accelerate import Accelerator
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from carpediem import AdaptiveSampler, Indexed, RecencyBias
from carpediem.integrations.accelerate import adapt

EPOCHS, BATCH = 12, 64  # the batch of all processes together


def main() -> None:
    accelerator = Accelerator(cpu=True)
    x, y = (torch.as_tensor(a) for a in load_digits(return_X_y=True))
    x = x.float() / 16
    train, test = TensorDataset(x[:1408], y[:1408]), (x[1408:], y[1408:])
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    selector = RecencyBias(num_samples=len(train), num_classes=10, epochs=EPOCHS, window=3, warm_up=3)
    sampler = AdaptiveSampler(selector, batch_size=BATCH, seed=0)
    loader = DataLoader(Indexed(train), batch_size=BATCH // accelerator.num_processes, sampler=sampler)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    adapt(accelerator, loader)

    for epoch in range(EPOCHS):
        for indices, (images, labels) in loader:
            logits = model(images)
            loss = F.cross_entropy(logits, labels)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            selector.observe(indices, logits, labels)
        with torch.no_grad():
            error = (model(test[0]).argmax(1) != test[1]).float().mean()
        accelerator.save_state("checkpoint")  # the selector too
        accelerator.print(
            f"epoch {epoch:2d}  test error {100 * error:5.2f}% on {accelerator.num_processes} processes"
        )
    accelerator.end_training()


if __name__ == "__main__":
    main()
    os._exit(0)  # without waiting for gloo's threads, which may abort the interpreter on its way out
