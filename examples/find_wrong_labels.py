"""Finds wrong labels while a network trains on them: scikit-learn's digits, 40% of them wrong (extra lab)."""

import sys

import torch
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from carpediem import Indexed, Record

EPOCHS, BATCH, ROW = 48, 64, torch.arange(8)


def shifted(images: torch.Tensor) -> torch.Tensor:
    """Each image moved by at most one pixel either way."""
    padded, many = F.pad(images, (1, 1, 1, 1)), torch.arange(len(images))[:, None, None]
    down, right = torch.randint(3, (2, len(images), 1, 1))
    return padded[many, 0, down + ROW[:, None], right + ROW][:, None]


def main(seed: int = 0) -> None:
    torch.manual_seed(seed)
    x, true = (torch.as_tensor(a) for a in load_digits(return_X_y=True))
    chosen, x = torch.randperm(len(x))[:898], x.view(-1, 1, 8, 8).float() / 16
    x, true = x[chosen], true[chosen]
    wrong = torch.rand(len(x)) < 0.4
    given = torch.where(wrong, (true + torch.randint(1, 10, true.shape)) % 10, true)

    layers = [nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU()]
    layers += [nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 10)]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
    loader = DataLoader(Indexed(TensorDataset(x, given)), batch_size=BATCH, shuffle=True)
    total = EPOCHS * len(loader)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(10 * i / total, (1 - i / total) / 0.9))

    record = Record(num_samples=len(x), num_classes=10)
    for _ in range(EPOCHS):
        for indices, (images, labels) in loader:
            logits = model(shifted(images))
            optimizer.zero_grad()
            F.cross_entropy(logits, labels).backward()
            optimizer.step()
            rate.step()
            record.observe(indices, logits, labels)

    suspects, said = record.suspects(), record.scores()["majority"]
    for i in suspects[:5]:
        print(f"sample {i:3d} is labelled {given[i]}, the network says {said[i]}; it is a {true[i]}")
    hits, ranked = wrong[suspects].sum(), record.suspects(count=len(x))
    print(f"suspects {len(suspects)}, precision {hits / len(suspects):.3f}, recall {hits / wrong.sum():.3f}")
    print(f"average precision {average_precision_score(wrong[ranked], range(len(x), 0, -1)):.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
