"""The networks of the authors' released code, as far as they differ from ours.

Both are ours with some layers replaced, so that on a CUDA device the same kernels run. In its DenseNet new channels
stand before the old ones, here behind: with the same start for all of them that makes no difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from carpediem.lab.networks.densenet import DenseNet, Transition
from carpediem.lab.networks.efficientnet_lite import SameConv2d
from carpediem.lab.networks.pointwise import Pointwise
from carpediem.lab.networks.resnet import EXPANSION, Bottleneck, ResNet

CUT = 2  # deviations from the mean at which TensorFlow cuts its normal distribution off
DEVIATION_WHEN_CUT = 0.87962566103423978  # of what is left of the standard normal distribution


class ReleasedBottleneck(Bottleneck):
    """A bottleneck with biases, and with a 1×1 convolution of the activated input for its shortcut, always.

    A stride of 2 pads even sides at the far end alone, as TensorFlow does.
    """

    def __init__(self, channels: int, width: int, stride: int, dropout: float) -> None:
        super().__init__(channels, width, stride, dropout)
        outputs = EXPANSION * width
        self.conv1 = Pointwise(channels, width, bias=True)
        self.conv2 = SameConv2d(width, width, 3, stride=stride)
        self.conv3 = Pointwise(width, outputs, bias=True)
        self.project = Pointwise(channels, outputs, stride, bias=True)

    def _is_one_function(self, x: Tensor) -> bool:
        """Never: the kernels that hold a whole block know neither biases nor this padding."""
        return False


class ReleasedResNet(ResNet):
    """`ResNet` of the released code's bottlenecks: biases in all convolutions, every shortcut projected.

    All weights start from a truncated normal distribution of variance 1 / fan-in, all biases at zero.

    Args:
        blocks: bottlenecks in each of the four stages.
        width: channels inside a bottleneck of the first stage; it doubles at every stage.
        num_classes: outputs of the last linear layer.
        in_channels: channels of the images.
        dropout: probability in [0, 1) of dropping an activation, before the last convolution of each block.

    >>> net = ReleasedResNet((1, 1, 1, 1), width=4, num_classes=5, in_channels=1, dropout=0.3)
    >>> net(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self, blocks: Sequence[int], *, width: int, num_classes: int, in_channels: int, dropout: float
    ) -> None:
        super().__init__(
            blocks,
            width=width,
            num_classes=num_classes,
            in_channels=in_channels,
            dropout=dropout,
            block=ReleasedBottleneck,
        )
        self.features[0] = nn.Conv2d(in_channels, width, 3, padding=1)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                start_truncated(layer)


def start_truncated(layer: nn.Conv2d | nn.Linear) -> None:
    """Fills weights from a normal distribution cut off at two deviations, of variance 1 / fan-in; biases with zeros.

    The variance is that after the cut, as Keras's `VarianceScaling` has it.
    """
    deviation = 1 / math.sqrt(layer.weight[0].numel()) / DEVIATION_WHEN_CUT
    nn.init.trunc_normal_(layer.weight, std=deviation, a=-CUT * deviation, b=CUT * deviation)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


class ReleasedTransition(Transition):
    """BN, ReLU, 1×1 convolution, ReLU, dropout, 2×2 average pool."""

    def forward(self, x: Tensor) -> Tensor:
        return self.pooled(torch.relu(self.conv(self.norm(x))))


class ReleasedDenseNet(DenseNet):
    """`DenseNet` with a ReLU after the convolution of each transition too.

    The 3×3 convolutions start from a normal distribution of variance 2 / (9 · outputs), as ours do. For the rest the
    released code leaves the start to tensorpack: under the versions of TensorFlow that it runs with, a normal
    distribution that is not cut off, of variance 2 / fan-in, and biases of zero. For a transition, which has as many
    outputs as inputs, that is our own start again.

    Args:
        depth: L, with L − 4 a positive multiple of 3.
        growth: k, channels that each layer adds.
        num_classes: outputs of the last linear layer.
        in_channels: channels of the images, whose sides are at least 4.
        dropout: probability in [0, 1) of dropping an activation.

    >>> net = ReleasedDenseNet(10, 4, num_classes=5, in_channels=1, dropout=0.3)
    >>> net(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self, depth: int, growth: int, *, num_classes: int, in_channels: int, dropout: float
    ) -> None:
        super().__init__(
            depth,
            growth,
            num_classes=num_classes,
            in_channels=in_channels,
            dropout=dropout,
            transition=ReleasedTransition,
        )
        nn.init.normal_(self.classifier.weight, std=math.sqrt(2 / self.classifier.in_features))
        nn.init.zeros_(self.classifier.bias)
