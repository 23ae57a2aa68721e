"""Recency Bias in Lightning (extras lab, lightning); torchrun --nproc-per-node 2 trains on the same batches."""

import os

import torch
from lightning.pytorch import LightningModule, Trainer
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from carpediem import AdaptiveSampler, Indexed, RecencyBias
from carpediem.integrations.lightning import AdaptiveBatches

EPOCHS, BATCH = 12, 64  # the batch of all processes together
PROCESSES = int(os.environ.get("WORLD_SIZE", "1"))


class Digits(LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def training_step(self, batch: tuple[Tensor, tuple[Tensor, Tensor]], step: int) -> dict[str, Tensor]:
        _, (images, labels) = batch
        logits = self.network(images)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}

    def validation_step(self, batch: tuple[Tensor, Tensor], step: int) -> None:
        images, labels = batch
        error = (self.network(images).argmax(1) != labels).float().mean()
        self.log("error", error, prog_bar=True, sync_dist=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


def main() -> None:
    x, y = (torch.as_tensor(a) for a in load_digits(return_X_y=True))
    x = x.float() / 16
    train, test = TensorDataset(x[:1400], y[:1400]), TensorDataset(x[1400:], y[1400:])
    torch.manual_seed(0)

    selector = RecencyBias(num_samples=len(train), num_classes=10, epochs=EPOCHS, window=3, warm_up=3)
    sampler = AdaptiveSampler(selector, batch_size=BATCH, seed=0)
    loader = DataLoader(Indexed(train), batch_size=BATCH // PROCESSES, sampler=sampler)
    callback = AdaptiveBatches(sampler)

    trainer = Trainer(max_epochs=EPOCHS, callbacks=callback, accelerator="cpu", devices=PROCESSES)
    trainer.fit(Digits(), loader, DataLoader(test, batch_size=100))
    error = 100 * trainer.callback_metrics["error"]
    if trainer.is_global_zero:
        print(f"\nafter {EPOCHS} epochs: test error {error:.2f}% on {PROCESSES} process(es)", flush=True)


if __name__ == "__main__":
    main()
    os._exit(0)  # without waiting for gloo's threads, which may abort the interpreter on its way out
