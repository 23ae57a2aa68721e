import os
import pickle
from dataclasses import replace

import pytest
import torch
from torch.utils.data import DataLoader

from carpediem.lab.data import DataError, FolderData, FolderImages, ImageData, load, open_data
from carpediem.lab.data import files as files_module
from carpediem.lab.data.files import open_listing
from carpediem.lab.data.folders import list_folder
from lab.data.makers import class_folders, picture, stripes


@pytest.mark.parametrize("test", ["test", "val", "valid"])
def test_a_training_folder_goes_with_each_name_of_a_test_folder(tmp_path, test):
    class_folders(tmp_path / "train", count=4)
    class_folders(tmp_path / test, count=2)
    data = load(str(tmp_path), image_size=8)
    assert (len(data.train_images), len(data.test_images)) == (8, 4)
    assert data.classes == ("cat", "dog")
    assert (data.name, data.image_size, data.in_channels) == (tmp_path.name, 8, 3)
    assert data.train_labels.tolist() == [0] * 4 + [1] * 4


def test_images_keep_company_with_their_labels(tmp_path):
    data = load(str(class_folders(tmp_path, count=10)), image_size=4)
    redness = data.train_images[:, 0].float().mean(dim=(1, 2))
    assert torch.equal((redness > 40).long(), data.train_labels)


def test_test_goes_before_valid(tmp_path):
    for part, count in (("train", 3), ("valid", 1), ("test", 2)):
        class_folders(tmp_path / part, count=count)
    assert len(list_folder(tmp_path).test) == 4


def test_one_fifth_of_each_class_becomes_the_test_set_always_the_same(tmp_path):
    listing = list_folder(class_folders(tmp_path / "here", count=10))
    again = list_folder(class_folders(tmp_path / "there", count=10))
    assert [file.label for file in listing.test] == [0, 0, 1, 1]
    assert [file.path.name for file in listing.test] == [file.path.name for file in again.test]
    assert not {file.path for file in listing.train} & {file.path for file in listing.test}


def test_the_default_size_is_that_of_imagenet_networks(tmp_path):
    assert load(str(class_folders(tmp_path, count=2))).image_size == 224


def test_a_folder_too_large_for_memory_is_read_piece_by_piece(tmp_path):
    class_folders(tmp_path)
    whole = load(str(tmp_path), image_size=8)
    lazy = open_data(str(tmp_path), image_size=8, max_bytes=10 * 3 * 64 - 1)
    assert isinstance(lazy, FolderData)
    assert isinstance(open_data(str(tmp_path), image_size=8, max_bytes=10 * 3 * 64), ImageData)
    assert isinstance(lazy.train, FolderImages)
    assert torch.equal(lazy.train.labels, whole.train_labels)
    for index, (image, label) in enumerate(lazy.train):
        assert torch.equal(image, whole.train_images[index])
        assert label == whole.train_labels[index]
        if index == len(lazy.train) - 1:
            break
    assert (lazy.num_classes, lazy.in_channels, lazy.image_size) == (2, 3, 8)
    assert (lazy.name, len(lazy.test)) == (whole.name, len(whole.test_images))


def test_load_says_when_a_folder_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(files_module, "decoded_bytes", lambda listing, size: 2**40)
    with pytest.raises(DataError, match=r"more than \d+ bytes.*smaller image_size.*open_data"):
        load(str(class_folders(tmp_path)))


def test_the_lazy_set_feeds_a_data_loader_and_can_be_sent_to_workers(tmp_path):
    data = open_data(str(class_folders(tmp_path)), image_size=6, max_bytes=1)
    assert isinstance(data, FolderData)
    copy = pickle.loads(pickle.dumps(data.train))
    images, labels = next(iter(DataLoader(copy, batch_size=8)))
    assert (images.shape, images.dtype) == ((8, 3, 6, 6), torch.uint8)
    assert labels.tolist() == data.train.labels.tolist()


def test_the_lazy_fingerprint_changes_with_a_file_and_not_with_the_place(tmp_path):
    prints = []
    for place in ("here", "there"):
        class_folders(tmp_path / place / "set")
        data = open_data(str(tmp_path / place / "set"), image_size=6, max_bytes=1)
        prints.append(data.fingerprint())
    picture(tmp_path / "there" / "set" / "cat" / "0.jpg", size=(90, 90))
    assert prints[0] == prints[1] != data.fingerprint()


def test_the_lazy_set_resizes_as_the_listing_says_and_its_fingerprint_tells_of_it(tmp_path):
    for part in ("train", "test"):
        class_folders(tmp_path / part)
    stripes(tmp_path / "train" / "cat" / "0.jpg", (30, 10), vertical=True)
    square = list_folder(tmp_path)
    whole = replace(square, whole=True)
    found = {listing: open_listing(listing, image_size=6, max_bytes=1) for listing in (square, whole)}
    reds = {listing: data.train[0][0][0].float().mean() for listing, data in found.items()}
    assert reds[whole] > 70 > 20 > reds[square]
    assert found[square].fingerprint() != found[whole].fingerprint()
    in_memory = open_listing(whole, image_size=6)
    assert torch.equal(in_memory.train_images[0], found[whole].train[0][0])
    assert torch.equal(in_memory.test_images[3], found[whole].test[3][0])


def test_fingerprints_of_what_is_cut_to_its_central_square_stay_as_published(tmp_path):
    for part in ("train", "test"):
        for name in ("cat", "dog"):
            (tmp_path / part / name).mkdir(parents=True)
            (tmp_path / part / name / "0.png").write_bytes(b"pixels are not read")
    data = open_data(str(tmp_path), image_size=96, max_bytes=1)
    assert data.fingerprint() == "75aace023cd974ed"


def test_hidden_files_and_clutter_are_passed_over(tmp_path):
    class_folders(tmp_path)
    for name in ("cat/.DS_Store", "cat/Thumbs.db", "README.txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / ".git").mkdir()
    assert list_folder(tmp_path).classes == ("cat", "dog")


def test_a_file_that_is_no_image_is_named(tmp_path):
    (class_folders(tmp_path) / "dog" / "notes.txt").write_text("x")
    with pytest.raises(DataError, match=r"dog.notes\.txt must be an image file.*move it out of"):
        list_folder(tmp_path)


def test_a_folder_in_a_class_folder_is_named(tmp_path):
    (class_folders(tmp_path) / "dog" / "more").mkdir()
    with pytest.raises(DataError, match=r"dog.more must be an image file"):
        list_folder(tmp_path)


def test_an_image_that_cannot_be_read_is_named(tmp_path):
    path = class_folders(tmp_path) / "cat" / "3.jpg"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match=r"cat.3\.jpg cannot be decoded"):
        load(str(tmp_path), image_size=8)


def test_an_empty_class_folder_is_named(tmp_path):
    (class_folders(tmp_path) / "emu").mkdir()
    with pytest.raises(DataError, match="emu must hold at least one image, got none"):
        list_folder(tmp_path)


def test_a_test_class_that_training_lacks_is_named(tmp_path):
    class_folders(tmp_path / "train")
    class_folders(tmp_path / "test", classes=("cat", "emu"))
    with pytest.raises(DataError, match=r"test.emu must also be a class of .*train; add it there"):
        list_folder(tmp_path)


def test_a_training_folder_without_a_test_folder_is_refused(tmp_path):
    class_folders(tmp_path / "train")
    with pytest.raises(DataError, match="holds train but none of test, val, valid"):
        list_folder(tmp_path)


def test_a_test_folder_without_a_training_folder_is_refused(tmp_path):
    class_folders(tmp_path / "test")
    with pytest.raises(DataError, match="holds test but no train"):
        list_folder(tmp_path)


def test_a_folder_without_classes_is_refused(tmp_path):
    picture(tmp_path / "a.jpg")
    with pytest.raises(DataError, match=r"at least two classes, got \[\]"):
        list_folder(tmp_path)


def test_classes_of_one_image_leave_nothing_to_test_on(tmp_path):
    with pytest.raises(DataError, match="must hold test images, got none"):
        list_folder(class_folders(tmp_path, count=1))


def test_an_impossible_size_is_refused(tmp_path):
    with pytest.raises(ValueError, match="image_size must be at least 1, got 0"):
        load(str(class_folders(tmp_path)), image_size=0)


def test_flowers_102_trains_on_train_and_tests_on_test(tmp_path):
    for part, count in (("train", 3), ("valid", 1), ("test", 2)):
        class_folders(tmp_path / "flowers-102" / part, classes=("001", "002", "003"), count=count)
    data = load("flowers-102", tmp_path, image_size=8)
    assert (data.name, len(data.train_images), len(data.test_images)) == ("flowers-102", 9, 6)
    assert load("flowers-102", tmp_path / "flowers-102", image_size=8).fingerprint() == data.fingerprint()


def test_training_images_know_their_files_whatever_these_are_called(tmp_path):
    for part in ("train", "test"):
        class_folders(tmp_path / part, count=2)
    first = list_folder(tmp_path).train[0].path
    odd = os.fsencode(first.parent) + b"/\xff.png"
    try:
        os.rename(first, odd)
    except OSError:
        pytest.skip("the disk takes no such name")
    listing = list_folder(tmp_path)
    names = load(tmp_path, image_size=8).train_files
    assert names == listing.train_files
    assert sum(name.endswith("\\xff.png") for name in names) == 1
    assert "\n".join(names).encode()


def test_as_many_files_as_training_images_are_asked_for():
    images, labels = torch.zeros(2, 1, 8, 8, dtype=torch.uint8), torch.tensor([0, 1])
    with pytest.raises(DataError, match="toy: train_files must be as many as the 2 training images, got 1"):
        ImageData("toy", images, labels, images, labels, classes=("a", "b"), train_files=("x",))
