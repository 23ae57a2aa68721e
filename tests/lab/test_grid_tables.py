"""Figure 7 as a table, and which cells make a grid search."""

import pytest

from carpediem.lab.analysis import paper
from carpediem.lab.grid_data import grid_searches
from carpediem.lab.results import group_cells
from carpediem.lab.tables import all_tables
from lab.record_makers import run, study
from lab.table_readers import row, rows, table


def grid(*points, random=None, **config):
    """A run for each (pressure, window, error), its warm-up no shorter than the window."""
    found = []
    for pressure, window, error in points:
        chosen = {"pressure": float(pressure), "window": window, "warm_up": max(10, window)} | config
        found.append(run("recency", 0, [9.0, error], **chosen))
    return found + ([] if random is None else [run("random", 0, [9.0, random], **config)])


def figure_7(records):
    return table(all_tables(records), "Figure 7")


def test_the_grid_has_a_row_for_each_point_of_the_paper():
    found = figure_7(grid((10, 5, 5.4), (100, 10, 5.5), (100, 15, 5.6), random=6.0))
    where = "grid search, best test error (%), ResNet (L=50), momentum"
    assert found.title == f"Figure 7: {where}, recipe paper, 40,000 iterations"
    points = [line for line in rows(found) if line["pressure"] is not None]
    assert len(points) == 2 * len(paper.GRID_PRESSURES) * len(paper.GRID_WINDOWS)
    at = {(line["pressure"], line["window"]): line for line in points if line["data"] == "CIFAR-10"}
    assert [at[point]["ours"] for point in [(100, 10), (10, 5), (100, 15), (1, 5)]] == [5.5, 5.4, 5.6, None]
    assert (at[100, 15]["warm_up"], at[100, 15]["difference"]) == (15, pytest.approx(-0.4))
    assert row(found, method="Random Batch", data="CIFAR-10")["ours"] == 6.0


def test_a_pressure_of_1_was_trained_once_and_stands_at_every_window():
    found = figure_7(grid((1, 10, 6.0), (10, 5, 5.0), (10, 10, 5.2), (10, 15, 5.4)))
    shown = {line["window"]: line for line in rows(found, data="CIFAR-10", pressure=1.0)}
    assert {window: (line["ours"], line["seeds"]) for window, line in shown.items()} == {
        5: (6.0, 1),
        10: (6.0, 1),
        15: (6.0, 1),
    }
    assert {line["difference_uniform"] for line in shown.values()} == {None}
    of_ten = rows(found, data="CIFAR-10", pressure=10.0)
    assert [line["difference_uniform"] for line in of_ten] == pytest.approx([-1.0, -0.8, -0.6])
    assert "With s₀ = 1 every sample is as likely as any other" in found.note


def test_what_was_trained_at_a_window_stands_there():
    found = figure_7(grid((1, 5, 6.1), (1, 10, 6.0), (10, 15, 5.4)))
    assert [line["ours"] for line in rows(found, data="CIFAR-10", pressure=1.0)] == [6.1, 6.0, 6.1]


def test_a_grid_with_another_warm_up_is_titled_by_it():
    points = [(s, q, 7.0) for s in (1, 10, 100) for q in (5, 10, 15)]
    found = figure_7(grid(*points, warm_up=15))
    assert (
        found.title == "Figure 7 with warm-up 15: grid search, best test error (%), ResNet (L=50), momentum"
    )
    assert {line["warm_up"] for line in rows(found) if line["seeds"]} == {15}
    assert {line["data"] for line in rows(found)} == {"CIFAR-10"}
    # The paper's own has the points of the longest window in common with it.
    both = all_tables(grid(*points, warm_up=15) + grid((10, 5, 6.0), (1000, 10, 6.0)))
    own = table(both, "Figure 7:")
    at = {(line["pressure"], line["window"]): line["ours"] for line in rows(own, data="CIFAR-10")}
    assert (at[10, 5], at[1000, 10], at[100, 15], at[100, 10]) == (6.0, 6.0, 7.0, None)


def test_one_other_window_is_no_search():
    (found,) = all_tables(study({"random": [6.0]}) + study({"recency": [5.0]}, window=5))
    assert found.title.startswith("Table 3 with window 5: ")
    (search,) = grid_searches(group_cells(grid((100, 5, 5.0), (100, 10, 5.1))), least=1)
    assert search.others == 1


def test_a_point_of_a_search_needs_no_table_of_its_own():
    records = study({"random": [6.0], "recency": [5.5]}) + grid((10, 5, 5.4), (1000, 5, 5.3))
    assert [one.title.split(":")[0] for one in all_tables(records)] == ["Table 3", "Figure 7"]


def test_runs_that_differ_have_a_grid_of_their_own():
    found = figure_7(grid((10, 5, 5.4), (1000, 5, 5.3), dropout=0.0))
    assert found.title.startswith("Figure 7 with dropout 0: ")


def test_what_draws_otherwise_or_was_not_finished_is_not_compared():
    others = grid((1, 10, 6.0), draws="systematic")
    found = figure_7(grid((10, 5, 5.4), (1000, 5, 5.3)) + others)
    assert {line["difference_uniform"] for line in rows(found)} == {None}
    waiting = [run("recency", 0, [6.0], done=False, pressure=1.0), *grid((10, 5, 5.4), (1000, 5, 5.3))]
    lines = rows(figure_7(waiting), data="CIFAR-10")
    assert {line["difference_uniform"] for line in lines} == {None}
    assert figure_7(waiting).note.endswith("Left out: 1 unfinished run.")


def test_random_batch_of_another_warm_up_is_the_same_training_and_is_compared_with():
    found = figure_7(grid((10, 5, 5.4), (10, 15, 5.0), random=6.0))
    assert row(found, data="CIFAR-10", pressure=10.0, window=15)["difference"] == pytest.approx(-1.0)
