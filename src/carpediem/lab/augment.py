"""Augmentation and normalisation of whole batches, as tensor operations on the batch's own device.

Images come in as uint8 of shape (b, c, h, w) and leave an augmentation as float32 **on the same
0..255 scale** (colour jitter may leave that range, and nothing clips it); a normalisation then
brings them to what a network takes. Nothing here reads a value back to the host, and every shape is
static, so both steps fit in a CUDA graph.

All random numbers come from `generator`, which must live on the images' device. `None` means that
device's default generator: the one that CUDA graph capture knows without registration.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from carpediem.lab.data.image_operations import (
    WHITE,
    between,
    check_batch,
    mirrored,
    mirrored_columns,
    scale_contrast,
    scale_saturation,
    shift_hue,
)
from carpediem.lab.data.released_augmentation import (
    released_densenet,
    released_densenet_independent,
    released_resnet,
    released_resnet_independent,
)

Augmentation = Callable[[Tensor, torch.Generator | None], Tensor]
Normalisation = Callable[[Tensor], Tensor]

CROP_PADDING = 4
IMAGENET_MEAN = (123.675, 116.28, 103.53)
IMAGENET_STD = (58.395, 57.12, 57.375)
# The ranges that the released code's DenseNet names, here on the 0..255 scale.
HUE = 0.08
BRIGHTNESS = 63.0
SATURATION = (0.5, 1.5)
CONTRAST = (0.2, 1.8)


def unchanged(images: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """The images as float32, otherwise as they are; draws nothing.

    >>> unchanged(torch.tensor([[[[0, 255]]]], dtype=torch.uint8))
    tensor([[[[  0., 255.]]]])
    """
    check_batch(images, generator)
    return images.float()


def crop_and_flip(images: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Each image shifted by up to 4 pixels a side, zeros moving in, and mirrored with probability 1/2.

    The same as padding by 4 zeros, cropping at random to the old size, and flipping left to right.

    Args:
        images: uint8, shape (b, c, h, w).
        generator: see the top of this module.

    Returns:
        float32, shape (b, c, h, w), values in 0..255.
    """
    check_batch(images, generator)
    batch, channels, height, width = images.shape
    device = images.device
    shift = torch.randint(2 * CROP_PADDING + 1, (2, batch, 1), generator=generator, device=device)
    rows = shift[0] + torch.arange(height, device=device)
    columns = shift[1] + mirrored_columns(_coins(batch, generator, device), width)
    padded = F.pad(images, (CROP_PADDING,) * 4)
    sample = torch.arange(batch, device=device).view(-1, 1, 1, 1)
    channel = torch.arange(channels, device=device).view(1, -1, 1, 1)
    return padded[sample, channel, rows[:, None, :, None], columns[:, None, None, :]].float()


def flip_and_jitter(images: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Each image mirrored with probability 1/2; colours then shift in hue, brightness, saturation, contrast.

    Hue by ±0.08 of a turn, brightness by ±63, saturation by a factor of 0.5 to 1.5, each drawn per image, then
    contrast by a factor of 0.2 to 1.8, one for the whole batch. Images of one channel are flipped only. These are
    the operations and ranges that the released code's DenseNet names, on the scale that they fit; what that code
    computes with them is `released-densenet`.

    Args:
        images: uint8, shape (b, c, h, w), c = 3 (RGB) or 1.
        generator: see the top of this module.

    Returns:
        float32, shape (b, c, h, w), on the 0..255 scale and not clipped to it.
    """
    check_batch(images, generator, jitter="flip-jitter")
    batch, device = len(images), images.device
    flipped = mirrored(images, _coins(batch, generator, device)[:, 0]).float()
    if images.shape[1] == 1:
        return flipped
    shifted = shift_hue(flipped, _uniform((batch, 1, 1), -HUE, HUE, generator, device))
    brightened = shifted + _uniform((batch, 1, 1, 1), -BRIGHTNESS, BRIGHTNESS, generator, device)
    saturated = scale_saturation(brightened, _uniform((batch, 1, 1), *SATURATION, generator, device))
    return scale_contrast(saturated, _uniform((1, 1, 1, 1), *CONTRAST, generator, device))


AUGMENTATIONS: dict[str, Augmentation] = {
    "none": unchanged,
    "crop-flip": crop_and_flip,
    "flip-jitter": flip_and_jitter,
    "released-resnet": released_resnet,
    "released-resnet-independent": released_resnet_independent,
    "released-densenet": released_densenet,
    "released-densenet-independent": released_densenet_independent,
}
"""Recipes by name: `AUGMENTATIONS["crop-flip"](images, generator)`."""


def standardise_per_image(images: Tensor) -> Tensor:
    """(x − mean) / max(std, 1/√n) with mean and std over the n = c·h·w values of each image.

    What `tf.image.per_image_standardization` does; the lower bound keeps flat images finite.

    Args:
        images: float, shape (b, c, h, w).
    """
    std, mean = torch.std_mean(images, dim=(1, 2, 3), correction=0, keepdim=True)
    return (images - mean) / std.clamp(min=1 / math.sqrt(images.shape[1:].numel()))


def scale_to_unit(images: Tensor) -> Tensor:
    """x / 255: all that the released code's ResNet does to its images.

    >>> scale_to_unit(torch.tensor([0.0, 255.0]))
    tensor([0., 1.])
    """
    return images / WHITE


def standardise_per_unit_image(images: Tensor) -> Tensor:
    """`standardise_per_image` of x / 255, as the released code's DenseNet takes its images.

    The lower bound of the deviation holds on the scale of 0 to 1: a nearly flat image stays faint.

    Args:
        images: float, shape (b, c, h, w), on the 0..255 scale.
    """
    return standardise_per_image(scale_to_unit(images))


def standardise_per_channel(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """(x − mean) / std, channel by channel.

    Args:
        images: float, shape (b, c, h, w).
        mean, std: of the training set on the images' own scale (0..255), each of shape (c,).
    """
    return (images - mean.view(1, -1, 1, 1)) / std.view(1, -1, 1, 1)


def scale_for_efficientnet(images: Tensor) -> Tensor:
    """(x − 127) / 128 for x in 0..255, as EfficientNet-Lite's ImageNet weights expect.

    >>> scale_for_efficientnet(torch.tensor([127.0, 255.0]))
    tensor([0., 1.])
    """
    return (images - 127) / 128


_WITHOUT_STATISTICS: dict[str, Normalisation] = {
    "per-image": standardise_per_image,
    "per-image-unit": standardise_per_unit_image,
    "unit": scale_to_unit,
    "efficientnet": scale_for_efficientnet,
}

NORMALISATIONS = ("imagenet", *_WITHOUT_STATISTICS)
"""What `normalisation` takes."""


def augmentation(name: str) -> Augmentation:
    """The recipe called `name`, one of `AUGMENTATIONS`."""
    if name not in AUGMENTATIONS:
        raise ValueError(f"augmentation must be one of {', '.join(AUGMENTATIONS)}; got {name!r}")
    return AUGMENTATIONS[name]


def normalisation(name: str, *, device: torch.device | str | None = None) -> Normalisation:
    """The normalisation called `name`, one of `NORMALISATIONS`, as a function of the images alone.

    Args:
        name: `per-image`, `per-image-unit`, `unit`, `imagenet` with the statistics of ImageNet (RGB, as torchvision's
            weights expect), or `efficientnet`.
        device: where the images will lie; read by `imagenet` alone, whose statistics are put there once, since
            a step that makes tensors from numbers cannot be recorded in a CUDA graph.

    >>> normalisation("efficientnet")(torch.tensor([255.0]))
    tensor([1.])
    """
    if name not in NORMALISATIONS:
        raise ValueError(f"normalisation must be one of {', '.join(NORMALISATIONS)}; got {name!r}")
    if name != "imagenet":
        return _WITHOUT_STATISTICS[name]
    mean, std = torch.tensor((IMAGENET_MEAN, IMAGENET_STD), device=device)
    return lambda images: standardise_per_channel(images, mean, std)


def _coins(batch: int, generator: torch.Generator | None, device: torch.device) -> Tensor:
    """Heads or tails for each image, shape (b, 1), bool."""
    return torch.rand(batch, 1, generator=generator, device=device) < 0.5


def _uniform(
    shape: tuple[int, ...], low: float, high: float, generator: torch.Generator | None, device: torch.device
) -> Tensor:
    return between(low, high, torch.rand(shape, generator=generator, device=device))
