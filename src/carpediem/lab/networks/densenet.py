"""DenseNet for small images: the plain kind, without bottlenecks and without compression."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from carpediem.lab.dropout import CountedDropout
from carpediem.lab.kernel_use import takes_kernels
from carpediem.lab.networks.initialise import initialise_convolutions
from carpediem.lab.networks.norm_relu import NormReLU
from carpediem.lab.networks.pointwise import Pointwise

STEM_CHANNELS = 16
BLOCKS = 3


class DenseLayer(nn.Module):
    """BN, ReLU, 3×3 convolution, dropout; its `growth` new channels are appended to the input.

    Maps (b, c, h, w) to (b, c + growth, h, w).
    """

    def __init__(self, channels: int, growth: int, dropout: float) -> None:
        super().__init__()
        self.norm = NormReLU(channels)
        self.conv = nn.Conv2d(channels, growth, 3, padding=1, bias=False)
        self.dropout: nn.Module = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        new = self.dropout(self.conv(self.norm(x)))
        return torch.cat([x, new], dim=1)


def dense_block(x: Tensor, layers: Sequence[DenseLayer]) -> Tensor:
    """Dense layers one after the other, which a CUDA device runs as kernels of our own."""
    counted = [layer.dropout for layer in layers if isinstance(layer.dropout, CountedDropout)]
    training = any(layer.training for layer in layers)
    drops = [dropout.now() for dropout in counted]
    # The kernels know no other dropout, and none in testing.
    suitable = len(counted) == len(layers) and (training or not any(drops))
    if not (suitable and takes_kernels(x, training=training)):
        for layer in layers:
            x = layer(x)
        return x
    from carpediem.lab.kernels import dense_block as kernels

    parts = [kernels.Layer(*layer.norm.statistics(), drop) for layer, drop in zip(layers, drops, strict=True)]
    weights = [w for layer in layers for w in (layer.norm.weight, layer.norm.bias, layer.conv.weight)]
    norm = layers[-1].norm  # whose counters are enough for all
    if not training:
        return kernels.in_testing(x, parts, norm.arrivals, norm.eps, weights)
    return kernels.in_training(x, parts, norm.arrivals, norm.eps, norm.momentum, weights)


class Transition(nn.Module):
    """BN, ReLU, 1×1 convolution, dropout, 2×2 average pool: (b, c, h, w) to (b, c, h // 2, w // 2)."""

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__()
        self.norm = NormReLU(channels)
        self.conv = Pointwise(channels, channels)
        self.dropout: nn.Module = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.pooled(self.conv(self.norm(x)))

    def pooled(self, x: Tensor) -> Tensor:
        """Dropout and the pool."""
        if isinstance(self.dropout, CountedDropout) and takes_kernels(x, training=self.training):
            from carpediem.lab.kernels import drop_and_pool as kernels

            return kernels.pooled(x, self.dropout.now())
        return nn.functional.avg_pool2d(self.dropout(x), 2)


class DenseNet(nn.Module):
    """DenseNet(L, k) of Huang et al. (2017): three dense blocks of (L − 4) / 3 layers of growth k.

    Dropout follows every convolution but the first, as in that paper. The batch-selection paper
    trains L = 40, k = 12; its released code L = 25, k = 12.

    Args:
        depth: L, with L − 4 a positive multiple of 3.
        growth: k, channels that each layer adds.
        num_classes: outputs of the last linear layer.
        in_channels: channels of the images, whose sides are at least 4.
        dropout: probability in [0, 1) of dropping an activation.
        transition: what stands between two blocks.

    Attributes:
        runs_uncompiled: its layers are kernels of their own on a CUDA device, with nothing left to compile.

    >>> net = DenseNet(10, 4, num_classes=5, in_channels=1, dropout=0.2)
    >>> net(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 5])
    """

    runs_uncompiled = True

    def __init__(
        self,
        depth: int,
        growth: int,
        *,
        num_classes: int,
        in_channels: int,
        dropout: float,
        transition: type[Transition] = Transition,
    ) -> None:
        super().__init__()
        layers, remainder = divmod(depth - 4, BLOCKS)
        if layers < 1 or remainder:
            raise ValueError(
                f"depth - 4 must be a positive multiple of 3 (7, 10, ..., 40), got depth {depth}"
            )
        if growth < 1:
            raise ValueError(f"growth must be at least 1, got {growth}")
        channels = STEM_CHANNELS
        stages: list[nn.Module] = [nn.Conv2d(in_channels, channels, 3, padding=1, bias=False)]
        for block in range(BLOCKS):
            if block > 0:
                stages.append(transition(channels, dropout))
            for _ in range(layers):
                stages.append(DenseLayer(channels, growth, dropout))
                channels += growth
        self.features = nn.ModuleList([*stages, NormReLU(channels)])
        self.classifier = nn.Linear(channels, num_classes)
        initialise_convolutions(self)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, shape (b, num_classes), of images of shape (b, in_channels, h, w)."""
        stem, *stages, norm = self.features
        x = stem(images)
        dense: list[DenseLayer] = []
        for stage in stages:
            if isinstance(stage, DenseLayer):
                dense.append(stage)
            else:
                x, dense = stage(dense_block(x, dense)), []
        x = dense_block(x, dense)
        logits: Tensor = self.classifier(norm(x).mean(dim=(2, 3)))
        return logits
