"""Host tensors are handled by numpy, device tensors by torch; this is the seam between the two.

On the CPU numpy runs our passes faster than torch, and without waking a thread pool (`docs/decisions/0001`). Both
libraries share the operators that our formulas need, so that each formula stands once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

Array = Any  # np.ndarray on the host, Tensor on a device: the operators used are common to both

THREADED_FROM = 1 << 20  # samples from which starting threads is worth it
BLOCK = 1 << 16  # samples handled at a time on the host: the pass over a block stays in the L2 cache


def over_blocks(size: int, work: Callable[[int, int], None], *, block: int = BLOCK) -> None:
    """Calls work(start, stop) for every block of [0, size); on several threads where that pays.

    numpy lets go of the interpreter's lock inside its passes. The pool lives for this call only, so that a
    process that forks later, as a DataLoader does, inherits no threads.
    """
    starts = range(0, size, block)
    threads = min(_cores(), 8) if size >= THREADED_FROM else 1
    if threads == 1:
        for start in starts:
            work(start, min(start + block, size))
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda start: work(start, min(start + block, size)), starts):
            pass


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def native(tensor: Tensor) -> Array:
    """The numpy view of a host tensor, which shares its memory; a device tensor as it is."""
    return tensor.numpy() if tensor.device.type == "cpu" else tensor


def namespace(array: Array) -> ModuleType:
    """The library that owns the array: numpy or torch."""
    return np if isinstance(array, np.ndarray) else torch


def whole(array: Array) -> Array:
    """The array's values cut to int64."""
    return array.astype(np.int64) if isinstance(array, np.ndarray) else array.long()


def like(array: Array, other: Array) -> Array:
    """The array in the other's type."""
    return array.astype(other.dtype) if isinstance(array, np.ndarray) else array.to(other.dtype)


def uniform(count: int, generator: torch.Generator) -> Array:
    """`count` float64 numbers in [0, 1), where the generator lives."""
    return native(torch.rand(count, dtype=torch.float64, generator=generator, device=generator.device))


def index_dtype(num_samples: int) -> torch.dtype:
    """The smallest integer type that holds every index."""
    return torch.int32 if num_samples < 2**31 else torch.int64
