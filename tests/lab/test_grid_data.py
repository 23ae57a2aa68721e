"""Which runs make a grid search, and what a search knows."""

from carpediem.lab.grid_data import grid_searches
from carpediem.lab.results import group_cells
from lab.record_makers import run

DEMO = {"recipe": "demo", "data": "digits", "net": "small-cnn"}


def grid(*points, warm_up=10, **config):
    """Two seeds of each (pressure, window, error)."""
    return [
        run(
            "recency",
            seed,
            [9.0, error],
            pressure=float(s),
            window=q,
            warm_up=max(q, warm_up),
            **DEMO | config,
        )
        for s, q, error in points
        for seed in (0, 1)
    ]


def search(records):
    (found,) = grid_searches(group_cells(records))
    return found


def means(found):
    return {point: error.mean for point, error in found.errors.items()}


def test_a_grid_holds_the_points_that_were_run():
    records = [*grid((10, 5, 4.0), (100, 5, 3.0), (10, 15, 6.0)), run("random", 0, [9.0, 5.0], **DEMO)]
    records.append(run("recency", 0, [1.0], pressure=1000.0, window=5, done=False, **DEMO))
    records.append(run("recency", 0, [1.0], pressure=1000.0, window=5, schedule="constant", **DEMO))
    found = search(records)
    assert (found.pressures, found.windows) == ((10.0, 100.0, 1000.0), (5, 15))
    assert means(found) == {(10.0, 5): 4.0, (10.0, 15): 6.0, (100.0, 5): 3.0}
    assert found.best == [(100.0, 5)]
    assert found.random.best_error.mean == 5.0
    assert found.warm_ups == (10, 15)
    assert "warm-up" not in found.title


def test_a_grid_of_another_warm_up_than_the_recipes_names_it():
    assert search(grid((10, 5, 4.0), (100, 5, 3.0), warm_up=15)).title.endswith("with warm-up 15")


def test_points_of_two_warm_ups_make_two_searches():
    records = grid((10, 5, 4.0), (1000, 5, 3.0), (10, 15, 7.0), warm_up=15)
    records += grid((10, 5, 2.0), (1000, 5, 2.5))
    short, long = grid_searches(group_cells(records))
    assert means(short) == {(10.0, 5): 2.0, (1000.0, 5): 2.5, (10.0, 15): 7.0}
    assert means(long) == {(10.0, 5): 4.0, (1000.0, 5): 3.0, (10.0, 15): 7.0}
    # A single point more makes no search.
    assert len(grid_searches(group_cells(records[:6] + grid((10, 5, 2.0))))) == 2
    assert len(grid_searches(group_cells(records[:6]))) == 1


def test_the_points_of_a_window_as_long_as_its_warm_up_are_the_recipes():
    assert "warm-up" not in search(grid((10, 15, 4.0), (100, 15, 3.0))).title


def test_a_pressure_of_1_is_a_point_at_every_window():
    found = search(grid((1, 10, 4.0), (10, 5, 4.5), (10, 15, 5.0)))
    assert means(found) == {(1.0, 5): 4.0, (1.0, 10): 4.0, (1.0, 15): 4.0, (10.0, 5): 4.5, (10.0, 15): 5.0}
    assert found.best == [(1.0, 5), (1.0, 10), (1.0, 15)]
    assert found.others == 3


def test_random_batch_that_draws_alike_stands_beside_a_search():
    points = grid((10, 5, 4.0), (1000, 5, 3.0), draws="independent")
    shuffled = run("random", 0, [9.0, 1.0], **DEMO)
    alike = run("random", 0, [9.0, 2.0], **DEMO, draws="independent")
    assert shuffled.config["draws"] == "systematic"
    found = search([*points, shuffled])
    assert (found.random.best_error.mean, found.random_draws) == (1.0, "shuffle")
    found = search([*points, shuffled, alike])
    assert (found.random.best_error.mean, found.random_draws) == (2.0, "")


def test_the_recipes_own_point_and_another_one_are_no_search():
    assert grid_searches(group_cells(grid((100, 10, 4.0), (10, 5, 4.0)))) == []
