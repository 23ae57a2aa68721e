"""Augmentation and normalisation of whole batches, against one image at a time in plain Python."""

import colorsys
import math

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from carpediem.lab.augment import (
    AUGMENTATIONS,
    NORMALISATIONS,
    augmentation,
    crop_and_flip,
    flip_and_jitter,
    normalisation,
    scale_contrast,
    scale_saturation,
    shift_hue,
    standardise_per_image,
    unchanged,
)

every_recipe = pytest.mark.parametrize("augment", AUGMENTATIONS.values(), ids=AUGMENTATIONS.keys())


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def batch(size: int = 64, channels: int = 3, height: int = 6, width: int = 8) -> Tensor:
    shape = (size, channels, height, width)
    return torch.randint(256, shape, generator=seeded(7), dtype=torch.uint8)


def pixels(count: int = 200) -> Tensor:
    """Random colours with greys, ties and primaries among them, shape (1, 3, 1, n), in 0..255."""
    colours = torch.randint(256, (count, 3), generator=seeded(1)).float()
    special = [[0, 0, 0], [255, 255, 255], [90, 90, 90], [255, 0, 0], [0, 255, 0], [0, 0, 255]]
    special += [[200, 200, 10], [10, 200, 200], [200, 10, 200], [5, 5, 9]]
    return torch.cat([colours, torch.tensor(special).float()]).T.reshape(1, 3, 1, -1)


# What every recipe keeps


@every_recipe
@pytest.mark.parametrize("channels", [1, 3])
def test_shape_stays_and_values_become_float32(augment, channels):
    images = batch(channels=channels)
    before = images.clone()
    out = augment(images, seeded())
    assert out.shape == images.shape
    assert out.dtype == torch.float32
    assert out.isfinite().all()
    assert torch.equal(images, before)


@every_recipe
def test_a_generator_leaves_the_global_one_untouched(augment):
    before = torch.random.get_rng_state()
    augment(batch(), seeded())
    assert torch.equal(torch.random.get_rng_state(), before)


@every_recipe
def test_the_same_generator_state_gives_the_same_images(augment):
    generator = seeded(3)
    state = generator.get_state()
    first = augment(batch(), generator)
    generator.set_state(state)
    assert torch.equal(augment(batch(), generator), first)
    assert torch.equal(augment(batch(), seeded(3)), first)


@pytest.mark.parametrize("name", [name for name in AUGMENTATIONS if name != "none"])
def test_the_next_draw_differs(name):
    generator = seeded()
    first = AUGMENTATIONS[name](batch(), generator)
    assert not torch.equal(AUGMENTATIONS[name](batch(), generator), first)


@every_recipe
def test_without_a_generator_the_default_one_is_used(augment):
    with torch.random.fork_rng():
        torch.manual_seed(11)
        first = augment(batch(), None)
        torch.manual_seed(11)
        assert torch.equal(augment(batch(), None), first)
    assert torch.equal(augment(batch(), seeded(11)), first)


@every_recipe
def test_the_memory_layout_of_the_images_does_not_matter(augment):
    images = batch()
    channels_last = images.contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(augment(channels_last, seeded()), augment(images, seeded()))


@every_recipe
def test_a_recipe_is_captured_as_one_graph(augment):
    torch.compiler.reset()
    compiled = torch.compile(augment, backend="eager", fullgraph=True)
    with torch.random.fork_rng():
        assert compiled(batch(), None).shape == batch().shape


@every_recipe
def test_no_value_is_read_back_to_the_host(augment):
    # Meta tensors have no values to read: an operation that needs one fails.
    assert augment(batch().to("meta"), None).shape == batch().shape


# None


def test_none_changes_nothing_but_the_type():
    assert torch.equal(unchanged(batch()), batch().float())


# Crop and flip


def crops(image: Tensor) -> list[Tensor]:
    """All 9·9·2 pictures that padding by 4, cropping and flipping can make of one image."""
    _, height, width = image.shape
    padded = torch.zeros(image.shape[0], height + 8, width + 8)
    padded[:, 4 : 4 + height, 4 : 4 + width] = image
    shifted = [padded[:, y : y + height, x : x + width] for y in range(9) for x in range(9)]
    return [picture for crop in shifted for picture in (crop, crop.flip(2))]


def test_each_image_is_one_of_the_possible_crops_and_flips():
    images = batch(16)
    for image, out in zip(images, crop_and_flip(images, seeded()), strict=True):
        assert any(torch.equal(out, possible) for possible in crops(image))


def test_all_crops_and_flips_come_equally_often():
    count = 81 * 2 * 50
    image = torch.arange(1, 82, dtype=torch.uint8).reshape(1, 1, 9, 9)  # every crop differs
    out = crop_and_flip(image.expand(count, -1, -1, -1), seeded()).flatten(1)
    possible = torch.stack(crops(image[0].float())).flatten(1)
    which = (out[:, None] == possible).all(2)
    assert (which.sum(1) == 1).all()
    seen = which.sum(0)
    assert seen.min() > 20
    assert seen.max() < 90


# Flip and jitter


def test_half_of_the_grey_images_are_mirrored_and_nothing_else_happens():
    images = batch(2000, channels=1)
    out = flip_and_jitter(images, seeded())
    mirrored = (out == images.flip(3)).flatten(1).all(1)
    kept = (out == images).flatten(1).all(1)
    assert (mirrored ^ kept).all()
    assert 0.45 < mirrored.float().mean() < 0.55


@pytest.mark.parametrize("turns", [-0.08, 0.0, 0.05, 0.4])
def test_hue_turns_as_in_the_standard_library(turns):
    colours = pixels()
    expected = []
    for colour in (colours[0, :, 0] / 255).T.tolist():
        hue, saturation, value = colorsys.rgb_to_hsv(*colour)
        expected.append(colorsys.hsv_to_rgb((hue + turns) % 1, saturation, value))
    out = shift_hue(colours, torch.tensor(turns))
    torch.testing.assert_close(out[0, :, 0].T / 255, torch.tensor(expected), atol=1e-5, rtol=0)


@pytest.mark.parametrize("factor", [0.0, 0.5, 1.0, 1.5, 3.0])
def test_saturation_scales_as_in_the_standard_library(factor):
    colours = pixels()
    expected = []
    for colour in (colours[0, :, 0] / 255).T.tolist():
        hue, saturation, value = colorsys.rgb_to_hsv(*colour)
        expected.append(colorsys.hsv_to_rgb(hue, min(factor * saturation, 1), value))
    out = scale_saturation(colours, torch.tensor(factor))
    torch.testing.assert_close(out[0, :, 0].T / 255, torch.tensor(expected), atol=1e-5, rtol=0)


def test_saturation_stays_finite_where_brightness_went_below_zero():
    below = torch.tensor([[-5.0, -3.0, -9.0], [-5.0, 3.0, 2.0]]).T.reshape(1, 3, 1, 2)
    out = scale_saturation(below, torch.tensor(1.5))
    assert torch.equal(out[0, :, 0, 0], torch.full((3,), -3.0))
    assert out[0, :, 0, 1].min() == 0


def test_contrast_scales_about_each_channels_own_mean():
    images = batch(3).float()
    out = scale_contrast(images, torch.tensor(0.5))
    for image, scaled in zip(images, out, strict=True):
        for channel, got in zip(image, scaled, strict=True):
            torch.testing.assert_close(got, channel.mean() + 0.5 * (channel - channel.mean()))


def test_jitter_draws_brightness_for_each_image_within_its_range():
    grey = torch.full((4000, 3, 1, 1), 128, dtype=torch.uint8)
    shift = flip_and_jitter(grey, seeded())[:, 0, 0, 0] - 128  # a flat grey feels brightness alone
    assert shift.abs().max() <= 63.01
    assert shift.min() < -60
    assert shift.max() > 60
    assert abs(shift.mean().item()) < 3


def test_jitter_draws_one_contrast_for_the_batch_within_its_range():
    step = torch.tensor([100, 140], dtype=torch.uint8).view(1, 1, 1, 2).expand(8, 3, 1, 2)
    factors = []
    for seed in range(200):
        out = flip_and_jitter(step, seeded(seed))
        spread = (out[..., 1] - out[..., 0]).abs() / 40
        torch.testing.assert_close(spread, spread[:1, :1].expand_as(spread), atol=1e-4, rtol=0)
        factors.append(spread[0, 0, 0].item())
    assert 0.2 <= min(factors) < 0.3
    assert 1.7 < max(factors) <= 1.8


# Normalisation


def test_per_image_standardisation_gives_each_image_mean_zero_and_deviation_one():
    out = standardise_per_image(batch().float())
    torch.testing.assert_close(out.mean((1, 2, 3)), torch.zeros(64), atol=1e-5, rtol=0)
    torch.testing.assert_close(out.std((1, 2, 3), correction=0), torch.ones(64))


def test_per_image_standardisation_bounds_the_deviation_of_flat_images():
    flat = torch.full((1, 3, 4, 4), 7.0)
    assert torch.equal(standardise_per_image(flat), torch.zeros_like(flat))
    flat[0, 0, 0, 0] += 0.1
    expected = (flat - flat.mean()) * math.sqrt(48)
    torch.testing.assert_close(standardise_per_image(flat), expected)


def test_unit_divides_by_255():
    torch.testing.assert_close(
        normalisation("unit")(torch.tensor([0.0, 51.0, 300.0])), torch.tensor([0.0, 0.2, 300 / 255])
    )


def test_per_image_unit_bounds_the_deviation_on_the_scale_of_0_to_1():
    images = batch().float()
    standardise = normalisation("per-image-unit")
    torch.testing.assert_close(standardise(images), standardise_per_image(images), atol=1e-5, rtol=1e-5)
    faint = torch.full((1, 3, 4, 4), 7.0)
    faint[0, 0, 0, 0] += 10
    # Its deviation is 10·√47/48 on the scale of 0 to 255, and 0.0056, less than 1/√48, on that of 0 to 1.
    torch.testing.assert_close(standardise(faint), (faint - faint.mean()) / 255 * math.sqrt(48))


def test_efficientnet_takes_pixels_about_127_in_units_of_128():
    out = normalisation("efficientnet")(torch.tensor([0.0, 127.0, 255.0]))
    torch.testing.assert_close(out, torch.tensor([-127 / 128, 0.0, 1.0]))


def test_imagenet_statistics_lie_on_the_device_before_any_image_comes():
    images, ran = batch().float(), []
    normalise = normalisation("imagenet", device="cpu")

    class Recorded(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            ran.append(function.overloadpacket.__name__)
            return function(*args, **(kwargs or {}))

    with Recorded():
        out = normalise(images)
    assert set(ran) == {"view", "sub", "div"}, "a step that makes a tensor from numbers cannot be recorded"
    for channel, (mean, std) in enumerate([(0.485, 0.229), (0.456, 0.224), (0.406, 0.225)]):
        torch.testing.assert_close(out[:, channel], (images[:, channel] / 255 - mean) / std)
    assert normalisation("imagenet", device="meta")(images.to("meta")).device.type == "meta"


def test_normalisations_leave_their_input_as_it_was():
    images = batch().float()
    for name in NORMALISATIONS:
        normalisation(name)(images)
    assert torch.equal(images, batch().float())


# Errors


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=f"one of {', '.join(AUGMENTATIONS)}; got 'mixup'"):
        augmentation("mixup")
    with pytest.raises(ValueError, match=f"one of {', '.join(NORMALISATIONS)}; got 'batch'"):
        normalisation("batch")
    assert augmentation("none") is unchanged


@every_recipe
def test_images_of_another_type_or_shape_are_refused(augment):
    with pytest.raises(TypeError, match=r"images must be uint8 .* got torch\.float32"):
        augment(batch().float(), None)
    with pytest.raises(ValueError, match=r"images must have shape .* got \(3, 6, 8\)"):
        augment(batch()[0], None)
    with pytest.raises(ValueError, match="generator must live on the images' device, meta, got cpu"):
        augment(batch().to("meta"), seeded())


def test_jitter_refuses_images_that_are_neither_grey_nor_rgb():
    with pytest.raises(ValueError, match=r"3 channels \(RGB\) or 1 for flip-jitter, got 4"):
        flip_and_jitter(batch(channels=4), None)
