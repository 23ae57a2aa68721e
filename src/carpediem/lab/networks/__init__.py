"""The networks of the lab, by name.

All of them map images of shape (b, in_channels, h, w) to logits of shape (b, num_classes), and can
be compiled, captured in a CUDA graph, and run channels-last or under bf16 autocast.
"""

import inspect
import re
from pathlib import Path

from torch import nn

from carpediem.lab.networks.densenet import DenseNet
from carpediem.lab.networks.densenet121 import DenseNet121, load_densenet121_weights
from carpediem.lab.networks.efficientnet_lite import EfficientNetLite0, load_imagenet_weights
from carpediem.lab.networks.released import ReleasedDenseNet, ReleasedResNet
from carpediem.lab.networks.resnet import ResNet
from carpediem.lab.networks.small_cnn import SmallCNN
from carpediem.lab.usercode import source_fingerprint, told_of, user_function

__all__ = [
    "NAMES",
    "DenseNet",
    "DenseNet121",
    "EfficientNetLite0",
    "ReleasedDenseNet",
    "ReleasedResNet",
    "ResNet",
    "SmallCNN",
    "build",
    "fingerprint",
    "load_densenet121_weights",
    "load_imagenet_weights",
    "takes_dropout",
]

NAMES = (
    "densenet-L-k (such as densenet-40-12)",
    "densenet-L-k-released",
    "densenet-121",
    "efficientnet-lite0",
    "resnet-50",
    "resnet-50-released",
    "small-cnn",
    "module:function",
)
"""What `build` takes: `L`, `k`, `module` and `function` stand for your own."""


def build(
    name: str, *, num_classes: int, in_channels: int, dropout: float, weights: str | Path | None = None
) -> nn.Module:
    """A freshly initialised network.

    The initial numbers come from torch's global generator, as for every `nn.Module`.

    Args:
        name: one of `NAMES`. `module:function` names a function of your own, called with the
            keywords `num_classes` and `in_channels`, and `dropout` where it takes that.
        num_classes: how many logits it gives.
        in_channels: channels of the images.
        dropout: probability in [0, 1) of dropping an activation; where, is each network's own matter.
        weights: a file of ImageNet weights, for `efficientnet-lite0` (npz) and `densenet-121` (pth).

    >>> import torch
    >>> net = build("small-cnn", num_classes=10, in_channels=1, dropout=0.2)
    >>> net(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])
    """
    if num_classes < 1:
        raise ValueError(f"num_classes must be at least 1, got {num_classes}")
    if in_channels < 1:
        raise ValueError(f"in_channels must be at least 1, got {in_channels}")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must lie in [0, 1), got {dropout}")
    if name == "efficientnet-lite0":
        efficientnet = EfficientNetLite0(num_classes=num_classes, in_channels=in_channels, dropout=dropout)
        if weights is not None:
            load_imagenet_weights(efficientnet, weights)
        return efficientnet
    if name == "densenet-121":
        densenet = DenseNet121(num_classes=num_classes, in_channels=in_channels, dropout=dropout)
        if weights is not None:
            load_densenet121_weights(densenet, weights)
        return densenet
    if weights is not None:
        raise ValueError(
            f"weights must be None for {name!r}; efficientnet-lite0 and densenet-121 take a file"
        )
    if match := re.fullmatch(r"densenet-(\d+)-(\d+)(-released)?", name):
        dense, depth, growth = ReleasedDenseNet if match[3] else DenseNet, int(match[1]), int(match[2])
        return dense(depth, growth, num_classes=num_classes, in_channels=in_channels, dropout=dropout)
    if name in ("resnet-50", "resnet-50-released"):
        residual = ResNet if name == "resnet-50" else ReleasedResNet
        return residual(
            (3, 4, 6, 3), width=32, num_classes=num_classes, in_channels=in_channels, dropout=dropout
        )
    if name == "small-cnn":
        return SmallCNN(num_classes=num_classes, in_channels=in_channels, dropout=dropout)
    if ":" in name:
        return _build_own(name, num_classes=num_classes, in_channels=in_channels, dropout=dropout)
    raise ValueError(f"net must be one of {', '.join(NAMES)}; got {name!r}")


def fingerprint(name: str) -> str:
    """Names the version of a user's `module:function` by the source of its module; "" for the lab's own networks.

    >>> fingerprint("resnet-50")
    ''
    """
    return source_fingerprint(user_function(name), name.partition(":")[0]) if ":" in name else ""


def takes_dropout(name: str) -> bool:
    """Whether the network heeds `dropout`: the lab's own do, and functions that can be called with it."""
    if ":" not in name:
        return True
    parameters = inspect.signature(user_function(name)).parameters
    return "dropout" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _build_own(name: str, *, num_classes: int, in_channels: int, dropout: float) -> nn.Module:
    function = user_function(name)
    arguments: dict[str, float] = {"num_classes": num_classes, "in_channels": in_channels}
    arguments |= {"dropout": dropout} if takes_dropout(name) else {}
    try:
        inspect.signature(function, follow_wrapped=False).bind(**arguments)
    except TypeError as error:
        raise TypeError(f"{name} must take num_classes and in_channels by name: {error}") from error
    with told_of(name):
        network = function(**arguments)
    if not isinstance(network, nn.Module):
        raise TypeError(f"{name} must return a torch.nn.Module, got {type(network).__name__}")
    return network
