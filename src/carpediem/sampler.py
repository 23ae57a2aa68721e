"""The sampler that a DataLoader draws its indices from."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils.data import Sampler

from carpediem.core.caller import loop_level
from carpediem.core.distribution import EpochDraw
from carpediem.core.draws.independent import chunks, independent_epoch
from carpediem.core.draws.systematic import systematic_epoch
from carpediem.selectors.base import DRAWS, Draws, Selector, check_integer

_EPOCHS: dict[Draws, EpochDraw] = {"systematic": systematic_epoch, "independent": independent_epoch}


class AdaptiveSampler(Sampler[int]):
    """A stream of indices, N an epoch, drawn by a selector; every run of `batch_size` is distinct.

    Each iteration is the next epoch, and begins by refreshing the selector. The stream is a pure
    function of the seed, the epoch and the selector's distribution: no other random generator is read or set.

    Args:
        selector: the method.
        batch_size: the number of samples of one training step, over all ranks.
        seed: any integer of at least 0.
        draws: "independent" draws each batch anew; "systematic" gives each sample ⌊N·P⌋ or ⌈N·P⌉ places in the
            epoch, its copies in different batches, which at pressure 1 is a shuffle. By default as the selector
            says: systematic, but independent for `WeightedBatch`.
        rank: which share of each batch this process trains on.
        world_size: into how many shares a batch is dealt; it divides `batch_size`. A DataLoader then takes
            `batch_size // world_size`. A last batch of fewer samples than ranks is left out, and of one that would be
            full on some ranks alone the samples that make it so: all ranks make the same number of steps, with
            `drop_last` too.

    >>> from carpediem import RandomBatch
    >>> sampler = AdaptiveSampler(RandomBatch(num_samples=6, num_classes=2, epochs=2), batch_size=3)
    >>> sorted(sampler), sorted(sampler)
    ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5])
    """

    def __init__(
        self,
        selector: Selector,
        *,
        batch_size: int,
        seed: int = 0,
        draws: Draws | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        if not isinstance(selector, Selector):
            raise TypeError(f"selector must be a carpediem.Selector, got {type(selector).__name__}")
        batch_size = check_integer("batch_size", batch_size, at_least=1)
        seed = check_integer("seed", seed, at_least=0)
        if batch_size > selector.num_samples:
            raise ValueError(
                f"batch_size must be at most num_samples = {selector.num_samples}, a batch holds a sample once, "
                f"got {batch_size}"
            )
        draws = selector.draws if draws is None else draws
        if draws not in DRAWS:
            raise ValueError(f"draws must be one of {', '.join(DRAWS)}, got {draws!r}")
        self.selector, self.batch_size, self.seed, self.draws = selector, batch_size, seed, draws
        self.share(rank, world_size)
        self._next = (0, 0)  # epoch and position at which the next iteration begins
        # The selector's epoch when the state was taken that was loaded, while no iteration has begun since.
        self._loaded_with: int | None = None
        self._reading: tuple[int, int, int, Iterator[int]] | None = None
        self._may_be_apart = True

    def share(self, rank: int, world_size: int) -> None:
        """Say which share of each batch is this process's, where that is known only after the sampler was made."""
        world_size = check_integer("world_size", world_size, at_least=1)
        rank = check_integer("rank", rank, at_least=0)
        if self.batch_size % world_size:
            raise ValueError(
                f"batch_size must be a multiple of world_size = {world_size} (it is the batch of all ranks "
                f"together), got {self.batch_size}"
            )
        if rank >= world_size:
            raise ValueError(f"rank must be less than world_size = {world_size}, got {rank}")
        self.rank, self.world_size = rank, world_size

    def __repr__(self) -> str:
        """As it is built."""
        shares = f", rank={self.rank}, world_size={self.world_size}" if self.world_size > 1 else ""
        return (
            f"AdaptiveSampler({self.selector!r}, batch_size={self.batch_size}, seed={self.seed}, "
            f"draws={self.draws!r}{shares})"
        )

    def __len__(self) -> int:
        """How many indices a whole epoch gives to this rank."""
        full, tail = divmod(self._drawn_in_all, self.batch_size)
        return full * (self.batch_size // self.world_size) + len(range(self.rank, tail, self.world_size))

    @property
    def _drawn_in_all(self) -> int:
        """Draws of an epoch over all ranks: N, less what would be a step, or a whole one, of some ranks alone."""
        tail = self.selector.num_samples % self.batch_size
        is_apart = tail < self.world_size or tail > self.batch_size - self.world_size
        return self.selector.num_samples - (tail % self.world_size if is_apart else 0)

    def __iter__(self) -> Iterator[int]:
        # `chain` hands out the numbers of each list without running Python code for every one of them.
        return chain.from_iterable(self._lists())

    @property
    def epoch(self) -> int:
        """The epoch that is being drawn, or comes next when none is."""
        return self._place()[0]

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch the next iteration is. Needed by nobody, harmless however often it is called.

        Said of an epoch that is being drawn, it lets the next iteration draw that one again from its start: a
        framework may begin an epoch's iteration twice. Once drawn to its end, the epoch is followed by the next.
        """
        epoch = check_integer("epoch", epoch, at_least=0)
        if self._reading is not None and self._reading[0] != epoch:
            self._reading = None  # an iteration of another epoch that was left halfway is over
        if epoch != self._next[0]:
            self._next, self._loaded_with = (epoch, 0), None

    def next_epoch(self) -> Tensor:
        """The next epoch's indices at once, int64, on the selector's device: for data that lives there too."""
        epoch, position = self._begin()
        parts = [_rows(drawn, self.rank, self.world_size) for _, drawn in self._drawn(epoch, position)]
        self._reading = None
        return torch.cat(parts).to(self.selector.device, non_blocking=True)

    def _begin(self) -> tuple[int, int]:
        epoch, position = self._next
        selector = self.selector
        is_apart = self._loaded_with is not None and selector.epoch not in (self._loaded_with, epoch)
        if (selector.learns and is_apart) or (position and selector.epoch != epoch):
            raise ValueError(
                f"the sampler stands {'inside' if position else 'before'} epoch {epoch}, but the selector at epoch "
                f"{self.selector.epoch}; load the state of both, taken at the same moment"
            )
        self._loaded_with = None
        if self.selector.epoch != epoch:
            self.selector.refresh(epoch)
        if epoch >= self.selector.warm_up:
            self._warn_of_ranks_apart()
        self._next = (epoch + 1, 0)
        return epoch, position

    def _warn_of_ranks_apart(self) -> None:
        """Once, where ranks each draw by what they observed alone."""
        apart = self.world_size > 1 and self.selector.learns and self.selector.journal is None
        if self._may_be_apart and apart and dist.is_available() and dist.is_initialized():
            self._may_be_apart = False
            warnings.warn(
                f"{type(self.selector).__name__} draws by what this rank alone has observed, so that the ranks' shares "
                "are of different batches; call carpediem.distributed.synchronise(sampler) before training",
                stacklevel=loop_level(),
            )

    def _lists(self) -> Iterator[Iterator[int]]:
        epoch, position = self._begin()
        for start, drawn in self._drawn(epoch, position):
            numbers = iter(_rows(drawn, self.rank, self.world_size).tolist())
            self._reading = (epoch, start, operator.length_hint(numbers), numbers)
            yield numbers
        self._reading = None
        if self._next[0] == epoch:
            self._next = (epoch + 1, 0)

    def _drawn(self, epoch: int, position: int) -> Iterator[tuple[int, Tensor]]:
        """Parts of the global stream from `position` on, each with where it starts: (batches, size) or less."""
        size, draw = self.batch_size, _EPOCHS[self.draws]
        parts = self.selector.distribution.draw_epoch(draw, size, _mixed(self.seed, epoch), position)
        for first, part in parts:
            # A last batch is drawn as one process draws it: what does not go round the ranks is left out.
            part = part[: self._drawn_in_all - first]
            for start, stop in chunks(len(part), size):
                if first + stop > position:
                    batches = part[start:stop].reshape(-1, min(size, stop - start))
                    yield from _from(first + start, batches, position)

    def _place(self) -> tuple[int, int]:
        """Epoch and position of the stream, counted over all ranks."""
        if self._reading is None:
            return self._next
        epoch, start, length, numbers = self._reading
        share = self.batch_size // self.world_size
        batches, rest = divmod(length - operator.length_hint(numbers), share)
        position = start + batches * self.batch_size + rest * self.world_size
        return (epoch, position) if position < self._drawn_in_all else (epoch + 1, 0)

    def state_dict(self, position: int | None = None) -> dict[str, Any]:
        """Where the stream stands: small, so that it can be taken at every batch. The selector has its own state.

        Args:
            position: how many indices of this epoch, over all ranks, have been trained on. Needed where more has
                been drawn than trained on, by a DataLoader with workers or by `next_epoch`: this epoch's steps times
                `batch_size`. At an epoch's end, and where the rest of one is left out, that is N, not 0 of the next
                epoch.
        """
        epoch, drawn = self._place()
        if position is not None:
            position = check_integer("position", position, at_least=0)
            # A last batch that is not full counts as one: steps times batch size may step over the end.
            if position >= self.selector.num_samples + self.batch_size:
                raise ValueError(
                    f"position must be at most {self.selector.num_samples}, got {position}; count the steps of this "
                    "epoch alone"
                )
            # Where workers have drawn the epoch to its end, training is still inside the one before.
            is_loaded = self._loaded_with is not None
            between = is_loaded and not drawn  # two epochs: an end is that of the one before
            epoch = epoch if is_loaded or self.selector.epoch < 0 else self.selector.epoch
            over = (epoch if between else epoch + 1, 0)
            epoch, drawn = over if position >= self._drawn_in_all else (epoch, position)
        return {
            "epoch": epoch,
            "position": drawn,
            "seed": self.seed,
            "batch_size": self.batch_size,
            "draws": self.draws,
            "num_samples": self.selector.num_samples,
            "device": self.selector.device.type,
            "selector_epoch": self.selector.epoch,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where a `state_dict` was taken; the number of ranks may be another one."""
        if not isinstance(state, Mapping):
            raise TypeError(f"state must be what state_dict gave, a dictionary, got {state!r}")
        own = self.state_dict()
        for name in own.keys() - {"selector_epoch"}:  # which states of an earlier version lack
            if name not in state:
                raise ValueError(f"the state has no {name!r}; it is no state of an AdaptiveSampler")
        for name in ("epoch", "position", "seed"):
            check_integer(name, state[name], at_least=0)
        at_rest = state["epoch"] if state["position"] else state["epoch"] - 1
        taken_at = check_integer("selector_epoch", state.get("selector_epoch", at_rest), at_least=-1)
        for name in ("num_samples", "batch_size", "draws"):
            if state[name] != own[name]:
                raise ValueError(
                    f"the state holds {name}={state[name]!r}, this sampler {name}={own[name]!r}; build it with "
                    f"{name}={state[name]!r}"
                )
        # Another kind of device deals a systematic epoch otherwise: samples would come twice, others not at all.
        if state["position"] and self.draws == "systematic" and state["device"] != own["device"]:
            raise ValueError(
                f"the state was taken inside an epoch on device={state['device']!r}, this selector has "
                f"device={own['device']!r}; continue on {state['device']}, or from the start of an epoch"
            )
        if state["position"] >= own["num_samples"]:
            raise ValueError(
                f"position must be less than num_samples = {own['num_samples']}, the state holds {state['position']}"
            )
        if state["position"] % self.world_size:
            raise ValueError(
                f"position must be a multiple of world_size = {self.world_size}, the state holds "
                f"{state['position']}; take it between two batches"
            )
        self.seed = state["seed"]
        # What was left of the epoch may be a last batch that is too small for so many ranks.
        is_over = state["position"] >= self._drawn_in_all
        self._next = (state["epoch"] + 1, 0) if is_over else (state["epoch"], state["position"])
        self._reading, self._loaded_with = None, taken_at


def _from(start: int, drawn: Tensor, position: int) -> Iterator[tuple[int, Tensor]]:
    """The part of `drawn`, which begins at `start`, from `position` on: the rest of a batch, then whole ones."""
    if position <= start:
        yield start, drawn
        return
    batches, inside = divmod(position - start, drawn.shape[1])
    if inside:
        yield position, drawn[batches, inside:].reshape(1, -1)
        batches += 1
    if batches < len(drawn):
        yield start + batches * drawn.shape[1], drawn[batches:]


def _rows(drawn: Tensor, rank: int, world_size: int) -> Tensor:
    """This rank's share of each batch, one batch after the other."""
    return drawn[:, rank::world_size].reshape(-1)


def _mixed(seed: int, epoch: int) -> int:
    """A seed for (seed, epoch), far from those of its neighbours (the finaliser of splitmix64)."""
    value = (seed * 0x9E3779B97F4A7C15 + (epoch + 1) * 0xD1B54A32D192ED03) % 2**64
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return (value ^ value >> 31) % 2**63
