import pickle

import numpy as np
import pytest
import torch

from carpediem.lab.data import DataError, DataNotFoundError, load
from lab.data.makers import (
    CIFAR10_NAMES,
    cifar10_binary,
    cifar10_python,
    cifar100_binary,
    cifar100_python,
    cifar_rows,
    hostile_pickle,
    python2_pickle,
    tar_of,
)


def protocol_2(value):
    return pickle.dumps(value, protocol=2)


def protocol_5_with_text(value):
    return pickle.dumps({key.decode(): part for key, part in value.items()}, protocol=5)


def test_the_binary_form_is_read_row_by_row_and_plane_by_plane(tmp_path):
    cifar10_binary(tmp_path)
    data = load("cifar10", tmp_path)
    assert tuple(data.train_images.shape) == (20, 3, 32, 32)
    assert tuple(data.test_images.shape) == (4, 3, 32, 32)
    assert data.classes == tuple(CIFAR10_NAMES)
    pixels, labels = cifar_rows(4, classes=10, seed=3)  # the second batch
    assert data.train_labels[4:8].tolist() == labels
    assert torch.equal(data.train_images[5, 1, 2], torch.from_numpy(pixels[1, 1024 + 64 : 1024 + 96]))


@pytest.mark.parametrize("dump", [python2_pickle, protocol_2, protocol_5_with_text])
def test_the_python_form_holds_the_same_as_the_binary_form(tmp_path, dump):
    cifar10_binary(tmp_path / "binary")
    cifar10_python(tmp_path / "python", dump=dump)
    binary, python = load("cifar10", tmp_path / "binary"), load("cifar10", tmp_path / "python")
    assert python.fingerprint() == binary.fingerprint()


def test_cifar100_gives_fine_labels_in_both_forms(tmp_path):
    cifar100_binary(tmp_path / "binary")
    cifar100_python(tmp_path / "python")
    binary, python = load("cifar100", tmp_path / "binary"), load("cifar100", tmp_path / "python")
    assert binary.train_labels.tolist() == cifar_rows(100, classes=100, seed=7)[1]
    assert (binary.num_classes, binary.classes[41]) == (100, "thing_41")
    assert python.fingerprint() == binary.fingerprint()


@pytest.mark.parametrize(
    ("make", "name", "archive"),
    [
        (cifar10_binary, "cifar10", "cifar-10-binary.tar.gz"),
        (cifar10_python, "cifar10", "cifar-10-python.tar.gz"),
        (cifar100_binary, "cifar100", "cifar-100-binary.tar.gz"),
        (cifar100_python, "cifar100", "cifar-100-python.tar.gz"),
    ],
)
def test_the_published_archive_will_do(tmp_path, make, name, archive):
    folder = make(tmp_path / "unpacked")
    (tmp_path / "packed").mkdir()
    tar_of(folder, tmp_path / "packed" / archive)
    packed = load(name, tmp_path / "packed")
    assert packed.fingerprint() == load(name, tmp_path / "unpacked").fingerprint()


def test_the_data_folder_may_be_the_published_folder_itself(tmp_path):
    assert len(load("cifar10", cifar10_binary(tmp_path)).test_images) == 4


@pytest.mark.parametrize(("name", "other"), [("cifar10", cifar100_binary), ("cifar100", cifar10_binary)])
def test_one_is_not_taken_for_the_other(tmp_path, name, other):
    with pytest.raises(DataNotFoundError, match=f"carpediem data fetch {name}"):
        load(name, other(tmp_path))


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        ("data_batch_2.bin", lambda blob: blob[:-1], "data_batch_2.bin must hold whole rows of 3073 bytes"),
        ("data_batch_2.bin", lambda blob: blob[:-3073], "data_batch_2.bin must hold 4 rows.*got 3"),
        ("data_batch_5.bin", lambda blob: b"", "data_batch_5.bin must hold whole rows"),
        ("data_batch_4.bin", lambda blob: b"\x0a" + blob[1:], r"data_batch_4.bin: labels.*got 10 in row 0"),
        (
            "test_batch.bin",
            lambda blob: blob[: 3 * 3073] + b"\xff" + blob[3 * 3073 + 1 :],
            "got 255 in row 3",
        ),
        ("batches.meta.txt", lambda blob: b"\n", "batches.meta.txt must list the class names"),
        ("batches.meta.txt", lambda blob: blob.strip() + b"\nunicorn\n", "none of 'unicorn'"),
    ],
)
def test_damaged_binary_files_are_named(tmp_path, file, damage, message):
    path = cifar10_binary(tmp_path) / file
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=message):
        load("cifar10", tmp_path)


def test_a_truncated_cifar100_is_told_by_its_rows(tmp_path):
    path = cifar100_binary(tmp_path) / "train.bin"
    path.write_bytes(path.read_bytes()[:-3074])
    with pytest.raises(DataError, match=r"train\.bin must hold 100 rows beside the 20 of test\.bin, got 99"):
        load("cifar100", tmp_path)


@pytest.mark.parametrize("file", ["data_batch_3.bin", "test_batch.bin", "batches.meta.txt"])
def test_a_missing_file_is_named(tmp_path, file):
    (cifar10_binary(tmp_path) / file).unlink()
    with pytest.raises(DataError, match=f"{file} is missing; remove .* carpediem data fetch cifar10"):
        load("cifar10", tmp_path)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({b"labels": [0] * 4}, "must hold 'data'"),
        ({b"data": np.zeros((4, 3072)), b"labels": [0] * 4}, "must hold 'data', a uint8 array"),
        ({b"data": np.zeros((4, 100), dtype=np.uint8), b"labels": [0] * 4}, "must hold 'data'"),
        ({b"data": np.zeros((4, 3072), dtype=np.uint8)}, "must hold 'labels', a list of 4"),
        ({b"data": np.zeros((4, 3072), dtype=np.uint8), b"labels": [0] * 3}, "must hold 'labels'"),
        ({b"data": np.zeros((4, 3072), dtype=np.uint8), b"labels": ["a"] * 4}, "must hold 'labels'"),
        ({b"data": np.zeros((4, 3072), dtype=np.uint8), b"labels": [10**30] * 4}, "must hold 'labels'"),
        ({b"data": np.zeros((4, 3072), dtype=np.uint8), b"labels": [0, 0, -1, 0]}, "got -1 in row 2"),
    ],
)
def test_a_wrong_pickled_batch_is_named(tmp_path, batch, message):
    (cifar10_python(tmp_path) / "data_batch_1").write_bytes(protocol_2(batch))
    with pytest.raises(DataError, match=f"data_batch_1.*{message}"):
        load("cifar10", tmp_path)


def test_a_hostile_batch_is_refused(tmp_path):
    (cifar10_python(tmp_path) / "test_batch").write_bytes(hostile_pickle())
    with pytest.raises(DataError, match=r"test_batch asks for \w+\.system.*do not trust this file"):
        load("cifar10", tmp_path)


def test_a_truncated_batch_is_named(tmp_path):
    path = cifar10_python(tmp_path) / "data_batch_1"
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(DataError, match="data_batch_1 is not a whole pickle"):
        load("cifar10", tmp_path)
