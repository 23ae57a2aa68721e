"""How the convolutions of every network in this folder start."""

import math

from torch import nn


def initialise_convolutions(network: nn.Module) -> None:
    """Fill every convolution of `network` from N(0, 2 / fan_out), in place (He et al., 2015).

    fan_out = kernel area · output channels / groups, so that depthwise convolutions are scaled by
    what one channel sees. Batch norm (weight 1, bias 0) and linear layers keep PyTorch's own start.
    The numbers come from torch's global generator, as for every `nn.Module`: wrap the construction
    in `torch.random.fork_rng()` to leave that generator as it was.
    """
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            fan_out = math.prod(layer.kernel_size) * layer.out_channels // layer.groups
            nn.init.normal_(layer.weight, std=math.sqrt(2 / fan_out))
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
