"""What is said while a study trains."""

import pytest

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


@pytest.mark.parametrize(("every", "lines"), [(0.0, ["4 of 10", "5 of 10", "7 of 10", "8 of 10"]), (1e9, [])])
def test_where_no_bar_can_be_drawn_a_line_says_now_and_then_how_far_it_is(make_configs, capsys, every, lines):
    random, recency = make_configs("random", "recency")
    with StudyProgress([random, recency], every=every) as progress:
        progress.show(News([random, recency], records(2), is_warm_up=True))
        for count, config in ((3, recency), (4, random), (5, random), (5, recency)):
            progress.show(News([config], records(count), is_warm_up=False))
    said = capsys.readouterr().err.splitlines()
    told = [line for line in said if "epochs done" in line]
    assert [line.split(" epochs")[0] for line in told] == lines
    assert all(line.endswith("about 1 minute left") for line in told)
    assert said[0] == "trains 2 runs of 5 epochs, each of 6 batches of 8"
    assert sum("best test error" in line for line in said) == 2
