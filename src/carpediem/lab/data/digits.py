"""The digits that scikit-learn carries: 1,797 images of 8 × 8 pixels, no download."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import torch

from .dataset import ImageData
from .split import stratified_split

# With a fifth for the test, one image would be 0.28 points of error, and all methods would look alike.
TEST_SHARE = Fraction(1, 2)


def read_digits() -> ImageData:
    """898 training and 899 test images, shape (N, 1, 8, 8), ten classes.

    scikit-learn ships one set without a split. Ours is stratified and fixed: the key of a sample is
    "digits/" and its index there, and `stratified_split` puts half of each class into the test set.
    Pixels run from 0 to 16 there and are scaled to 0..255 here.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError("digits come with scikit-learn: pip install scikit-learn") from error
    pixels, labels = load_digits(return_X_y=True)
    images = torch.from_numpy(np.round(pixels * (255 / 16)).astype(np.uint8)).reshape(-1, 1, 8, 8)
    targets = torch.from_numpy(labels.astype(np.int64))
    keys = [f"digits/{index}" for index in range(len(targets))]
    train, test = stratified_split(targets.tolist(), keys, test_share=TEST_SHARE)
    return ImageData(
        name="digits",
        train_images=images[train],
        train_labels=targets[train],
        test_images=images[test],
        test_labels=targets[test],
        classes=tuple("0123456789"),
    )
