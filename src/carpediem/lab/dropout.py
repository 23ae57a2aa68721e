"""Dropout whose mask is a function of the run, the step and the place, not of a generator's history.

Runs that train side by side on one device would otherwise take their masks from one shared generator, and a
run's result would depend on its neighbours. The mask comes from mixing three integers, which compiles into
the kernels around it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Drop:
    """What a mask is a function of: the probability, the layer's number, and the int32 that changes with every step."""

    rate: float
    layer: int
    seed: Tensor


class CountedDropout(nn.Module):
    """Drops each activation with probability `rate`, as `nn.Dropout` does, by a hash of `seed` and its place.

    Args:
        rate: in [0, 1).
        layer: number of this layer in its network, so that layers differ.

    Attributes:
        seed: int32, shape (); set anew for every step by whoever trains.
    """

    seed: Tensor

    def __init__(self, rate: float, layer: int) -> None:
        super().__init__()
        self.rate, self.layer = rate, layer
        self.register_buffer("seed", torch.zeros((), dtype=torch.int32))

    def forward(self, x: Tensor) -> Tensor:
        if self.now() is None:
            return x
        place = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape)
        bits = mixed(place ^ mixed(self.seed + self.layer * 0x3C6EF35F % 2**31))
        keep = (bits & 0x7FFFFFFF) >= int(self.rate * 2**31)
        return x * keep * (1 / (1 - self.rate))

    def now(self) -> Drop | None:
        """How it drops in the coming step, or None where nothing is dropped."""
        return Drop(self.rate, self.layer, self.seed) if self.training and self.rate > 0 else None


def mixed(value: Tensor) -> Tensor:
    """The bits of each int32 mixed so that neighbours share nothing (the finaliser of MurmurHash3)."""
    value = (value ^ _shifted(value, 16)) * -2048144789
    value = (value ^ _shifted(value, 13)) * -1028477387
    return value ^ _shifted(value, 16)


def _shifted(value: Tensor, bits: int) -> Tensor:
    """Shift to the right with zeros moving in, whatever the sign."""
    return (value >> bits) & ((1 << (32 - bits)) - 1)


def count_dropout(net: nn.Module) -> nn.Module:
    """Replaces every `nn.Dropout` inside a network; returns it."""
    counted: dict[nn.Module, CountedDropout] = {}
    for module in list(net.modules()):
        # Not `named_children`, which tells a layer that has two names by the first alone.
        for name, child in list(module._modules.items()):
            if type(child) is nn.Dropout:
                setattr(module, name, counted.setdefault(child, CountedDropout(child.p, len(counted))))
    return net
