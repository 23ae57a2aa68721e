import gzip

import numpy as np
import pytest
import torch

from carpediem.lab.data import DataError, DataNotFoundError, load
from carpediem.lab.data.mnist import locate_mnist, read_mnist
from lab.data.makers import idx, mnist


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("layout", ["MNIST/raw", "mnist", "."])
def test_it_is_read_from_every_layout_plain_or_gzipped(tmp_path, layout, zipped):
    mnist(tmp_path / layout, zipped=zipped)
    data = load("mnist", tmp_path)
    assert tuple(data.train_images.shape) == (20, 1, 28, 28)
    assert tuple(data.test_images.shape) == (10, 1, 28, 28)
    assert data.test_labels.tolist() == list(range(10))


def test_pixels_come_in_the_order_of_the_file(tmp_path):
    mnist(tmp_path, zipped=False)
    pixels = np.random.default_rng(20).integers(0, 256, (20, 28, 28))
    assert torch.equal(read_mnist(tmp_path).train_images[:, 0], torch.from_numpy(pixels).byte())


def test_it_is_not_found_where_it_is_not(tmp_path):
    assert locate_mnist(tmp_path) is None
    with pytest.raises(DataNotFoundError, match="carpediem data fetch mnist"):
        load("mnist", tmp_path)


@pytest.mark.parametrize(
    ("name", "blob", "message"),
    [
        ("train-images-idx3-ubyte", b"", "magic number 2051, got None"),
        ("train-images-idx3-ubyte", idx(np.zeros(5)), "magic number 2051, got None"),
        ("train-images-idx3-ubyte", idx(np.zeros(50)), "magic number 2051, got 2049"),
        ("train-images-idx3-ubyte", idx(np.zeros((20, 28, 28)))[:-1], "15680 bytes, but holds 15679"),
        ("train-labels-idx1-ubyte", idx(np.arange(20) % 10) + b"x", "20 bytes, but holds 21"),
        ("train-labels-idx1-ubyte", idx(np.arange(21) % 10), "20 images but 21 labels"),
        ("t10k-labels-idx1-ubyte", idx(np.arange(10) + 1), r"\[0, 10\), got 10"),
        ("train-labels-idx1-ubyte", idx(np.arange(20) % 9), "none of '9'"),
    ],
)
def test_damaged_files_are_refused(tmp_path, name, blob, message):
    mnist(tmp_path, zipped=False)
    (tmp_path / name).write_bytes(blob)
    with pytest.raises(DataError, match=message) as caught:
        read_mnist(tmp_path)
    assert name in str(caught.value) or "mnist:" in str(caught.value)


@pytest.mark.parametrize("cut", [1, 5, 10])
def test_a_truncated_gzip_file_is_named(tmp_path, cut):
    mnist(tmp_path, zipped=True)
    path = tmp_path / "train-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(DataError, match=r"train-labels-idx1-ubyte\.gz is not a whole gzip file"):
        read_mnist(tmp_path)


def test_what_is_not_gzip_is_named(tmp_path):
    mnist(tmp_path, zipped=True)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(b"<html>moved</html>")
    with pytest.raises(DataError, match=r"t10k-labels-idx1-ubyte\.gz is not a whole gzip file"):
        read_mnist(tmp_path)


def test_a_damaged_gzip_stream_is_named(tmp_path):
    mnist(tmp_path, zipped=True)
    path = tmp_path / "train-images-idx3-ubyte.gz"
    blob = bytearray(gzip.compress(idx(np.zeros((20, 28, 28))), mtime=0))
    blob[10:14] = b"\xff\xff\xff\xff"
    path.write_bytes(bytes(blob))
    with pytest.raises(DataError, match="not a whole gzip file"):
        read_mnist(tmp_path)


def test_a_missing_file_is_named(tmp_path):
    mnist(tmp_path, zipped=True)
    (tmp_path / "t10k-images-idx3-ubyte.gz").unlink()
    with pytest.raises(DataError, match="t10k-images-idx3-ubyte is missing"):
        read_mnist(tmp_path)
