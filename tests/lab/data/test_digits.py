import numpy as np
import torch
from sklearn.datasets import load_digits

from carpediem.lab.data.digits import read_digits


def test_the_split_is_the_documented_one():
    data = read_digits()
    assert tuple(data.train_images.shape) == (898, 1, 8, 8)
    assert tuple(data.test_images.shape) == (899, 1, 8, 8)
    assert torch.bincount(data.test_labels).tolist() == [89, 91, 89, 92, 91, 91, 90, 89, 87, 90]


def test_the_split_never_changes():
    assert read_digits().fingerprint() == "ee7ed5c0dd891ca7"


def test_both_parts_together_are_scikit_learn_s_set():
    data = read_digits()
    ours = torch.cat([data.train_images, data.test_images]).flatten(1).numpy()
    theirs = np.round(load_digits().data * 255 / 16).astype(np.uint8)
    assert np.array_equal(np.sort(ours.view("V64").ravel()), np.sort(theirs.view("V64").ravel()))
    assert ours.max() == 255
