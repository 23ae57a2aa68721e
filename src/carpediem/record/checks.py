"""What a record refuses at its door: each check names the argument, the rule, what came and a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
MOST = 2**31 - 1  # classes and epochs are kept as int32


def integer(name: str, value: object, *, at_least: int, at_most: int | None = None) -> int:
    """The value as a plain integer within these bounds; NumPy's integers are taken, booleans are not."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {kind(value)}{_length_of(value)}")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {value}")
    if at_most is not None and value > at_most:
        raise ValueError(f"{name} must be at most {at_most}, got {value}")
    return int(value)


def number(name: str, value: object, low: float, high: float) -> float:
    """The value as a float in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a number, got {kind(value)}")
    if not low <= value <= high:
        raise ValueError(f"{name} must lie in [{low}, {high}], got {value}")
    return float(value)


def plain(name: str, value: object, what: str) -> Tensor:
    """The value as a dense tensor that holds numbers, without gradients."""
    if not isinstance(value, Tensor):
        remedy = "" if value is None else f"; hand in torch.as_tensor({name})"
        raise TypeError(f"{name} must be {what}, got {kind(value)}{remedy}")
    if value.layout is torch.strided and not (value.is_nested or value.is_meta or value.is_quantized):
        return value.detach()
    found, remedy = (
        ("nested", "a batch of one shape")
        if value.is_nested
        else ("meta", "a tensor that holds values")
        if value.is_meta
        else ("quantized", f"{name}.dequantize()")
        if value.is_quantized
        else ("sparse", f"{name}.to_dense()")
    )
    raise TypeError(f"{name} must be {what}, got a {found} tensor; hand in {remedy}")


def whole_numbers(name: str, value: object, size: int | None = None, *, truth: bool = False) -> Tensor:
    """A one-dimensional tensor of integers (of booleans too, with `truth`), as many as there are indices."""
    tensor = plain(name, value, "a tensor of integers")
    if tensor.dtype not in INTEGERS and not (truth and tensor.dtype is torch.bool):
        remedy = _class_numbers(name, tensor) or "; hand in int64"
        raise TypeError(f"{name} must be a tensor of integers, got {kind(value)}{remedy}")
    return _in_a_row(name, tensor, size)


def floats(name: str, value: object, size: int | None = None) -> Tensor:
    """A tensor of floating-point numbers; with a size one-dimensional, as many as there are indices."""
    tensor = plain(name, value, "a tensor of floating-point numbers")
    if tensor.dtype not in FLOATS:
        raise TypeError(f"{name} must be a tensor of floating-point numbers, got {kind(value)}")
    return tensor if size is None else _in_a_row(name, tensor, size)


def logits_of(value: object, size: int, num_classes: int | None) -> Tensor:
    """Logits of shape (b, k)."""
    tensor = floats("logits", value)
    shape = tuple(tensor.shape)
    if num_classes is None:
        raise ValueError(
            f"logits need num_classes, got shape {shape}; build Record(num_samples, num_classes) or hand in losses="
        )
    if shape != (size, num_classes):
        other = len(shape) == 2 and shape[0] == size and shape[1] > 1
        raise ValueError(
            f"logits must have shape {(size, num_classes)}, a row for each index and a column for each class, "
            f"got {shape}" + (f"; build the record with num_classes={shape[1]}" if other else "")
        )
    return tensor


def in_range(name: str, values: Tensor, stop: int, stop_name: str) -> None:
    """Refuse integers of a host tensor outside [0, stop), with a remedy for either side."""
    least, most = values.aminmax()
    low, high = int(least), int(most)
    if low < 0 or high >= stop:
        remedy = ""
        if name == "indices" and low >= 0:
            remedy = "; the indices of a part of a data set are those that Indexed(Subset(...)) gives"
        elif name in ("targets", "labels") and low < 0:
            remedy = "; leave samples without a label out of the batch that is handed in"
        raise ValueError(
            f"{name} must lie in [0, {stop}), {stop_name} being {stop}; got {low if low < 0 else high}{remedy}"
        )


def device_of(name: torch.device | str) -> torch.device:
    """A device on which tensors hold values."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
        reason = "holds no values" if device.type == "meta" else ""
    except (RuntimeError, AssertionError, ImportError, NotImplementedError, TypeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
    if reason:
        raise ValueError(
            f"device must be one that torch has here, got {kind(name)} ({reason}); use device='cpu'"
        )
    return device


def kind(value: object) -> str:
    """A value in a few words, for a message."""
    return f"a tensor of {value.dtype}" if isinstance(value, Tensor) else repr(value)[:80]


def _in_a_row(name: str, tensor: Tensor, size: int | None) -> Tensor:
    if tensor.dim() != 1:
        flat = tensor.numel() == max(tensor.shape, default=1)
        remedy = _class_numbers(name, tensor) or (f"; hand in {name}.flatten()" if flat else "")
        raise ValueError(f"{name} must have one dimension, got shape {tuple(tensor.shape)}{remedy}")
    if size is not None and tensor.shape[0] != size:
        raise ValueError(f"{name} must be as many as indices = {size}, got {tensor.shape[0]}")
    return tensor


def _class_numbers(name: str, tensor: Tensor) -> str:
    soft = name == "targets" and tensor.dim() == 2 and min(tensor.shape) > 1
    return "; of soft or one-hot labels hand in targets.argmax(dim=1)" if soft else ""


def _length_of(value: Any) -> str:
    """The remedy for a data set that came in place of its length."""
    if isinstance(value, Tensor | np.ndarray | str | bytes | list | tuple | dict):
        return ""
    try:
        return f"; its length is {len(value)}"
    except Exception:  # it has none, or a data set's own way of failing
        return ""
