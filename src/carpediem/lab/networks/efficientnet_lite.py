"""EfficientNet-Lite0 and its ImageNet weights.

Layers carry the names of the `efficientnet_lite_pytorch` package, so that weights published for it
fit. Inputs are pixels x in 0..255, normalised as (x − 127) / 128.
"""

from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from carpediem.lab.networks.initialise import initialise_convolutions

IMAGENET_CLASSES = 1000
STEM_CHANNELS = 32
HEAD_CHANNELS = 1280
# (blocks, kernel, stride of the first block, expansion, output channels) of each stage.
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


class SameConv2d(nn.Conv2d):
    """Convolution with TensorFlow's SAME padding: side n becomes ceil(n / stride).

    The odd pixel of padding goes to the right and to the bottom, which is where the published
    weights expect it: with stride 2 on even sides, symmetric padding would shift every feature map.
    """

    def forward(self, x: Tensor) -> Tensor:
        height = same_padding(x.shape[2], self.kernel_size[0], self.stride[0])
        width = same_padding(x.shape[3], self.kernel_size[1], self.stride[1])
        before, after = (height // 2, width // 2), (height - height // 2, width - width // 2)
        if before != after:
            x = F.pad(x, (before[1], after[1], before[0], after[0]))
            before = (0, 0)
        return F.conv2d(x, self.weight, self.bias, self.stride, before, self.dilation, self.groups)


def same_padding(size: int, kernel: int, stride: int) -> int:
    """Pixels of padding, both sides together, that turn `size` into ceil(size / stride).

    >>> same_padding(224, kernel=3, stride=2), same_padding(7, kernel=3, stride=1)
    (1, 2)
    """
    return max((-(-size // stride) - 1) * stride + kernel - size, 0)


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


class MobileBlock(nn.Module):
    """Inverted bottleneck without squeeze-and-excitation: 1×1 expand, depthwise k×k, 1×1 project.

    Maps (b, channels, h, w) to (b, out, ceil(h / stride), ceil(w / stride)); the input is added
    where the shape stays.
    """

    def __init__(self, channels: int, out: int, *, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = channels * expansion
        self.expands = expansion != 1
        self.skips = stride == 1 and channels == out
        if self.expands:
            self._expand_conv = nn.Conv2d(channels, inner, 1, bias=False)
            self._bn0 = _norm(inner)
        self._depthwise_conv = SameConv2d(inner, inner, kernel, stride=stride, groups=inner, bias=False)
        self._bn1 = _norm(inner)
        self._project_conv = nn.Conv2d(inner, out, 1, bias=False)
        self._bn2 = _norm(out)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu6(self._bn0(self._expand_conv(x))) if self.expands else x
        y = F.relu6(self._bn1(self._depthwise_conv(y)))
        projected: Tensor = self._bn2(self._project_conv(y))
        return projected + x if self.skips else projected


class EfficientNetLite0(nn.Module):
    """EfficientNet-Lite0: ReLU6, no squeeze-and-excitation, a stem of 32 and a head of 1280 channels.

    Dropout stands before the linear layer; stochastic depth, which ImageNet training used, is left out.

    Args:
        num_classes: outputs of the last linear layer.
        in_channels: channels of the images; the published weights need 3.
        dropout: probability in [0, 1) of dropping a pooled feature.

    >>> net = EfficientNetLite0(num_classes=5, in_channels=3, dropout=0.2).eval()
    >>> net(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 5])
    """

    def __init__(self, *, num_classes: int, in_channels: int, dropout: float) -> None:
        super().__init__()
        self._conv_stem = SameConv2d(in_channels, STEM_CHANNELS, 3, stride=2, bias=False)
        self._bn0 = _norm(STEM_CHANNELS)
        channels = STEM_CHANNELS
        blocks: list[nn.Module] = []
        for count, kernel, first_stride, expansion, out in STAGES:
            for block in range(count):
                stride = first_stride if block == 0 else 1
                blocks.append(MobileBlock(channels, out, kernel=kernel, stride=stride, expansion=expansion))
                channels = out
        self._blocks = nn.Sequential(*blocks)
        self._conv_head = nn.Conv2d(channels, HEAD_CHANNELS, 1, bias=False)
        self._bn1 = _norm(HEAD_CHANNELS)
        self._dropout = nn.Dropout(dropout)
        self._fc = nn.Linear(HEAD_CHANNELS, num_classes)
        initialise_convolutions(self)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, shape (b, num_classes), of images of shape (b, in_channels, h, w)."""
        x = F.relu6(self._bn0(self._conv_stem(images)))
        x = F.relu6(self._bn1(self._conv_head(self._blocks(x))))
        logits: Tensor = self._fc(self._dropout(x.mean(dim=(2, 3))))
        return logits


def load_imagenet_weights(model: EfficientNetLite0, path: str | Path) -> None:
    """Copy the arrays of an npz file into `model`; nothing is copied unless all of them fit.

    A model of other than 1000 classes keeps the fresh classifier it was built with.

    Args:
        model: the network to fill.
        path: an npz file with one array for each name in the model's `state_dict`, batch counters
            aside; any float type.
    """
    arrays = _read_arrays(Path(path))
    state = {name: value for name, value in model.state_dict().items() if "num_batches" not in name}
    if model._fc.out_features != IMAGENET_CLASSES:
        state = {name: value for name, value in state.items() if not name.startswith("_fc.")}
    for name, value in state.items():
        if name not in arrays:
            raise ValueError(
                f"weights file {path} has no {name!r}; it must hold EfficientNet-Lite0's weights"
            )
        if arrays[name].shape != tuple(value.shape):
            raise ValueError(
                f"weights file {path} holds {name!r} of shape {arrays[name].shape}, this model "
                f"{tuple(value.shape)}; build it with in_channels=3 and load EfficientNet-Lite0's weights"
            )
    for name, value in state.items():
        value.copy_(torch.from_numpy(arrays[name]))


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise FileNotFoundError(f"weights file {path} does not exist; give the path of an npz file")
    try:
        archive = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, BadZipFile) as error:
        raise ValueError(f"weights file {path} must be an npz archive of plain arrays: {error}") from error
    if isinstance(archive, np.ndarray):
        raise ValueError(f"weights file {path} must be an npz archive of plain arrays, got a single array")
    with archive:
        return {name: archive[name] for name in archive.files}
