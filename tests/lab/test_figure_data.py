"""The numbers behind the figures."""

import hashlib

import numpy as np

from carpediem.lab.figure_data import (
    grid_searches,
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


def grid(*points, warm_up=2):
    return [
        run("recency", seed, errors=(9.0, error), pressure=s, window=q, schedule="decayed", warm_up=warm_up)
        for s, q, error in points
        for seed in (0, 1)
    ]


def test_a_grid_holds_the_points_that_were_run():
    records = [*grid((10.0, 5, 4.0), (100.0, 5, 3.0)), *grid((10.0, 15, 6.0), warm_up=15), run("random")]
    records.append(run("recency", pressure=1000.0, window=5, schedule="decayed", done=False))
    records.append(run("recency", pressure=1000.0, window=5, schedule="constant"))
    (search,) = grid_searches(group_cells(records))
    assert (search.pressures, search.windows) == ((10.0, 100.0), (5, 15))
    assert {point: estimate.mean for point, estimate in search.errors.items()} == {
        (10.0, 5): 4.0,
        (10.0, 15): 6.0,
        (100.0, 5): 3.0,
    }
    assert search.best == [(100.0, 5)]
    assert search.random.mean == 5.0
    assert search.warm_ups == (2, 15)
    assert "warm-up" not in search.title


def test_a_grid_of_one_warm_up_names_it():
    (search,) = grid_searches(group_cells(grid((10.0, 5, 4.0), (100.0, 5, 3.0), warm_up=15)))
    assert search.title.endswith("with warm-up 15")


def test_a_point_of_a_grid_has_the_warm_up_of_the_others():
    records = grid((10.0, 5, 4.0), (100.0, 5, 3.0), warm_up=15)
    records += [
        run("recency", seed, errors=(9.0, 2.0), pressure=100.0, window=5, schedule="decayed", warm_up=2)
        for seed in range(5)
    ]
    (search,) = grid_searches(group_cells(records))
    assert search.errors[100.0, 5].mean == 3.0
    # Where both have as many points, one warm-up gives them all: that with more runs.
    (search,) = grid_searches(group_cells([*records, *grid((10.0, 5, 5.0))]))
    assert {point: error.mean for point, error in search.errors.items()} == {(10.0, 5): 5.0, (100.0, 5): 2.0}


def test_several_points_may_be_the_best():
    (search,) = grid_searches(group_cells(grid((1.0, 5, 4.0), (1.0, 15, 4.0), (10.0, 5, 4.5))))
    assert search.best == [(1.0, 5), (1.0, 15)]


def test_a_single_point_is_no_grid():
    assert grid_searches(group_cells(grid((10.0, 5, 4.0)))) == []


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
