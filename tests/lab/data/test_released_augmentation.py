"""The authors' augmentation, against images that TensorFlow made with recorded numbers (released_augmentation.npz)."""

import colorsys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from carpediem.lab.augment import AUGMENTATIONS, normalisation
from carpediem.lab.data.released_augmentation import (
    Numbers,
    augment_for_densenet,
    augment_for_resnet,
    draw_independent,
    draw_shared,
)

RECORDED = np.load(Path(__file__).with_name("released_augmentation.npz"))
SHARED = ("released-resnet", "released-densenet")
INDEPENDENT = ("released-resnet-independent", "released-densenet-independent")
PIPELINES = {"resnet": augment_for_resnet, "densenet": augment_for_densenet}
each_pipeline = pytest.mark.parametrize("augment", PIPELINES.values(), ids=PIPELINES.keys())


def recorded(name: str) -> Tensor:
    """Images as (b, c, h, w), numbers as (b,)."""
    found = torch.from_numpy(np.atleast_1d(RECORDED[name]))
    return found.permute(0, 3, 1, 2) if found.dim() == 4 else found.float()


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def batch(size: int = 16) -> Tensor:
    return torch.randint(256, (size, 3, 4, 6), generator=seeded(7), dtype=torch.uint8)


def neutral(size: int) -> Numbers:
    """The numbers that change nothing."""
    return Numbers.shared(torch.full((size,), 0.5), torch.tensor([0.5]))


# Against TensorFlow


@pytest.mark.parametrize(
    ("name", "normalised_by", "bar"), [("resnet", "unit", 1e-5), ("densenet", "per-image-unit", 1e-3)]
)
def test_tensorflows_images_come_out_given_its_numbers(name, normalised_by, bar):
    numbers = Numbers.shared(recorded(f"{name}_u"), recorded(f"{name}_contrast_u"))
    out = normalisation(normalised_by)(PIPELINES[name](recorded("images"), numbers))
    assert out.dtype == torch.float32
    apart = (out.double() - recorded(name).double()).abs().max().item()
    print(f"{name}: at most {apart:.2e} apart")
    assert apart <= bar


def test_tensorflows_images_show_more_than_the_bars():
    # Else a wrong order of the operations could pass: the same numbers through the other network's operations.
    numbers = Numbers.shared(recorded("resnet_u"), recorded("resnet_contrast_u"))
    assert (augment_for_densenet(recorded("images"), numbers) / 255 - recorded("resnet")).abs().max() > 0.1
    assert 0.3 < (recorded("resnet_u") < 0.5).float().mean() < 0.9


# One operation at a time


@each_pipeline
def test_the_middle_of_every_range_changes_nothing(augment):
    torch.testing.assert_close(augment(batch(), neutral(16)), batch().float(), atol=2e-3, rtol=0)


@each_pipeline
def test_the_number_for_flip_mirrors_below_one_half_alone(augment):
    numbers = replace(neutral(16), flip=torch.arange(16) / 16)
    expected = torch.cat([batch()[:8].flip(3), batch()[8:]]).float()
    torch.testing.assert_close(augment(batch(), numbers), expected, atol=2e-3, rtol=0)


@each_pipeline
@pytest.mark.parametrize("u", [0.0, 0.3, 0.99])
def test_the_number_for_hue_turns_by_up_to_eight_hundredths(augment, u):
    out = augment(batch(), replace(neutral(16), hue=torch.full((16,), u)))
    expected = by_colour(lambda h, s, v: ((h + (2 * u - 1) * 0.08) % 1, s, v))
    torch.testing.assert_close(out.double(), expected, atol=2e-3, rtol=0)


@each_pipeline
@pytest.mark.parametrize("u", [0.0, 0.3, 0.99])
def test_the_number_for_saturation_scales_by_a_half_to_one_and_a_half(augment, u):
    out = augment(batch(), replace(neutral(16), saturation=torch.full((16,), u)))
    expected = by_colour(lambda h, s, v: (h, min(1, s * (0.5 + u)), v))
    torch.testing.assert_close(out.double(), expected, atol=2e-3, rtol=0)


def by_colour(change) -> Tensor:
    """The batch with each pixel's hue, saturation and value changed, by the standard library in float64."""
    pixels = (batch().double() / 255).permute(0, 2, 3, 1)
    changed = [colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*p))) for p in pixels.reshape(-1, 3).tolist()]
    return 255 * torch.tensor(changed, dtype=torch.float64).view(pixels.shape).permute(0, 3, 1, 2)


@pytest.mark.parametrize("u", [0.0, 0.3, 0.99])
def test_the_number_for_brightness_shifts_the_resnets_images_by_up_to_a_half(u):
    out = augment_for_resnet(batch(), replace(neutral(16), brightness=torch.full((16,), u)))
    torch.testing.assert_close(out, batch() + 255 * (u - 0.5), atol=2e-3, rtol=0)


def test_brightness_leaves_the_densenet_no_colour_below_one_half():
    out = augment_for_densenet(batch(), replace(neutral(16), brightness=torch.full((16,), 0.4)))
    value = batch().amax(1, keepdim=True).expand(-1, 3, -1, -1) - 255 * 63 * 0.2
    torch.testing.assert_close(out, value, atol=1e-2, rtol=0)


def test_brightness_above_one_half_is_what_standardisation_takes_away_again():
    out = augment_for_densenet(batch(), replace(neutral(16), brightness=torch.full((16,), 0.8)))
    standardise = normalisation("per-image-unit")
    torch.testing.assert_close(standardise(out), standardise(batch().float()), atol=1e-3, rtol=0)


@pytest.mark.parametrize(("name", "low", "high"), [("resnet", 0.5, 1.5), ("densenet", 0.2, 1.8)])
def test_the_number_for_contrast_scales_about_each_channels_mean(name, low, high):
    numbers = replace(neutral(16), contrast=torch.tensor([0.75]))
    x = batch().double()
    mean = x.mean((2, 3), keepdim=True)
    expected = mean + (low + 0.75 * (high - low)) * (x - mean)
    torch.testing.assert_close(PIPELINES[name](batch(), numbers).double(), expected, atol=2e-3, rtol=0)


# The numbers


def test_one_number_of_an_image_decides_all_but_contrast():
    numbers = draw_shared(batch(500), seeded())
    assert numbers.flip is numbers.hue is numbers.saturation is numbers.brightness
    assert numbers.flip.shape == (500,)
    assert numbers.contrast.shape == (1,)
    assert 0.45 < numbers.flip.mean() < 0.55


def test_independent_numbers_are_uncorrelated_and_each_image_has_its_own():
    numbers = draw_independent(batch(4000), seeded())
    columns = [numbers.flip, numbers.hue, numbers.saturation, numbers.brightness, numbers.contrast]
    found = torch.corrcoef(torch.stack(columns))
    assert (found - torch.eye(5)).abs().max() < 0.06
    assert all(0.47 < column.mean() < 0.53 and 0.27 < column.std() < 0.31 for column in columns)


def steps(count: int = 400) -> Tensor:
    """Grey images that are dark on the left and bright on the right, so that flip and brightness can be told."""
    columns = torch.tensor([100, 100, 140, 140], dtype=torch.uint8)
    return columns.expand(count, 3, 2, 4).clone()


def test_a_mirrored_image_is_the_darker_one_unless_numbers_are_independent():
    mirrored, darker = told_apart(AUGMENTATIONS["released-resnet"](steps(), seeded()))
    assert torch.equal(mirrored, darker)
    assert 0.4 < mirrored.float().mean() < 0.6
    mirrored, darker = told_apart(AUGMENTATIONS["released-resnet-independent"](steps(), seeded()))
    assert 0.4 < (mirrored == darker).float().mean() < 0.6


def told_apart(out: Tensor) -> tuple[Tensor, Tensor]:
    """Which steps came out mirrored, and which darker."""
    return out[:, 0, 0, 0] > out[:, 0, 0, 3], out.mean((1, 2, 3)) < 120


@pytest.mark.parametrize(("names", "differs"), [(SHARED, False), (INDEPENDENT, True)])
def test_contrast_is_the_batchs_unless_numbers_are_independent(names, differs):
    for name in names:
        out = AUGMENTATIONS[name](steps(), seeded())
        heights = (out[:, 0, 0, 0] - out[:, 0, 0, 3]).abs()
        assert (heights.std() > 0.1 * heights.mean()) == differs


# As an augmentation


@pytest.mark.parametrize("name", [*SHARED, *INDEPENDENT])
def test_grey_images_are_mirrored_and_nothing_else(name):
    images = batch(500)[:, :1]
    out = AUGMENTATIONS[name](images, seeded())
    mirrored = (out == images.flip(3)).flatten(1).all(1)
    kept = (out == images).flatten(1).all(1)
    assert (mirrored ^ kept).all()
    assert 0.4 < mirrored.float().mean() < 0.6


@pytest.mark.parametrize("name", [*SHARED, *INDEPENDENT])
def test_bfloat16_around_it_changes_nothing(name):
    expected = AUGMENTATIONS[name](batch(), seeded())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = AUGMENTATIONS[name](batch(), seeded())
    assert found.dtype == torch.float32
    assert torch.equal(found, expected)


@pytest.mark.parametrize("name", [*SHARED, *INDEPENDENT])
def test_images_that_are_neither_grey_nor_rgb_are_refused(name):
    with pytest.raises(ValueError, match=rf"3 channels \(RGB\) or 1 for {name}, got 4"):
        AUGMENTATIONS[name](torch.zeros(2, 4, 3, 3, dtype=torch.uint8), None)
