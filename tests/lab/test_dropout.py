"""Dropout whose masks are a function of run, step and place."""

import pytest
import torch
from torch import nn

from carpediem.lab.dropout import CountedDropout, count_dropout

PLACES = 200_000


def dropped(rate=0.2, *, layer=0, seed=0, shape=(PLACES,)):
    drop = CountedDropout(rate, layer)
    drop.seed.fill_(seed)
    return drop(torch.ones(shape))


def agreement(one, other):
    """The share of places at which both are kept or both dropped."""
    return ((one == 0) == (other == 0)).double().mean().item()


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**31 - 1, -7])
@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5, 0.9])
def test_the_share_of_dropped_places_is_the_rate(rate, seed):
    share = (dropped(rate, seed=seed) == 0).double().mean().item()
    assert share == pytest.approx(rate, abs=5 * (rate * (1 - rate) / PLACES) ** 0.5)


def test_what_is_kept_grows_so_that_the_mean_stays():
    kept = dropped(0.2, seed=3)
    torch.testing.assert_close(kept[kept != 0].unique(), torch.tensor([1.25]))
    assert kept.mean().item() == pytest.approx(1, abs=5 * 0.5 / PLACES**0.5)


def test_a_place_is_dropped_as_often_as_the_rate_says_over_the_steps():
    share = torch.stack([dropped(0.3, seed=step, shape=(64,)) == 0 for step in range(4000)]).double().mean(0)
    assert (share - 0.3).abs().max() < 5 * (0.21 / 4000) ** 0.5


@pytest.mark.parametrize("other", [{"seed": 8}, {"seed": 7 + 2**20}, {"layer": 1}, {"layer": 12}])
def test_masks_of_other_steps_runs_and_layers_agree_by_chance_alone(other):
    same_by_chance = 0.7**2 + 0.3**2
    one, two = dropped(0.3, seed=7, layer=0), dropped(0.3, **({"seed": 7, "layer": 0} | other))
    assert agreement(one, two) == pytest.approx(same_by_chance, abs=5 * 0.5 / PLACES**0.5)


def test_neighbouring_places_are_independent():
    kept = dropped(0.5, seed=11) == 0
    for distance in (1, 2, 7, 64, 1024):
        together = (kept[:-distance] == kept[distance:]).double().mean().item()
        assert together == pytest.approx(0.5, abs=5 * 0.5 / PLACES**0.5)


def test_the_same_seed_and_layer_give_the_same_mask():
    assert torch.equal(dropped(seed=5, layer=2), dropped(seed=5, layer=2))


def test_gradients_flow_where_activations_do():
    drop = CountedDropout(0.4, 0)
    x = torch.randn(1000, requires_grad=True)
    y = drop(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.where(y == 0, 0.0, 1 / 0.6))


def test_evaluation_and_a_rate_of_zero_change_nothing():
    x = torch.randn(100)
    assert CountedDropout(0.5, 0).eval()(x) is x
    assert CountedDropout(0.0, 0)(x) is x


def test_the_global_generator_is_neither_read_nor_moved():
    before = torch.get_rng_state()
    one = dropped(seed=1)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(99)
    try:
        assert torch.equal(dropped(seed=1), one)
    finally:
        torch.set_rng_state(before)


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1), nn.Sequential(nn.Dropout(0.2)))
        self.twice = self.again = nn.Dropout(0.3)
        self.last = nn.ModuleList([nn.Dropout(0.4), nn.ReLU()])


def test_every_dropout_is_replaced_and_keeps_its_rate():
    net = Nested()
    assert count_dropout(net) is net
    modules = [m for _, m in net.named_modules(remove_duplicate=False)]
    assert not any(isinstance(m, nn.Dropout) for m in modules)
    counted = {m for m in modules if isinstance(m, CountedDropout)}
    assert sorted(m.rate for m in counted) == [0.1, 0.2, 0.3, 0.4]
    assert len({m.layer for m in counted}) == 4
    assert net.twice is net.again


def test_other_layers_stay_as_they_are():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Dropout(0.5))
    before = list(net)
    count_dropout(net)
    assert net[0] is before[0]
    assert net[1] is before[1]
