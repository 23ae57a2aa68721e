"""Whether a batch goes through the lab's own kernels, or plain PyTorch does the same."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec

import torch
from torch import Tensor

TOO_LARGE = 2**31  # elements: the kernels count places with 32 bits

_HAS_TRITON = find_spec("triton") is not None

_wanted = ContextVar("_wanted", default=True)


def takes_kernels(x: Tensor, *, training: bool = True) -> bool:
    """Whether `x`, shape (b, c, h, w), lies on a CUDA device as the kernels want it, with nothing compiling.

    Args:
        training: of the layer that asks. In testing the kernels give no gradients, and are not for whoever wants some.
    """
    return (
        x.is_cuda
        and _HAS_TRITON
        and not torch.compiler.is_compiling()
        and x.dim() == 4
        and x.is_contiguous(memory_format=torch.channels_last)
        and x.numel() < TOO_LARGE
        and (training or not torch.is_grad_enabled())
        and _wanted.get()
    )


@contextmanager
def without_kernels() -> Iterator[None]:
    """Inside, plain PyTorch does everything: to compare with."""
    token = _wanted.set(False)
    try:
        yield
    finally:
        _wanted.reset(token)
