"""Recency Bias in a plain training loop, on scikit-learn's digits (extra lab)."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from carpediem import AdaptiveSampler, Indexed, RecencyBias

EPOCHS, BATCH = 20, 64


def main() -> None:
    x, y = (torch.as_tensor(a) for a in load_digits(return_X_y=True))
    x = x.float() / 16
    train, test = TensorDataset(x[:1400], y[:1400]), (x[1400:], y[1400:])
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    selector = RecencyBias(num_samples=len(train), num_classes=10, epochs=EPOCHS, window=5, warm_up=5)
    sampler = AdaptiveSampler(selector, batch_size=BATCH, seed=0)
    loader = DataLoader(Indexed(train), batch_size=BATCH, sampler=sampler)

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
        settled = float((selector.history.uncertainty() == 0).float().mean())
        print(f"epoch {epoch:2d}  test error {100 * error:5.2f}%  settled samples {100 * settled:3.0f}%")


if __name__ == "__main__":
    main()
