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

Augmentation = Callable[[Tensor, torch.Generator | None], Tensor]
Normalisation = Callable[[Tensor], Tensor]

CROP_PADDING = 4
IMAGENET_MEAN = (123.675, 116.28, 103.53)
IMAGENET_STD = (58.395, 57.12, 57.375)
# The ranges of the released code's DenseNet, on the 0..255 scale.
HUE = 0.08
BRIGHTNESS = 63.0
SATURATION = (0.5, 1.5)
CONTRAST = (0.2, 1.8)
# Greys have no hue and no saturation: this keeps their division finite and changes no colour.
SMALLEST_SPREAD = 1e-6


def unchanged(images: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """The images as float32, otherwise as they are; draws nothing.

    >>> unchanged(torch.tensor([[[[0, 255]]]], dtype=torch.uint8))
    tensor([[[[  0., 255.]]]])
    """
    _check(images, generator)
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
    _check(images, generator)
    batch, channels, height, width = images.shape
    device = images.device
    shift = torch.randint(2 * CROP_PADDING + 1, (2, batch, 1), generator=generator, device=device)
    rows = shift[0] + torch.arange(height, device=device)
    columns = shift[1] + _columns(_coins(batch, generator, device), width)
    padded = F.pad(images, (CROP_PADDING,) * 4)
    sample = torch.arange(batch, device=device).view(-1, 1, 1, 1)
    channel = torch.arange(channels, device=device).view(1, -1, 1, 1)
    return padded[sample, channel, rows[:, None, :, None], columns[:, None, None, :]].float()


def flip_and_jitter(images: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Each image mirrored with probability 1/2; colours then shift in hue, brightness, saturation, contrast.

    The recipe of the paper's released code for its DenseNet: hue by ±0.08 of a turn, brightness by
    ±63, saturation by a factor of 0.5 to 1.5, each drawn per image, then contrast by a factor of
    0.2 to 1.8, one for the whole batch. Images of one channel are flipped only.

    Args:
        images: uint8, shape (b, c, h, w), c = 3 (RGB) or 1.
        generator: see the top of this module.

    Returns:
        float32, shape (b, c, h, w), on the 0..255 scale and not clipped to it.
    """
    _check(images, generator)
    batch, channels, _, width = images.shape
    if channels not in (1, 3):
        raise ValueError(f"images must have 3 channels (RGB) or 1 for flip-jitter, got {channels}")
    device = images.device
    columns = _columns(_coins(batch, generator, device), width)
    flipped = images.gather(3, columns[:, None, None, :].expand_as(images)).float()
    if channels == 1:
        return flipped
    shifted = shift_hue(flipped, _uniform((batch, 1, 1), -HUE, HUE, generator, device))
    brightened = shifted + _uniform((batch, 1, 1, 1), -BRIGHTNESS, BRIGHTNESS, generator, device)
    saturated = scale_saturation(brightened, _uniform((batch, 1, 1), *SATURATION, generator, device))
    return scale_contrast(saturated, _uniform((1, 1, 1, 1), *CONTRAST, generator, device))


def shift_hue(images: Tensor, turns: Tensor) -> Tensor:
    """RGB images with their hue turned, each pixel's largest and smallest channel value kept.

    Args:
        images: float, shape (b, 3, h, w), any scale.
        turns: fraction of the colour circle, shape broadcasting to (b, h, w).

    >>> red = torch.tensor([255.0, 0.0, 0.0]).view(1, 3, 1, 1)
    >>> shift_hue(red, torch.tensor(1 / 3)).round().flatten().tolist()  # a third of a turn: green
    [0.0, 255.0, 0.0]
    """
    red, green, blue = images.unbind(1)
    largest = images.amax(1)
    spread = largest - images.amin(1)
    divisor = spread.clamp(min=SMALLEST_SPREAD)
    sixths = torch.where(
        largest == red,
        (green - blue) / divisor,
        torch.where(largest == green, 2 + (blue - red) / divisor, 4 + (red - green) / divisor),
    )
    # On the circle of six sixths, red peaks at 0, green at 2 and blue at 4: each stays at the largest
    # value within one sixth of its peak, and falls by `spread` over the next sixth.
    offsets = 5 - 2 * torch.arange(3, device=images.device).view(1, 3, 1, 1)
    position = torch.remainder((sixths + 6 * turns)[:, None] + offsets, 6)
    below = torch.minimum(position, 4 - position).clamp(0, 1)
    return largest[:, None] - spread[:, None] * below


def scale_saturation(images: Tensor, factor: Tensor) -> Tensor:
    """RGB images with their HSV saturation multiplied by `factor` and clipped to [0, 1].

    Args:
        images: float, shape (b, 3, h, w), any scale.
        factor: at least 0, shape broadcasting to (b, h, w).

    >>> pink = torch.tensor([200.0, 100.0, 100.0]).view(1, 3, 1, 1)
    >>> scale_saturation(pink, torch.tensor(0.5)).flatten().tolist()
    [200.0, 150.0, 150.0]
    """
    largest = images.amax(1)
    spread = largest - images.amin(1)
    # Saturation is spread / largest, so the factor that brings it to 1 is largest / spread.
    full = largest.clamp(min=0) / spread.clamp(min=SMALLEST_SPREAD)
    ratio = torch.minimum(factor, full)[:, None]
    return largest[:, None] - (largest[:, None] - images) * ratio


def scale_contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Images with the distance from their own mean colour multiplied by `factor`.

    Args:
        images: float, shape (b, c, h, w).
        factor: shape broadcasting to (b, c, h, w).
    """
    mean = images.mean((2, 3), keepdim=True)
    return mean + (images - mean) * factor


AUGMENTATIONS: dict[str, Augmentation] = {
    "none": unchanged,
    "crop-flip": crop_and_flip,
    "flip-jitter": flip_and_jitter,
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


NORMALISATIONS = ("imagenet", "per-image", "efficientnet")
"""What `normalisation` takes."""


def augmentation(name: str) -> Augmentation:
    """The recipe called `name`, one of `AUGMENTATIONS`."""
    if name not in AUGMENTATIONS:
        raise ValueError(f"augmentation must be one of {', '.join(AUGMENTATIONS)}; got {name!r}")
    return AUGMENTATIONS[name]


def normalisation(name: str, *, device: torch.device | str | None = None) -> Normalisation:
    """The normalisation called `name`, one of `NORMALISATIONS`, as a function of the images alone.

    Args:
        name: `per-image`, `imagenet` with the statistics of ImageNet (RGB, as torchvision's weights expect), or
            `efficientnet`.
        device: where the images will lie; read by `imagenet` alone, whose statistics are put there once, since
            a step that makes tensors from numbers cannot be recorded in a CUDA graph.

    >>> normalisation("efficientnet")(torch.tensor([255.0]))
    tensor([1.])
    """
    if name not in NORMALISATIONS:
        raise ValueError(f"normalisation must be one of {', '.join(NORMALISATIONS)}; got {name!r}")
    if name == "per-image":
        return standardise_per_image
    if name == "efficientnet":
        return scale_for_efficientnet
    mean, std = torch.tensor((IMAGENET_MEAN, IMAGENET_STD), device=device)
    return lambda images: standardise_per_channel(images, mean, std)


def _check(images: Tensor, generator: torch.Generator | None) -> None:
    if images.dtype != torch.uint8:
        raise TypeError(f"images must be uint8 with values in 0..255, got {images.dtype}")
    if images.dim() != 4:
        raise ValueError(
            f"images must have shape (batch, channels, height, width), got {tuple(images.shape)}"
        )
    if generator is not None and generator.device.type != images.device.type:
        raise ValueError(
            f"generator must live on the images' device, {images.device}, got {generator.device}; "
            f"make it with torch.Generator(device={images.device.type!r})"
        )


def _coins(batch: int, generator: torch.Generator | None, device: torch.device) -> Tensor:
    """Heads or tails for each image, shape (b, 1), bool."""
    return torch.rand(batch, 1, generator=generator, device=device) < 0.5


def _columns(mirrored: Tensor, width: int) -> Tensor:
    """Column numbers to read, shape (b, w): ascending, or descending where mirrored (b, 1)."""
    ascending = torch.arange(width, device=mirrored.device)
    return torch.where(mirrored, width - 1 - ascending, ascending)


def _uniform(
    shape: tuple[int, ...], low: float, high: float, generator: torch.Generator | None, device: torch.device
) -> Tensor:
    return low + (high - low) * torch.rand(shape, generator=generator, device=device)
