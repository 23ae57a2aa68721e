"""ResNet of bottlenecks for small images, narrower than ImageNet's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from carpediem.lab.dropout import CountedDropout
from carpediem.lab.kernel_use import TOO_LARGE, takes_kernels
from carpediem.lab.networks.initialise import initialise_convolutions
from carpediem.lab.networks.norm_relu import NormReLU
from carpediem.lab.networks.pointwise import Pointwise

if TYPE_CHECKING:
    from carpediem.lab.kernels.norm_relu import Statistics

EXPANSION = 4
NARROWEST, WIDEST = 32, 256  # channels of a block that is one function on a CUDA device
WIDEST_INSIDE = 64  # of those between its 1×1 convolutions


class Bottleneck(nn.Module):
    """Pre-activation bottleneck: 1×1, 3×3 and 1×1 convolutions, each after BN and ReLU, plus a shortcut.

    Maps (b, c, h, w) to (b, 4·width, h / stride, w / stride). Dropout sits between the last ReLU and
    the last 1×1 convolution. Where the shape changes, the shortcut is a 1×1 convolution of the
    activated input, else the input itself.
    """

    def __init__(self, channels: int, width: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = NormReLU(channels)
        self.conv1 = Pointwise(channels, width)
        self.norm2 = NormReLU(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.norm3 = NormReLU(width)
        self.dropout = nn.Dropout(dropout)
        self.conv3 = Pointwise(width, EXPANSION * width)
        self.project: Pointwise | None = None
        if stride != 1 or channels != EXPANSION * width:
            self.project = Pointwise(channels, EXPANSION * width, stride)

    def forward(
        self, x: Tensor, branch: Tensor | None, seen: Statistics | None, after: Bottleneck | None
    ) -> tuple[Tensor, Tensor | None, Statistics | None]:
        """Two tensors whose sum is the block's output (or one), of two (or one) whose sum is its input.

        The sum is left to the next norm, which reads both anyway, unless the block is one function of its own.

        Args:
            seen: statistics of the input, where the block before has taken them.
            after: the block that comes next, for which statistics of the output are returned if it takes any.
        """
        if self._is_one_function(x):
            return self._by_kernels(x if branch is None else x + branch, seen, after)
        x, active = (x, self.norm1(x)) if branch is None else self.norm1.join(x, branch)
        shortcut: Tensor = x if self.project is None else self.project(active)
        x = self.conv2(self.norm2(self.conv1(active)))
        return shortcut, self.conv3(self.norm3(x, self.dropout)), None

    def _is_one_function(self, x: Tensor) -> bool:
        """Whether the block is narrow enough for the kernels that hold its matrices as a whole."""
        width, outputs = self.conv2.out_channels, self.conv3.out_channels
        sizes = (self.conv1.in_channels, width, outputs)
        return (
            self.training
            and takes_kernels(x)
            and x.dtype == self.conv1.weight.dtype == torch.bfloat16
            and isinstance(self.dropout, CountedDropout)
            and all(NARROWEST <= size <= WIDEST and size & (size - 1) == 0 for size in sizes)
            and width <= WIDEST_INSIDE
            and x.shape[0] * x.shape[2] * x.shape[3] * max(sizes) < TOO_LARGE
        )

    def _by_kernels(
        self, x: Tensor, seen: Statistics | None, after: Bottleneck | None
    ) -> tuple[Tensor, None, Statistics | None]:
        from carpediem.lab.kernels import bottleneck as kernels  # not before: it needs Triton

        follows = after if after is not None and after._is_one_function(x) else None
        block = kernels.Block(
            (self.norm1.for_kernels(), self.norm2.for_kernels(), self.norm3.for_kernels()),
            cast(CountedDropout, self.dropout).now(),
            self.conv2.stride[0],
            None if follows is None else follows.norm1.for_kernels(),
        )
        projection = None if self.project is None else self.project.weight
        weights = (self.conv1.weight, self.conv2.weight, self.conv3.weight, projection)
        out, out_seen = kernels.in_training(x, seen, block, *weights)
        return out, None, out_seen


class ResNet(nn.Module):
    """Pre-activation ResNet of bottlenecks: 3×3 stem without max-pool, four stages of strides 1, 2, 2, 2.

    With blocks (3, 4, 6, 3) and width 32 this is the ResNet-50 of the batch-selection paper's
    released code in depth, width, pre-activation and the place of dropout (inside each block,
    before its last convolution; none before the linear layer). That code also projects the
    shortcut of every block and gives convolutions biases (`ReleasedResNet`); here, as in He et al. (2016),
    a shortcut is projected only where the shape changes, and no bias stands before a batch norm.

    Args:
        blocks: bottlenecks in each of the four stages.
        width: channels inside a bottleneck of the first stage; it doubles at every stage.
        num_classes: outputs of the last linear layer.
        in_channels: channels of the images.
        dropout: probability in [0, 1) of dropping an activation.
        block: what it is made of.

    Attributes:
        runs_uncompiled: its layers are kernels of their own on a CUDA device, with nothing left to compile.

    >>> import torch
    >>> net = ResNet((1, 1, 1, 1), width=4, num_classes=5, in_channels=1, dropout=0.2)
    >>> net(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 5])
    """

    runs_uncompiled = True

    def __init__(
        self,
        blocks: Sequence[int],
        *,
        width: int,
        num_classes: int,
        in_channels: int,
        dropout: float,
        block: type[Bottleneck] = Bottleneck,
    ) -> None:
        super().__init__()
        if len(blocks) != 4 or min(blocks) < 1:
            raise ValueError(
                f"blocks must hold four counts of at least 1, such as (3, 4, 6, 3), got {blocks}"
            )
        if width < 1:
            raise ValueError(f"width must be at least 1, got {width}")
        channels = width
        stages: list[nn.Module] = [nn.Conv2d(in_channels, channels, 3, padding=1, bias=False)]
        for stage, count in enumerate(blocks):
            for number in range(count):
                stride = 2 if stage > 0 and number == 0 else 1
                stages.append(block(channels, width << stage, stride, dropout))
                channels = EXPANSION * (width << stage)
        self.features = nn.ModuleList([*stages, NormReLU(channels)])
        self.classifier = nn.Linear(channels, num_classes)
        initialise_convolutions(self)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, shape (b, num_classes), of images of shape (b, in_channels, h, w)."""
        stem, *blocks, norm = self.features
        x, branch, seen = stem(images), None, None
        for block, after in zip(blocks, (*blocks[1:], None), strict=True):
            x, branch, seen = block(x, branch, seen, after)
        last = cast(NormReLU, norm)
        active = last(x) if branch is None else last.join(x, branch)[1]
        logits: Tensor = self.classifier(active.mean(dim=(2, 3)))
        return logits
