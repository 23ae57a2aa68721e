"""What every method is: something that watches training and says what the next epoch is drawn from."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sized
from itertools import chain
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from carpediem.core.arrays import native
from carpediem.core.caller import loop_level
from carpediem.core.distribution import Distribution, Uniform, distribution_from_state

Draws = Literal["independent", "systematic"]
DRAWS: tuple[Draws, ...] = ("independent", "systematic")
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class Journal(Protocol):
    """Where observations wait until several processes exchange them (`carpediem.distributed`)."""

    def __len__(self) -> int:
        """Steps that wait."""

    def note(self, indices: Tensor, values: Tensor) -> None:
        """Write one step down."""

    def pass_over(self) -> None:
        """Count a step of which nothing is kept."""

    def clear(self) -> None:
        """Forget the steps that wait."""

    def exchange(self) -> None:
        """Take in the steps of all processes."""


class Selector(ABC):
    """A method of batch selection.

    To write one, implement `measure` (what is remembered of a step), `keep` (take it in) and `build` (what epoch e
    is drawn from), and name every tensor that has to survive a checkpoint with `add_state`. Checks, checkpoints,
    the order of epochs and the warm-up are done here. `carpediem.testing` checks the result.

    Args:
        num_samples: N, the length of the data set.
        num_classes: k, the number of columns of the logits; None leaves logits and targets unchecked and
            unread.
        epochs: how many epochs will be trained; None for methods that do not need to know.
        warm_up: epochs of uniform sampling before selection begins.
        on_nonfinite: "raise" refuses a batch whose logits are not all finite, "skip" passes over it and counts
            it in `skipped`. On an accelerator such a batch never enters the history either, and is reported by
            the next `refresh`, since looking at it any sooner would stall the device.
        device: where the state lives. On an accelerator `observe` never waits; an epoch's draws wait for the
            probabilities when it begins, since they are made on the host.
        options: the method's own settings by name; a checkpoint made with others is refused.

    Attributes:
        epoch: the epoch that `distribution` is for; -1 before the first `refresh`.
        draws: how an epoch should be drawn unless the sampler is told otherwise.
        journal: set by `carpediem.distributed.synchronise`; None in a program of one process.
        learns: whether it goes by what it observes; a program that never calls `observe` is then warned.
        was_told: whether it has observed anything, by itself or through other ranks, or loaded a state.
        keeps_repeats: whether `keep` takes many steps in one call, in which a sample may occur again and the later
            value counts as the later step. Else several ranks' steps come in calls without such repeats.
        later: options that states of an earlier version lack, with what held then.
    """

    draws: Draws = "systematic"
    journal: Journal | None = None
    learns: bool = True
    keeps_repeats: bool = False
    later: ClassVar[dict[str, Any]] = {}
    _PLAIN: ClassVar = ("num_samples", "num_classes", "epochs")

    def __init__(
        self,
        num_samples: int,
        num_classes: int | None = None,
        epochs: int | None = None,
        *,
        warm_up: int = 0,
        on_nonfinite: Literal["raise", "skip"] = "raise",
        device: torch.device | str = "cpu",
        options: dict[str, Any] | None = None,
        **unknown: object,
    ) -> None:
        if unknown:
            raise TypeError(_no_argument(type(self), next(iter(unknown))))
        num_samples = check_integer("num_samples", num_samples, at_least=1)
        if num_classes is not None:
            num_classes = check_integer("num_classes", num_classes, at_least=2)
        if epochs is not None:
            epochs = check_integer("epochs", epochs, at_least=1)
        warm_up = check_integer("warm_up", warm_up, at_least=0)
        if on_nonfinite not in ("raise", "skip"):
            raise ValueError(f"on_nonfinite must be 'raise' or 'skip', got {on_nonfinite!r}")
        self.num_samples, self.num_classes, self.epochs = num_samples, num_classes, epochs
        self.warm_up, self.on_nonfinite = warm_up, on_nonfinite
        self.device = _device(device)
        self.epoch = -1
        self.was_told = self._is_warned = False
        self._options = {"warm_up": warm_up, **(options or {})}
        self._tensors: dict[str, Tensor] = {}
        # Batches passed over, and batches that held an index or a target out of range (seen on devices only).
        self._faults = torch.zeros(2, dtype=torch.int64, device=self.device)
        self.add_state("faults", self._faults)
        self._distribution: Distribution = Uniform(num_samples, self.device)

    # -- what a method implements -----------------------------------------------------------------------

    @abstractmethod
    def measure(self, logits: Tensor, targets: Tensor) -> Tensor | None:
        """What is remembered of a step: one value a sample, or None for nothing at all.

        Args:
            logits: (b, k), detached, on `device`.
            targets: (b,), int64, on `device`.

        Returns:
            Shape (b,), any type.
        """

    @abstractmethod
    def keep(self, indices: Tensor, values: Tensor) -> None:
        """Take in what was measured.

        Args:
            indices: (b,), int64, on `device`; one occurs again where a batch holds a sample twice, or with
                `keeps_repeats` where it is a later step of that sample. On an accelerator a batch that must not be
                kept has index `num_samples` throughout: give every tensor of `add_state` one row more to drop it
                into.
            values: (b,), what `measure` returned.
        """

    @abstractmethod
    def build(self, epoch: int) -> Distribution:
        """What `epoch` is drawn from; asked for only after the warm-up."""

    def loss_weights(self, indices: Tensor) -> Tensor | None:
        """Weights for the loss of each sample of a batch, for methods that re-weight; else None."""
        return None

    def check_shared(self) -> None:  # noqa: B027  # most options can be
        """Refuse, by ValueError, options that several ranks cannot share."""

    def handed_in(self) -> Tensor | None:
        """What the training program hands in by itself, which must be the same on every rank; None if nothing."""
        return None

    def rebuild(self, state: dict[str, Any]) -> Distribution:
        """The distribution that a state describes; to override by methods with a `Distribution` of their own."""
        return distribution_from_state(state, self.num_samples, self.device)

    def add_state(self, name: str, tensor: Tensor) -> None:
        """Make a tensor part of the checkpoint. It is restored in place: keep writing into the same one."""
        self._tensors[name] = tensor

    # -- what a training program calls -------------------------------------------------------------------

    @property
    def distribution(self) -> Distribution:
        """What the current epoch is drawn from."""
        return self._distribution

    @property
    def skipped(self) -> int:
        """How many batches were passed over because their logits were not finite."""
        return int(self._faults[0])

    @torch.no_grad()
    def observe(self, indices: Tensor, logits: Tensor, targets: Tensor) -> None:
        """Take in one training step: the samples of the batch, what the network said, their labels.

        Args:
            indices: (b,), integers in [0, N). An index may occur more than once.
            logits: (b, k), any floating type and device, with or without gradients.
            targets: (b,), integers in [0, k).

        Raises:
            TypeError, ValueError: the batch is refused whole and the state stays as it was.
        """
        self._take_in(indices, logits, targets)
        self.was_told = True

    def _take_in(self, indices: Tensor, logits: Tensor, targets: Tensor) -> None:
        if self.num_classes is None:
            return
        indices = check_column("indices", indices)
        targets = check_column("targets", targets)
        if not isinstance(logits, Tensor) or not logits.is_floating_point():
            raise TypeError(f"logits must be a tensor of floating-point numbers, got {_kind(logits)}")
        shape = (len(indices), self.num_classes)
        if logits.shape != shape:
            other = logits.dim() == 2 and len(logits) == len(indices) and logits.shape[1] > 1
            raise ValueError(
                f"logits must have shape {shape}, a row for each index and a column for each class, "
                f"got {tuple(logits.shape)}"
                + (f"; build the selector with num_classes={logits.shape[1]}" if other else "")
            )
        if len(targets) != len(indices):
            raise ValueError(f"targets must be as many as indices = {len(indices)}, got {len(targets)}")
        if len(indices) == 0:
            self._pass_over()
            return
        # Towards the host a copy must be waited for, or it would be read before it is there.
        aside = self.device.type != "cpu"
        indices, targets = (t.to(self.device, torch.int64, non_blocking=aside) for t in (indices, targets))
        logits = logits.detach().to(self.device, non_blocking=aside)
        if self.device.type == "cpu":
            check_range("indices", indices, self.num_samples, "num_samples", too_high=_OF_A_PART)
            check_range("targets", targets, self.num_classes, "num_classes", too_low=_UNLABELLED)
            # A finite sum has finite terms, and costs a third of looking at each; a sum may overflow, though.
            if not math.isfinite(logits.sum()) and not bool(logits.isfinite().all()):
                if self.on_nonfinite == "raise":
                    raise ValueError(
                        f"logits must be finite, got {int((~logits.isfinite()).sum())} values that are not; "
                        "on_nonfinite='skip' passes over such batches and counts them"
                    )
                self._faults[0] += 1
                self._pass_over()
                return
        else:
            indices, targets = self._masked(indices, logits, targets)
        values = self.measure(logits, targets)
        if values is None:
            self._pass_over()
            return
        check_measured(values, len(indices))
        if self.journal is None:
            self.keep(indices, values)
        else:
            self.journal.note(indices, values)

    def _pass_over(self) -> None:
        """Nothing is kept of a step."""
        if self.journal is not None:
            self.journal.pass_over()

    def _masked(self, indices: Tensor, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Indices and targets, the indices `num_samples` throughout for a batch to drop: checked without waiting."""
        assert self.num_classes is not None
        infinite = ~logits.isfinite().all()
        outside = ((indices < 0) | (indices >= self.num_samples)).any()
        outside |= ((targets < 0) | (targets >= self.num_classes)).any()
        self._faults += torch.stack((infinite, outside))
        kept = torch.where(infinite | outside, self.num_samples, indices)
        return kept, targets.clamp(0, self.num_classes - 1)

    def refresh(self, epoch: int) -> None:
        """Build the distribution for `epoch` (0-based) from what was observed so far."""
        epoch = check_integer("epoch", epoch, at_least=0)
        if epoch <= self.epoch:
            raise ValueError(
                f"epoch must come after epoch {self.epoch}, for which batches were drawn, got {epoch}; to train anew "
                "build a new selector and sampler, to resume load the state of both"
            )
        if self.epochs is not None and epoch >= self.epochs:
            raise ValueError(
                f"epoch must be less than epochs = {self.epochs}, got {epoch}; build the selector with the number of "
                "epochs that will be trained (every iteration over the loader is one, a peek at its first batch too), "
                "and after a resume begin the loop at sampler.epoch"
            )
        if self.device.type != "cpu":
            self._report_faults()
        if self.journal is not None:
            self.journal.exchange()
        if (
            epoch >= self.warm_up
            and self.learns
            and self.epoch >= 0
            and not (self.was_told or self._is_warned)
        ):
            self._is_warned = True
            warnings.warn(
                f"{type(self).__name__} has not observed a single step up to epoch {epoch} and has nothing to select "
                "by; call selector.observe(indices, logits, targets) after every step",
                stacklevel=loop_level(),
            )
        chosen = Uniform(self.num_samples, self.device) if epoch < self.warm_up else self.build(epoch)
        if not isinstance(chosen, Distribution):
            raise TypeError(
                f"build must return a Distribution, such as carpediem.Weights(tensor), got {_kind(chosen)}"
            )
        self._distribution, self.epoch = chosen, epoch

    def _report_faults(self) -> None:
        infinite, outside = self._faults.tolist()
        if outside:
            self._faults[1] = 0
            raise ValueError(
                f"{outside} batches held an index outside [0, {self.num_samples}) or a target outside "
                f"[0, {self.num_classes}); they were not taken in"
            )
        if infinite and self.on_nonfinite == "raise":
            self._faults[0] = 0
            raise ValueError(
                f"logits must be finite, {infinite} batches held values that are not and were not taken in; "
                "on_nonfinite='skip' passes over such batches and counts them"
            )

    def __repr__(self) -> str:
        """As it is built, but for what has no say in what is drawn.

        >>> from carpediem import RandomBatch
        >>> RandomBatch(num_samples=60, num_classes=10, epochs=20)
        RandomBatch(num_samples=60, num_classes=10, epochs=20, warm_up=0, draws='systematic')
        """
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in self._settings().items())})"

    # -- checkpoints -------------------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        """Sizes and options: what a state must have been made with."""
        return {name: getattr(self, name) for name in self._PLAIN} | self._options

    def state_dict(self) -> dict[str, Any]:
        """All that affects what is drawn next, as a flat dictionary of tensors, numbers and strings."""
        if self.journal is not None and len(self.journal):
            raise ValueError(
                f"state_dict must not be taken while {len(self.journal)} steps wait to be exchanged between the ranks; "
                "call carpediem.distributed.merge on every rank first"
            )
        state: dict[str, Any] = {"method": type(self).__name__, "epoch": self.epoch}
        state |= self._settings()
        state |= {f"state.{name}": tensor.clone() for name, tensor in self._tensors.items()}
        return state | {f"distribution.{k}": v for k, v in self._distribution.state_dict().items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict` of a selector built with the same arguments.

        Raises:
            ValueError: the state is of another method, size or option; nothing was changed.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"state must be what state_dict gave, a dictionary, got {_kind(state)}")
        own = {"method": type(self).__name__, **self._settings()}
        state = {**self.later, **state}
        for name in (*own, "epoch"):
            if name not in state:
                raise ValueError(f"the state has no {name!r}; it is no state of {own['method']}")
            if (value := own.get(name, state[name])) != state[name]:
                raise ValueError(
                    f"the state holds {name}={state[name]!r}, this selector {name}={value!r}; build it with "
                    f"{name}={state[name]!r}"
                    if name != "method"
                    else f"the state is of {state[name]}, this selector is {value}; load it into {state[name]}"
                )
        epoch = check_integer("the state's epoch", state.get("epoch"), at_least=-1)
        for name, tensor in self._tensors.items():
            found = state.get(f"state.{name}")
            if not isinstance(found, Tensor) or found.shape != tensor.shape or found.dtype != tensor.dtype:
                raise ValueError(
                    f"the state must hold {name!r} as {_kind(tensor)} of shape {tuple(tensor.shape)}, it holds "
                    f"{_kind(found)}"
                    + (f" of shape {tuple(found.shape)}" if isinstance(found, Tensor) else "")
                )
        frozen = {
            k.removeprefix("distribution."): v for k, v in state.items() if k.startswith("distribution.")
        }
        distribution = self.rebuild(frozen)
        for name, tensor in self._tensors.items():
            tensor.copy_(state[f"state.{name}"])
        self._distribution, self.epoch, self.was_told = distribution, epoch, True
        if self.journal is not None:  # its steps are undone by this
            self.journal.clear()


def check_integer(name: str, value: object, *, at_least: int) -> int:
    """The value as a plain integer; refuses what is none, or less than `at_least`. NumPy's integers are some."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {value!r}{_length_of(value)}")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {value}")
    return int(value)


def _length_of(value: object) -> str:
    """What a data set in place of its length is told."""
    if isinstance(value, Dataset) and isinstance(value, Sized):
        with contextlib.suppress(Exception):  # a data set's own
            return f"; its length is {len(value)}"
    return ""


def check_lengths(num_classes: object, epochs: object, warm_up: object) -> tuple[int, int, int]:
    """These as plain integers: what a method that learns cannot do without."""
    return (
        check_integer("num_classes", num_classes, at_least=2),
        check_integer("epochs", epochs, at_least=1),
        check_integer("warm_up", warm_up, at_least=0),
    )


def check_number(name: str, value: object) -> float:
    """The value as a float; refuses what is no real number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a number, got {value!r}")
    return float(value)


def check_measured(values: object, size: int) -> None:
    """Refuse what is not one value a sample of a batch."""
    if not isinstance(values, Tensor):
        raise TypeError(f"measure must return a tensor of one value a sample, or None, got {_kind(values)}")
    if values.shape != (size,):
        raise ValueError(
            f"measure must return one value a sample, shape ({size},) for this batch, got {tuple(values.shape)}; "
            "reduce over the classes alone, as logits.mean(dim=1) does"
        )


def at_least_float32(logits: Tensor) -> Tensor:
    """The logits in float32 or, where they come so, float64: what is finite stays finite."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


_OF_A_PART = "; the indices of a part of a data set are those that Indexed(Subset(...)) gives"
_UNLABELLED = "; leave samples without a label out of the batch that is handed in"


def check_range(
    name: str, values: Tensor, stop: int, stop_name: str, *, too_low: str = "", too_high: str = ""
) -> None:
    """Refuse integers outside [0, stop), with a remedy for either side."""
    host = native(values)
    low, high = int(host.min()), int(host.max())
    if low < 0 or high >= stop:
        raise ValueError(
            f"{name} must lie in [0, {stop}), {stop_name} being {stop}; got "
            + (f"{low}{too_low}" if low < 0 else f"{high}{too_high}")
        )


def check_column(name: str, values: object) -> Tensor:
    """A one-dimensional integer tensor."""
    if not isinstance(values, Tensor) or values.dtype not in INTEGERS:
        raise TypeError(f"{name} must be a tensor of integers, got {_kind(values)}{_remedy(name, values)}")
    if values.dim() != 1:
        shape = tuple(values.shape)
        raise ValueError(f"{name} must have one dimension, got shape {shape}{_remedy(name, values)}")
    return values


def _remedy(name: str, values: object) -> str:
    """What to hand in for values that are no column of integers, where that can be told."""
    if not isinstance(values, Tensor):
        return "" if values is None else f"; hand in torch.as_tensor({name})"
    if name == "targets" and values.dim() == 2 and min(values.shape) > 1:
        return "; of soft or one-hot labels hand in targets.argmax(dim=1)"
    if values.dtype not in INTEGERS:
        return "; hand in int64"
    return f"; hand in {name}.flatten()" if values.numel() == max(values.shape, default=1) else ""


def _device(name: torch.device | str) -> torch.device:
    """A device that tensors can be made on."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, ImportError, NotImplementedError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"device must be one that torch has here, got {name!r} ({reason}); use device='cpu'"
        ) from error
    return device


def _kind(value: object) -> str:
    return f"a tensor of {value.dtype}" if isinstance(value, Tensor) else repr(value)[:80]


def _no_argument(method: type[Selector], name: str) -> str:
    """What Python would say, in the method's name and with the argument that may have been meant."""
    taken = (inspect.signature(one).parameters.values() for one in (method, Selector))
    known = [one.name for one in chain(*taken) if one.kind is not one.VAR_KEYWORD and one.name != "options"]
    close = difflib.get_close_matches(name, known, n=1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    if name == "draws":
        meant = "; it is one of AdaptiveSampler's"
    return f"{method.__name__} got an unexpected keyword argument {name!r}{meant}"
