"""torchvision's DenseNet-121, for fine-tuning. torchvision is imported only when it is built."""

import re
from pathlib import Path

import torch
from torch import Tensor, nn

from carpediem.lab.networks.initialise import initialise_convolutions


def densenet121(
    *, num_classes: int, in_channels: int, dropout: float, weights: str | Path | None = None
) -> nn.Module:
    """DenseNet-121 for larger images, with a fresh classifier unless the weights' classes agree.

    Args:
        num_classes: outputs of the last linear layer.
        in_channels: channels of the images; published weights need 3.
        dropout: probability in [0, 1) of dropping an activation, after each dense layer.
        weights: a file of torchvision's `densenet121` weights as `torch.save` wrote it.
    """
    try:
        from torchvision.models import densenet121 as build
    except ImportError as error:
        raise ImportError("densenet-121 needs torchvision; run: pip install torchvision") from error
    network: nn.Module = build(weights=None, num_classes=num_classes, drop_rate=dropout)
    if in_channels != 3:
        network.set_submodule("features.conv0", _stem(in_channels))
    if weights is not None:
        _load(network, Path(weights))
    return network


def _stem(in_channels: int) -> nn.Conv2d:
    stem = nn.Conv2d(in_channels, 64, 7, stride=2, padding=3, bias=False)
    initialise_convolutions(stem)
    return stem


def _load(network: nn.Module, path: Path) -> None:
    if not path.is_file():
        raise FileNotFoundError(
            f"weights file {path} does not exist; give the path of a densenet121 .pth file"
        )
    found: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    # The published file still names layers as in `denselayer1.norm.1`, since renamed to `norm1`.
    found = {re.sub(r"(norm|conv)\.([12])\.", r"\1\2.", name): value for name, value in found.items()}
    state = {name: value for name, value in network.state_dict().items() if "num_batches" not in name}
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
