import dataclasses

import pytest
import torch

from carpediem.lab.data import DataError, ImageData


def make(**changes) -> ImageData:
    generator = torch.Generator().manual_seed(0)
    parts = {
        "name": "toy",
        "train_images": torch.randint(0, 256, (6, 3, 4, 4), dtype=torch.uint8, generator=generator),
        "train_labels": torch.tensor([0, 1, 2, 0, 1, 2]),
        "test_images": torch.zeros(3, 3, 4, 4, dtype=torch.uint8),
        "test_labels": torch.tensor([0, 1, 2]),
        "classes": ("a", "b", "c"),
    }
    return ImageData(**{**parts, **changes})


def test_the_sizes_are_read_off_the_arrays():
    data = make()
    assert (data.num_classes, data.in_channels, data.image_size) == (3, 3, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_images": torch.zeros(6, 3, 4, 4)}, "train_images must be uint8.*float32; scale"),
        ({"test_images": torch.zeros(3, 3, 4, 5, dtype=torch.uint8)}, r"square.*\(3, 3, 4, 5\)"),
        ({"train_images": torch.zeros(6, 4, 4, dtype=torch.uint8)}, r"\(N, channels, side, side\)"),
        ({"train_labels": torch.zeros(6)}, "train_labels must be int64"),
        ({"train_labels": torch.tensor([0, 1, 2])}, "6 images but 3 labels"),
        ({"train_labels": torch.tensor([0, 1, 2, 0, 1, 3])}, r"\[0, 3\), got 3 at index 5"),
        ({"test_labels": torch.tensor([0, -1, 2])}, r"test_labels.*got -1 at index 1"),
        ({"train_labels": torch.tensor([0, 1, 1, 0, 1, 1])}, "needs a training sample, none of 'c'"),
        ({"test_images": torch.zeros(3, 1, 4, 4, dtype=torch.uint8)}, "one shape"),
        (
            {
                "test_images": torch.zeros(0, 3, 4, 4, dtype=torch.uint8),
                "test_labels": torch.tensor([]).long(),
            },
            "test must hold at least one image",
        ),
    ],
)
def test_inconsistent_arrays_are_refused_in_one_sentence(changes, message):
    with pytest.raises(DataError, match=message) as caught:
        make(**changes)
    assert "\n" not in str(caught.value)


def test_many_absent_classes_are_summed_up():
    names = tuple("abcdefghij")
    with pytest.raises(DataError, match="'d', 'e', 'f', 'g', 'h' and 2 more"):
        make(classes=names)


def test_the_fingerprint_is_short_and_repeatable():
    assert make().fingerprint() == make().fingerprint()
    assert len(make().fingerprint()) == 16


@pytest.mark.parametrize("part", ["train_images", "test_images", "train_labels", "test_labels", "classes"])
def test_the_fingerprint_changes_with_any_part(part):
    data = make()
    if part == "classes":
        other = dataclasses.replace(data, classes=("a", "b", "d"))
    elif part.endswith("labels"):
        other = dataclasses.replace(data, **{part: getattr(data, part).flip(0)})
    else:
        changed = getattr(data, part).clone()
        changed[-1, 0, 0, 0] ^= 1
        other = dataclasses.replace(data, **{part: changed})
    assert other.fingerprint() != data.fingerprint()


def test_the_fingerprint_does_not_depend_on_memory_layout():
    data = make()
    other = dataclasses.replace(
        data, train_images=data.train_images.contiguous(memory_format=torch.channels_last)
    )
    assert other.fingerprint() == data.fingerprint()
