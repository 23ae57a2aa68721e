import pytest

from carpediem.lab.data import DataError, load
from carpediem.lab.data.food100 import list_food100, locate_food100
from lab.data.makers import picture

NAMES = ("rice", "eels on rice", "pilaf")


def make(folder, *, count=14):
    """Three dishes of 14 photographs; numbers 100 and 101 show rice and pilaf at once."""
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


@pytest.mark.parametrize("folder", ["UECFOOD100", "dataset100/UECFOOD100", "."])
def test_two_sevenths_of_every_dish_are_for_testing(tmp_path, folder):
    make(tmp_path / folder)
    data = load("food100", tmp_path, image_size=8)
    assert (len(data.train_images), len(data.test_images)) == (30, 12)
    assert data.test_labels.bincount().tolist() == [4, 4, 4]
    assert data.classes == NAMES


def test_a_photograph_of_two_dishes_falls_on_one_side(tmp_path):
    listing = list_food100(make(tmp_path))
    names = [{file.path.name for file in part} for part in (listing.train, listing.test)]
    assert names[0].isdisjoint(names[1])


def test_whole_photographs_are_taken_unless_crops_are_asked_for(tmp_path):
    make(tmp_path)
    assert {file.box for file in list_food100(tmp_path).train} == {None}
    assert {file.box for file in list_food100(tmp_path, crop=True).train} == {(2, 3, 9, 8)}


def test_two_boxes_in_one_photograph_are_put_together(tmp_path):
    path = make(tmp_path) / "2" / "bb_info.txt"
    path.write_text(path.read_text() + "200 0 5 4 10\n")
    listing = list_food100(tmp_path, crop=True)
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
        list_food100(tmp_path)


def test_a_dish_without_photographs_is_named(tmp_path):
    for path in (make(tmp_path) / "2").glob("*.jpg"):
        path.unlink()
    with pytest.raises(DataError, match="2 must hold at least one image"):
        list_food100(tmp_path)


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
    list_food100(tmp_path)
    with pytest.raises(DataError, match=message):
        list_food100(tmp_path, crop=True)


def test_missing_boxes_are_named(tmp_path):
    (make(tmp_path) / "1" / "bb_info.txt").unlink()
    with pytest.raises(DataError, match=r"bb_info\.txt is missing.*crop=False"):
        list_food100(tmp_path, crop=True)
