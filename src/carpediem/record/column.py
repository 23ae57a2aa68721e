"""What every column is: one thing that is remembered of each sample."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from carpediem.record.observed import Observed
from carpediem.record.step import Step

UNLIMITED = torch.iinfo(torch.int32).max
Bounds = Mapping[str, tuple[Tensor | int, Tensor | int]]


class Column(ABC):
    """One value a sample. To write one, say what it begins with, what is measured of a step, and how it is kept:

    >>> class HighestLoss(Column):
    ...     initial, name = 0.0, "highest_loss"
    ...     def measure(self, step):
    ...         return step.losses
    ...     def keep(self, step):
    ...         self.values[step.indices] = step.values.maximum(self.values[step.indices])

    Two columns are equal that have one class and the same options; hand a column's options to `super().__init__`.

    Attributes:
        initial: what each sample begins with: a float (kept as float32), an integer (int64) or a boolean.
        dtype: another type to keep it as.
        name: the name under which `Record.scores` gives the values; "" leaves them out.
        quantity: the name of what is measured, where that is an attribute of `Step` which other columns share: one of
            `step.QUANTITIES`. `measure` is not called then.
        takes_repeats: whether `keep` may be given a sample more than once, in the order of the steps, and the index N,
            which it must drop into the row N of its tensors. Without it such entries come in calls of their own, and
            an accelerator is waited for.
        needs_classes: whether the column can only be held by a record that has `num_classes`.
    """

    initial: float | int | bool = 0.0
    dtype: torch.dtype | None = None
    name: str = ""
    quantity: str = ""
    takes_repeats: bool = False
    needs_classes: bool = False

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.num_samples = 0
        self.num_classes: int | None = None
        self._tensors: dict[str, Tensor] = {}
        self._settle: Callable[[], None] = _nothing

    # -- what a column implements ---------------------------------------------------------------------------

    def make(self, rows: int, device: torch.device) -> dict[str, Tensor]:
        """The column's tensors as they begin. Their last axis has N + 1 places, the last for what is dropped."""
        dtype = self.dtype or {float: torch.float32, int: torch.int64, bool: torch.bool}[type(self.initial)]
        return {"values": torch.full((rows,), self.initial, dtype=dtype, device=device)}

    def measure(self, step: Step) -> Tensor | None:
        """One value for each sample of a step, (b,); None for a column that counts steps alone."""
        return getattr(step, self.quantity) if self.quantity else None

    @abstractmethod
    def keep(self, step: Observed) -> None:
        """Take in `step.values` of the samples `step.indices`, in `step.epoch`."""

    def scores(self) -> dict[str, Tensor]:
        """What the column has to say of each sample, by name, each (N,)."""
        return {self.name: self.values} if self.name else {}

    def check(self, tensors: Mapping[str, Tensor], epoch: int) -> None:  # noqa: B027  # most need none
        """Refuse, by ValueError, contents that no training leaves behind.

        Args:
            tensors: as in `tensors`, of these shapes and types, without the place for what is dropped.
            epoch: the last one that was observed; -1 for none.
        """

    def bounds(self, tensors: Mapping[str, Tensor]) -> Bounds:
        """The least and the most that some quantities can be for each sample, which other columns may contradict.

        The library's columns speak of "seen", how often a sample was observed, "right", how often its prediction was
        its label, and "right at last", 1 or 0.
        """
        return {}

    # -- what a record calls --------------------------------------------------------------------------------

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The column's tensors, every step observed so far taken in."""
        self._settle()
        return self._tensors

    @property
    def values(self) -> Tensor:
        """The value of each sample, (N,), as it is now; writing into it changes the column."""
        return self.tensors["values"][: self.num_samples]

    @property
    def is_attached(self) -> bool:
        """Whether a record holds this column."""
        return bool(self._tensors)

    def attach(
        self, num_samples: int, num_classes: int | None, device: torch.device, settle: Callable[[], None]
    ) -> None:
        """Make the column's tensors for a record, whose `settle` takes in the steps that wait."""
        self.num_samples, self.num_classes = num_samples, num_classes
        self._tensors = self.make(num_samples + 1, device)
        self._settle = settle

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Column) and self.options == other.options

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={_shown(v)}' for k, v in self.options.items())})"


def refuse(column: Column, rule: str, wrong: Tensor) -> None:
    """Raise ValueError if any entry is wrong, naming the first of these samples.

    Args:
        wrong: bool, its last axis over the samples.
    """
    if bool(wrong.any()):
        sample = int(wrong.reshape(-1, wrong.shape[-1]).any(dim=0).nonzero()[0])
        raise ValueError(f"the state's {column!r} must hold {rule}, and does not for sample {sample}")


def _nothing() -> None:
    """No steps wait for a column without a record."""


def _shown(value: object) -> str:
    return getattr(value, "__qualname__", None) or repr(value)
