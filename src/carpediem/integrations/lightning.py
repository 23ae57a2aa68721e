"""Lightning: a callback with which a `Trainer` trains on the adaptive stream, on one process or many."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

from torch import Tensor
from torch.utils.data.distributed import DistributedSampler

from carpediem.distributed import merge, synchronise
from carpediem.integrations.agreement import check_epochs, refuse_another_length
from carpediem.integrations.requirement import require
from carpediem.sampler import AdaptiveSampler

SUPPORTED = ">=2.5,<3"
require("lightning", SUPPORTED)

from lightning.pytorch import Callback, LightningModule, Trainer  # noqa: E402 (not before it is known to be there)


class AdaptiveBatches(Callback):
    """Lets a `Trainer` draw its training batches from a sampler, and reports to the sampler's selector.

    The training loader is `DataLoader(Indexed(dataset), batch_size=…, sampler=sampler)`, its batch size the
    sampler's divided by the number of processes. `training_step` returns a dictionary with `loss` and
    `logits`; indices and targets are read from the batch `indices, (inputs, targets)`, or from the same dictionary
    where it holds `indices` or `targets`. A step that returns nothing is not reported.

    The Trainer's checkpoints hold the selector and the place in the stream: `trainer.fit(..., ckpt_path=…)` goes on
    with the batch that would have come next, also on another number of processes.

    Args:
        sampler: made without `rank` and `world_size`; `batch_size` is the batch of one training step over all
            processes. Lightning leaves the order of a distributed sampler alone, and shuffles any other anew when it
            shares it out; so this sampler becomes a distributed one.
    """

    def __init__(self, sampler: AdaptiveSampler) -> None:
        if type(sampler) is AdaptiveSampler:
            sampler.__class__ = _LeftAlone
        if not isinstance(sampler, _LeftAlone):
            raise TypeError(f"sampler must be an AdaptiveSampler, got {type(sampler).__name__}")
        self.sampler = sampler
        self._place = (
            sampler.state_dict()
        )  # behind the last batch that was trained on; workers are ahead of it
        self._fitting = False

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self._fitting = stage == "fit"
        if not self._fitting:
            return
        epochs = trainer.max_epochs or -1
        if epochs > 0 and trainer.max_steps == -1:
            check_epochs(self.sampler.selector, "max_epochs", epochs, aloud=trainer.is_global_zero)
        processes = trainer.world_size
        dealt = (trainer.distributed_sampler_kwargs or {}).get("num_replicas", processes)
        if dealt != processes:
            raise ValueError(
                f"strategy must give every one of the {processes} processes its own share of a batch, such as ddp or "
                f"fsdp, got {type(trainer.strategy).__name__} with {dealt} shares"
            )
        self.sampler.share(trainer.global_rank, processes)
        if processes > 1:
            synchronise(self.sampler)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        loader: Any = trainer.train_dataloader
        if (found := getattr(loader, "sampler", None)) is not self.sampler:
            raise ValueError(
                "the training loader must be one DataLoader(..., sampler=sampler) with the sampler of AdaptiveBatches "
                "(no batch_sampler, which Lightning may re-make with uniform draws, and no overfit_batches), got a "
                f"{type(loader).__name__} that draws from {type(found).__name__}"
            )
        refuse_another_length(self.sampler.selector, loader.dataset)
        share = self.sampler.batch_size // trainer.world_size
        if loader.batch_size != share:
            raise ValueError(
                f"batch_size of the training loader must be {share}, the sampler's {self.sampler.batch_size} shared "
                f"out over {trainer.world_size} processes, got {loader.batch_size}"
            )
        if self._place["position"]:
            # Lightning says of every plain DataLoader that it starts from the beginning. This one does not.
            warnings.filterwarnings("ignore", message="You're resuming from a checkpoint that ended before")

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if outputs:
            self.sampler.selector.observe(*_observed(outputs, batch))
        # An epoch may be shorter than the stream's (limit_train_batches): then the next one follows all the same.
        last = trainer.is_last_batch or batch_idx + 1 >= trainer.num_training_batches
        # Counted here: after max_steps has cut an epoch short, batch_idx goes on in the middle of the next one.
        before = self._place["position"] if self._place["epoch"] == self.sampler.selector.epoch else 0
        done = self.sampler.selector.num_samples if last else before + self.sampler.batch_size
        self._place = self.sampler.state_dict(position=done)
        self.sampler.resumes_at = None

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.sampler.resumes_at = None
        if self._place["position"]:  # left before its last batch, by max_steps or trainer.should_stop
            self._place |= {"epoch": self._place["epoch"] + 1, "position": 0}

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        merge(self.sampler)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self.sampler.selector.journal = None  # from here on the processes no longer act together

    def state_dict(self) -> dict[str, Any]:
        """Selector and place in the stream; Lightning asks every process for it at the same moment."""
        merge(self.sampler)
        return {"sampler": dict(self._place), "selector": self.sampler.selector.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a checkpoint; not where one is only evaluated."""
        if self._fitting:
            self.sampler.selector.load_state_dict(state_dict["selector"])
            self.sampler.load_state_dict(state_dict["sampler"])
            self.sampler.resumes_at = self.sampler._next
            self._place = state_dict["sampler"]


class _LeftAlone(AdaptiveSampler, DistributedSampler[int]):  # type: ignore[override] # only the first is used
    """An `AdaptiveSampler` that Lightning neither wraps nor shuffles.

    Attributes:
        resumes_at: where to begin however often it is begun, until a batch has been trained on: Lightning reads the
            first batches of a resumed epoch twice when it reloads the loaders.
    """

    resumes_at: tuple[int, int] | None = None

    def __iter__(self) -> Iterator[int]:
        if self.resumes_at is not None and self.resumes_at[0] >= (self.selector.epochs or math.inf):
            return iter(())  # workers read ahead of a training that is over
        return super().__iter__()

    def _begin(self) -> tuple[int, int]:
        if self.resumes_at is not None:
            self._next, self._reading = self.resumes_at, None
        return super()._begin()


def _observed(outputs: Any, batch: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Indices, logits and targets of one step."""
    if not isinstance(outputs, dict) or "logits" not in outputs:
        held = sorted(outputs) if isinstance(outputs, dict) else type(outputs).__name__
        raise ValueError(f"training_step must return a dictionary with 'loss' and 'logits', got {held}")
    known = _known(batch) | outputs
    if missing := [repr(name) for name in ("indices", "targets") if name not in known]:
        parts = [type(part).__name__ for part in batch] if isinstance(batch, list | tuple) else None
        got = f"({', '.join(parts)})" if parts else type(batch).__name__
        raise ValueError(
            f"the batch must be indices, (inputs, targets), as Indexed gives it, got {got}; for any other form return "
            f"{' and '.join(missing)} from training_step beside 'logits'"
        )
    return known["indices"], known["logits"], known["targets"]


def _known(batch: Any) -> dict[str, Any]:
    """What a batch holds of indices and targets; only sequences are taken apart, not dictionaries and tensors."""
    match batch:
        case [indices, [_, targets]]:
            return {"indices": indices, "targets": targets}
        case [indices, _]:
            return {"indices": indices}
    return {}
