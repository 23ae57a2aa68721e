"""Errors with dropout left on beside the usual ones."""

from carpediem.lab.stage_tables import stage_tables
from carpediem.lab.table import row_texts
from lab.record_makers import run


def twice_tested(method, seed, errors, with_dropout, **config):
    """A run whose epochs from the second on were tested in both ways."""
    made = run(method, seed, errors, warm_up=1, **config)
    for epoch, error in zip(made.epochs[1:], with_dropout, strict=True):
        epoch["test_error_dropout"] = error
    return made


def tables(runs):
    return [table for table in stage_tables(runs) if table.title.startswith("Dropout")]


def test_both_errors_and_both_differences_stand_side_by_side():
    runs = [
        twice_tested("random", 0, [9.0, 5.0, 6.0], [8.0, 9.0]),
        twice_tested("recency", 0, [9.0, 7.0, 5.5], [8.0, 7.0]),
        twice_tested("random", 1, [9.0, 5.0, 4.0], [6.0, 7.0]),
        twice_tested("recency", 1, [9.0, 6.0, 5.5], [5.5, 5.0]),
    ]
    (made,) = tables(runs)
    assert made.title == "Dropout left on: CIFAR-10, ResNet (L=50), momentum, recipe paper with warm-up 1"
    lines = {text[0]: text[1:] for row in made.rows for text in [row_texts(made, row)]}
    assert lines["Random Batch"] == ["4.50 ± 0.50", "—", "7.00 ± 1.00", "—", "2"]
    # By seed +0.5 and +1.5, and -1 and -1, of which all are the same: no interval.
    assert lines["Recency Bias"] == ["5.50 ± 0.00", "+1.00 [-5.35, +7.35]", "6.00 ± 1.00", "-1.00", "2"]


def test_runs_that_were_not_tested_so_are_left_out():
    runs = [
        twice_tested("random", 0, [9.0, 5.0], [8.0]),
        run("random", 1, [9.0, 1.0], warm_up=1),
        run("recency", 0, [9.0, 4.0], warm_up=1),
    ]
    (made,) = tables(runs)
    assert [row_texts(made, row) for row in made.rows] == [["Random Batch", "5.00", "—", "8.00", "—", "1"]]
    assert tables(runs[1:]) == []
