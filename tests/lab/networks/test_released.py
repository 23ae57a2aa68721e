"""The authors' released networks, against literal transcriptions and counts of their own."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from carpediem.lab.dropout import CountedDropout, count_dropout
from carpediem.lab.networks import ReleasedDenseNet, ReleasedResNet, build
from carpediem.lab.networks.norm_relu import NormReLU
from carpediem.lab.networks.released import ReleasedBottleneck, ReleasedTransition, start_truncated

NAMES = ("resnet-50-released", "densenet-40-12-released")
SIZES = {"num_classes": 5, "in_channels": 3}
SMALL = {
    "resnet": lambda dropout=0.3: ReleasedResNet((2, 1, 1, 1), width=8, dropout=dropout, **SIZES),
    "densenet": lambda dropout=0.3: ReleasedDenseNet(10, 4, dropout=dropout, **SIZES),
}
each_network = pytest.mark.parametrize("make", SMALL.values(), ids=SMALL.keys())


@pytest.fixture(autouse=True)
def _own_randomness():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def named(name: str, **options) -> nn.Module:
    return build(name, **{"num_classes": 10, "in_channels": 3, "dropout": 0.3, **options})


def images(batch: int = 4, size: int = 16) -> Tensor:
    return torch.randn(batch, 3, size, size)


def with_random_norms(net: nn.Module) -> nn.Module:
    """Norms as no new network has them, and biases, so that a layer left out is seen."""
    for module in net.modules():
        if isinstance(module, NormReLU):
            nn.init.normal_(module.weight)
            nn.init.normal_(module.bias)
            nn.init.normal_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 2)
        elif getattr(module, "bias", None) is not None:
            nn.init.normal_(module.bias)
    return net


# Sizes


def resnet_50_parameters(width: int, in_channels: int, num_classes: int) -> int:
    """Layer by layer, as (kernel side, inputs, outputs) with a bias each, and two numbers a normalised channel."""
    convolutions, normalised, channels = [(3, in_channels, width)], 0, width
    for stage, count in enumerate((3, 4, 6, 3)):
        inner = width * 2**stage
        for _ in range(count):
            convolutions += [(1, channels, inner), (3, inner, inner), (1, inner, 4 * inner)]
            convolutions += [(1, channels, 4 * inner)]  # the shortcut
            normalised += channels + 2 * inner
            channels = 4 * inner
    weights = sum(side**2 * inputs * outputs + outputs for side, inputs, outputs in convolutions)
    return weights + 2 * (normalised + channels) + (channels + 1) * num_classes


def test_resnet_50_has_the_size_that_the_formula_gives():
    count = sum(p.numel() for p in named("resnet-50-released", in_channels=1, num_classes=7).parameters())
    assert count == resnet_50_parameters(32, 1, 7)


def test_resnet_50_projects_every_shortcut_and_has_a_bias_in_every_convolution():
    net = named("resnet-50-released")
    convolutions = {n: m for n, m in net.named_modules() if isinstance(m, nn.Conv2d)}
    assert len(convolutions) == 1 + 16 * 4
    assert sum("project" in name for name in convolutions) == 16
    assert all(m.bias is not None for m in convolutions.values())


def test_densenet_40_12_has_the_published_million_parameters():
    assert sum(p.numel() for p in named("densenet-40-12-released").parameters()) == 1_019_722


@pytest.mark.parametrize(("channels", "size"), [(1, 28), (3, 32)])
@pytest.mark.parametrize("name", ["resnet-50-released", "densenet-10-4-released"])
def test_a_network_gives_one_logit_a_class(name, channels, size):
    logits = named(name, in_channels=channels, num_classes=7).eval()(torch.randn(2, channels, size, size))
    assert logits.shape == (2, 7)
    assert logits.isfinite().all()


def test_names_that_no_network_has_are_refused():
    for name in ("resnet-34-released", "small-cnn-released", "densenet-40-released"):
        with pytest.raises(ValueError, match=rf"net must be one of .*resnet-50-released.* got '{name}'"):
            named(name)
    with pytest.raises(ValueError, match=r"weights must be None for 'resnet-50-released'"):
        named("resnet-50-released", weights="some.npz")


# Layers, against a literal transcription in float64


def normalised(x: Tensor, norm: NormReLU, *, training: bool) -> Tensor:
    """Batch norm with ε 1e-5, and ReLU."""
    mean, variance = norm.running_mean, norm.running_var
    if training:
        mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)
    scaled = (x - mean.view(1, -1, 1, 1)) / (variance + 1e-5).sqrt().view(1, -1, 1, 1)
    return (scaled * norm.weight.view(1, -1, 1, 1) + norm.bias.view(1, -1, 1, 1)).clamp(min=0)


def same_convolution(x: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
    """TensorFlow's: of the zeros that are missing for ceil(side / stride) outputs, half, rounded down, come first."""
    side, kernel = x.shape[2], weight.shape[2]
    outputs = -(-side // stride)
    missing = max((outputs - 1) * stride + kernel - side, 0)
    room = x.new_zeros(*x.shape[:2], side + missing, side + missing)
    first = missing // 2
    room[:, :, first : first + side, first : first + side] = x
    out = x.new_empty(len(x), len(weight), outputs, outputs)
    for row in range(outputs):
        for column in range(outputs):
            top, left = row * stride, column * stride
            patch = room[:, :, top : top + kernel, left : left + kernel]
            out[:, :, row, column] = torch.einsum("bikl,oikl->bo", patch, weight) + bias
    return out


def literal_block(
    x: Tensor, block: ReleasedBottleneck, stride: int, mask: Tensor, *, training: bool
) -> Tensor:
    active = normalised(x, block.norm1, training=training)
    inside = same_convolution(active, block.conv1.weight, block.conv1.bias, 1)
    inside = normalised(inside, block.norm2, training=training)
    inside = same_convolution(inside, block.conv2.weight, block.conv2.bias, stride)
    inside = normalised(inside, block.norm3, training=training) * mask
    branch = same_convolution(inside, block.conv3.weight, block.conv3.bias, 1)
    return branch + same_convolution(active, block.project.weight, block.project.bias, stride)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("channels", "stride", "side"), [(32, 1, 6), (24, 1, 6), (32, 2, 8), (32, 2, 7)])
def test_a_bottleneck_is_its_literal_transcription(channels, stride, side, training):
    block = with_random_norms(count_dropout(ReleasedBottleneck(channels, 8, stride, 0.3))).double()
    block.train(training).dropout.seed.fill_(77)
    x = torch.randn(3, channels, side, side, dtype=torch.float64)
    after = -(-side // stride)
    mask = block.dropout(torch.ones(3, 8, after, after, dtype=torch.float64))
    assert (mask == 0).any() == training
    expected = literal_block(x, block, stride, mask, training=training)
    shortcut, branch, seen = block(x, None, None, None)
    torch.testing.assert_close(shortcut + branch, expected)
    assert seen is None
    half = x / 2
    shortcut, branch, _ = block(half, half, None, None)  # the input comes as two parts as well
    torch.testing.assert_close(shortcut + branch, expected)


@pytest.mark.parametrize("training", [True, False])
def test_a_resnet_is_its_stem_its_blocks_and_the_mean_of_the_last_activations(training):
    net = with_random_norms(SMALL["resnet"](0.0)).double().train(training)
    x = images(3, 8).double()
    stem, *blocks, norm = net.features
    logits = net(x)
    x = same_convolution(x, stem.weight, stem.bias, 1)
    for number, block in enumerate(blocks):
        x = literal_block(x, block, 1 if number < 2 else 2, torch.ones(()), training=training)
    pooled = normalised(x, norm, training=training).mean((2, 3))
    torch.testing.assert_close(logits, pooled @ net.classifier.weight.T + net.classifier.bias)


def test_running_statistics_keep_nine_tenths():
    block = ReleasedBottleneck(32, 8, 1, 0.0)
    x = torch.randn(3, 32, 6, 6) + 5
    block(x, None, None, None)
    torch.testing.assert_close(block.norm1.running_mean, 0.1 * x.mean((0, 2, 3)))
    torch.testing.assert_close(block.norm1.running_var, 0.9 + 0.1 * x.var((0, 2, 3)))


def test_a_transition_has_a_relu_on_both_sides_of_its_convolution():
    transition = with_random_norms(ReleasedTransition(6, 0.3)).double()
    count_dropout(transition).dropout.seed.fill_(78)
    x = torch.randn(3, 6, 8, 8, dtype=torch.float64)
    active = normalised(x, transition.norm, training=True)
    mixed = torch.einsum("bihw,oi->bohw", active, transition.conv.weight[:, :, 0, 0])
    assert (mixed < 0).any()
    dropped = transition.dropout(mixed.clamp(min=0))
    corners = [dropped[:, :, i::2, j::2] for i in range(2) for j in range(2)]
    torch.testing.assert_close(transition(x), sum(corners) / 4)


def test_a_released_densenet_differs_from_ours_in_its_transitions_alone():
    ours = build("densenet-10-4", num_classes=5, in_channels=3, dropout=0.0).double()
    released = SMALL["densenet"](0.0).double()
    released.load_state_dict(ours.state_dict())
    x = images().double()
    assert not torch.allclose(released(x), ours(x))
    for number, stage in enumerate(released.features):
        if isinstance(stage, ReleasedTransition):
            ours.features[number] = stage
    torch.testing.assert_close(released(x), ours(x))


# The start


def test_all_weights_of_the_resnet_start_cut_off_at_two_deviations_with_variance_one_over_fan_in():
    net = named("resnet-50-released")
    for name, layer in net.named_modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            scaled = layer.weight.detach().double() * math.sqrt(layer.weight[0].numel())
            count = scaled.numel()
            # Of a normal distribution cut off at ±2 the variance is 0.7737 and the fourth moment 1.4159.
            spread = math.sqrt((1.4159 / 0.7737**2 - 1) / count)
            assert scaled.var().item() == pytest.approx(1, abs=5 * spread), name
            assert abs(scaled.mean()) < 5 / math.sqrt(count), name
            assert scaled.abs().max() <= 2 / math.sqrt(0.7737) * (1 + 1e-4), name
            assert not layer.bias.any(), name


def test_a_truncated_start_reaches_its_cut_and_has_the_shape_of_a_normal_distribution():
    layer = nn.Linear(100, 10_000)
    start_truncated(layer)
    scaled = layer.weight.detach().double().flatten() * 10 * 0.87962566103423978
    assert 1.99 < scaled.abs().max() <= 2 * (1 + 1e-6)
    inside = math.erf(1 / math.sqrt(2)) / math.erf(math.sqrt(2))
    assert (scaled.abs() < 1).double().mean().item() == pytest.approx(inside, abs=0.003)


def test_densenet_starts_by_the_outputs_of_its_3x3_convolutions_and_the_inputs_of_the_rest():
    net = named("densenet-40-12-released")
    pointwise = [m for m in net.modules() if isinstance(m, nn.Conv2d) and m.kernel_size == (1, 1)]
    three = [m for m in net.modules() if isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3)]
    assert (len(pointwise), len(three)) == (2, 37)
    for layer in three:
        deviation, count = math.sqrt(2 / (9 * layer.out_channels)), layer.weight.numel()
        assert layer.weight.std().item() == pytest.approx(deviation, rel=5 / math.sqrt(2 * count))
    for layer in (*pointwise, net.classifier):
        scaled = layer.weight.detach() * math.sqrt(layer.weight[0].numel() / 2)
        assert scaled.std().item() == pytest.approx(1, rel=5 / math.sqrt(2 * scaled.numel()))
        assert scaled.abs().max() > 2.4, "not cut off"
    assert not net.classifier.bias.any()


@each_network
def test_the_same_seed_gives_the_same_start(make):
    weights = []
    for _ in range(2):
        torch.manual_seed(3)
        weights.append(torch.cat([p.detach().flatten() for p in make().parameters()]))
    assert torch.equal(*weights)


# Dropout


@pytest.mark.parametrize(("name", "places"), [("resnet-50-released", 16), ("densenet-40-12-released", 38)])
def test_all_dropout_is_counted(name, places):
    modules = list(count_dropout(named(name)).modules())
    assert not any(isinstance(m, nn.Dropout) for m in modules)
    counted = [m for m in modules if isinstance(m, CountedDropout)]
    assert sorted(m.layer for m in counted) == list(range(places))
    assert {m.rate for m in counted} == {0.3}


@each_network
def test_dropout_is_the_same_for_the_same_seed_and_can_stay_on_in_testing(make):
    net, x = count_dropout(make()).eval(), images()
    tested = net(x)

    def dropped(seed: int) -> Tensor:
        for module in net.modules():
            if isinstance(module, CountedDropout):
                module.train()
                module.seed.fill_(seed)
        return net(x)

    first = dropped(5)
    assert not torch.equal(dropped(6), first)
    assert torch.equal(dropped(5), first)
    assert not torch.equal(first, tested)


# Training


def test_norms_take_every_bias_of_the_resnets_convolutions_away_in_training_alone():
    net, x = SMALL["resnet"](0.0).double(), images().double()
    trained, tested = net(x), net.eval()(x)
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.normal_(layer.bias)
    torch.testing.assert_close(net.train()(x), trained)
    assert not torch.allclose(net.eval()(x), tested)


@pytest.mark.parametrize("low", [False, True], ids=["float32", "bf16"])
@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_four_trains(name, low):
    net, x = named(name), images(4, 32)
    with torch.autocast("cpu", torch.bfloat16, enabled=low):
        logits = net(x)
    assert logits.dtype == (torch.bfloat16 if low else torch.float32)
    F.cross_entropy(logits.float(), torch.arange(4)).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())
    assert all(p.grad.any() for name, p in net.named_parameters() if name.endswith("weight"))


@each_network
def test_a_few_steps_lower_the_loss(make):
    net, x, y = make(0.0), images(16), torch.arange(16) % 5
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    losses = []
    for _ in range(8):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert min(losses[4:]) < 0.8 * losses[0]


@each_network
def test_every_norm_sees_channels_last_batches_as_the_kernels_want_them(make):
    net, seen = make().to(memory_format=torch.channels_last), []
    for module in net.modules():
        if isinstance(module, NormReLU):
            # Not a hook on the module: `join` does not go through one.
            module.forward = watched(module.forward, seen)
            module.join = watched(module.join, seen)
    net(images().contiguous(memory_format=torch.channels_last))
    assert len(seen) >= sum(isinstance(module, NormReLU) for module in net.modules())
    assert all(x.is_contiguous(memory_format=torch.channels_last) for x in seen)


def watched(function, seen: list[Tensor]):
    def call(*arguments):
        seen.extend(x for x in arguments if isinstance(x, Tensor))
        return function(*arguments)

    return call


@each_network
def test_a_network_is_captured_as_one_graph(make):
    net = make()
    torch.compiler.reset()
    assert torch.compile(net, backend="eager", fullgraph=True)(images()).shape == (4, 5)
    assert net.runs_uncompiled


@each_network
def test_no_value_is_read_back_to_the_host(make):
    # Meta tensors have no values to read: an operation that needs one fails.
    net = count_dropout(make()).to("meta")
    assert net(images().to("meta")).shape == (4, 5)
