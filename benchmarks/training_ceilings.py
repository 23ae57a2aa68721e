"""What a device can do at most, and what a training step asks of it at least."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from carpediem.lab import networks
from carpediem.lab.networks.norm_relu import NormReLU

REPEATS = 20
VALUE_BYTES = 2  # of a bf16 number
# How often a layer's numbers cross the memory at least. A convolution reads its input and writes its output; backward
# it reads the output's gradient and the weights for one product, that gradient and the input for another.
INPUT_OF_CONVOLUTION, OUTPUT_OF_CONVOLUTION = 3, 3
# A norm reads for the statistics, reads and writes for the activations; backward it reads values and gradients twice,
# and writes once.
INPUT_OF_NORM = 8


@dataclass(frozen=True)
class Ceilings:
    """Operations and bytes a second, measured."""

    matrix_rate: float
    bandwidth: float


@dataclass(frozen=True)
class Demand:
    """Operations and bytes of a training step for one image."""

    operations: float
    bytes: float


def measured_ceilings(device: torch.device) -> Ceilings:
    """The rate of a large bf16 matrix product, and the bandwidth of a large copy (bytes read and written)."""
    factors = torch.randn(2, 8192, 8192, device=device, dtype=torch.bfloat16)
    source = torch.empty(2**31, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    product = _seconds(lambda: factors[0] @ factors[1])
    copy = _seconds(lambda: target.copy_(source))
    return Ceilings(2 * 8192**3 / product, 2 * source.nbytes / copy)


def demand_of_a_step(net: str, *, side: int = 32, images: int = 2) -> Demand:
    """Counted on the CPU; layers other than convolutions, linear layers and norms are left out."""
    network = networks.build(net, num_classes=10, in_channels=3, dropout=0.0)
    moved = 0

    def count(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal moved
        if isinstance(module, NormReLU):
            moved += INPUT_OF_NORM * inputs[0].numel()
        else:
            moved += INPUT_OF_CONVOLUTION * inputs[0].numel() + OUTPUT_OF_CONVOLUTION * output.numel()

    for module in network.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear, NormReLU)):
            module.register_forward_hook(count)
    with FlopCounterMode(display=False) as counter:
        network(torch.zeros(images, 3, side, side)).sum().backward()
    return Demand(counter.get_total_flops() / images, moved * VALUE_BYTES / images)


def _seconds(work: object) -> float:
    assert callable(work)
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(REPEATS):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / REPEATS
