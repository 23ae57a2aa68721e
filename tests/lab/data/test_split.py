from collections import Counter
from fractions import Fraction

import pytest

from carpediem.lab.data.split import stratified_split


def test_every_sample_lands_on_exactly_one_side():
    labels = [index % 7 for index in range(100)]
    train, test = stratified_split(labels, [str(i) for i in range(100)], test_share=Fraction(1, 5))
    assert sorted(train + test) == list(range(100))
    assert len(test) == 20


def test_every_class_gives_its_share():
    labels = [0] * 50 + [1] * 30 + [2] * 20
    _, test = stratified_split(labels, [str(i) for i in range(100)], test_share=Fraction(1, 10))
    assert Counter(labels[i] for i in test) == {0: 5, 1: 3, 2: 2}


def test_a_sample_s_side_depends_on_its_key_and_not_on_its_place():
    keys = [f"image-{index}" for index in range(40)]
    labels = [index % 2 for index in range(40)]
    _, test = stratified_split(labels, keys, test_share=Fraction(1, 4))
    _, reversed_test = stratified_split(labels[::-1], keys[::-1], test_share=Fraction(1, 4))
    assert {keys[i] for i in test} == {keys[::-1][i] for i in reversed_test}


def test_samples_with_one_key_stay_together():
    keys = [f"photo-{index % 30}" for index in range(60)]
    labels = [0] * 30 + [1] * 30
    train, test = stratified_split(labels, keys, test_share=Fraction(1, 3))
    assert {keys[i] for i in train}.isdisjoint(keys[i] for i in test)
    assert len(test) == 20


def test_a_class_of_one_sample_keeps_it_for_training():
    train, test = stratified_split([0, 0, 0, 1], list("abcd"), test_share=Fraction(1, 2))
    assert 3 in train
    assert len(test) >= 1


@pytest.mark.parametrize("share", [Fraction(0), Fraction(1)])
def test_a_share_of_nothing_or_of_all_is_refused(share):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        stratified_split([0], ["a"], test_share=share)
