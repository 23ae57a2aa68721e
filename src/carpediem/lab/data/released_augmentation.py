"""The augmentations of the authors' released code, whose random operations all draw the same number of an image.

They are seeded alike, and in TensorFlow such operations have the same stream each. So one number u in [0, 1) says
whether an image is mirrored (u < 1/2), where its hue goes, how pale it becomes and how bright: a mirrored image is
always the paler and darker one. Contrast has a number for the whole batch.

Each augmentation is a pure function of the images and these numbers. It computes in float32 on the scale of 0 to 1,
as the authors do, and clips nothing; images of one channel are mirrored alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from carpediem.lab.data.image_operations import (
    WHITE,
    between,
    check_batch,
    mirrored,
    scale_contrast,
    scale_saturation,
    shift_hue,
)

HUE = 0.08  # of a turn, either way
SATURATION = (0.5, 1.5)
RESNET_BRIGHTNESS, RESNET_CONTRAST = 0.5, (0.5, 1.5)
# Meant for images in 0..255, and applied in 0..1: no colour of a mirrored image, now below 0, survives the saturation.
DENSENET_BRIGHTNESS, DENSENET_CONTRAST = 63.0, (0.2, 1.8)


@dataclass(frozen=True)
class Numbers:
    """What an augmentation draws, all in [0, 1) and float32.

    Args:
        flip, hue, saturation, brightness: of each image, shape (b,).
        contrast: of each image or of the batch, shape (b,) or (1,).
    """

    flip: Tensor
    hue: Tensor
    saturation: Tensor
    brightness: Tensor
    contrast: Tensor

    @staticmethod
    def shared(u: Tensor, contrast: Tensor) -> Numbers:
        """One number of each image for everything but contrast."""
        return Numbers(u, u, u, u, contrast)


def draw_shared(images: Tensor, generator: torch.Generator | None) -> Numbers:
    """A number for each image, and one for the batch's contrast."""
    device = images.device
    u = torch.rand(len(images), generator=generator, device=device)
    return Numbers.shared(u, torch.rand(1, generator=generator, device=device))


def draw_independent(images: Tensor, generator: torch.Generator | None) -> Numbers:
    """A number for each operation of each image, contrast too."""
    return Numbers(*torch.rand(5, len(images), generator=generator, device=images.device).unbind())


def augment_for_resnet(images: Tensor, numbers: Numbers) -> Tensor:
    """Images mirrored, then with hue, saturation, brightness and contrast changed, in this order.

    Args:
        images: uint8, shape (b, c, h, w), c = 3 (RGB) or 1.
        numbers: what decides by how much.

    Returns:
        float32, shape (b, c, h, w), on the 0..255 scale and not clipped to it.
    """
    x = mirrored(images, numbers.flip < 0.5).float()
    if images.shape[1] == 1:
        return x
    x = _hue(x / WHITE, numbers)
    x = _saturation(x, numbers)
    x = _brightness(x, numbers, RESNET_BRIGHTNESS)
    return _contrast(x, numbers, *RESNET_CONTRAST) * WHITE


def augment_for_densenet(images: Tensor, numbers: Numbers) -> Tensor:
    """Images mirrored, then with hue, brightness, saturation and contrast changed, in this order.

    Takes and returns the same as `augment_for_resnet`. The values lie far outside 0..255, and are for a normalisation
    that takes each image's mean away.
    """
    x = mirrored(images, numbers.flip < 0.5).float()
    if images.shape[1] == 1:
        return x
    x = _hue(x / WHITE, numbers)
    x = _brightness(x, numbers, DENSENET_BRIGHTNESS)
    x = _saturation(x, numbers)
    return _contrast(x, numbers, *DENSENET_CONTRAST) * WHITE


def _hue(images: Tensor, numbers: Numbers) -> Tensor:
    return shift_hue(images, between(-HUE, HUE, numbers.hue)[:, None, None])


def _saturation(images: Tensor, numbers: Numbers) -> Tensor:
    return scale_saturation(images, between(*SATURATION, numbers.saturation)[:, None, None])


def _brightness(images: Tensor, numbers: Numbers, most: float) -> Tensor:
    return images + between(-most, most, numbers.brightness)[:, None, None, None]


def _contrast(images: Tensor, numbers: Numbers, low: float, high: float) -> Tensor:
    return scale_contrast(images, between(low, high, numbers.contrast)[:, None, None, None])


def released_resnet(images: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """`augment_for_resnet` with one number an image, as an augmentation of `lab.augment`."""
    check_batch(images, generator, jitter="released-resnet")
    return augment_for_resnet(images, draw_shared(images, generator))


def released_densenet(images: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """`augment_for_densenet` with one number an image."""
    check_batch(images, generator, jitter="released-densenet")
    return augment_for_densenet(images, draw_shared(images, generator))


def released_resnet_independent(images: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """`augment_for_resnet` with five numbers an image: what seeding the operations alike has changed."""
    check_batch(images, generator, jitter="released-resnet-independent")
    return augment_for_resnet(images, draw_independent(images, generator))


def released_densenet_independent(images: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """`augment_for_densenet` with five numbers an image."""
    check_batch(images, generator, jitter="released-densenet-independent")
    return augment_for_densenet(images, draw_independent(images, generator))
