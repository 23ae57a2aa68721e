"""Hugging Face Transformers: a `Trainer` that trains on the adaptive stream.

`AdaptiveTrainer` is the ready one; `class Mine(AdaptiveTrainerMixin, MyTrainer)` makes one of any Trainer. The data set
stays as it is: the samples' indices travel beside what the collator makes of them, and the model never sees them.
Evaluation is untouched.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from carpediem.dataset import Indexed
from carpediem.integrations.agreement import check_epochs
from carpediem.integrations.requirement import require
from carpediem.sampler import AdaptiveSampler

SUPPORTED = ">=4.50,<6"
require("transformers", SUPPORTED)

from transformers import Trainer  # noqa: E402 (not before it is known to be there)

from carpediem.integrations.accelerate import checkpoint, follow, restore  # noqa: E402

INDICES = "carpediem_indices"  # the key beside the model's inputs in a training batch
FILE = "carpediem.pt"  # in each checkpoint folder

if TYPE_CHECKING:
    from transformers import Trainer as _Base
else:
    _Base = object


class AdaptiveTrainerMixin(_Base):  # type: ignore[misc]
    """Makes a Trainer draw its training batches from an `AdaptiveSampler`. It stands before the Trainer it extends.

    Args:
        sampler: without rank and world_size. Its `batch_size` is that of one optimizer step: the batch of a device
            times the devices times `gradient_accumulation_steps`.

    All other arguments are the Trainer's. The model returns logits (b, k), as models for sequence and image
    classification do; override `report` where they lie elsewhere.
    """

    train_dataset: Any
    data_collator: Any

    def __init__(self, *arguments: Any, sampler: AdaptiveSampler, **named: Any) -> None:
        if not isinstance(sampler, AdaptiveSampler):
            raise TypeError(f"sampler must be a carpediem.AdaptiveSampler, got {type(sampler).__name__}")
        if sampler.selector.loss_weights(torch.zeros(1, dtype=torch.int64)) is not None:
            raise ValueError(
                f"the sampler's {type(sampler.selector).__name__} re-weights the loss, which a Trainer leaves to the "
                "model; choose a method that selects"
            )
        self.adaptive_sampler = sampler
        super().__init__(*arguments, **named)
        if isinstance(self.train_dataset, Indexed):
            raise TypeError(
                "train_dataset must be the data set itself, got it wrapped in Indexed, which this trainer does on its "
                "own; pass train_dataset=dataset instead of Indexed(dataset)"
            )

    def report(self, indices: Tensor, labels: Tensor, outputs: Any) -> None:
        """Hand one training step to the selector.

        Args:
            indices: (b,), which samples they were.
            labels: the first of the Trainer's `label_names`.
            outputs: what the model returned.
        """
        self.adaptive_sampler.selector.observe(indices, _logits(outputs), labels)

    def get_train_dataloader(self) -> DataLoader[Any]:
        """The Trainer's own loader, over the samples with their indices."""
        if self.args.max_steps <= 0:
            first = self.args.process_index == 0
            selector, epochs = self.adaptive_sampler.selector, self.args.num_train_epochs
            check_epochs(selector, "num_train_epochs", epochs, aloud=first)
        dataset, collator = self.train_dataset, self.data_collator
        # Columns that the model does not take are removed under our collator, from the samples alone.
        within = self._get_collator_with_removed_columns(collator, description="training")
        self.train_dataset, self.data_collator = Indexed(dataset), _Collator(within)
        try:
            loader: DataLoader[Any] = super().get_train_dataloader()
        finally:
            self.train_dataset, self.data_collator = dataset, collator
        follow(self.accelerator, loader, self.args.gradient_accumulation_steps)
        return loader

    def _get_train_sampler(self, train_dataset: Any = None) -> AdaptiveSampler:
        return self.adaptive_sampler

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, **named: Any
    ) -> Any:
        """The Trainer's loss; a training batch is reported on the way."""
        indices = inputs.pop(INDICES, None)
        if indices is None:  # evaluation
            return super().compute_loss(model, inputs, return_outputs=return_outputs, **named)
        if not self.label_names:
            raise ValueError(
                f"label_names must name the argument of {type(model).__name__}.forward that takes the labels, and none "
                "has 'label' in its name; give TrainingArguments(label_names=['targets']), or as it is called"
            )
        labels = inputs[self.label_names[0]]
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True, **named)
        self.report(indices, labels, outputs)
        return (loss, outputs) if return_outputs else loss

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        # On every rank, since they exchange what they observed; the Trainer itself skips to its place in the epoch.
        state = checkpoint(self.adaptive_sampler, inside=True)
        if self.args.should_save:
            whole = Path(output_dir) / FILE
            beside = whole.with_suffix(".part")
            torch.save(state, beside)
            beside.replace(whole)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        file = Path(checkpoint) / FILE
        if not file.exists():
            raise FileNotFoundError(
                f"{checkpoint} has no {FILE}, so it was not written by an adaptive Trainer; take another checkpoint, "
                "or begin anew with its weights as the model's"
            )
        restore(self.adaptive_sampler, torch.load(file, map_location="cpu", weights_only=True))


class AdaptiveTrainer(AdaptiveTrainerMixin, Trainer):  # type: ignore[misc]
    """The `Trainer` of Transformers on an adaptive stream: `AdaptiveTrainer(model, args, …, sampler=sampler)`."""


def _logits(outputs: Any) -> Any:
    """Where models of Transformers keep them."""
    if isinstance(outputs, dict):
        if "logits" in outputs:
            return outputs["logits"]
        held = ", ".join(map(str, outputs)) or "nothing"
    elif isinstance(outputs, tuple | list):
        if len(outputs) > 1:
            return outputs[1]
        held = f"a {type(outputs).__name__} of {len(outputs)}"
    else:
        held = f"a {type(outputs).__name__}"
    raise ValueError(
        f"the model's output must hold logits, by that name or second in a tuple behind the loss, got {held}; override "
        "report(indices, labels, outputs) of the trainer to observe logits that lie elsewhere"
    )


class _Collator:
    """Collates the samples as they were, and puts their indices beside them."""

    def __init__(self, within: Callable[[list[Any]], Any]) -> None:
        self.within = Indexed.collate(within)

    def __call__(self, indexed: list[tuple[int, Any]]) -> Any:
        indices, batch = self.within(indexed)
        batch[INDICES] = indices
        return batch
