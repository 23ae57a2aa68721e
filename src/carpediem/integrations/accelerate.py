"""Hugging Face Accelerate: a loader that `accelerator.prepare` made trains on the adaptive stream.

Accelerate shares out the batches of a loader itself, so every process holds the sampler of the whole stream, without
`rank` and `world_size`. `adapt`, called once after `prepare`, makes the selectors of all processes one and puts
them into `save_state` and `load_state`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader, Sampler

from carpediem.distributed import make_one, merge
from carpediem.integrations.agreement import refuse_another_length
from carpediem.integrations.requirement import require
from carpediem.sampler import AdaptiveSampler

SUPPORTED = ">=1.8,<2"
require("accelerate", SUPPORTED)

from accelerate import Accelerator  # noqa: E402 (not before it is known to be there)
from accelerate.data_loader import DataLoaderDispatcher, DataLoaderShard  # noqa: E402
from accelerate.state import GradientState  # noqa: E402


def adapt(accelerator: Accelerator, loader: DataLoader[Any]) -> None:
    """Make a prepared loader train on its `AdaptiveSampler`'s stream, and carry the selector in checkpoints.

    Every process calls it once, after `accelerator.prepare` and before `load_state`. From then on `save_state` and
    `load_state`, which every process calls too, hold the selector and the epoch; within an epoch continue with
    `skip_first_batches`, as ever.

    Args:
        accelerator: what prepared the loader.
        loader: made by `accelerator.prepare` from `DataLoader(Indexed(dataset), batch_size=…, sampler=sampler)`.
            The sampler's `batch_size` is that of one optimizer step: the loader's times the processes (unless
            `split_batches`) times the steps of gradient accumulation.

    Raises:
        TypeError, ValueError: the loader is not prepared, or its sampler does not fit; the message says what to do.
    """
    stream = follow(accelerator, loader, accelerator.gradient_accumulation_steps)
    accelerator.register_for_checkpointing(_Checkpoint(stream, loader))


def follow(accelerator: Accelerator, loader: DataLoader[Any], accumulation: int) -> Stream:
    """What `adapt` does, less the checkpoints: for a framework on top of Accelerate that writes its own."""
    if not isinstance(loader, DataLoaderShard | DataLoaderDispatcher):
        raise TypeError(
            f"loader must come from accelerator.prepare, got {type(loader).__name__}; prepare it first"
        )
    sampler = _sampler(loader)
    if not isinstance(sampler, AdaptiveSampler):
        raise TypeError(
            f"loader must draw from an AdaptiveSampler, got {type(sampler).__name__}; build it as "
            "DataLoader(Indexed(dataset), batch_size=…, sampler=sampler)"
        )
    processes = accelerator.num_processes
    _refuse_a_misfit(sampler, loader, processes, accumulation)
    if processes > 1 and sampler.selector.journal is None:
        make_one(sampler)  # whose stream Accelerate shares out
    stream = Stream(sampler, dispatched=processes > 1 and isinstance(loader, DataLoaderDispatcher))
    loader.set_sampler(stream)
    return stream


class Stream(Sampler[int]):
    """A sampler as a prepared loader sees it: epochs that only go forward, whatever Accelerate has counted.

    Accelerate's count stands still while a loader of `skip_first_batches` is read, and begins the epoch after again.

    Args:
        sampler: what is drawn from.
        dispatched: the first process draws for all of them, so the others never begin an iteration. What every
            process sees is `set_epoch`, and so that refreshes the selector here.
    """

    def __init__(self, sampler: AdaptiveSampler, *, dispatched: bool = False) -> None:
        self.sampler, self.dispatched = sampler, dispatched
        # The epoch whose iteration, the newest one, ended by `break` before all of it was drawn.
        self.left: int | None = None
        self._newest: object = None

    def __len__(self) -> int:
        return len(self.sampler)

    def __iter__(self) -> Iterator[int]:
        place = self.sampler.state_dict()
        if self.dispatched and (place["epoch"], place["position"]) != (self.sampler.selector.epoch, 0):
            raise RuntimeError(
                "the processes must begin an epoch together; with dispatch_batches call loader.set_epoch(epoch) on "
                "every process before each epoch, on the loader that accelerator.prepare returned"
            )
        return self._noticed()

    def _noticed(self) -> Iterator[int]:
        self.left, self._newest = None, (own := object())
        try:
            yield from self.sampler
        except GeneratorExit:
            if self._newest is own:
                self.left = self.sampler.selector.epoch
            raise

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next; one that is over stays over."""
        if epoch > self.sampler.epoch:
            self.sampler.set_epoch(epoch)
        if self.dispatched and epoch > self.sampler.selector.epoch:
            self.sampler.selector.refresh(epoch)


def checkpoint(sampler: AdaptiveSampler, *, inside: bool) -> dict[str, Any]:
    """The selector and the epoch, for a framework that finds its own way inside the epoch. Every process calls it.

    Args:
        sampler: whose state it is.
        inside: training is still in the epoch that the selector was refreshed for, however far it was drawn.
    """
    merge(sampler)
    place = sampler.state_dict(position=0) if inside else sampler.state_dict() | {"position": 0}
    return {"selector": sampler.selector.state_dict(), "sampler": place}


def restore(sampler: AdaptiveSampler, state: dict[str, Any]) -> None:
    """Continue at the start of the epoch in which a `checkpoint` was taken. Every process calls it."""
    sampler.selector.load_state_dict(state["selector"])
    sampler.load_state_dict(state["sampler"])


class _Checkpoint:
    """What `Accelerator.register_for_checkpointing` takes."""

    def __init__(self, stream: Stream, loader: Any) -> None:
        self._stream, self._loader = stream, loader

    def state_dict(self) -> dict[str, Any]:
        reading = [loader for loader in GradientState().dataloader_references if loader is not None]
        # In the last step of an epoch nothing is left of it to continue with.
        inside = any(_sampler(loader) is self._stream and not loader.end_of_dataloader for loader in reading)
        state = checkpoint(self._stream.sampler, inside=inside)
        sampler = self._stream.sampler
        if self._stream.left == sampler.selector.epoch:  # Accelerate does not notice that it is over
            state["sampler"] = sampler.state_dict(position=sampler.selector.num_samples)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        restore(self._stream.sampler, state)
        self._loader.iteration = self._stream.sampler.epoch  # Accelerate's count


def _sampler(loader: Any) -> Any:
    """The sampler of indices under the batch samplers that Accelerate puts around each other."""
    batches = loader.batch_sampler
    while hasattr(batches, "batch_sampler"):
        batches = batches.batch_sampler
    return getattr(batches, "sampler", None)


def _refuse_a_misfit(sampler: AdaptiveSampler, loader: Any, processes: int, accumulation: int) -> None:
    if sampler.world_size != 1:
        raise ValueError(
            f"the sampler must have world_size = 1, got {sampler.world_size}; Accelerate shares out the stream itself, "
            "build the sampler without rank and world_size"
        )
    refuse_another_length(sampler.selector, loader.dataset)
    batches = loader.batch_sampler
    split = getattr(loader if isinstance(loader, DataLoaderDispatcher) else batches, "split_batches", False)
    shares = 1 if split else processes
    if sampler.batch_size != batches.batch_size * shares * accumulation:
        raise ValueError(
            f"the sampler's batch_size must be that of one optimizer step, {batches.batch_size} of the loader × "
            f"{shares} processes × {accumulation} accumulated = {batches.batch_size * shares * accumulation}, got "
            f"{sampler.batch_size}"
            + (" (split_batches: the loader's batch is of all processes)" if split else "")
        )
