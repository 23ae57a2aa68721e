"""From what a program hands in to what columns keep: checked, measured where it lies, moved in one small copy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from carpediem.record.checks import floats, in_range, kind, logits_of, plain, whole_numbers
from carpediem.record.column import Column
from carpediem.record.step import Missing, Step

Fields = dict[str, Tensor]
FINITE, TARGETS, OUTCOMES = "is finite", "targets as they came", "outcomes as they came"


@dataclass
class Handed:
    """One call of `Record.observe`, of the right types and shapes, all but the indices in one place."""

    indices: Tensor
    place: torch.device  # where measuring happens: with the logits, or with whatever came instead
    logits: Tensor | None = None
    targets: Tensor | None = None
    outcomes: Tensor | None = None
    losses: Tensor | None = None

    @classmethod
    def of(
        cls, indices: object, logits: Any, targets: Any, outcomes: Any, losses: Any, k: int | None
    ) -> Handed:
        """Refuse whatever has the wrong type or shape; what may be kept for a while is copied."""
        found = whole_numbers("indices", indices)
        size = found.shape[0]
        if logits is not None:
            logits = logits_of(logits, size, k)
        if losses is not None:
            losses = floats("losses", losses, size)
        if outcomes is not None:
            outcomes = whole_numbers("outcomes", outcomes, size, truth=True)
        if targets is not None:
            targets = whole_numbers("targets", targets, size)
        place = next((t.device for t in (logits, losses, outcomes, targets) if t is not None), found.device)
        aside = place.type != "cpu"  # towards the host a copy must be waited for
        if losses is not None:
            losses = losses.to(place, non_blocking=aside, copy=True)
        if outcomes is not None:
            outcomes = outcomes.to(place, torch.int64, non_blocking=aside, copy=True)
        if targets is not None:
            targets = targets.to(place, torch.int64, non_blocking=aside, copy=True)
        return cls(found, place, logits, targets, outcomes, losses)

    def look(self, num_samples: int, num_classes: int | None) -> bool:
        """Refuse numbers out of range; False where a logit or a loss is not finite. For what lies on the host."""
        if self.indices.device.type == "cpu":
            in_range("indices", self.indices, num_samples, "num_samples")
        if self.place.type != "cpu":
            return True
        if self.targets is not None and num_classes is not None:
            in_range("targets", self.targets, num_classes, "num_classes")
        if self.outcomes is not None and num_classes is not None:
            in_range("outcomes", self.outcomes, num_classes, "num_classes")
        return (self.logits is None or _finite(self.logits)) and (self.losses is None or _finite(self.losses))

    def unseen(self) -> Fields:
        """What has to be looked at later, as fields beside those of the columns."""
        finite = torch.ones(self.indices.shape, dtype=torch.bool, device=self.place)
        if self.logits is not None:
            finite &= self.logits.isfinite().all(dim=1)
        if self.losses is not None:
            finite &= self.losses.isfinite()
        classes = {TARGETS: self.targets, OUTCOMES: self.outcomes}
        return {FINITE: finite, **{name: values for name, values in classes.items() if values is not None}}

    def step(self, num_classes: int | None, *, blind: bool) -> Step:
        """The step to measure; `blind`: numbers out of range, unseen so far, become some that can be looked up."""
        targets, outcomes = self.targets, self.outcomes
        if blind and num_classes is not None:
            targets, outcomes = (
                None if t is None else t.clamp(0, num_classes - 1) for t in (targets, outcomes)
            )
        return Step(logits=self.logits, targets=targets, outcomes=outcomes, losses=self.losses)


def field_of(column: Column, place: int) -> str:
    """The name of what a column measures, which columns of one quantity share."""
    return column.quantity or f"column {place}"


def measured(columns: Iterable[Column], step: Step, size: int) -> Fields:
    """What the columns measure of a step, by the names of their fields; what several share, once."""
    fields: Fields = {}
    for place, column in enumerate(columns):
        if (name := field_of(column, place)) in fields:
            continue
        try:
            if column.quantity:
                fields[name] = getattr(step, column.quantity)
            elif (values := column.measure(step)) is not None:
                fields[name] = _one_a_sample(column, values, size)
        except Missing as missing:
            raise TypeError(
                f"{column!r} needs {missing}, which this call lacks; hand in observe(indices, logits, targets), or "
                "build the record without that column"
            ) from None
    return fields


def arrived(handed: Handed, fields: Fields, device: torch.device) -> tuple[Tensor, Fields]:
    """Indices and fields where the record lies."""
    indices, place = handed.indices, handed.place
    if place != device:
        carried = fields if indices.device != place else {**fields, "indices": indices.to(torch.int64)}
        fields = moved(carried, device)
        indices = fields.pop("indices", indices)
    return indices.to(device, torch.int64, non_blocking=device.type != "cpu", copy=True), fields


def moved(fields: Fields, device: torch.device) -> Fields:
    """The fields on another device, all in one copy of bytes.

    >>> fields = {"right": torch.tensor([True, False]), "losses": torch.tensor([0.5, 2.0])}
    >>> moved(fields, torch.device("cpu"))
    {'losses': tensor([0.5000, 2.0000]), 'right': tensor([ True, False])}
    """
    ordered = sorted(
        fields.items(), key=lambda field: -field[1].element_size()
    )  # so that each begins aligned
    packed = torch.cat([values.contiguous().view(torch.uint8) for _, values in ordered])
    packed = packed.to(device, non_blocking=device.type != "cpu")
    parts = packed.split([values.numel() * values.element_size() for _, values in ordered])
    return {name: part.view(values.dtype) for (name, values), part in zip(ordered, parts, strict=True)}


def _finite(values: Tensor) -> bool:
    # A finite sum has finite terms, and costs a third of looking at each; a sum may overflow, though.
    return math.isfinite(values.sum()) or bool(values.isfinite().all())


def _one_a_sample(column: Column, values: object, size: int) -> Tensor:
    tensor = plain(f"what {column!r} measures", values, "a tensor of one value a sample")
    if tensor.shape != (size,):
        raise ValueError(
            f"what {column!r} measures must be one value a sample, shape ({size},) for this batch, got "
            f"{tuple(tensor.shape)}; reduce over the classes alone, as step.logits.mean(dim=1) does"
        )
    held = column.tensors.get("values")
    if held is not None and not torch.can_cast(tensor.dtype, held.dtype):
        raise TypeError(
            f"what {column!r} measures must fit its {held.dtype}, got {kind(values)}; give it another initial"
        )
    return tensor.clone()  # it may be a view of what the program writes into
