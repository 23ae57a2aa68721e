"""What a distribution is: probabilities, and what is refused."""

import math

import numpy as np
import pytest
import torch

from carpediem.core.distribution import Distribution, Levels, Uniform, Weights, distribution_from_state
from carpediem.core.draws.independent import independent_epoch
from carpediem.core.draws.systematic import systematic_epoch


def distributions(num_samples):
    generator = torch.Generator().manual_seed(3)
    levels = torch.randint(0, 3, (num_samples,), generator=generator).to(torch.uint8)
    weights = torch.rand(num_samples, generator=generator, dtype=torch.float64) + 0.02
    return {
        "uniform": Uniform(num_samples),
        "levels": Levels(levels, np.array([1.0, 0.3, 0.05])),
        "weights": Weights(weights),
    }


@pytest.mark.parametrize(
    "weights", [[0.0, 0.0], [1.0, -1.0], [1.0, math.nan], [1.0, math.inf], [1e308, 1e308]]
)
def test_weights_that_cannot_be_drawn_from_are_refused(weights):
    with pytest.raises(ValueError, match="weights must be finite and at least 0, not all 0"):
        Weights(torch.tensor(weights, dtype=torch.float64))


@pytest.mark.parametrize(
    "weights", [[0.0, 0.0, 1.0], [1.0, -1.0, 1.0], [1.0, math.nan, 1.0], [1.0, math.inf, 1.0]]
)
def test_weights_of_levels_that_cannot_be_drawn_from_are_refused(weights):
    with pytest.raises(
        ValueError, match="level_weights must be finite and at least 0, not 0 for all samples"
    ):
        Levels(torch.tensor([0, 1, 1, 0]), np.array(weights))


def test_levels_are_integers_with_a_weight_each_whatever_holds_the_weights():
    for bad in ([0, 1, 3], [-1, 0, 1]):
        with pytest.raises(
            ValueError, match=rf"levels must lie in \[0, 3\), .* got {min(bad)} to {max(bad)}"
        ):
            Levels(torch.tensor(bad), np.ones(3))
    with pytest.raises(TypeError, match=r"levels must be integers, got torch\.float32"):
        Levels(torch.tensor([0.0, 1.0]), np.ones(2))
    for weights in ([1, 3], (1.0, 3.0), torch.tensor([1, 3])):
        assert Levels(torch.tensor([0, 1]), weights).probabilities().tolist() == [0.25, 0.75]


@pytest.mark.parametrize("kind", ["uniform", "levels", "weights"])
def test_a_distribution_is_rebuilt_from_its_state(kind):
    distribution = distributions(300)[kind]
    copy = distribution_from_state(distribution.state_dict(), 300, torch.device("cpu"))
    assert torch.equal(distribution.probabilities(), copy.probabilities())
    for way in (systematic_epoch, independent_epoch):
        drawn = [torch.cat([part for _, part in d.draw_epoch(way, 7, 1)]) for d in (distribution, copy)]
        assert torch.equal(*drawn)


def test_a_distribution_of_another_size_is_refused_naming_both():
    state = distributions(300)["weights"].state_dict()
    with pytest.raises(ValueError, match="holds 300 samples, this selector 301"):
        distribution_from_state(state, 301, torch.device("cpu"))
    with pytest.raises(ValueError, match="must be one of uniform, levels, weights; the state holds 'other'"):
        distribution_from_state({"kind": "other"}, 301, torch.device("cpu"))


@pytest.mark.parametrize("name", ["weights", "levels", "level_weights"])
def test_a_state_that_lacks_a_part_of_its_distribution_is_refused(name):
    state = distributions(300)["weights" if name == "weights" else "levels"].state_dict()
    del state[name]
    with pytest.raises(ValueError, match=f"must hold '{name}', a tensor, it holds NoneType"):
        distribution_from_state(state, 300, torch.device("cpu"))


class Ramp(Distribution):
    """One of a user's own: nothing but weights."""

    def __init__(self, num_samples):
        self.num_samples, self.device = num_samples, torch.device("cpu")
        self.support, self.total = num_samples - 1, num_samples * (num_samples - 1) / 2

    def weights(self, indices=None):
        return (torch.arange(self.num_samples) if indices is None else indices).double()

    def state_dict(self):
        return {}


@pytest.mark.parametrize("way", [systematic_epoch, independent_epoch])
def test_a_distribution_of_ones_own_needs_weights_alone(way):
    ramp, counts = Ramp(300), torch.zeros(300)
    torch.testing.assert_close(
        ramp.probabilities(torch.tensor([0, 299])) * 150, torch.tensor([0.0, 1.0]).double()
    )
    for seed in range(100):
        drawn = torch.cat([part for _, part in ramp.draw_epoch(way, 10, seed)])
        assert all(len(batch.unique()) == 10 for batch in drawn.split(10))
        counts += torch.bincount(drawn, minlength=300)
    assert counts[0] == 0
    assert float(torch.corrcoef(torch.stack((counts, ramp.weights().float())))[0, 1]) > 0.95


def test_weights_of_a_distribution_are_those_of_the_indices_that_are_asked_for():
    indices = torch.tensor([7, 0, 7, 299])
    for distribution in distributions(300).values():
        assert torch.equal(distribution.weights(indices), distribution.weights()[indices])
        assert float(distribution.probabilities().sum()) == pytest.approx(1)
        assert float(distribution.weights().sum()) == pytest.approx(distribution.total)
