"""Looks on at a run and keeps what it did with every training sample, whatever the method."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from carpediem.core.history import LabelHistory, last_of_each
from carpediem.core.moments import RunningMoments
from carpediem.lab.samples import SampleRecord, Trails, sample_record, uncertainties

FOLLOWED = 64  # samples that are followed through all epochs


class SampleObserver:
    """The last predictions of every sample, how often it was drawn and when its prediction changed.

    A training step only writes its predictions down beside its losses; all else happens between two epochs, in one
    pass over the epoch's draws in their order. Nothing here is read by training.

    Args:
        num_samples, num_classes: N and k.
        window: q, how many predictions are kept.
        epochs: how many there will be.
        device: where the tensors of N places live.
    """

    def __init__(
        self, num_samples: int, num_classes: int, window: int, epochs: int, device: torch.device | str
    ) -> None:
        self.num_samples, self.num_classes, self.window = num_samples, num_classes, window
        self.epoch = 0  # epochs taken in
        self._history = LabelHistory(num_samples, num_classes, window, device)
        # Place N takes what must not be kept, as in LabelHistory.
        self._latest = torch.full((num_samples + 1,), -1, dtype=torch.int32, device=device)
        self._drawn = torch.zeros(num_samples + 1, dtype=torch.int32, device=device)
        self._change = torch.full((num_samples + 1,), -1, dtype=torch.int32, device=device)
        self._loss = torch.full((num_samples + 1,), torch.nan, device=device)
        self.followed = followed_samples(num_samples)
        many = len(self.followed)
        self._slot = torch.full((num_samples + 1,), many, dtype=torch.int16, device=device)
        self._slot[self.followed.to(device)] = torch.arange(many, dtype=torch.int16, device=device)
        self._moments = RunningMoments(many)
        self._trails = {
            "prediction": torch.full((epochs, many), -1, dtype=torch.int32),
            "drawn": torch.zeros(epochs, many, dtype=torch.int32),
            "window": torch.full((epochs, many, window), -1, dtype=torch.int32),
            "deviation": torch.zeros(epochs, many),
        }

    @torch.no_grad()
    def take_in(self, batches: Tensor, predictions: Tensor, losses: Tensor) -> None:
        """One epoch; as in the selectors, the predictions of a batch with a loss that is not finite are passed over.

        Args:
            batches: (steps, b), int64, what was drawn.
            predictions: (steps, b), int32, what was predicted.
            losses: (steps, b).
        """
        drawn = batches.flatten()
        self._drawn.index_add_(0, drawn, torch.ones_like(drawn, dtype=torch.int32))
        kept = losses.isfinite().all(dim=1, keepdim=True)
        indices = torch.where(kept, batches, self.num_samples).flatten()
        predicted = torch.where(kept, predictions, 0).flatten()
        self._change.index_fill_(0, self._changed(indices, predicted), self.epoch)
        self._history.append(indices, predicted)
        last = last_of_each(indices, self.num_samples)
        self._latest.index_copy_(0, last, predicted)
        self._loss.index_copy_(0, last, losses.flatten())
        self._follow(drawn, indices, predicted, losses.flatten())
        self.epoch += 1

    def _changed(self, indices: Tensor, predicted: Tensor) -> Tensor:
        """The indices whose prediction differs from the one before, and N in place of the others."""
        ordered, order = indices.sort(stable=True)
        now = predicted[order]
        before = self._latest[ordered]
        before[1:] = torch.where(ordered[1:] == ordered[:-1], now[:-1], before[1:])
        return torch.where((before >= 0) & (before != now), ordered, self.num_samples)

    def _follow(self, drawn: Tensor, indices: Tensor, predicted: Tensor, losses: Tensor) -> None:
        """The epoch's line of the trails: a few hundred numbers, on the host."""
        many = len(self.followed)
        visited = (self._slot[drawn] < many).nonzero()[:, 0]
        slots, seen = self._slot[drawn[visited]].long().cpu(), self._slot[indices[visited]].long().cpu()
        predicted, losses = predicted[visited].cpu(), losses[visited].cpu()
        # The probability of the true label is exp(-loss).
        self._moments.record(seen, losses.neg().exp())
        line = {name: trail[self.epoch] for name, trail in self._trails.items()}
        line["drawn"].copy_(torch.bincount(slots, minlength=many))
        latest = torch.full((many + 1,), -1, dtype=torch.int32)
        line["prediction"].copy_(latest.index_copy_(0, last_of_each(seen, many), predicted)[:many])
        line["window"].copy_(self._signed(self._windows(self.followed)).T)
        line["deviation"].copy_(self._moments.deviation())

    def agree(self, indices: Tensor, labels: Tensor) -> Tensor:
        """Whether the windows of these samples are full and hold nothing but these labels, (n,), bool."""
        held = self._history.labels[:, indices] == labels
        return held.all(dim=0) & (self._history.cursor[indices] >= self.window)

    def _windows(self, indices: Tensor | slice = slice(None)) -> Tensor:
        """The windows of samples on the host, (q, n), the newest in the last row, free places in front."""
        q, columns = self.window, slice(0, self.num_samples)
        labels = self._history.labels[:, columns][:, indices].cpu()
        cursor = self._history.cursor[columns][indices].cpu().long()
        out = torch.full_like(labels, self._free)
        for age in range(q):
            row = labels.gather(0, ((cursor - 1 - age) % q)[None])[0]
            out[q - 1 - age] = torch.where(age < cursor, row, self._free)
        return out

    @property
    def _free(self) -> int:
        """What a free place of the history holds."""
        return torch.iinfo(self._history.labels.dtype).max

    def _signed(self, windows: Tensor) -> Tensor:
        return torch.where(windows == self._free, -1, windows.to(torch.int32))

    # -- checkpoints --------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything, on the host and in an order that depends on nothing but the draws."""
        return {
            "epoch": self.epoch,
            "windows": self._windows(),
            "moments": {"count": self._moments.count.clone(), "sums": self._moments.sums.clone()},
            "trails": {name: trail.clone() for name, trail in self._trails.items()},
        } | {
            name: tensor[: self.num_samples].to("cpu", copy=True) for name, tensor in self._columns().items()
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`, perhaps of an observer with a longer window: the last q of it are kept."""
        q = self.window
        if len(state["windows"]) < q:
            raise ValueError(f"the state holds windows of {len(state['windows'])} predictions, not {q}")
        windows = state["windows"][-q:]
        filled = (windows != self._free).sum(dim=0)
        labels = torch.full_like(windows, self._free)
        for place in range(q):
            row = windows.gather(0, (q - filled + place).clamp(max=q - 1)[None])[0]
            labels[place] = torch.where(place < filled, row, self._free)
        self._history.labels[:, : self.num_samples].copy_(labels)
        self._history.cursor[: self.num_samples].copy_(filled)
        for name, tensor in self._columns().items():
            tensor[: self.num_samples].copy_(state[name])
        self._moments.count.copy_(state["moments"]["count"])
        self._moments.sums.copy_(state["moments"]["sums"])
        for name, trail in self._trails.items():
            found = state["trails"][name]
            trail.copy_(found[..., -q:] if name == "window" else found)
        self.epoch = state["epoch"]

    def _columns(self) -> dict[str, Tensor]:
        return {"latest": self._latest, "drawn": self._drawn, "change": self._change, "loss": self._loss}


def record_of(state: dict[str, Any], classes: tuple[str, ...], label: NDArray[np.int64]) -> SampleRecord:
    """The record of every sample from an observer's state."""
    return sample_record(
        epochs=state["epoch"],
        classes=classes,
        label=label,
        window=_predictions(state["windows"]).T.copy(),
        times_drawn=state["drawn"].numpy(),
        last_change=state["change"].numpy(),
        last_loss=state["loss"].numpy(),
    )


def trails_of(state: dict[str, Any], classes: tuple[str, ...], label: NDArray[np.int64]) -> Trails:
    """The trails of the samples that an observer followed, from its state."""
    trails = {name: tensor[: state["epoch"]].numpy() for name, tensor in state["trails"].items()}
    index = followed_samples(len(label)).numpy()
    window = trails["window"]
    flat = uncertainties(window.reshape(-1, window.shape[-1]), len(classes))
    return Trails(
        classes=classes,
        index=index,
        label=label[index],
        prediction=trails["prediction"].astype(np.int16 if len(classes) < 2**15 else np.int32),
        drawn=trails["drawn"],
        window=window.astype(np.int16 if len(classes) < 2**15 else np.int32),
        uncertainty=flat.reshape(window.shape[:2]).astype(np.float32),
        deviation=trails["deviation"],
    )


def followed_samples(num_samples: int) -> Tensor:
    """The samples that are followed through all epochs: evenly spaced, the same for every run on the data.

    >>> followed_samples(50_000)[:3]
    tensor([   0,  794, 1587])
    """
    many = min(FOLLOWED, num_samples)
    return torch.linspace(0, num_samples - 1, many, dtype=torch.float64).round().long()


def _predictions(windows: Tensor) -> NDArray[Any]:
    """Windows as signed integers, -1 for a free place."""
    small = torch.int16 if windows.dtype in (torch.uint8, torch.int16) else torch.int32
    return torch.where(windows == torch.iinfo(windows.dtype).max, -1, windows.to(small)).numpy()
