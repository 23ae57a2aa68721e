import numpy as np
import torch
from sklearn.datasets import load_digits

from carpediem.lab.data.digits import read_digits


def test_the_split_is_the_documented_one():
    data = read_digits()
    assert tuple(data.train_images.shape) == (1437, 1, 8, 8)
    assert tuple(data.test_images.shape) == (360, 1, 8, 8)
    assert torch.bincount(data.test_labels).tolist() == [36, 37, 35, 37, 36, 36, 36, 36, 35, 36]


def test_the_split_never_changes():
    assert read_digits().fingerprint() == "fb5b82bdebb78f9a"


def test_both_parts_together_are_scikit_learn_s_set():
    data = read_digits()
    ours = torch.cat([data.train_images, data.test_images]).flatten(1).numpy()
    theirs = np.round(load_digits().data * 255 / 16).astype(np.uint8)
    assert np.array_equal(np.sort(ours.view("V64").ravel()), np.sort(theirs.view("V64").ravel()))
    assert ours.max() == 255
