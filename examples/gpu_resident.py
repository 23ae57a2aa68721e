"""Data, history and draws on one device: no loader, and nothing waits for the host inside an epoch."""

import torch
from torch import nn
from torch.nn import functional as F

from carpediem import AdaptiveSampler, RecencyBias

SAMPLES, CLASSES, EPOCHS, BATCH = 6_000, 10, 8, 100
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def problem() -> tuple[torch.Tensor, torch.Tensor]:
    """Points around ten centres that overlap; an image data set would be moved here once, in the same way."""
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(0, CLASSES, (SAMPLES,), generator=random)
    centres = torch.randn(CLASSES, 32, generator=random)
    points = centres[labels] + 1.5 * torch.randn(SAMPLES, 32, generator=random)
    return points.to(DEVICE), labels.to(DEVICE)


def main() -> None:
    points, labels = problem()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, CLASSES)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    selector = RecencyBias(SAMPLES, CLASSES, EPOCHS, window=2, warm_up=2, device=DEVICE)
    sampler = AdaptiveSampler(selector, batch_size=BATCH, seed=0)

    for epoch in range(EPOCHS):
        total = torch.zeros((), device=DEVICE)
        for indices in sampler.next_epoch().split(BATCH):  # on the device, like all that follows
            y = labels[indices]
            logits = model(points[indices])
            loss = F.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            selector.observe(indices, logits, y)
            total += loss.detach()
        print(f"epoch {epoch}  mean loss {total.item() * BATCH / SAMPLES:.3f} on {DEVICE}")


if __name__ == "__main__":
    main()
