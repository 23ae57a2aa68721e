import sys

import numpy as np
import pytest
import torch

from carpediem.lab.data import SOURCES, DataError, DataNotFoundError, load
from lab.data.makers import class_folders

MODULE = """
import numpy as np
import torch
from carpediem.lab.data import ImageData

images = np.arange(4 * 3 * 5 * 5, dtype=np.uint8).reshape(4, 3, 5, 5)
labels = np.array([0, 1, 2, 1], dtype=np.uint8)
arrays = lambda: (images, labels, images, labels)
tensors = lambda: [torch.from_numpy(part) for part in arrays()]
grey = lambda: (images[:, 0], labels.tolist(), images[:, 0], labels)
whole = lambda: ImageData("mine", *[torch.from_numpy(p) if p.ndim > 1 else torch.from_numpy(p).long()
                                    for p in arrays()], classes=("a", "b", "c"))
three = lambda: arrays()[:3]
nothing = lambda: None
floats = lambda: (images / 255, labels, images, labels)
float_labels = lambda: (images, labels / 2, images, labels)
channels_last = lambda: (images.transpose(0, 2, 3, 1), labels, images, labels)
unknown_label = lambda: (images, labels, images, labels + 1)
gap = lambda: (images, labels * 2, images, labels)
words = lambda: (images, ["cat", "dog", "emu", "cat"], images, labels)
text = lambda: ("images", labels, images, labels)
constant = 3
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder, with a module of the user's in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_own_data.py").write_text(MODULE)
    (tmp_path / "my_broken_data.py").write_text("import no_such_library")
    yield tmp_path
    for name in ("my_own_data", "my_broken_data"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["arrays", "tensors"])
def test_a_user_s_function_may_return_four_arrays(here, name):
    data = load(f"my_own_data:{name}")
    assert data.classes == ("0", "1", "2")
    assert (data.name, data.image_size) == (f"my_own_data:{name}", 5)
    assert (data.train_labels.dtype, data.train_labels.tolist()) == (torch.int64, [0, 1, 2, 1])
    assert data.train_images[0, 1, 0].tolist() == [25, 26, 27, 28, 29]


def test_a_user_s_function_may_return_the_whole_set(here):
    data = load("my_own_data:whole")
    assert (data.name, data.classes) == ("mine", ("a", "b", "c"))


def test_grey_images_need_no_channel(here):
    assert tuple(load("my_own_data:grey").train_images.shape) == (4, 1, 5, 5)


def test_the_search_path_is_left_as_it_was(here):
    before = list(sys.path)
    load("my_own_data:arrays")
    assert sys.path == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("three", r"must return a carpediem.lab.data.ImageData or the four arrays .*got tuple of 3"),
        ("nothing", "got NoneType"),
        ("floats", "train_images must be uint8"),
        ("float_labels", "train_labels must be whole numbers, got torch.float"),
        ("channels_last", r"channels last; permute them with transpose\(0, 3, 1, 2\)"),
        ("unknown_label", r"test_labels must lie in \[0, 3\), got 3"),
        ("gap", "needs a training sample, none of '1', '3'"),
        ("words", "train_labels must be an array of numbers"),
        ("text", "train_images must be an array or a tensor, got str"),
        ("constant", "must define a function 'constant'"),
        ("absent", "must define a function 'absent'"),
    ],
)
def test_what_a_user_s_function_must_not_return_is_said(here, name, message):
    with pytest.raises(DataError, match=f"my_own_data:{name}.*{message}"):
        load(f"my_own_data:{name}")


def test_a_module_that_is_not_there_is_named(here):
    with pytest.raises(DataError, match="no module 'no_such_module' in"):
        load("no_such_module:load")


def test_what_a_module_fails_to_import_is_not_blamed_on_the_module(here):
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        load("my_broken_data:load")


@pytest.mark.parametrize("name", ["cifar11", "./nowhere", "a:b:c"])
def test_an_unknown_name_is_answered_with_the_known_ones(here, name):
    with pytest.raises(
        DataNotFoundError, match=r"one of digits, mnist, .*, an existing folder.*, or module:function"
    ):
        load(name)


def test_a_named_set_goes_before_a_folder_of_that_name(here):
    class_folders(here / "digits")
    assert len(load("digits").train_images) == 898
    assert len(load("./digits", image_size=4).train_images) == 8


@pytest.mark.parametrize("size", [4, 16])
def test_sets_in_memory_are_resized_on_request(size):
    small, own = load("digits", image_size=size), load("digits")
    assert tuple(small.train_images.shape) == (898, 1, size, size)
    assert torch.equal(small.train_labels, own.train_labels)
    brightness = [images.float().mean().item() for images in (small.train_images, own.train_images)]
    assert np.isclose(*brightness, rtol=0.05)
    assert small.fingerprint() != own.fingerprint()


def test_an_impossible_size_is_refused():
    with pytest.raises(ValueError, match="image_size must be at least 1, got 0"):
        load("digits", image_size=0)


def test_every_set_of_the_paper_has_a_name():
    assert {"mnist", "cifar10", "cifar100", "mit67", "food100"} < set(SOURCES)
