import numpy as np
import pytest
from PIL import Image

from carpediem.lab.data import DataError
from carpediem.lab.data.images import read_image
from lab.data.makers import picture, stripes


@pytest.mark.parametrize(("size", "vertical"), [((30, 10), True), ((10, 30), False)])
def test_the_centre_of_the_longer_side_is_kept(tmp_path, size, vertical):
    image = read_image(stripes(tmp_path / "a.png", size, vertical=vertical), size=5)
    assert image.shape == (3, 5, 5)
    assert (image[1] > 220).all()
    assert (image[[0, 2]] < 35).all()
    assert (image[1, 1:-1, 1:-1] == 255).all()


@pytest.mark.parametrize(("size", "vertical"), [((60, 20), True), ((20, 60), False)])
def test_the_whole_image_is_resized_when_that_is_asked_for(tmp_path, size, vertical):
    image = read_image(stripes(tmp_path / "a.png", size, vertical=vertical), size=12, whole=True)
    assert image.shape == (3, 12, 12)
    for third, part in enumerate((slice(0, 3), slice(5, 7), slice(9, 12))):
        shown = image[:, :, part] if vertical else image[:, part]
        assert (shown[third] == 255).all()
        assert (np.delete(shown, third, axis=0) == 0).all()


def test_a_whole_image_is_resized_with_antialiasing(tmp_path):
    pixels = np.zeros((8, 64, 3), dtype=np.uint8)
    pixels[:, ::2] = 255
    Image.fromarray(pixels).save(tmp_path / "a.png")
    image = read_image(tmp_path / "a.png", size=4, whole=True)
    assert (np.abs(image.astype(int) - 128) <= 3).all()


def test_of_a_box_the_whole_is_resized_too(tmp_path):
    path = stripes(tmp_path / "a.png", (30, 10), vertical=True)
    image = read_image(path, size=4, whole=True, box=(0, 0, 20, 10))
    assert (image[0, :, 0] == 255).all()
    assert (image[1, :, 3] == 255).all()


def test_a_square_image_of_the_right_size_is_left_alone(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (9, 9, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert np.array_equal(read_image(tmp_path / "a.png", size=9), pixels.transpose(2, 0, 1))


def test_a_box_is_cut_out_first(tmp_path):
    path = stripes(tmp_path / "a.png", (30, 10), vertical=True)
    assert (read_image(path, size=4, box=(0, 0, 10, 10))[0] == 255).all()
    assert (read_image(path, size=4, box=(20, 0, 99, 99))[2] == 255).all()


@pytest.mark.parametrize("box", [(30, 0, 40, 10), (5, 5, 5, 9), (9, 0, 3, 9)])
def test_a_box_outside_of_the_image_is_refused(tmp_path, box):
    with pytest.raises(DataError, match=r"a\.png: the box .* must cover a part of the 30 × 10 pixels"):
        read_image(stripes(tmp_path / "a.png", (30, 10), vertical=True), size=4, box=box)


@pytest.mark.parametrize(
    ("mode", "color", "expected"),
    [
        ("L", 77, (77, 77, 77)),
        ("1", 1, (255, 255, 255)),
        ("RGBA", (1, 2, 3, 0), (1, 2, 3)),
        ("LA", (9, 0), (9, 9, 9)),
    ],
)
def test_other_colour_modes_become_rgb(tmp_path, mode, color, expected):
    image = read_image(picture(tmp_path / "a.png", mode=mode, color=color), size=3)
    assert tuple(image[:, 1, 1]) == expected


def test_a_palette_with_transparent_colours_raises_no_warning(tmp_path):
    image = Image.new("P", (6, 6), 1)
    image.putpalette([0, 0, 0, 10, 20, 30])
    image.save(tmp_path / "a.png", transparency=b"\x00\x80")
    assert tuple(read_image(tmp_path / "a.png", size=2)[:, 0, 0]) == (10, 20, 30)


def test_jpegs_in_cmyk_are_read(tmp_path):
    image = read_image(picture(tmp_path / "a.jpg", mode="CMYK", color=(0, 0, 0, 0)), size=2)
    assert (image > 250).all()


def test_sixteen_bits_are_refused_and_not_clipped(tmp_path):
    Image.fromarray(np.full((4, 4), 40000, dtype=np.uint16)).save(tmp_path / "a.png")
    with pytest.raises(DataError, match=r"a\.png must have 8 bits a channel"):
        read_image(tmp_path / "a.png", size=2)


@pytest.mark.parametrize("ending", ["jpg", "png", "bmp", "gif", "webp"])
def test_a_truncated_file_is_named(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    whole = path.read_bytes()
    for share in (0.0, 0.01, 0.3, 0.6):
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(DataError, match=rf"a\.{ending} cannot be decoded as an image"):
            read_image(path, size=8)


def test_what_is_no_image_is_named(tmp_path):
    (tmp_path / "a.jpg").write_text("not an image")
    with pytest.raises(
        DataError, match=r"a\.jpg cannot be decoded as an image .* replace it or move it away"
    ):
        read_image(tmp_path / "a.jpg", size=8)
