"""What the augmentations are made of: operations on whole batches of images, on the batch's own device.

Nothing here reads a value back to the host, and every shape is static.
"""

import torch
from torch import Tensor

WHITE = 255  # the largest value of a channel
# Greys have no hue and no saturation: this keeps their division finite and changes no colour.
SMALLEST_SPREAD = 1e-6


def check_batch(images: Tensor, generator: torch.Generator | None, *, jitter: str | None = None) -> None:
    """Refuses what no augmentation takes, and for colour jitter of this name images that are neither RGB nor grey."""
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
    if jitter is not None and images.shape[1] not in (1, 3):
        raise ValueError(f"images must have 3 channels (RGB) or 1 for {jitter}, got {images.shape[1]}")


def mirrored(images: Tensor, which: Tensor) -> Tensor:
    """The images, those of them turned left to right for which `which`, bool of shape (b,), holds.

    >>> mirrored(torch.tensor([[[[1, 2, 3]]]]), torch.tensor([True])).flatten().tolist()
    [3, 2, 1]
    """
    columns = mirrored_columns(which[:, None], images.shape[3])
    return images.gather(3, columns[:, None, None, :].expand_as(images))


def mirrored_columns(which: Tensor, width: int) -> Tensor:
    """Column numbers to read, shape (b, w): ascending, or descending where `which`, shape (b, 1), holds."""
    ascending = torch.arange(width, device=which.device)
    return torch.where(which, width - 1 - ascending, ascending)


def between(low: float, high: float, numbers: Tensor) -> Tensor:
    """Numbers in [0, 1) stretched to [low, high).

    >>> between(-2.0, 2.0, torch.tensor([0.0, 0.75])).tolist()
    [-2.0, 1.0]
    """
    return low + (high - low) * numbers


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
