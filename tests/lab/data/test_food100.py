from pathlib import Path

import pytest

from carpediem.lab.data import DataError, load
from carpediem.lab.data.food100 import list_food100, locate_food100
from lab.data.makers import picture

NAMES = ("rice", "eels on rice", "pilaf")


def make(folder, *, count=16):
    """Three dishes of as many photographs; numbers 100 and 101 show rice and pilaf at once."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{number}\t{name}\n" for number, name in enumerate(NAMES, start=1))
    (folder / "category.txt").write_text("id\tname\n" + lines)
    for dish in (1, 2, 3):
        photographs = [dish * 1000 + index for index in range(count - 2)]
        photographs += [100, 101] if dish != 2 else [200, 201]
        boxes = "".join(f"{number} 2 3 9 8\n" for number in photographs)
        for number in photographs:
            picture(folder / str(dish) / f"{number}.jpg", size=(14, 10))
        (folder / str(dish) / "bb_info.txt").write_text("img x1 y1 x2 y2\n" + boxes)
    return folder


def few(folder, **options):
    """The listing with 10 + 4 photographs a dish."""
    return list_food100(folder, train=10, test=4, **options)


def names(part):
    return {file.path.name for file in part}


@pytest.mark.parametrize("folder", ["UECFOOD100", "dataset100/UECFOOD100", "."])
def test_seventy_of_every_dish_are_for_training_and_thirty_for_testing(tmp_path, folder):
    make(tmp_path / folder, count=104)
    data = load("food100", tmp_path, image_size=8)
    assert data.train_labels.bincount().tolist() == [70, 70, 70]
    assert data.test_labels.bincount().tolist() == [30, 30, 30]
    assert data.classes == NAMES


def test_the_photographs_are_the_same_whatever_the_order_of_the_directory(tmp_path, monkeypatch):
    make(tmp_path)
    listing = few(tmp_path)
    walk = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda folder: sorted(walk(folder), reverse=True))
    assert few(tmp_path) == listing


def test_a_photograph_of_two_dishes_falls_on_one_side(tmp_path):
    make(tmp_path, count=14)  # all of them are needed
    listing = few(tmp_path)
    assert names(listing.train).isdisjoint(names(listing.test))
    assert {"100.jpg", "101.jpg"} <= names(listing.train) | names(listing.test)


def test_a_dish_with_too_few_photographs_is_named(tmp_path):
    make(tmp_path)
    with pytest.raises(
        DataError, match=r"1 must hold at least 100 images, 70 for training and 30 .*, got 16"
    ):
        load("food100", tmp_path)
    (tmp_path / "2" / "2000.jpg").unlink()
    with pytest.raises(DataError, match=r"2 must hold at least 16 images, 12 for training and 4 .*, got 15"):
        list_food100(tmp_path, train=12, test=4)


def test_photographs_are_resized_as_a_whole_to_256_pixels(tmp_path):
    make(tmp_path)
    listing = few(tmp_path)
    assert (listing.image_size, listing.whole) == (256, True)


def test_whole_photographs_are_taken_unless_crops_are_asked_for(tmp_path):
    make(tmp_path)
    assert {file.box for file in few(tmp_path).train} == {None}
    assert {file.box for file in few(tmp_path, crop=True).train} == {(2, 3, 9, 8)}


def test_two_boxes_in_one_photograph_are_put_together(tmp_path):
    path = make(tmp_path, count=14) / "2" / "bb_info.txt"
    path.write_text(path.read_text() + "200 0 5 4 10\n")
    listing = few(tmp_path, crop=True)
    boxes = {file.path.name: file.box for file in listing.train + listing.test}
    assert boxes["200.jpg"] == (0, 3, 9, 10)


def test_it_is_not_taken_for_something_else(tmp_path):
    assert locate_food100(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id\tname\n1\trice\n3\tpilaf\n", r"category\.txt, line 3 must read '2<tab>name', got '3\\tpilaf'"),
        ("id\tname\n1\n", "line 2 must read '1<tab>name'"),
        ("id\tname\n1\trice\n", "at least two categories, got 1"),
        (
            "id\tname\n" + "".join(f"{i}\tdish {i}\n" for i in range(1, 5)),
            "4 is missing, which category.txt names",
        ),
    ],
)
def test_a_wrong_list_of_categories_is_refused(tmp_path, text, message):
    (make(tmp_path) / "category.txt").write_text(text)
    with pytest.raises(DataError, match=message):
        few(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "img x1 y1 x2 y2\n100 1 2 3\n",
            r"bb_info\.txt, line 2 must read 'img x1 y1 x2 y2', got '100 1 2 3'",
        ),
        ("img x1 y1 x2 y2\n100 1 2 3 x\n", "line 2 must read"),
        ("img x1 y1 x2 y2\n", r"bb_info\.txt must give a box for 100\.jpg"),
    ],
)
def test_wrong_boxes_are_refused_when_they_are_needed(tmp_path, text, message):
    (make(tmp_path) / "1" / "bb_info.txt").write_text(text)
    few(tmp_path)
    with pytest.raises(DataError, match=message):
        few(tmp_path, crop=True)


def test_missing_boxes_are_named(tmp_path):
    (make(tmp_path) / "1" / "bb_info.txt").unlink()
    with pytest.raises(DataError, match=r"bb_info\.txt is missing.*crop=False"):
        few(tmp_path, crop=True)
