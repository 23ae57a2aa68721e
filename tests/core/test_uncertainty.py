import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carpediem.core.pressure import pressure_schedule
from carpediem.core.shapes import window_shapes
from carpediem.core.uncertainty import index_level, pressed_weights, window_uncertainty
from reference import paper


@pytest.mark.parametrize("num_samples", [1, 3, 10, 49, 60, 1797, 50_000, 60_000, 1_281_167, 100_000_000])
@pytest.mark.parametrize("num_classes", [2, 3, 8, 9, 10, 32, 100, 1000, 1024])
def test_every_shape_gets_the_index_that_exact_arithmetic_gives(num_classes, num_samples):
    counts = [c for c in window_shapes(10).counts if len(c) <= num_classes]
    fast = index_level(np.array([window_uncertainty(c, num_classes) for c in counts]), num_samples)
    slow = [
        paper.quantisation_index(
            paper.uncertainty([label for label, c in enumerate(shape) for _ in range(c)], num_classes),
            num_samples,
        )
        for shape in counts
    ]
    assert fast.tolist() == slow


@given(st.lists(st.integers(1, 9), max_size=12), st.integers(2, 1000))
def test_uncertainty_lies_between_0_and_1_and_does_not_depend_on_the_order(counts, num_classes):
    value = window_uncertainty(counts, num_classes)
    assert 0 <= value <= 1
    assert value == pytest.approx(window_uncertainty(counts[::-1], num_classes), rel=1e-12)


@given(st.integers(1, 10**8), st.floats(1, 1e12), st.lists(st.floats(0, 1), min_size=2, max_size=50))
def test_no_weight_is_zero_and_none_is_pressure_times_another(num_samples, pressure, uncertainties):
    weights = pressed_weights(index_level(np.array(uncertainties), num_samples), num_samples, pressure)
    assert (weights > 0).all()
    assert weights.max() / weights.min() <= pressure * (1 + 1e-9)


def test_the_bound_on_the_ratio_is_reached():
    weights = pressed_weights(index_level(np.array([0.0, 1.0]), 50), 50, 100.0)
    assert weights[1] / weights[0] == pytest.approx(100)


@given(st.floats(1, 1e6), st.integers(0, 20), st.integers(1, 50), st.data())
def test_the_decayed_pressure_is_equation_9(start, warm_up, selecting, data):
    epochs = warm_up + selecting
    epoch = data.draw(st.integers(warm_up, epochs - 1))
    schedule = pressure_schedule("decayed", start=start, warm_up=warm_up, epochs=epochs)
    expected = paper.decayed_pressure(epoch, start=start, warm_up=warm_up, epochs=epochs)
    assert schedule(epoch) == pytest.approx(expected, rel=1e-9)
    assert 1 <= schedule(epoch) <= start
    assert schedule(epochs - 1) == 1
