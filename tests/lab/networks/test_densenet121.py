"""DenseNet-121: torchvision's names, shapes and logits, counted dropout, and the published weights."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from carpediem.lab.dropout import CountedDropout, count_dropout
from carpediem.lab.network import Network
from carpediem.lab.networks import DenseNet121, build, load_densenet121_weights

# The names and shapes of torchvision 0.29.2's `densenet121().state_dict()`, one a line, as its models/densenet.py
# makes them. That file was run by itself, since torchvision is not among what the tests install.
NAMES_AND_SHAPES = Path(__file__).with_name("densenet121.txt")
# What the same file gives in float64 for `numbers((2, 3, 75, 75))`, filled by `fill`: four logits of each image.
LOGITS_AT = [0, 1, 500, 999]
LOGITS = [
    [2.41405767, 0.13520907, 0.52144608, -0.20728058],
    [2.46062519, 0.15165334, 0.55644148, -0.16343171],
]


@pytest.fixture(autouse=True)
def _own_randomness():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@pytest.fixture(scope="module")
def thousand() -> nn.Module:
    """A network of ImageNet's classes; only to be read."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return named(num_classes=1000)


def named(**options) -> nn.Module:
    return build("densenet-121", **{"num_classes": 5, "in_channels": 3, "dropout": 0.2, **options})


def published_shapes() -> dict[str, tuple[int, ...]]:
    lines = [line.split() for line in NAMES_AND_SHAPES.read_text().splitlines()]
    return {name: tuple(map(int, sides)) for name, *sides in lines}


def numbers(shape) -> Tensor:
    """Numbers between -1 and 1 without order, the same everywhere."""
    place = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return torch.sin(0.7 * place**2 + place).reshape(shape)


def fill(network: nn.Module) -> nn.Module:
    network = network.double()
    for name, value in network.state_dict().items():
        if value.dim() > 1:
            value.copy_(numbers(value.shape) * (4 / value[0].numel()) ** 0.5)
        elif name.endswith("running_var") or ("norm" in name and name.endswith("weight")):
            value.copy_(1 + numbers(value.shape) / 2)
        elif value.dim() == 1:
            value.copy_(numbers(value.shape) / 10)
    return network


# Names, sizes, logits


def test_names_and_shapes_are_torchvisions(thousand):
    state = thousand.state_dict()
    assert {name: tuple(value.shape) for name, value in state.items()} == published_shapes()
    assert list(state) == list(published_shapes())


def test_it_has_the_published_number_of_parameters(thousand):
    assert sum(p.numel() for p in thousand.parameters()) == 7_978_856
    assert sum(p.numel() for p in named(num_classes=67).parameters()) == 7_022_531


def test_logits_are_torchvisions():
    network = fill(named(num_classes=1000)).eval()
    with torch.no_grad():
        logits = network(numbers((2, 3, 75, 75)))
    torch.testing.assert_close(
        logits[:, LOGITS_AT], torch.tensor(LOGITS, dtype=torch.float64), atol=1e-6, rtol=0
    )


@pytest.mark.parametrize(("channels", "size"), [(1, 29), (3, 32), (3, 41)])
def test_images_of_29_pixels_and_more_are_taken(channels, size):
    network = named(in_channels=channels).eval()
    logits = network(torch.randn(2, channels, size, size))
    assert logits.shape == (2, 5)
    assert logits.isfinite().all()


def test_smaller_images_are_refused():
    with pytest.raises(ValueError, match=r"at least 29 pixels for densenet-121, got 28×32; take a larger"):
        named()(torch.zeros(2, 3, 28, 32))


def test_every_parameter_gets_a_gradient():
    network = named()
    F.cross_entropy(network(torch.randn(8, 3, 32, 32)), torch.arange(8) % 5).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in network.parameters())


def test_convolutions_start_with_variance_two_over_fan_out():
    for layer in named().modules():
        if isinstance(layer, nn.Conv2d):
            fan_out = layer.out_channels * layer.kernel_size[0] * layer.kernel_size[1]
            assert layer.weight.std().item() == pytest.approx((2 / fan_out) ** 0.5, rel=0.1)


def test_channels_last_changes_nothing_but_the_layout():
    network, x = named().eval(), torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        expected = network(x)
        network = network.to(memory_format=torch.channels_last)
        logits = network(x.to(memory_format=torch.channels_last))
    torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-3)


def test_bfloat16_autocast_gives_nearly_the_same_logits():
    network, x = named().eval(), torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        expected = network(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = network(x)
    assert logits.dtype == torch.bfloat16
    assert (logits.float() - expected).abs().max() < 0.1 * expected.abs().max() + 0.05


def test_it_is_captured_as_one_graph():
    torch.compiler.reset()
    compiled = torch.compile(count_dropout(named()), backend="eager", fullgraph=True)
    assert compiled(torch.randn(2, 3, 32, 32)).shape == (2, 5)


# Dropout


def test_every_dense_layer_drops_and_each_can_be_counted():
    network = named(dropout=0.3)
    assert [m.p for m in network.modules() if isinstance(m, nn.Dropout)] == [0.3] * 58
    counted = [m for m in count_dropout(network).modules() if isinstance(m, CountedDropout)]
    assert [(m.rate, m.layer) for m in counted] == [(0.3, layer) for layer in range(58)]
    assert not any(isinstance(m, nn.Dropout) for m in network.modules())


def test_what_is_dropped_is_the_output_of_a_dense_layers_last_convolution():
    network = named(dropout=0.5)
    layer = network.features.denseblock1.denselayer1.train()
    new = layer(torch.randn(4, 64, 16, 16))[:, 64:]
    assert (new == 0).double().mean().item() == pytest.approx(0.5, abs=0.02)


def test_training_passes_depend_on_the_counted_seed_alone(make_configs):
    (config,) = make_configs("random", net="densenet-121", dropout=0.2)
    network = Network(config, 3, 3, torch.device("cpu"), test_dropout=True)
    parameters, buffers = network.fresh_tensors(0)
    images = torch.randn(2, 3, 32, 32)
    statistics = {name: tensor.clone() for name, tensor in buffers.items()}

    def logits(seed, forward):
        seeds = dict.fromkeys(network.seed_names, torch.tensor(seed, dtype=torch.int32))
        fresh = {name: tensor.clone() for name, tensor in statistics.items()}
        with torch.no_grad():
            return forward(parameters | fresh | seeds, images)

    assert len(network.seed_names) == 58
    for forward in (network.train_logits, network.dropping_logits):
        torch.manual_seed(3)
        one = logits(1, forward)
        assert torch.equal(one, logits(1, forward))
        assert not torch.allclose(one, logits(2, forward))
    assert torch.equal(logits(1, network.test_logits), logits(2, network.test_logits))


# Weights


def as_published(network: nn.Module) -> dict[str, Tensor]:
    """Its state under the names of the published file, which is older than batch counters."""
    state = {}
    for name, value in network.state_dict().items():
        for layer in ("norm", "conv"):
            for number in ("1", "2"):
                if "denselayer" in name:
                    name = name.replace(f".{layer}{number}.", f".{layer}.{number}.")
        if "num_batches" not in name:
            state[name] = value
    return state


@pytest.fixture(scope="module")
def published(thousand, tmp_path_factory) -> Path:
    """A file as the published one: its names, and the form in which `torch.save` wrote at its time."""
    path = tmp_path_factory.mktemp("weights") / "densenet121-a639ec97.pth"
    torch.save(as_published(thousand), path, _use_new_zipfile_serialization=False)
    return path


def test_the_published_names_load(thousand, published):
    assert "features.denseblock1.denselayer1.norm.1.weight" in torch.load(published)
    state = named(num_classes=1000, weights=published).state_dict()
    assert all(torch.equal(value, state[name]) for name, value in thousand.state_dict().items())


def test_todays_names_load_and_another_number_of_classes_keeps_a_fresh_classifier(thousand, tmp_path):
    torch.save(thousand.state_dict(), tmp_path / "densenet121.pth")
    torch.manual_seed(7)
    state = named(num_classes=7, weights=tmp_path / "densenet121.pth").state_dict()
    torch.manual_seed(7)
    fresh = named(num_classes=7).state_dict()
    for name, value in thousand.state_dict().items():
        expected = fresh[name] if name.startswith("classifier.") else value
        assert torch.equal(state[name], expected), name


def test_a_file_that_does_not_fit_is_named_with_its_first_wrong_key(thousand, published, tmp_path):
    with pytest.raises(ValueError, match=r"a639ec97\.pth holds 'features\.conv0\.weight' of .*in_channels=3"):
        named(in_channels=1, weights=published)
    state = as_published(thousand)
    del state["features.denseblock1.denselayer1.norm.2.bias"]
    torch.save(state, tmp_path / "short.pth")
    network = DenseNet121(num_classes=5, in_channels=3, dropout=0.0)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    with pytest.raises(
        ValueError, match=r"short\.pth has no 'features\.denseblock1\.denselayer1\.norm2\.bias'"
    ):
        load_densenet121_weights(network, tmp_path / "short.pth")
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


@pytest.mark.parametrize("share", [0.0, 0.0005, 0.01, 0.6])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_file_that_is_cut_off_is_to_be_fetched_again(tmp_path, share, zipped):
    path = tmp_path / "cut.pth"
    state = {name: torch.zeros(shape) for name, shape in published_shapes().items() if "norm" in name}
    torch.save(state, path, _use_new_zipfile_serialization=zipped)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(
        ValueError, match=r"cut\.pth must be a whole file of torch\.save .*a639ec97\.pth again"
    ):
        named(weights=path)


def test_what_is_no_file_of_weights_is_refused(tmp_path):
    (tmp_path / "text.pth").write_text("not tensors")
    np.savez(tmp_path / "arrays.npz", a=np.zeros(3))
    torch.save(nn.Linear(2, 2), tmp_path / "module.pth")
    for name in ("text.pth", "arrays.npz", "module.pth"):
        with pytest.raises(ValueError, match=f"{name} must be a whole file of torch.save"):
            named(weights=tmp_path / name)
    torch.save({"epoch": 3, "model": {}}, tmp_path / "checkpoint.pth")
    torch.save([torch.zeros(2)], tmp_path / "list.pth")
    for name in ("checkpoint.pth", "list.pth"):
        with pytest.raises(
            ValueError, match=rf"{name} must hold tensors by name; save .*state_dict\(\) alone"
        ):
            named(weights=tmp_path / name)
    with pytest.raises(
        FileNotFoundError, match=r"absent\.pth does not exist; give the path of a densenet121"
    ):
        named(weights=tmp_path / "absent.pth")
