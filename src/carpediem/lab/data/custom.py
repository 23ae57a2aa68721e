"""Data from the user's own function, named as `module:function`."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from carpediem.lab.usercode import told_of, user_function

from .dataset import ImageData
from .errors import DataError


def read_custom(spec: str) -> ImageData:
    """Call the function that `spec` names, without arguments, and take what it returns.

    That is an `ImageData`, or the four arrays or tensors (train_images, train_labels, test_images,
    test_labels), images uint8 of shape (N, c, h, w) or (N, h, w). Classes are then called by their numbers.
    """
    try:
        function = user_function(spec)
    except ValueError as error:
        raise DataError(str(error)) from error
    with told_of(spec):
        found = function()
    if isinstance(found, ImageData):
        return found
    if not isinstance(found, (tuple, list)) or len(found) != 4:
        of = f" of {len(found)}" if isinstance(found, (tuple, list)) else ""
        raise DataError(
            f"{spec} must return a carpediem.lab.data.ImageData or the four arrays (train_images, train_labels, "
            f"test_images, test_labels), got {type(found).__name__}{of}"
        )
    parts = dict(zip(("train_images", "train_labels", "test_images", "test_labels"), found, strict=True))
    tensors = {part: _tensor(value, f"{spec}: {part}") for part, value in parts.items()}
    for part in ("train_labels", "test_labels"):
        tensors[part] = _whole_numbers(tensors[part], f"{spec}: {part}")
    for part in ("train_images", "test_images"):
        tensors[part] = _with_channels(tensors[part], f"{spec}: {part}")
    labels = tensors["train_labels"]
    count = int(labels.max()) + 1 if labels.numel() > 0 else 0
    return ImageData(
        name=spec,
        train_images=tensors["train_images"],
        train_labels=labels,
        test_images=tensors["test_images"],
        test_labels=tensors["test_labels"],
        classes=tuple(str(number) for number in range(count)),
    )


def _tensor(value: object, what: str) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if not isinstance(value, (np.ndarray, list)):
        raise DataError(f"{what} must be an array or a tensor, got {type(value).__name__}")
    try:
        return torch.from_numpy(np.array(value))
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be an array of numbers ({error})") from error


def _whole_numbers(labels: Tensor, what: str) -> Tensor:
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise DataError(f"{what} must be whole numbers, got {labels.dtype}")
    return labels.long()


def _with_channels(images: Tensor, what: str) -> Tensor:
    """Shape (N, c, h, w), from that or from (N, h, w)."""
    if images.ndim == 3:
        return images.unsqueeze(1)
    if images.ndim == 4 and images.shape[1] not in (1, 3) and images.shape[3] in (1, 3):
        raise DataError(
            f"{what} must have shape (N, channels, height, width), got {tuple(images.shape)} with the "
            "channels last; permute them with transpose(0, 3, 1, 2)"
        )
    return images
