"""Bringing images that are already in memory to another size."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from .dataset import ImageData


def resized(data: ImageData, image_size: int | None) -> ImageData:
    """The same set with images of side `image_size`, bilinear and antialiased; as it is for None."""
    if image_size is None or image_size == data.image_size:
        return data
    if image_size < 1:
        raise ValueError(f"image_size must be at least 1, got {image_size}")
    return replace(
        data,
        train_images=_resize(data.train_images, image_size),
        test_images=_resize(data.test_images, image_size),
    )


def _resize(images: Tensor, size: int) -> Tensor:
    """uint8 (N, c, h, w) to (N, c, size, size), some at a time to keep the float copies small."""
    out = torch.empty(*images.shape[:2], size, size, dtype=torch.uint8)
    for start in range(0, len(images), 1024):
        part = images[start : start + 1024].float()
        scaled = F.interpolate(part, size=(size, size), mode="bilinear", antialias=True)
        out[start : start + 1024] = scaled.round().clamp(0, 255).byte()
    return out
