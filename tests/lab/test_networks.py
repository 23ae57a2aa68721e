"""The lab's networks: their size, their output, where dropout sits, and how weights are loaded."""

import os
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from carpediem.lab.networks import DenseNet, EfficientNetLite0, ResNet, build, load_imagenet_weights
from carpediem.lab.networks.efficientnet_lite import SameConv2d

SMALL = {
    "densenet": lambda dropout=0.2: DenseNet(10, 4, num_classes=5, in_channels=3, dropout=dropout),
    "resnet": lambda dropout=0.2: ResNet(
        (2, 1, 1, 1), width=4, num_classes=5, in_channels=3, dropout=dropout
    ),
    "small-cnn": lambda dropout=0.2: build("small-cnn", num_classes=5, in_channels=3, dropout=dropout),
    "efficientnet-lite0": lambda dropout=0.2: build(
        "efficientnet-lite0", num_classes=5, in_channels=3, dropout=dropout
    ),
}
every_network = pytest.mark.parametrize("make", SMALL.values(), ids=SMALL.keys())


@pytest.fixture(autouse=True)
def _own_randomness():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def named(name: str, **options) -> nn.Module:
    return build(name, **{"num_classes": 10, "in_channels": 3, "dropout": 0.2, **options})


def images(batch: int = 4, size: int = 16) -> Tensor:
    return torch.randn(batch, 3, size, size)


# Sizes


def densenet_parameters(depth: int, growth: int, in_channels: int, num_classes: int) -> int:
    """Counted from the paper's table, block by block, in closed form over the layers of a block."""
    layers = (depth - 4) // 3
    total, channels = 9 * in_channels * 16, 16
    for block in range(3):
        widths = layers * channels + growth * layers * (layers - 1) // 2
        total += widths * (2 + 9 * growth)
        channels += layers * growth
        total += 2 * channels + (channels**2 if block < 2 else 0)
    return total + (channels + 1) * num_classes


def resnet_parameters(blocks: tuple[int, ...], width: int, in_channels: int, num_classes: int) -> int:
    """Convolutions counted per stage, then two batch-norm parameters per normalised channel."""
    convolutions, normalised, channels = 9 * in_channels * width, 0, width
    for stage, count in enumerate(blocks):
        inner = width * 2**stage
        outer = 4 * inner
        inputs = channels + (count - 1) * outer
        convolutions += inputs * inner + count * (9 * inner**2 + inner * outer) + channels * outer
        normalised += inputs + count * 2 * inner
        channels = outer
    return convolutions + 2 * (normalised + channels) + (channels + 1) * num_classes


def test_densenet_40_12_has_the_published_million_parameters():
    assert parameters(named("densenet-40-12")) == 1_019_722 == densenet_parameters(40, 12, 3, 10)


def test_other_densenets_have_the_size_that_the_formula_gives():
    for depth, growth in [(25, 12), (7, 3)]:
        net = named(f"densenet-{depth}-{growth}", num_classes=7, in_channels=1)
        assert parameters(net) == densenet_parameters(depth, growth, 1, 7)


def test_resnet_50_has_the_size_that_the_formula_gives():
    assert parameters(named("resnet-50")) == resnet_parameters((3, 4, 6, 3), 32, 3, 10)


def test_resnet_50_has_fifty_layers_with_weights():
    net = named("resnet-50")
    layers = [name for name, m in net.named_modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert sum("project" not in name for name in layers) == 50


def test_efficientnet_lite0_has_the_published_number_of_parameters():
    assert parameters(named("efficientnet-lite0", num_classes=1000)) == 4_652_008


def test_the_small_network_is_small():
    assert 10_000 < parameters(named("small-cnn", in_channels=1)) < 50_000


# Output


@pytest.mark.parametrize(("channels", "size"), [(1, 8), (1, 28), (3, 32)])
@pytest.mark.parametrize("name", ["densenet-10-4", "resnet-50", "small-cnn", "efficientnet-lite0"])
def test_a_network_gives_one_logit_a_class_for_every_image_size(name, channels, size):
    net = named(name, in_channels=channels, num_classes=7).eval()
    logits = net(torch.randn(2, channels, size, size))
    assert logits.shape == (2, 7)
    assert logits.isfinite().all()


@every_network
def test_every_parameter_gets_a_gradient(make):
    net = make()
    F.cross_entropy(net(images(8, 32)), torch.arange(8) % 5).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.parameters())


@every_network
def test_a_few_steps_lower_the_loss(make):
    net, x, y = make(dropout=0.0), images(16), torch.arange(16) % 5
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    losses = []
    for _ in range(8):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert min(losses[4:]) < 0.8 * losses[0]


@every_network
def test_channels_last_changes_nothing_but_the_layout(make):
    net, x = make().eval(), images()
    expected = net(x)
    net = net.to(memory_format=torch.channels_last)
    torch.testing.assert_close(net(x.to(memory_format=torch.channels_last)), expected, atol=1e-4, rtol=1e-3)


@every_network
def test_bfloat16_autocast_gives_nearly_the_same_logits(make):
    net, x = make().eval(), images()
    expected = net(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = net(x)
    assert logits.dtype == torch.bfloat16
    assert (logits.float() - expected).abs().max() < 0.1 * expected.abs().max() + 0.05


@every_network
def test_a_network_is_captured_as_one_graph(make):
    net = make()
    torch.compiler.reset()
    compiled = torch.compile(net, backend="eager", fullgraph=True)
    assert compiled(images()).shape == (4, 5)


@every_network
def test_the_same_seed_gives_the_same_initial_weights(make):
    weights = []
    for _ in range(2):
        torch.manual_seed(3)
        weights.append(torch.cat([p.detach().flatten() for p in make().parameters()]))
    assert torch.equal(*weights)


@every_network
def test_convolutions_start_with_variance_two_over_fan_out(make):
    for layer in make().modules():
        if isinstance(layer, nn.Conv2d) and layer.weight.numel() >= 4000:
            fan_out = layer.out_channels // layer.groups * layer.kernel_size[0] * layer.kernel_size[1]
            assert layer.weight.std().item() == pytest.approx((2 / fan_out) ** 0.5, rel=0.1)


# Dropout


@every_network
def test_dropout_acts_in_training_alone(make):
    net, x = make(dropout=0.5), images()
    assert not torch.equal(net(x), net(x))
    net.eval()
    assert torch.equal(net(x), net(x))


@every_network
def test_without_dropout_training_passes_agree(make):
    net, x = make(dropout=0.0), images()
    assert torch.equal(net(x), net(x))


@pytest.mark.parametrize(("name", "places"), [("densenet-40-12", 38), ("resnet-50", 16), ("small-cnn", 1)])
def test_dropout_sits_where_the_docstring_says(name, places):
    drops = [m for m in named(name, dropout=0.3).modules() if isinstance(m, nn.Dropout)]
    assert [m.p for m in drops] == [0.3] * places


# SAME padding


@pytest.mark.parametrize(("size", "kernel", "stride"), [(8, 3, 2), (9, 3, 2), (8, 5, 2), (7, 5, 1)])
def test_same_padding_puts_the_odd_pixel_to_the_right_and_bottom(size, kernel, stride):
    conv = SameConv2d(2, 3, kernel, stride=stride, bias=False)
    x = torch.randn(1, 2, size, size)
    out = -(-size // stride)
    expected = torch.zeros(1, 3, out, out)
    total = max((out - 1) * stride + kernel - size, 0)
    padded = torch.zeros(1, 2, size + total, size + total)
    before = total // 2
    padded[:, :, before : before + size, before : before + size] = x
    for row in range(out):
        for column in range(out):
            patch = padded[
                0, :, row * stride : row * stride + kernel, column * stride : column * stride + kernel
            ]
            expected[0, :, row, column] = (conv.weight * patch).sum((1, 2, 3))
    torch.testing.assert_close(conv(x), expected)


# EfficientNet's weights


def write_weights(path: Path, **changes) -> dict[str, np.ndarray]:
    """A float16 file with the published names and random values; a change of None leaves a name out."""
    model = EfficientNetLite0(num_classes=1000, in_channels=3, dropout=0.0)
    names = {name: value for name, value in model.state_dict().items() if "num_batches" not in name}
    arrays = {name: (0.1 * torch.rand(v.shape)).half().numpy() for name, v in names.items()}
    arrays = {name: value for name, value in (arrays | changes).items() if value is not None}
    np.savez(path, **arrays)
    return arrays


def test_published_names_are_those_of_the_model():
    names = EfficientNetLite0(num_classes=10, in_channels=3, dropout=0.0).state_dict().keys()
    wanted = {"_conv_stem.weight", "_bn0.running_var", "_blocks.0._depthwise_conv.weight", "_fc.bias"}
    wanted |= {"_blocks.15._expand_conv.weight", "_blocks.15._bn2.bias", "_conv_head.weight", "_bn1.weight"}
    assert wanted <= set(names)
    assert "_blocks.0._expand_conv.weight" not in names
    assert sum("num_batches" not in name for name in names) == 247


def test_weights_are_loaded_with_the_classifier_when_the_classes_agree(tmp_path):
    arrays = write_weights(tmp_path / "weights.npz")
    state = named("efficientnet-lite0", num_classes=1000, weights=tmp_path / "weights.npz").state_dict()
    for name, array in arrays.items():
        assert np.array_equal(state[name].numpy(), array.astype(np.float32)), name


def test_weights_leave_a_classifier_of_other_size_fresh(tmp_path):
    arrays = write_weights(tmp_path / "weights.npz")
    model = EfficientNetLite0(num_classes=10, in_channels=3, dropout=0.0)
    fresh = model.state_dict()["_fc.weight"].clone()
    load_imagenet_weights(model, tmp_path / "weights.npz")
    state = model.state_dict()
    assert torch.equal(state["_fc.weight"], fresh)
    assert np.array_equal(state["_conv_head.weight"].numpy(), arrays["_conv_head.weight"].astype(np.float32))


def test_a_weights_file_that_does_not_fit_is_named_with_its_first_wrong_key(tmp_path):
    path = tmp_path / "weights.npz"
    model = EfficientNetLite0(num_classes=10, in_channels=3, dropout=0.0)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    write_weights(path, **{"_blocks.3._bn1.bias": None})
    with pytest.raises(ValueError, match=r"weights\.npz has no '_blocks\.3\._bn1\.bias'"):
        load_imagenet_weights(model, path)
    write_weights(path, **{"_bn0.bias": np.zeros(7)})
    with pytest.raises(
        ValueError, match=r"weights\.npz holds '_bn0\.bias' of shape \(7,\), this model \(32,\)"
    ):
        load_imagenet_weights(model, path)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_missing_or_foreign_weights_file_is_named(tmp_path):
    model = EfficientNetLite0(num_classes=10, in_channels=3, dropout=0.0)
    with pytest.raises(FileNotFoundError, match=r"absent\.npz does not exist"):
        load_imagenet_weights(model, tmp_path / "absent.npz")
    (tmp_path / "text.npz").write_text("not an archive")
    np.save(tmp_path / "one.npy", np.zeros(3))
    for name in ["text.npz", "one.npy"]:
        with pytest.raises(ValueError, match=f"{name} must be an npz archive"):
            load_imagenet_weights(model, tmp_path / name)


def test_the_real_weights_load():
    path = Path(os.environ.get("CARPEDIEM_DATA", ""), "efficientnet_lite0.npz")
    if not path.is_file():
        pytest.skip("CARPEDIEM_DATA holds no efficientnet_lite0.npz")
    net = named("efficientnet-lite0", num_classes=1000, weights=path).eval()
    assert net(torch.zeros(1, 3, 64, 64)).softmax(1).max() < 0.9


# The registry


def test_a_users_own_function_is_called_with_classes_and_channels(monkeypatch):
    own = types.ModuleType("my_networks")
    own.linear = lambda num_classes, in_channels: nn.Linear(in_channels, num_classes)
    own.number = lambda num_classes, in_channels: 3
    monkeypatch.setitem(sys.modules, "my_networks", own)
    net = named("my_networks:linear", num_classes=7, in_channels=2)
    assert (net.in_features, net.out_features) == (2, 7)
    with pytest.raises(TypeError, match=r"my_networks:number must return a torch\.nn\.Module, got int"):
        named("my_networks:number")
    for name, message in {
        "my_networks:absent": "my_networks:absent: my_networks must define a function 'absent'",
        "no_such_module:linear": "no_such_module:linear: no module 'no_such_module' in ",
        ":linear": "':linear' must read module:function",
    }.items():
        with pytest.raises(ValueError, match=message):
            named(name)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"densenet-40-12.*densenet-121.*resnet-50.*small-cnn.*got 'vgg'"):
        named("vgg")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "densenet-41-12"}, r"depth - 4 must be a positive multiple of 3 .* got depth 41"),
        ({"name": "densenet-4-12"}, "got depth 4"),
        ({"name": "densenet-40-0"}, "growth must be at least 1, got 0"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"num_classes": 0}, "num_classes must be at least 1, got 0"),
        ({"in_channels": 0}, "in_channels must be at least 1, got 0"),
        ({"weights": "x.npz"}, "weights must be None for 'small-cnn'"),
    ],
)
def test_a_wrong_argument_is_named_with_its_rule(options, message):
    with pytest.raises(ValueError, match=message):
        named(**{"name": "small-cnn", **options})


def test_a_resnet_needs_four_stages_and_a_width():
    with pytest.raises(ValueError, match=r"blocks must hold four counts .* got \(3, 4\)"):
        ResNet((3, 4), width=8, num_classes=2, in_channels=1, dropout=0.0)
    with pytest.raises(ValueError, match="width must be at least 1, got 0"):
        ResNet((1, 1, 1, 1), width=0, num_classes=2, in_channels=1, dropout=0.0)
