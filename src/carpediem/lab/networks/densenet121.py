"""DenseNet-121 and its ImageNet weights, for fine-tuning.

Layers carry the names that torchvision gives them, so that the weights published for it fit.
"""

import re
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from carpediem.lab.networks.initialise import initialise_convolutions

GROWTH = 32
INNER_CHANNELS = 4 * GROWTH  # between the two convolutions of a layer
LAYERS = (6, 12, 24, 16)  # in each of the four blocks
STEM_CHANNELS = 64
SMALLEST_IMAGE = 29  # halved five times, a pixel is left


class DenseLayer(nn.Module):
    """BN, ReLU, 1×1 convolution, BN, ReLU, 3×3 convolution, dropout; its new channels are appended to the input.

    Maps (b, c, h, w) to (b, c + 32, h, w).
    """

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv1 = nn.Conv2d(channels, INNER_CHANNELS, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(INNER_CHANNELS)
        self.conv2 = nn.Conv2d(INNER_CHANNELS, GROWTH, 3, padding=1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.conv1(F.relu(self.norm1(x), inplace=True))
        new = self.dropout(self.conv2(F.relu(self.norm2(inner), inplace=True)))
        return torch.cat([x, new], dim=1)


class Transition(nn.Module):
    """BN, ReLU, 1×1 convolution to half the channels, 2×2 average pool: (b, c, h, w) to (b, c // 2, h // 2, w // 2)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.conv = nn.Conv2d(channels, channels // 2, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool2d(self.conv(F.relu(self.norm(x), inplace=True)), 2)


class DenseNet121(nn.Module):
    """DenseNet-121 of Huang et al. (2017) for larger images: four dense blocks of growth 32, with bottlenecks.

    Args:
        num_classes: outputs of the last linear layer.
        in_channels: channels of the images, whose sides are at least 29; the published weights need 3.
        dropout: probability in [0, 1) of dropping an activation, after each of the 58 dense layers.

    >>> net = DenseNet121(num_classes=5, in_channels=1, dropout=0.2).eval()
    >>> net(torch.zeros(2, 1, 32, 32)).shape
    torch.Size([2, 5])
    """

    def __init__(self, *, num_classes: int, in_channels: int, dropout: float) -> None:
        super().__init__()
        channels = STEM_CHANNELS
        self.features = nn.Sequential()
        self.features.add_module(
            "conv0", nn.Conv2d(in_channels, channels, 7, stride=2, padding=3, bias=False)
        )
        self.features.add_module("norm0", nn.BatchNorm2d(channels))
        self.features.add_module("relu0", nn.ReLU(inplace=True))
        self.features.add_module("pool0", nn.MaxPool2d(3, stride=2, padding=1))
        for number, count in enumerate(LAYERS, start=1):
            if number > 1:
                self.features.add_module(f"transition{number - 1}", Transition(channels))
                channels //= 2
            self.features.add_module(f"denseblock{number}", _dense_block(channels, count, dropout))
            channels += count * GROWTH
        self.features.add_module("norm5", nn.BatchNorm2d(channels))
        self.classifier = nn.Linear(channels, num_classes)
        initialise_convolutions(self)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, shape (b, num_classes), of images of shape (b, in_channels, h, w)."""
        if min(images.shape[2:]) < SMALLEST_IMAGE:
            size = "×".join(map(str, images.shape[2:]))
            raise ValueError(
                f"images must have sides of at least {SMALLEST_IMAGE} pixels for densenet-121, got {size}; "
                "take a larger image size"
            )
        active = F.relu(self.features(images), inplace=True)
        logits: Tensor = self.classifier(active.mean(dim=(2, 3)))
        return logits


def _dense_block(channels: int, count: int, dropout: float) -> nn.Sequential:
    block = nn.Sequential()
    for index in range(count):
        block.add_module(f"denselayer{index + 1}", DenseLayer(channels + index * GROWTH, dropout))
    return block


def load_densenet121_weights(model: DenseNet121, path: str | Path) -> None:
    """Copy the tensors of a file into `model`; nothing is copied unless all of them fit.

    A model of another number of classes keeps the fresh classifier it was built with.

    Args:
        model: the network to fill.
        path: a file of `torch.save` with torchvision's `densenet121` weights, under their names of today or under
            those of the published file (`denselayer1.norm.1` for `denselayer1.norm1`).
    """
    found = _read_tensors(Path(path))
    state = {name: value for name, value in model.state_dict().items() if "num_batches" not in name}
    if "classifier.bias" in found and found["classifier.bias"].shape != state["classifier.bias"].shape:
        state = {name: value for name, value in state.items() if not name.startswith("classifier.")}
    for name, value in state.items():
        if name not in found:
            raise ValueError(f"weights file {path} has no {name!r}; it must hold DenseNet-121's weights")
        if found[name].shape != value.shape:
            raise ValueError(
                f"weights file {path} holds {name!r} of shape {tuple(found[name].shape)}, this model "
                f"{tuple(value.shape)}; build the model with in_channels=3 and load DenseNet-121's weights"
            )
    for name, value in state.items():
        value.copy_(found[name])


def _read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by their names of today."""
    if not path.is_file():
        raise FileNotFoundError(
            f"weights file {path} does not exist; give the path of a densenet121 .pth file"
        )
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file may fail in any way that its program can
        raise ValueError(
            f"weights file {path} must be a whole file of torch.save with nothing but tensors "
            f"({type(error).__name__}); fetch densenet121-a639ec97.pth again"
        ) from error
    if not isinstance(found, dict) or not all(isinstance(value, Tensor) for value in found.values()):
        raise ValueError(
            f"weights file {path} must hold tensors by name; save the network's state_dict() alone"
        )
    return {re.sub(r"(norm|conv)\.([12])\.", r"\1\2.", name): value for name, value in found.items()}
