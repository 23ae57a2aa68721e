"""The report as a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from carpediem.lab.atomic import write_whole, writing_out
from carpediem.lab.records import no_run_yet

from .gather import gather
from .page import render_page


def write_report(
    folders: Sequence[str | Path], file: str | Path, complain: Callable[[str], None] = lambda _: None
) -> Path:
    """One self-contained HTML file on the runs in `folders`, written whole or not at all.

    Args:
        folders: studies' folders or published folders, as for `read_runs`.
        file: where to write.
        complain: told of what is damaged and was left out.
    """
    file = Path(file)
    if file.is_dir():
        raise IsADirectoryError(
            f"--out must be a file, got the folder {file}; name one in it, such as {file / 'report.html'}"
        )
    data = gather(folders)
    if not data["settings"]:
        raise no_run_yet(folders)
    for sentence in data["damage"]:
        complain(f"left out: {sentence}")
    page = render_page(data)
    with writing_out(file):
        write_whole(file, page)
    return file
