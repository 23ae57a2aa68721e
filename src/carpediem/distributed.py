"""Several processes that train together, and draw from one distribution.

Every rank holds the whole selector and draws the same global stream. What a rank observes it only notes down;
before each refresh the ranks exchange their notes and take in all of them in the order of the steps. So every selector
comes to the state that one process would have reached with the same global batches.
"""

from __future__ import annotations

import hashlib
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from carpediem.core.history import rounds
from carpediem.sampler import AdaptiveSampler
from carpediem.selectors.base import INTEGERS, Selector

# What a method may measure; a number on the wire stands for the type.
TYPES = (*INTEGERS, torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.float64)


def synchronise(sampler: AdaptiveSampler | Selector, group: dist.ProcessGroup | None = None) -> None:
    """Make this rank's selector one with those of the other ranks. Every rank calls it once, before training.

    What is exchanged travels through the current device where the group has no way between hosts, as with nccl
    alone: call `torch.cuda.set_device` before, as for any nccl program.

    Args:
        sampler: the sampler that training draws from, or its selector alone where a framework shares out the stream.
        group: the processes that train together; all of them unless told otherwise.

    Raises:
        ValueError: the ranks are set up differently; the message names both values.
    """
    if not dist.is_initialized():
        raise ValueError(
            "synchronise needs a process group; call torch.distributed.init_process_group before it, or leave it out "
            "in a program of one process"
        )
    if not isinstance(sampler, AdaptiveSampler | Selector):
        raise TypeError(f"sampler must be an AdaptiveSampler or a Selector, got {type(sampler).__name__}")
    if dist.get_rank(group) < 0:
        raise ValueError(
            "group must hold this process, which it does not; call synchronise on its ranks alone"
        )
    _refuse_other_shares(sampler, group)
    make_one(sampler, group)


def make_one(sampler: AdaptiveSampler | Selector, group: dist.ProcessGroup | None = None) -> None:
    """What `synchronise` does, for a framework that shares out the sampler's stream itself."""
    selector = sampler.selector if isinstance(sampler, AdaptiveSampler) else sampler
    _refuse_differences(_settings(sampler), group)
    selector.check_shared()
    selector.journal = Journal(selector, group)


def merge(sampler: AdaptiveSampler | Selector) -> None:
    """Take in what all ranks have observed so far. Every rank calls it before a checkpoint inside an epoch.

    At the start of an epoch this happens by itself.
    """
    selector = sampler.selector if isinstance(sampler, AdaptiveSampler) else sampler
    if selector.journal is not None:
        selector.journal.exchange()


class Journal:
    """What one rank observed since the last exchange.

    A selector with a journal writes its observations into it instead of taking them in at once. That costs a copy
    of the batch's indices and values a step; nothing is sent.

    Args:
        selector: whose observations these are.
        group: the processes that train together.
    """

    def __init__(self, selector: Selector, group: dist.ProcessGroup | None = None) -> None:
        self._selector, self._group = selector, group
        self._notes: list[tuple[int, Tensor, Tensor]] = []
        self._steps = 0

    def __len__(self) -> int:
        """Steps noted since the last exchange."""
        return len(self._notes)

    def note(self, indices: Tensor, values: Tensor) -> None:
        """Write one step down."""
        self._notes.append((self._steps, indices.clone(), values.clone()))
        self._steps += 1

    def pass_over(self) -> None:
        """Count a step of which nothing is kept, so that the next ones stay beside those of the other ranks."""
        self._steps += 1

    def clear(self) -> None:
        """Forget the steps since the last exchange."""
        self._notes.clear()
        self._steps = 0

    def exchange(self) -> None:
        """Take in the notes of all ranks, the same on each."""
        try:
            gathered = self._gathered(*self._packed())
        except RuntimeError as error:
            raise RuntimeError(
                "the ranks could not exchange what they observed; one of them has stopped, or is at another place in "
                f"its program. Start all of them again from their last checkpoint. ({error})"
            ) from error
        self.clear()
        rows, dtype = gathered
        if dtype is None:
            return
        self._selector.was_told = True
        # By step; inside a step rank after rank, whichever of them was faster. Without what devices have dropped.
        rows = rows[:, rows[1] < self._selector.num_samples]
        _, indices, bits = rows[:, rows[0].sort(stable=True).indices]
        values = (bits.view(torch.float64) if dtype.is_floating_point else bits).to(dtype)
        for part in [slice(None)] if self._selector.keeps_repeats else rounds(indices):
            self._selector.keep(
                indices[part].to(self._selector.device), values[part].to(self._selector.device)
            )

    def _packed(self) -> tuple[Tensor, int]:
        """The notes as rows of integers, step, index and the value's bits; and the number of the values' type."""
        if not self._notes:
            return torch.empty(3, 0, dtype=torch.int64), -1
        steps = torch.cat([torch.full_like(indices, step) for step, indices, _ in self._notes])
        indices = torch.cat([indices for _, indices, _ in self._notes])
        values = torch.cat([values for _, _, values in self._notes])
        wide = (
            values.to(torch.float64).view(torch.int64)
            if values.is_floating_point()
            else values.to(torch.int64)
        )
        return torch.stack((steps, indices, wide)), TYPES.index(values.dtype)

    def _gathered(self, mine: Tensor, kind: int) -> tuple[Tensor, torch.dtype | None]:
        """The rows of all ranks, rank after rank, and the type of the values; None where there are none.

        Two collectives, however many steps.
        """
        device, world = _wire(self._group), dist.get_world_size(self._group)
        handed_in = self._selector.handed_in()
        name = 0 if handed_in is None else int(_digest(handed_in), base=16)
        head = torch.tensor([mine.shape[1], kind, name], device=device)
        heads = [torch.zeros_like(head) for _ in range(world)]
        dist.all_gather(heads, head, group=self._group)
        lengths, kinds, names = zip(*(h.tolist() for h in heads), strict=True)
        if other := next((rank for rank, theirs in enumerate(names) if theirs != names[0]), None):
            raise ValueError(
                f"what {type(self._selector).__name__} is handed in must be the same on all ranks, rank 0 and rank "
                f"{other} hold different values; hand those of all samples to every rank"
            )
        if not max(lengths):
            return mine, None
        padded = torch.zeros(len(mine), max(lengths), dtype=torch.int64, device=device)
        padded[:, : mine.shape[1]] = mine.to(device)
        parts = [torch.empty_like(padded) for _ in range(world)]
        dist.all_gather(parts, padded, group=self._group)
        rows = torch.cat([part[:, :length] for part, length in zip(parts, lengths, strict=True)], dim=1)
        return rows, TYPES[max(kinds)]


def _settings(sampler: AdaptiveSampler | Selector) -> dict[str, Any]:
    """All that must be the same on every rank."""
    if isinstance(sampler, AdaptiveSampler):
        own = {f"sampler.{name}": value for name, value in sampler.state_dict().items()}
        return _settings(sampler.selector) | own | {"sampler.world_size": sampler.world_size}
    state = sampler.state_dict()
    del state["state.faults"]  # which each rank counts for itself
    return {
        f"selector.{name}": f"tensor {_digest(_kept(value, sampler.num_samples))}"
        if isinstance(value, Tensor)
        else value
        for name, value in state.items()
    }


def _kept(tensor: Tensor, num_samples: int) -> Tensor:
    """A tensor of the state without its place N, which takes what must not be kept, on a device in any order."""
    for axis, size in enumerate(tensor.shape):
        if size == num_samples + 1:
            return tensor.narrow(axis, 0, num_samples)
    return tensor


def _digest(tensor: Tensor) -> str:
    """A short name for what a tensor holds, such as the user's own weights: twelve hexadecimal digits."""
    held = tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
    return hashlib.sha256(held.data).hexdigest()[:12]


def _refuse_other_shares(sampler: AdaptiveSampler | Selector, group: dist.ProcessGroup | None) -> None:
    """On every rank, where one of them has the share of another: none is left waiting for it."""
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    own = (sampler.rank, sampler.world_size) if isinstance(sampler, AdaptiveSampler) else (rank, world)
    for rank, share in enumerate(_of_all_ranks(own, group)):
        if share != (rank, world):
            raise ValueError(
                f"the sampler of rank {rank} must have rank = {rank} and world_size = {world}, got {share[0]} and "
                f"{share[1]}; build it with rank=dist.get_rank(), world_size=dist.get_world_size(), or hand in its "
                "selector alone where a framework shares out the stream"
            )


def _refuse_differences(settings: dict[str, Any], group: dist.ProcessGroup | None) -> None:
    everyone = _of_all_ranks(settings, group)
    for rank, theirs in enumerate(everyone):
        for name in sorted(everyone[0].keys() | theirs.keys()):
            first, other = everyone[0].get(name), theirs.get(name)
            if first != other:
                raise ValueError(
                    f"{name} must be the same on all ranks, rank 0 has {first!r} and rank {rank} has {other!r}"
                )


def _of_all_ranks(value: object, group: dist.ProcessGroup | None) -> list[Any]:
    """What each rank hands in here."""
    everyone: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(everyone, value, group=group)
    return everyone


def _wire(group: dist.ProcessGroup | None) -> torch.device:
    """Where tensors must lie for this group's collectives: on the host where it can, else on the current device."""
    # Such as "cuda:nccl" or "cpu:gloo,cuda:nccl". `get_backend` gives what the user wrote, which may be nothing.
    kinds = [pair.split(":")[0] for pair in dist.get_backend_config(group).split(",")]
    return torch.device("cpu" if "cpu" in kinds else kinds[0])
