from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from carpediem.lab.data import DataError
from carpediem.lab.data.split import counted_split, stratified_split


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


def test_a_class_of_one_sample_keeps_it_for_training():
    train, test = stratified_split([0, 0, 0, 1], list("abcd"), test_share=Fraction(1, 2))
    assert 3 in train
    assert len(test) >= 1


@pytest.mark.parametrize("share", [Fraction(0), Fraction(1)])
def test_a_share_of_nothing_or_of_all_is_refused(share):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        stratified_split([0], ["a"], test_share=share)


def of_the_table(*, shared, sizes, seed=0):
    """Labels and keys of classes of these sizes, of which `shared` samples come from one pile of photographs."""
    rng = np.random.default_rng(seed)
    labels, keys = [], []
    for label, (common, size) in enumerate(zip(shared, sizes, strict=True)):
        labels += [label] * size
        keys += [f"{number}.jpg" for number in rng.choice(max(shared) * 2, common, replace=False)]
        keys += [f"{label}-{number}.jpg" for number in range(size - common)]
    return labels, keys


@pytest.mark.parametrize("seed", range(5))
def test_every_class_gives_as_many_of_both_as_are_asked_for(seed):
    labels, keys = of_the_table(shared=[60, 5, 0, 30, 10], sizes=[200, 100, 101, 120, 100], seed=seed)
    train, test = counted_split(labels, keys, train=70, test=30)
    assert Counter(labels[i] for i in train) == dict.fromkeys(range(5), 70)
    assert Counter(labels[i] for i in test) == dict.fromkeys(range(5), 30)
    assert train == sorted(set(train) - set(test))
    assert test == sorted(test)


@pytest.mark.parametrize("seed", range(5))
def test_a_photograph_of_several_classes_is_never_on_both_sides(seed):
    labels, keys = of_the_table(shared=[100, 100, 60], sizes=[140, 150, 130], seed=seed)
    train, test = counted_split(labels, keys, train=70, test=30)
    assert {keys[i] for i in train}.isdisjoint(keys[i] for i in test)
    assert len({keys[i] for i in train + test}) < 300, "some count for several classes"


def test_a_photograph_of_several_classes_is_no_likelier_to_be_taken():
    labels, keys = of_the_table(shared=[80, 80], sizes=[400, 100])
    train, test = counted_split(labels, keys, train=70, test=30)
    taken = [keys[i] for i in train + test if labels[i] == 0]
    assert sum("-" not in key for key in taken) == pytest.approx(100 * 80 / 400, abs=3 * (100 * 0.16) ** 0.5)


def test_the_sides_depend_on_keys_and_not_on_places():
    labels, keys = of_the_table(shared=[60, 30], sizes=[150, 120])
    parts = counted_split(labels, keys, train=70, test=30)
    turned = counted_split(labels[::-1], keys[::-1], train=70, test=30)
    for part, other in zip(parts, turned, strict=True):
        last = len(keys) - 1
        assert part == sorted(last - i for i in other)


def test_what_would_overfill_a_side_is_passed_over():
    labels, keys = [0] * 4 + [1] * 6, list("abcd") + list("abcdef")
    train, test = counted_split(labels, keys, train=3, test=1)
    assert {keys[i] for i in train if labels[i] == 1}.isdisjoint(keys[i] for i in test)
    assert (len(train), len(test)) == (6, 2)


def test_a_class_of_too_few_samples_is_refused():
    with pytest.raises(DataError, match=r"class 1 must have 2 training and 1 test samples .*, got 2 samples"):
        counted_split([0, 0, 0, 1, 1], list("abcde"), train=2, test=1)


def test_a_class_whose_photographs_all_lie_on_one_side_is_refused():
    labels, keys = [0, 0, 1, 1], list("abcd")
    train, _ = counted_split(labels, keys, train=1, test=1)
    with pytest.raises(
        DataError, match=r"class 2 .* that no other class has on the other side, got 2 samples"
    ):
        counted_split([*labels, 2, 2], [*keys, *(keys[i] for i in train)], train=1, test=1)
