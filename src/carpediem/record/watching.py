"""Columns that are shown training steps: the part of a record that a training program writes to."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor

from carpediem.record.checks import MOST, integer, kind
from carpediem.record.column import Column
from carpediem.record.columns.given_label import GivenLabel
from carpediem.record.intake import FINITE, OUTCOMES, TARGETS, Fields, Handed, arrived, field_of, measured
from carpediem.record.observed import Observed
from carpediem.record.step import QUANTITIES

Held = TypeVar("Held", bound=Column)
# Samples that are kept in one go on the host: a step by itself costs its columns ten times as much.
TOGETHER = 8192


class Watching:
    """Holds columns, and shows them what `observe` is given.

    On the host a step is checked and measured at once, and waits with others to be kept until there are `TOGETHER`
    samples of them or somebody reads a column. On an accelerator it is kept at once, and nothing is looked at.
    """

    def __init__(
        self, num_samples: int, num_classes: int | None, device: torch.device, *, skip: bool
    ) -> None:
        self.num_samples, self.num_classes, self.device, self._skip = num_samples, num_classes, device, skip
        self._blind = device.type != "cpu"
        self._columns: list[Column] = []
        self._began: list[int] = []
        self._waiting: list[tuple[Tensor, Fields, int]] = []
        self._size_waiting = 0
        # Batches with values that are not finite, with numbers out of range, with another label than the given one.
        self._faults = torch.zeros(3, dtype=torch.int64, device=device)
        # Samples observed, and the last epoch. Tensors on an accelerator, where a captured step must count them.
        self._observed: int | Tensor = 0
        self._epoch: int | Tensor = -1
        if self._blind:
            self._observed, self._epoch = (torch.tensor(v, device=device) for v in (0, -1))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns held, in the order in which they came."""
        return tuple(self._columns)

    @property
    def skipped(self) -> int:
        """How many batches were passed over because a logit or a loss was not finite."""
        return int(self._faults[0])

    def column(self, column: Held) -> Held:
        """The column held that equals this one, or this one, which is held from now on.

        >>> from carpediem.record import LastLabels, Record
        >>> record = Record(3, 2)
        >>> record.column(LastLabels(10)) is record.column(LastLabels(10))
        True
        """
        if not isinstance(column, Column):
            raise TypeError(f"column must be a Column, such as LastLabels(10), got {kind(column)}")
        if not hasattr(column, "options"):
            name = type(column).__name__
            raise TypeError(
                f"column must be set up by Column, got a {name} whose __init__ never calls super().__init__()"
            )
        for held in self._columns:
            if held == column:
                return held  # type: ignore[return-value]  # equal columns are of one class
        if column.is_attached:
            raise ValueError(f"column must belong to no other record, got {column!r} of one; build a new one")
        if column.quantity not in ("", *QUANTITIES):
            raise ValueError(f"quantity must be one of {', '.join(QUANTITIES)}, got {kind(column.quantity)}")
        if column.needs_classes and self.num_classes is None:
            raise ValueError(
                f"{column!r} needs num_classes, which this record lacks; build Record(num_samples, num_classes)"
            )
        self._settle()
        try:
            with torch.inference_mode(
                False
            ):  # else nothing could be written outside of a mode that is on now
                column.attach(self.num_samples, self.num_classes, self.device, self._settle)
        except (RuntimeError, MemoryError) as error:
            raise ValueError(
                f"num_samples must be so small that {column!r} fits the memory of {self.device}, got "
                f"{self.num_samples}; hand in fewer samples or columns"
            ) from error
        self._columns.append(column)
        self._began.append(int(self._observed))
        return column

    def observe(
        self,
        indices: Tensor,
        logits: Tensor | None = None,
        targets: Tensor | None = None,
        *,
        outcomes: Tensor | None = None,
        losses: Tensor | None = None,
        epoch: int | Tensor | None = None,
    ) -> None:
        """Show one training step to the columns.

        Args:
            indices: (b,), integers in [0, N). An index that occurs again is a later step of that sample.
            logits: (b, k), any floating type and device, with or without gradients.
            targets: (b,), integers in [0, k): the labels that the data set gives, never those that a rule trains on.
            outcomes: (b,), what the network said where there are no logits: integers in [0, k), or booleans.
            losses: (b,), where they are not the cross entropy of logits and targets.
            epoch: the epoch of this step, from 0; None counts how often N samples have been observed. Where the step is
                captured into a graph, a tensor of one integer on the record's device.

        Raises:
            TypeError, ValueError: the batch is refused whole and the record stays as it was.
        """
        handed = Handed.of(indices, logits, targets, outcomes, losses, self.num_classes)
        now = self._observed // self.num_samples if epoch is None else self._checked(epoch)
        size = handed.indices.shape[0]
        if size == 0:
            return
        if handed.look(self.num_samples, self.num_classes) or not self._passes_over():
            blind = self._blind or handed.place.type != "cpu"
            fields = measured(self._columns, handed.step(self.num_classes, blind=blind), size)
            if blind:
                fields |= handed.unseen()
            found, fields = arrived(handed, fields, self.device)
            if self._blind:
                self._keep(self._masked(Observed(found, self.num_samples, now), fields), fields)
            elif (handed.indices.device == self.device and not blind) or self._is_sound(found, fields):
                self._wait(found, fields, int(now))
        self._observed += size
        if isinstance(self._epoch, Tensor):
            self._epoch.clamp_(min=now)
        else:
            self._epoch = max(self._epoch, int(now))

    def report_faults(self) -> None:
        """Raise ValueError for the batches that an accelerator has dropped since the last report, kind by kind."""
        if not self._blind:
            return
        infinite, outside, relabelled = self._faults.tolist()
        for place, count, rule in (
            (1, outside, "indices must lie in [0, num_samples), targets and outcomes in [0, num_classes)"),
            (2, relabelled, "targets must be the labels that the data set gives, which stay"),
            (0, 0 if self._skip else infinite, "logits and losses must be finite"),
        ):
            if count:
                self._faults[place] = 0
                raise ValueError(f"{rule}; {count} batches held others and were not taken in")

    # -- on the host ----------------------------------------------------------------------------------------

    def _passes_over(self) -> bool:
        """Count a batch that is not finite, where such may be skipped."""
        if not self._skip:
            raise ValueError(
                "logits and losses must be finite, got some that are not; on_nonfinite='skip' passes over such batches "
                "and counts them"
            )
        self._faults[0] += 1
        return True

    def _is_sound(self, indices: Tensor, fields: Fields) -> bool:
        """Refuse numbers out of range in what was measured elsewhere; False for what is passed over."""
        here = Handed(
            indices, self.device, targets=fields.pop(TARGETS, None), outcomes=fields.pop(OUTCOMES, None)
        )
        here.look(self.num_samples, self.num_classes)
        finite = fields.pop(FINITE, None)
        return finite is None or bool(finite.all()) or not self._passes_over()

    def _wait(self, indices: Tensor, fields: Fields, epoch: int) -> None:
        for column in self._columns:
            if isinstance(column, GivenLabel):
                step = Observed(indices, self.num_samples, epoch)
                step.values = fields["targets"]
                column.take(step)
        self._waiting.append((indices, fields, epoch))
        self._size_waiting += indices.shape[0]
        if self._size_waiting >= TOGETHER:
            self._settle()

    def _settle(self) -> None:
        """Keep the steps that wait."""
        if not self._waiting:
            return
        waiting, self._waiting, self._size_waiting = self._waiting, [], 0
        indices, fields, epochs = zip(*waiting, strict=True)
        together = {name: torch.cat([one[name] for one in fields]) for name in fields[0]}
        epoch: int | Tensor = epochs[0]
        if len(set(epochs)) > 1:
            epoch = torch.cat([torch.full_like(i, e) for i, e in zip(indices, epochs, strict=True)])
        self._keep(Observed(torch.cat(indices), self.num_samples, epoch), together)

    def _keep(self, step: Observed, fields: Fields) -> None:
        for place, column in enumerate(self._columns):
            if isinstance(column, GivenLabel) and not self._blind:
                continue  # kept when it was checked
            values = fields.get(field_of(column, place))
            if column.takes_repeats:
                if values is not None:
                    step.values = values
                column.keep(step)
                continue
            for entries, part in step.rounds():
                if values is not None:
                    part.values = values[entries]
                column.keep(part)

    # -- on an accelerator ------------------------------------------------------------------------------------

    def _masked(self, observed: Observed, fields: Fields) -> Observed:
        """The step with index N throughout where it must be dropped: checked without waiting."""
        infinite = ~fields[FINITE].all()
        outside = ((observed.indices < 0) | (observed.indices >= self.num_samples)).any()
        for name in (TARGETS, OUTCOMES):
            if name in fields and self.num_classes is not None:
                outside |= ((fields[name] < 0) | (fields[name] >= self.num_classes)).any()
        kept = torch.where(infinite | outside, self.num_samples, observed.indices)
        relabelled = torch.zeros_like(outside)
        for column in self._columns:
            if isinstance(column, GivenLabel):
                found = Observed(kept, self.num_samples, observed.epoch)
                found.values = fields[column.quantity]
                relabelled = column.contradicted(found).any()
        self._faults += torch.stack((infinite, outside, relabelled))
        return Observed(torch.where(relabelled, self.num_samples, kept), self.num_samples, observed.epoch)

    def _checked(self, epoch: int | Tensor) -> int | Tensor:
        if isinstance(epoch, Tensor) and epoch.numel() == 1 and not epoch.is_floating_point():
            if self._blind:
                return epoch.to(self.device, torch.int64).reshape(())
            epoch = int(epoch)
        return integer("epoch", epoch, at_least=0, at_most=MOST - 1)
