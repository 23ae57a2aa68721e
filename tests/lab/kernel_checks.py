"""The kernels beside plain PyTorch, on a device that Triton runs on, or interpreted on the CPU; run as a program."""

import sys
from contextlib import ExitStack
from copy import deepcopy
from itertools import chain
from unittest.mock import patch

import torch
from torch.nn.functional import avg_pool2d, batch_norm, conv2d

from carpediem.lab.dropout import CountedDropout, Drop, count_dropout
from carpediem.lab.kernels import bottleneck, dense_block, drop_and_pool, norm_relu
from carpediem.lab.networks import ReleasedDenseNet, ReleasedResNet, densenet, pointwise
from carpediem.lab.networks import norm_relu as norm_relu_layer

EPS, MOMENTUM = 1e-5, 0.1


def images(*shape, device, seed=0):
    random = torch.Generator().manual_seed(seed)
    made = torch.randn(shape, generator=random) * 2 + 3
    return made.to(device).contiguous(memory_format=torch.channels_last).requires_grad_()


def made(*shape, device, dtype):
    """A convolution's weights."""
    random = torch.Generator().manual_seed(sum(shape))
    return (torch.randn(shape, generator=random) / 10).to(device, dtype).requires_grad_()


def vectors(channels, device):
    random = torch.Generator().manual_seed(channels)
    return [torch.randn(channels, generator=random).to(device).requires_grad_() for _ in range(2)]


def running(channels, device):
    """A mean and a variance, not those of a new norm: both are to be moved."""
    random = torch.Generator().manual_seed(channels + 1)
    mean, spread = torch.randn(channels, generator=random), torch.rand(channels, generator=random)
    return mean.to(device), (spread + 0.5).to(device)


def counters(device):
    return torch.zeros(16, dtype=torch.int32, device=device)


def dropout(rate, layer, device):
    """The same dropout for the kernels, or None, and as plain PyTorch does it."""
    seed = torch.tensor(12345, dtype=torch.int32, device=device)
    plain = CountedDropout(rate, layer)
    plain.seed = seed.cpu()
    return (Drop(rate, layer, seed) if rate else None), lambda x: plain(x.cpu()).to(device)


def close(found, expected):
    """Equal up to rounding, which may take a value in ten thousand across ReLU's corner, and its gradient with it."""
    apart = difference(found, expected) > 1e-4 * expected.detach().abs().max() + 1e-6
    assert apart.double().mean() <= 1e-4, f"{int(apart.sum())} of {apart.numel()} values differ"


def close_gradients(found, expected):
    """The same of gradients. Those of a norm are sums over many values, one of which may have crossed the corner."""
    if found.dim() > 1:
        close(found, expected)
    else:
        assert difference(found, expected).max() <= 2e-2 * expected.abs().max() + 1e-6


def difference(found, expected):
    return (found.detach().double() - expected.detach().double()).abs()


def alike(found, expected):
    """Equal up to what bf16 makes of it on the way, with plain PyTorch as well."""
    apart = difference(found, expected).norm() / expected.detach().double().norm()
    assert apart < 0.12, f"{float(apart):.4f} of the norm apart"


def gradients(outputs, inputs):
    random = torch.Generator().manual_seed(1)
    total = sum((o.float() * torch.randn(o.shape, generator=random).to(o.device)).sum() for o in outputs)
    return torch.autograd.grad(total, inputs)


def check_norm_relu(device, shape, rate, *, joins):
    channels = shape[1]
    x, branch = images(*shape, device=device), images(*shape, device=device, seed=1)
    weight, bias = vectors(channels, device)
    ours, plains, arrivals = running(channels, device), running(channels, device), counters(device)
    by_kernel, by_torch = dropout(rate, 3, device)
    norm = norm_relu.Norm(weight, bias, *ours, arrivals, EPS, MOMENTUM)
    found = norm_relu.joined(x, branch, norm) if joins else (norm_relu.in_training(x, norm, by_kernel),)
    total = x + branch if joins else x
    expected = by_torch(torch.relu(batch_norm(total, *plains, weight, bias, True, MOMENTUM, EPS)))
    inputs = [x, weight, bias, *([branch] if joins else [])]
    outputs = (total, expected) if joins else (expected,)
    for one, other in zip((*found, *ours), (*outputs, *plains), strict=True):
        close(one, other)
    for one, other in zip(gradients(found, inputs), gradients(outputs, inputs), strict=True):
        close_gradients(one, other)
    assert not arrivals.any()
    tested = torch.relu(batch_norm(x, *ours, weight, bias, False, MOMENTUM, EPS))
    close(norm_relu.in_testing(x, norm, None), tested)
    close(norm_relu.in_testing(x, norm, by_kernel), by_torch(tested))


def check_bottleneck(device, shape, width, outputs, stride, rate):
    """In bf16 on a device, as these kernels are used; in float32, and closely, where they are interpreted."""
    on_device = device != "cpu"
    dtype, equal, equal_gradients = (
        (torch.bfloat16, alike, alike) if on_device else (torch.float32, close, close_gradients)
    )
    wide, channels = images(*shape, device=device), shape[1]
    x = wide.detach().to(dtype).requires_grad_()
    by_kernel, by_torch = dropout(rate, 3, device)
    sizes = (channels, width, width, outputs)
    affines = [vectors(size, device) for size in sizes]
    ours, plains = ([running(size, device) for size in sizes] for _ in range(2))
    *norms, following = (
        norm_relu.Norm(*affine, *own, counters(device), EPS, MOMENTUM)
        for affine, own in zip(affines, ours, strict=True)
    )
    projects = stride > 1 or channels != outputs
    shapes = [(width, channels, 1, 1), (width, width, 3, 3), (outputs, width, 1, 1)]
    convolutions = [made(*shape, device=device, dtype=dtype) for shape in shapes]
    projection = made(outputs, channels, 1, 1, device=device, dtype=dtype) if projects else None
    block = bottleneck.Block(tuple(norms), by_kernel, stride, following)
    found, seen = bottleneck.in_training(x, None, block, *convolutions, projection)
    inputs = [x, *chain(*affines[:3]), *convolutions, *([projection] if projects else [])]
    backward = gradients([found], inputs)

    def activated(value, number):
        return torch.relu(batch_norm(value, *plains[number], *affines[number], True, MOMENTUM, EPS))

    x, *kernels = (tensor.detach().float().requires_grad_() for tensor in (x, *inputs[7:]))
    active = activated(x, 0)
    inside = conv2d(active, kernels[0])
    spread = conv2d(activated(inside, 1), kernels[1], padding=1, stride=stride)
    expected = conv2d(by_torch(activated(spread, 2)), kernels[2])
    expected = expected + (conv2d(active, kernels[3], stride=stride) if projects else x)
    activated(expected, 3)  # moves the running statistics
    moments = expected.mean((0, 2, 3)), expected.var((0, 2, 3), correction=0)
    for one, other in zip(
        (found, seen.mean, 1 / seen.rstd.square() - EPS, *chain(*ours)),
        (expected, *moments, *chain(*plains)),
        strict=True,
    ):
        equal(one, other)
    plainly = gradients([expected], [x, *chain(*affines[:3]), *kernels])
    for one, other in zip(backward, plainly, strict=True):
        equal_gradients(one, other)
    assert not any(norm.arrivals.any() for norm in (*norms, following))


def check_dense_block(device, shape, growth, depth, rate):
    x, start = images(*shape, device=device), shape[1]
    weights, layers, plains, drops = [], [], [], []
    for number in range(depth):
        channels = start + growth * number
        kernel = torch.randn(growth, channels, 3, 3, generator=torch.Generator().manual_seed(number)) / 10
        weights += [*vectors(channels, device), kernel.to(device).requires_grad_()]
        by_kernel, by_torch = dropout(rate, number, device)
        layers.append(dense_block.Layer(*running(channels, device), by_kernel))
        plains.append(running(channels, device))
        drops.append(by_torch)

    def plainly(*, training):
        block = x
        for number in range(depth):
            weight, bias, kernel = weights[3 * number : 3 * number + 3]
            active = torch.relu(batch_norm(block, *plains[number], weight, bias, training, MOMENTUM, EPS))
            new = conv2d(active, kernel, padding=1)
            block = torch.cat([block, drops[number](new) if training else new], 1)
        return block

    arrivals = counters(device)
    found = dense_block.in_training(x, layers, arrivals, EPS, MOMENTUM, weights)
    expected = plainly(training=True)
    close(found, expected)
    for one, other in zip(
        gradients([found], [x, *weights]), gradients([expected], [x, *weights]), strict=True
    ):
        close_gradients(one, other)
    for layer, (mean, variance) in zip(layers, plains, strict=True):
        close(layer.running_mean, mean)
        close(layer.running_var, variance)
    close(dense_block.in_testing(x, layers, arrivals, EPS, weights), plainly(training=False))
    assert not arrivals.any()


def check_pooling(device, shape, rate):
    x = images(*shape, device=device)
    by_kernel, by_torch = dropout(rate, 5, device)
    found, expected = drop_and_pool.pooled(x, by_kernel), avg_pool2d(by_torch(x), 2)
    close(found, expected)
    close(gradients([found], [x])[0], gradients([expected], [x])[0])


def check_network(device, net):
    """A whole network through the kernels, which take batches on the CPU for once, and as plain PyTorch."""
    plain = count_dropout(net).to(device, memory_format=torch.channels_last).train()
    for module in plain.modules():
        if isinstance(module, CountedDropout):
            module.seed.fill_(-12345)
    ours, x = deepcopy(plain), images(4, 3, 8, 8, device=device)

    def all_of(net):
        logits = net.train()(x)
        found = torch.autograd.grad(logits.square().sum(), [x, *net.parameters()])
        net.eval()
        with torch.no_grad():
            tested = net(x)
        for module in net.modules():
            if isinstance(module, CountedDropout):
                module.train()
        with torch.no_grad():
            running = [value for name, value in net.named_buffers() if "running" in name]
            return [logits, tested, net(x), *running], found

    expected, plainly = all_of(plain)
    launched = []
    with ExitStack() as stack:
        for room in (densenet, norm_relu_layer, pointwise):
            stack.enter_context(
                patch.object(room, "takes_kernels", lambda *_, **__: launched.append(1) or True)
            )
        found, gradients = all_of(ours)
    assert launched
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    for one, other in zip(gradients, plainly, strict=True):
        # A bias before a norm has no gradient but rounding.
        assert difference(one, other).norm() <= 1e-2 * other.norm() + 1e-3


def check_all(device):
    torch.backends.cudnn.allow_tf32 = False
    check_norm_relu(device, (4, 32, 8, 8), 0.0, joins=False)
    check_norm_relu(device, (3, 20, 5, 7), 0.0, joins=True)  # neither rows nor columns fill their tiles
    check_norm_relu(device, (8, 130, 9, 9), 0.2, joins=False)
    check_norm_relu(device, (32, 8, 32, 32), 0.3, joins=False)  # many programs for few columns
    check_dense_block(device, (4, 16, 9, 7), 12, 3, 0.0)
    check_dense_block(device, (4, 70, 9, 7), 5, 2, 0.2)
    check_bottleneck(device, (4, 128, 8, 8), 32, 128, 1, 0.2)
    check_bottleneck(device, (3, 32, 9, 9), 32, 128, 1, 0.0)  # a tile is not full; the shortcut is projected
    check_bottleneck(device, (4, 128, 7, 9), 64, 256, 2, 0.2)  # odd sides
    check_bottleneck(device, (8, 128, 9, 1), 32, 128, 2, 0.0)  # a stride that the width does not show
    check_pooling(device, (4, 70, 8, 6), 0.2)
    check_pooling(device, (4, 20, 9, 7), 0.0)  # odd sides
    torch.manual_seed(0)
    sizes = {"num_classes": 5, "in_channels": 3, "dropout": 0.3}
    check_network(device, ReleasedResNet((2, 1, 1, 1), width=4, **sizes))
    check_network(device, ReleasedDenseNet(10, 4, **sizes))


if __name__ == "__main__":
    check_all(sys.argv[1])
    print("agrees")
