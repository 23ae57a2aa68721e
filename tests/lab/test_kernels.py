"""The lab's Triton kernels give what plain PyTorch gives."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from carpediem.lab.dropout import CountedDropout, count_dropout
from carpediem.lab.kernel_use import takes_kernels, without_kernels
from carpediem.lab.networks import build
from carpediem.lab.networks.resnet import Bottleneck

CHECKS = Path(__file__).with_name("kernel_checks.py")
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")


@needs_triton
def test_the_kernels_agree_with_plain_pytorch():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    interpreted = {"TRITON_INTERPRET": "1"} if device == "cpu" else {}
    found = subprocess.run(
        [sys.executable, CHECKS, device], env=os.environ | interpreted, capture_output=True, text=True
    )
    assert found.stdout.strip() == "agrees", found.stderr


def test_a_batch_on_the_cpu_goes_through_plain_pytorch():
    assert not takes_kernels(torch.zeros(2, 3, 4, 4).contiguous(memory_format=torch.channels_last))


@needs_triton
@pytest.mark.parametrize(("kilobytes", "stages"), [(99, 2), (163, 3), (227, 3)])
def test_fewer_tiles_are_on_their_way_where_they_would_not_fit(monkeypatch, kilobytes, stages):
    from carpediem.lab.kernels import product

    monkeypatch.setattr(product, "_shared_memory", lambda _: kilobytes * 1024)
    assert product.stages_on(torch.device("cuda")) == stages


@needs_cuda
@pytest.mark.parametrize(
    "name", ["resnet-50", "densenet-40-12", "resnet-50-released", "densenet-40-12-released"]
)
def test_a_whole_network_gives_the_same_logits_and_gradients_with_kernels_and_without(name):
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    net = count_dropout(build(name, num_classes=10, in_channels=3, dropout=0.2)).cuda()
    net = net.to(memory_format=torch.channels_last).train()
    images = torch.randn(32, 3, 32, 32, device="cuda").contiguous(memory_format=torch.channels_last)
    logits = net(images)
    found = torch.autograd.grad(logits.square().sum(), list(net.parameters()))
    with without_kernels():
        plain = net(images)
        expected = torch.autograd.grad(plain.square().sum(), list(net.parameters()))
    torch.testing.assert_close(logits, plain, rtol=1e-3, atol=1e-3)
    # Of a bias before a norm all is rounding, which is of the size that the other gradients give it.
    rounding = 1e-5 * max(other.norm() for other in expected) if "released" in name else 1e-6
    for one, other in zip(found, expected, strict=True):
        assert (one - other).norm() < 5e-2 * other.norm() + rounding  # which grows through fifty layers
    net.eval()
    with torch.no_grad():
        tested = net(images)
    plain = net(images)  # whose gradients someone may want: no kernels
    assert plain.requires_grad
    torch.testing.assert_close(tested, plain, rtol=1e-3, atol=1e-3)
    for module in net.modules():
        if isinstance(module, CountedDropout):
            module.train()
    with torch.no_grad():
        dropped = net(images)
    plain = net(images)
    torch.testing.assert_close(dropped, plain, rtol=1e-3, atol=1e-3)
    assert (dropped - tested).norm() > 0.05 * tested.norm(), "dropout that is left on drops"


@needs_cuda
def test_blocks_as_one_function_give_what_they_give_layer_by_layer(monkeypatch):
    torch.manual_seed(0)
    kinds = [Bottleneck(32, 32, 1, 0.2), Bottleneck(128, 32, 1, 0.2), Bottleneck(128, 64, 2, 0.2)]
    blocks = count_dropout(nn.ModuleList(kinds)).cuda().train()
    for convolution in (module for module in blocks.modules() if isinstance(module, nn.Conv2d)):
        convolution.bfloat16()
    images = torch.randn(32, 32, 16, 16, device="cuda", dtype=torch.bfloat16)
    images = images.contiguous(memory_format=torch.channels_last).requires_grad_()
    directions = torch.randn(32, 256, 8, 8, device="cuda")

    def output_and_gradients():
        x, branch, seen = images, None, None
        with torch.autocast("cuda", torch.bfloat16):
            for block, after in zip(blocks, (*blocks[1:], None), strict=True):
                x, branch, seen = block(x, branch, seen, after)
        out = (x if branch is None else x + branch).float()
        return out, *torch.autograd.grad((out * directions).sum(), [images, *blocks.parameters()])

    fused, as_one = [], Bottleneck._by_kernels
    monkeypatch.setattr(Bottleneck, "_by_kernels", lambda *block: fused.append(block) or as_one(*block))
    found = output_and_gradients()
    assert len(fused) == 3
    monkeypatch.setattr(Bottleneck, "_is_one_function", lambda *_: False)
    expected = output_and_gradients()
    assert len(fused) == 3
    assert (found[0] - expected[0]).norm() < 0.02 * expected[0].norm()
    for one, other in zip(found, expected, strict=True):
        # In bf16 values cross ReLU's corner: plain PyTorch itself is up to 0.17 from float32 here.
        assert (one.float() - other.float()).norm() < 0.3 * other.float().norm()
