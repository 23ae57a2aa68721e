import pytest

from carpediem.lab.data import DataError, DataNotFoundError, load
from carpediem.lab.data.mit67 import list_mit67, locate_mit67
from lab.data.makers import class_folders, stripes

CLASSES = ("bakery", "casino", "dentaloffice")


def make(folder, lists=None):
    class_folders(folder / "Images", classes=CLASSES, count=6)
    lists = lists or folder
    for name, numbers in (("TrainImages.txt", range(4)), ("TestImages.txt", range(4, 5))):
        # The published lists end without a newline, and in no order.
        lines = [f"{scene}/{number}.jpg" for number in numbers for scene in reversed(CLASSES)]
        (lists / name).write_text("\n".join(lines))
    return folder


@pytest.mark.parametrize("folder", [".", "mit67", "indoorCVPR_09", "mit67/indoorCVPR_09"])
def test_the_lists_make_the_split(tmp_path, folder):
    make(tmp_path / folder)
    data = load("mit67", tmp_path, image_size=8)
    assert (len(data.train_images), len(data.test_images)) == (12, 3)
    assert data.classes == CLASSES
    assert data.train_labels[:3].tolist() == [2, 1, 0]


def test_the_lists_may_lie_beside_the_unpacked_folder(tmp_path):
    make(tmp_path / "indoorCVPR_09", lists=tmp_path)
    assert len(list_mit67(tmp_path / "indoorCVPR_09").test) == 3


def test_images_are_resized_as_a_whole_to_256_pixels(tmp_path):
    make(tmp_path)
    stripes(tmp_path / "Images" / "casino" / "0.jpg", (30, 10), vertical=True)
    data = load("mit67", tmp_path)
    assert data.image_size == 256
    reds = data.train_images[data.train_files.index("Images/casino/0.jpg"), 0].float()
    assert (reds[:, :60] > 240).all(), "the left third is red, which the central square has nothing of"


def test_images_in_no_list_are_left_out(tmp_path):
    listing = list_mit67(make(tmp_path))
    assert "5.jpg" not in {file.path.name for file in listing.train + listing.test}


def test_it_is_not_found_without_its_lists(tmp_path):
    class_folders(tmp_path / "Images", classes=CLASSES)
    assert locate_mit67(tmp_path) is None
    with pytest.raises(DataNotFoundError, match=r"TrainImages\.txt.*put it there, or set --data-dir"):
        load("mit67", tmp_path)


def test_a_missing_list_is_named(tmp_path):
    (make(tmp_path / "set") / "TestImages.txt").unlink()
    with pytest.raises(DataError, match=r"TestImages\.txt is missing"):
        list_mit67(tmp_path / "set")


def test_a_listed_image_that_is_missing_is_named(tmp_path):
    (make(tmp_path) / "Images" / "casino" / "1.jpg").unlink()
    with pytest.raises(
        DataError, match=r"casino.1\.jpg is missing, which .*TrainImages\.txt names in line 5"
    ):
        list_mit67(tmp_path)


@pytest.mark.parametrize("line", ["casino", "../secret.jpg", "/etc/passwd", "a/b/c.jpg", "casino/.."])
def test_an_entry_of_another_form_is_refused(tmp_path, line):
    path = make(tmp_path) / "TestImages.txt"
    path.write_text(path.read_text() + f"\n\n{line}\n")
    with pytest.raises(DataError, match=r"TestImages\.txt, line 5: an entry must read CLASS/image\.jpg"):
        list_mit67(tmp_path)


def test_a_class_that_is_only_tested_is_refused(tmp_path):
    make(tmp_path)
    class_folders(tmp_path / "Images", classes=("zoo",), count=1)
    path = tmp_path / "TestImages.txt"
    path.write_text(path.read_text() + "\nzoo/0.jpg")
    with pytest.raises(DataError, match=r"zoo/0\.jpg is of a class that TrainImages\.txt does not name"):
        list_mit67(tmp_path)
