"""One image file, decoded to a square of bytes."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .errors import DataError

if TYPE_CHECKING:
    from PIL import Image

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
Box = tuple[int, int, int, int]


def read_image(
    path: Path, *, size: int, whole: bool = False, box: Box | None = None
) -> npt.NDArray[np.uint8]:
    """The image as RGB, shape (3, size, size), uint8.

    The central square is resized, bilinear and antialiased: what of the longer side lies outside of it is cut off.
    Grey becomes RGB, transparency is dropped, and of an animation the first frame counts.

    Args:
        whole: resize all of the image instead, whatever that does to its proportions.
        box: crop to (left, top, right, bottom) first, in pixels; cut off at the image's edge.
    """
    pillow = _pillow()
    # Pillow's decoders raise all of these on damaged files; DecompressionBombError guards against bombs.
    damage = (OSError, SyntaxError, ValueError, struct.error, pillow.DecompressionBombError)
    try:
        with pillow.open(path) as image:
            image.load()  # decodes all of it: opening only reads the head
            rgb = _as_rgb(image, path)
    except DataError:
        raise
    except damage as error:
        raise DataError(
            f"{path} cannot be decoded as an image ({error}); replace it or move it away"
        ) from error
    if box is not None:
        rgb = _cropped(rgb, box, path)
    width, height = rgb.size if whole else (min(rgb.size),) * 2
    left, top = (rgb.width - width) / 2, (rgb.height - height) / 2
    part = (left, top, left + width, top + height)
    resized = rgb.resize((size, size), resample=pillow.Resampling.BILINEAR, box=part)
    return np.ascontiguousarray(np.asarray(resized, dtype=np.uint8).transpose(2, 0, 1))


def _as_rgb(image: Image.Image, path: Path) -> Image.Image:
    if image.mode in ("I", "F") or image.mode.startswith("I;"):
        # Pillow would clip these to 255 without a word.
        raise DataError(f"{path} must have 8 bits a channel, got Pillow's mode {image.mode!r}; convert it")
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    return image.convert("RGB")


def _cropped(image: Image.Image, box: Box, path: Path) -> Image.Image:
    left, top, right, bottom = (
        max(box[0], 0),
        max(box[1], 0),
        min(box[2], image.width),
        min(box[3], image.height),
    )
    if left >= right or top >= bottom:
        raise DataError(
            f"{path}: the box {box} must cover a part of the {image.width} × {image.height} pixels"
        )
    return image.crop((left, top, right, bottom))


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("reading image files needs Pillow: pip install pillow") from error
    return Image
