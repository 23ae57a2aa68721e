"""What has been measured so far, at a glance: two lines for each experiment, ours and the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from carpediem.lab import paper
from carpediem.lab.records import RunRecord
from carpediem.lab.results import Cell, group_cells, paired_difference
from carpediem.lab.table import Column, Table, Value
from carpediem.lab.tables import setting_titles

# (key, method, draws where they matter, title)
_COLUMNS = (
    ("random", "random", "independent", "Random Batch"),
    ("random_shuffled", "random", "systematic", "Random Batch, shuffled"),
    ("online", "online", None, "Online Batch"),
    ("active", "active", None, "Active Bias"),
    ("recency", "recency", None, "Recency Bias"),
)
_DIFFERENCE = Column("difference", "Recency − Random", "difference")
_NOTE = (
    "Best test error in percent, mean ± standard error (number of seeds). Recency − Random: the paired difference to "
    "Random Batch with the same draws and the same warm-up, with its 95% confidence interval; below 0 Recency Bias is "
    f"better. Paper: {paper.ICLR}."
)


def overview_table(folders: Mapping[str, Iterable[RunRecord]], *, links: bool = False) -> Table:
    """One table of all folders' experiments with the paper's options; a method that was not run has a dash.

    Args:
        folders: the runs of each, by its name.
        links: whether an experiment's name is a Markdown link to its folder.
    """
    experiments = [
        (name, own)
        for name, records in folders.items()
        for own in _experiments([cell for cell in group_cells(records) if cell.is_default and cell.runs])
    ]
    everything = [cell for _, own in experiments for cell in own]
    called = dict(zip((cell.setting for cell in everything), setting_titles(everything), strict=True))
    columns = [column for column in _COLUMNS if any(_cell(own, column) is not None for _, own in experiments)]
    rows: list[tuple[Value, ...]] = []
    for name, own in experiments:
        config = own[0].config
        title = called[own[0].setting]
        title = f"[{title}]({name}/)" if links else title
        found = [None if (cell := _cell(own, column)) is None else cell.best_error for column in columns]
        rows.append((title, "ours", *found, _difference(own)))
        published = [_published(config, column) for column in columns]
        if any(published):
            rows.append(("" if links else title, "paper", *published, None))
    titles = [Column(key, title, "error of seeds") for key, _, _, title in columns]
    heading = (Column("experiment", "Experiment"), Column("whose", "Whose"))
    return Table("Best test error (%)", _NOTE, (*heading, *titles, _DIFFERENCE), rows, grouped=1)


def _experiments(cells: list[Cell]) -> list[list[Cell]]:
    return [[c for c in cells if c.setting == setting] for setting in dict.fromkeys(c.setting for c in cells)]


def _cell(own: list[Cell], column: tuple[str, str, str | None, str]) -> Cell | None:
    """What stands in a column: of two kinds of draws, that with more seeds."""
    _, method, draws, _ = column
    fitting = [cell for cell in own if cell.method == method and draws in (None, cell.draws)]
    return max(fitting, key=lambda cell: len(cell.runs), default=None)


def _published(config: dict[str, Any], column: tuple[str, str, str | None, str]) -> paper.Published | None:
    """What the paper has for a run of its own recipe and length."""
    key, method, _, _ = column
    is_papers = config["recipe"] == "fine-tuning" or (
        config["recipe"] == "paper" and config.get("iterations") == paper.ITERATIONS
    )
    if key == "random_shuffled" or not is_papers:  # its Random Batch is known to have drawn independently
        return None
    return paper.best_error(config["net"], config["data"], config["optimizer"], method)


def _difference(own: list[Cell]) -> Value:
    recency = _cell(own, ("", "recency", None, ""))
    alike = [cell for cell in own if cell.method == "random" and recency and cell.draws == recency.draws]
    return paired_difference(recency, alike[0]) if recency and alike else None
