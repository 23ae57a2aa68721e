"""DenseNet for small images: the plain kind, without bottlenecks and without compression."""

import torch
from torch import Tensor, nn

from carpediem.lab.networks.initialise import initialise_convolutions

STEM_CHANNELS = 16
BLOCKS = 3


class DenseLayer(nn.Module):
    """BN, ReLU, 3×3 convolution, dropout; its `growth` new channels are appended to the input.

    Maps (b, c, h, w) to (b, c + growth, h, w).
    """

    def __init__(self, channels: int, growth: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.conv = nn.Conv2d(channels, growth, 3, padding=1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        new = self.dropout(self.conv(torch.relu(self.norm(x))))
        return torch.cat([x, new], dim=1)


class Transition(nn.Module):
    """BN, ReLU, 1×1 convolution, dropout, 2×2 average pool: (b, c, h, w) to (b, c, h // 2, w // 2)."""

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.conv = nn.Conv2d(channels, channels, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = self.dropout(self.conv(torch.relu(self.norm(x))))
        return nn.functional.avg_pool2d(x, 2)


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

    >>> net = DenseNet(10, 4, num_classes=5, in_channels=1, dropout=0.2)
    >>> net(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self, depth: int, growth: int, *, num_classes: int, in_channels: int, dropout: float
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
                stages.append(Transition(channels, dropout))
            for _ in range(layers):
                stages.append(DenseLayer(channels, growth, dropout))
                channels += growth
        self.features = nn.Sequential(*stages, nn.BatchNorm2d(channels), nn.ReLU())
        self.classifier = nn.Linear(channels, num_classes)
        initialise_convolutions(self)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, shape (b, num_classes), of images of shape (b, in_channels, h, w)."""
        pooled = self.features(images).mean(dim=(2, 3))
        logits: Tensor = self.classifier(pooled)
        return logits
