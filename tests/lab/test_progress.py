"""What is said while a study trains."""

import pytest

from carpediem.lab import progress as module
from carpediem.lab.folder_news import News
from carpediem.lab.progress import StudyProgress


def records(count):
    return [
        {"epoch": n, "iteration": 6 * (n + 1), "test_error": 50.0 - n, "seconds": n + 1.0}
        for n in range(count)
    ]


def test_brackets_in_a_path_are_told_as_they_are(capsys):
    with StudyProgress([]) as progress:
        progress.complain("runs[old]/[/b] is not a whole checkpoint")
    assert capsys.readouterr().err == "note: runs[old]/[/b] is not a whole checkpoint\n"


@pytest.fixture
def pass_time(monkeypatch):
    """Lets the clock that progress reads go on by so many seconds."""
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])

    def wait(seconds):
        now[0] += seconds

    return wait


def told(capsys):
    return [line for line in capsys.readouterr().err.splitlines() if " left" in line]


def test_where_no_bar_can_be_drawn_a_line_a_minute_says_how_long_it_will_take(
    make_configs, capsys, pass_time
):
    random, recency = make_configs("random", "recency")
    with StudyProgress([random, recency]) as progress:
        for count in (1, 2):
            pass_time(59)
            progress.show(News([random, recency], records(count), is_warm_up=True))
        for count, config in (
            (3, recency),
            (3, random),
            (4, random),
            (5, random),
            (4, recency),
            (5, recency),
        ):
            pass_time(300)
            progress.show(News([config], records(count), is_warm_up=False))
    assert told(capsys) == [
        "4 of 10 epochs done, about 6 minutes left",  # two epochs of 59 s, six to come
        "5 of 10 epochs done, about 12 minutes left",
        "6 of 10 epochs done, about 12 minutes left",
        "7 of 10 epochs done, about 11 minutes left",
        "8 of 10 epochs done, about 8 minutes left",
        "9 of 10 epochs done, about 4 minutes left",
    ]


def test_what_was_trained_before_is_no_measure_of_what_is_left(make_configs, capsys, pass_time):
    # As a cluster's folder is read: the runs first, then their warm-up, which has long been done.
    random, recency = make_configs("random", "recency", epochs=40)
    with StudyProgress([random, recency]) as progress:
        for config in (random, recency):
            progress.show(News([config], records(20), is_warm_up=False))
        progress.show(News([random, recency], records(2), is_warm_up=True))
        pass_time(600)
        progress.show(News([random], records(28), is_warm_up=False))
    assert told(capsys) == ["48 of 80 epochs done, about 32 minutes left"]


def test_runs_of_other_lengths_count_with_their_own(make_configs, capsys, pass_time):
    (short,), (long,) = (make_configs("random", epochs=epochs) for epochs in (4, 10))
    with StudyProgress([short, long]) as progress:
        for config, count in ((long, 1), (short, 1), (short, 2)):
            pass_time(60)
            progress.show(News([config], records(count), is_warm_up=False))
    assert [line.split(" epochs")[0] for line in told(capsys)][1:] == ["2 of 14", "3 of 14"]
