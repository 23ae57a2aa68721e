"""A network as a function of its tensors, so that many runs share one compiled program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm

from carpediem.lab import networks
from carpediem.lab.config import RunConfig
from carpediem.lab.data import find_weights
from carpediem.lab.dropout import CountedDropout, count_dropout
from carpediem.lab.networks.norm_relu import NormReLU
from carpediem.lab.usercode import told_of

Tensors = dict[str, Tensor]
Forward = Callable[[Tensors, Tensor], Tensor]


class Network:
    """The architecture of a configuration: fresh tensors by seed, and the logits that tensors give.

    Args:
        config: its net, weights, dropout and precision count.
        num_classes: columns of the logits.
        in_channels: channels of the images.
        device: where it runs.
        data_dir: where the file of trained weights lies, for configurations that start from one.
        compiled: whether it is compiled, once for all runs; by default on a CUDA device, unless the network is
            made of kernels of its own (`runs_uncompiled`).
        test_dropout: whether it is also tested with its dropout left on.

    Attributes:
        train_logits, test_logits: (tensors by name, images) -> logits; the former updates the running
            statistics among the tensors. The latter drop where the configuration has dropout in testing.
        dropping_logits: as `test_logits`, with dropout; None unless asked for.
        seed_names: the buffers that hold the seed of a dropout layer.
        scratch_names: the buffers that hold nothing between two calls.
    """

    def __init__(
        self,
        config: RunConfig,
        num_classes: int,
        in_channels: int,
        device: torch.device,
        data_dir: Path | None = None,
        *,
        compiled: bool | None = None,
        test_dropout: bool = False,
    ) -> None:
        self.device, self.config, self._compiled = device, config, compiled
        self._weights = None if config.weights is None else find_weights(config.net, data_dir)
        self.num_classes, self.in_channels = num_classes, in_channels
        self.train_logits = self._forward(training=True)
        self.test_logits = self._forward(training=False, dropping=config.dropout_in_testing)
        modules = dict(self._seeded(0).named_modules())
        drops = any(map(_drops, modules.values()))
        if config.dropout_in_testing and not drops:
            raise ValueError(
                f"dropout_in_testing must be off for a network without dropout, and {config.net} has no nn.Dropout at "
                f"work with dropout {config.dropout:g}; leave it out, or give a dropout"
            )
        if test_dropout and not drops:
            raise ValueError(
                f"test_dropout must be left out for a network without dropout, and {config.net} has no nn.Dropout at "
                f"work with dropout {config.dropout:g}; leave --test-dropout out, or give --dropout"
            )
        self.dropping_logits = self._forward(training=False, dropping=True) if test_dropout else None
        self.seed_names = [f"{name}.seed" for name, m in modules.items() if isinstance(m, CountedDropout)]
        self.scratch_names = [f"{name}.arrivals" for name, m in modules.items() if isinstance(m, NormReLU)]

    def fresh_tensors(self, seed: int) -> tuple[Tensors, Tensors]:
        """What is trained of a new network, and what is not, by name; the same for a seed on every device.

        The latter are its buffers and the parameters that were built with `requires_grad` False.
        """
        net = self._seeded(seed)
        parameters: Tensors = dict(net.named_parameters())
        lazy = [name for name, p in parameters.items() if isinstance(p, nn.parameter.UninitializedParameter)]
        if lazy:
            raise ValueError(
                f"{self.config.net} must give every layer its size, got lazy parameters such as {lazy[0]}; use Linear "
                "or Conv2d in place of their lazy kinds"
            )
        trained = {name: p for name, p in parameters.items() if p.requires_grad}
        if not trained:
            raise ValueError(f"{self.config.net} must have a parameter with requires_grad True, got none")
        frozen = {name: p for name, p in parameters.items() if not p.requires_grad}
        return self._placed(trained), self._placed(frozen | dict(net.named_buffers()))

    def try_out(self, images: Tensor) -> None:
        """Shows these images to a user's own network, so that one which cannot be trained is refused at once."""
        if ":" not in self.config.net:
            return
        self.fresh_tensors(0)
        net = self._seeded(0).to(self.device).eval()
        with torch.no_grad(), torch.random.fork_rng(devices=[]), told_of(f"the network of {self.config.net}"):
            logits = net(images)
        self._checked(logits, len(images))

    def _seeded(self, seed: int) -> nn.Module:
        config = self.config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            net = networks.build(
                config.net,
                num_classes=self.num_classes,
                in_channels=self.in_channels,
                dropout=config.dropout,
                weights=self._weights,
            )
        return _without_counters(count_dropout(net))

    def _placed(self, tensors: Tensors) -> Tensors:
        out = {}
        for name, tensor in tensors.items():
            image_like = self.device.type == "cuda" and tensor.dim() == 4
            layout = torch.channels_last if image_like else torch.contiguous_format
            out[name] = tensor.detach().to(self.device, memory_format=layout, copy=True)
        return out

    def _forward(self, *, training: bool, dropping: bool = False) -> Forward:
        net = self._seeded(0).to(self.device).train(training)
        for module in net.modules():
            if dropping and isinstance(module, CountedDropout):
                module.train()
        kind, low = self.device.type, self.config.precision == "bf16"

        def forward(tensors: Tensors, images: Tensor) -> Tensor:
            with torch.autocast(kind, torch.bfloat16, enabled=low):
                logits: Tensor = functional_call(net, tensors, (images,))
            return logits

        compiled = self._compiled
        if compiled is None:
            compiled = kind == "cuda" and not getattr(net, "runs_uncompiled", False)
        run: Forward = torch.compile(forward, dynamic=False, fullgraph=True) if compiled else forward
        if ":" not in self.config.net:
            return run

        def users_own(tensors: Tensors, images: Tensor) -> Tensor:
            with told_of(f"the network of {self.config.net}"):
                logits = run(tensors, images)
            return self._checked(logits, len(images))

        return users_own

    def _checked(self, logits: object, count: int) -> Tensor:
        shape = (count, self.num_classes)
        if isinstance(logits, Tensor) and logits.shape == shape:
            return logits
        found = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(
            f"the network of {self.config.net} must give logits of shape {shape}, a row for each image and a column "
            f"for each class, got {found}"
        )


def _drops(module: nn.Module) -> bool:
    return isinstance(module, CountedDropout) and module.rate > 0


def _without_counters(net: nn.Module) -> nn.Module:
    """Takes the batch counters away where nothing reads them; they cost a kernel each.

    With `momentum=None` the running statistics are means over all batches so far, and need their number. (Such
    a layer reads it back from the device, which cannot be recorded in a CUDA graph: it trains on the CPU alone.)
    """
    for module in net.modules():
        if isinstance(module, _BatchNorm) and module.momentum is not None:
            module.num_batches_tracked = None
    return net
