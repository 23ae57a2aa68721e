"""Stop in the middle of an epoch, resume from a file, and end with exactly the weights of a run without a stop."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from carpediem import AdaptiveSampler, Indexed, RecencyBias

BATCH, EPOCHS, FILE = 50, 14, Path("checkpoint.pt")
x = torch.randn(1000, 20, generator=torch.Generator().manual_seed(0))
TRAIN = TensorDataset(x, x[:, :10].argmax(1))


def train(stop_after: int | None = None) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Linear(20, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    selector = RecencyBias(num_samples=len(TRAIN), num_classes=10, epochs=EPOCHS)
    sampler = AdaptiveSampler(selector, batch_size=BATCH, seed=7)
    loader = DataLoader(Indexed(TRAIN), batch_size=BATCH, sampler=sampler, num_workers=1)
    kept: dict[str, Any] = {"model": model, "optimizer": optimizer, "selector": selector}
    done = 0  # steps of this epoch
    if FILE.exists():
        state = torch.load(FILE, weights_only=True)
        for name, holder in (kept | {"sampler": sampler}).items():
            holder.load_state_dict(state[name])
        done = state["sampler"]["position"] // BATCH
        print(f"resumed in epoch {sampler.epoch} after {done} steps")

    for epoch in range(sampler.epoch, EPOCHS):
        for step, (indices, (inputs, targets)) in enumerate(loader, start=done + 1):
            logits = model(inputs)
            optimizer.zero_grad()
            F.cross_entropy(logits, targets).backward()
            optimizer.step()
            selector.observe(indices, logits, targets)
            if step % 5 == 0:  # the worker has drawn further than this: say how far training is
                state = {name: holder.state_dict() for name, holder in kept.items()}
                torch.save(state | {"sampler": sampler.state_dict(position=step * BATCH)}, FILE)
            if epoch * len(loader) + step == stop_after:
                return model
        done = 0
    FILE.unlink()
    return model


if __name__ == "__main__":
    whole = train()
    train(stop_after=237)  # two steps after a checkpoint, in the twelfth epoch
    resumed = train()
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters(), strict=True))
    print("the weights are those of a run without a stop")
