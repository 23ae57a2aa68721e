"""What is said while a study trains."""

from carpediem.lab.progress import StudyProgress


def test_brackets_in_a_path_are_told_as_they_are(capsys):
    with StudyProgress([]) as progress:
        progress.complain("runs[old]/[/b] is not a whole checkpoint")
    assert capsys.readouterr().err == "note: runs[old]/[/b] is not a whole checkpoint\n"
