"""The numbers behind the figures."""

import hashlib

import numpy as np
import pytest

from carpediem.core.shapes import window_shapes
from carpediem.core.uncertainty import index_level, window_uncertainty
from carpediem.lab.figure_data import (
    index_comparison,
    index_epochs,
    loss_distributions,
    telling_trails,
)
from carpediem.lab.records import RunRecord
from carpediem.lab.results import group_cells
from carpediem.lab.samples import Trails

CONFIG = {
    "recipe": "demo",
    "data": "digits",
    "net": "small-cnn",
    "optimizer": "momentum",
    "draws": "systematic",
}


def run(method, seed=0, *, errors=(9.0, 5.0), done=True, epoch_fields=({}, {}), **config):
    config = CONFIG | {"method": method, "seed": seed, "warm_up": 2} | config
    name = hashlib.sha256(str(config).encode()).hexdigest()[:12]
    rows = [
        {"epoch": n, "iteration": n + 1, "train_loss": 1.0, "test_error": error, "seconds": 1.0} | fields
        for n, (error, fields) in enumerate(zip(errors, epoch_fields, strict=True))
    ]
    return RunRecord(name, config, rows, {"finished": "2026-01-01"} if done else None)


def histogram(*counts):
    return {"loss_histogram": {"edges_log10": list(range(-len(counts), 1)), "counts": list(counts)}}


def test_the_distribution_of_losses_is_the_mean_over_seeds_of_shares():
    records = [
        run("random", 0, epoch_fields=(histogram(1, 3), histogram(4, 0))),
        run("random", 1, epoch_fields=(histogram(2, 0), histogram(1, 1))),
        run("recency", 0),
    ]
    (only,) = loss_distributions(group_cells(records))
    assert only.name == "Random Batch"
    np.testing.assert_allclose(only.shares, [[0.625, 0.375], [0.75, 0.25]])
    assert only.edges_log10.tolist() == [-2, -1, 0]


def test_an_epoch_without_a_finite_loss_has_no_shares_and_no_warning():
    (only,) = loss_distributions(
        group_cells([run("random", epoch_fields=(histogram(1, 1), histogram(0, 0)))])
    )
    assert only.shares.tolist() == [[0.5, 0.5], [0.0, 0.0]]


def test_equal_uncertainties_have_one_quantised_index_and_many_ranks():
    record = run("recency", epoch_fields=({}, {"uncertainty_counts": [[0.0, 5], [0.25, 3], [1.0, 2]]}))
    assert index_epochs(record) == [1]
    assert index_comparison(record, 0) is index_comparison(record, 7) is index_comparison(record, -1) is None
    found = index_comparison(record, 1)
    assert found.num_samples == 10
    assert found.uncertainty.tolist() == [1.0, 0.25, 0.0]
    assert (found.first_rank.tolist(), found.last_rank.tolist()) == ([1, 3, 6], [2, 5, 10])
    assert found.quantised.tolist() == [0, 8, 10]


@pytest.mark.parametrize("samples", [50_000, 60_000, 1_281_167])
@pytest.mark.parametrize(
    ("window", "classes"), [(5, 10), (10, 8), (10, 10), (10, 100), (15, 10), (15, 100), (15, 27)]
)
def test_the_index_is_that_of_the_uncertainty_before_the_record_rounded_it(window, classes, samples):
    shapes = [counts for counts in window_shapes(window).counts if len(counts) <= classes]
    exact = np.unique([window_uncertainty(counts, classes) for counts in shapes])
    recorded = np.unique([round(float(value), 12) for value in exact])
    counts = [1] * (len(recorded) - 1) + [samples - len(recorded) + 1]
    pairs = [[float(value), count] for value, count in zip(recorded, counts, strict=True)]
    found = index_comparison(run("recency", epoch_fields=({}, {"uncertainty_counts": pairs})), 1)
    assert found.num_samples == samples
    assert set(found.quantised) == set(index_level(exact, samples))


def trails(uncertainty, deviation, drawn=None):
    shape = np.shape(uncertainty)
    zeros = np.zeros(shape, dtype=np.int32)
    return Trails(
        classes=("a", "b"),
        index=np.arange(shape[1]),
        label=zeros[0] if shape[0] else np.zeros(shape[1]),
        prediction=zeros,
        drawn=zeros + 1 if drawn is None else np.array(drawn),
        window=np.zeros((*shape, 3), dtype=np.int16),
        uncertainty=np.array(uncertainty, dtype=np.float32).reshape(shape),
        deviation=np.array(deviation, dtype=np.float32).reshape(shape),
    )


def test_the_telling_samples_have_settled_or_are_still_uncertain():
    found = trails([[0, 0, 0.5, 0.9, 0, 1]], [[0.1, 0.4, 0.2, 0.3, 0.2, 0]], drawn=[[1, 1, 1, 1, 1, 0]])
    assert telling_trails(found, 4).tolist() == [1, 4, 3, 2]
    assert telling_trails(found, 2).tolist() == [1, 3]
    assert telling_trails(trails([[0, 0]], [[0.1, 0.2]]), 4).tolist() == [1, 0]
    assert telling_trails(trails(np.zeros((0, 2)), np.zeros((0, 2)))).tolist() == []
