"""What has been measured so far, at a glance: two lines for each experiment, ours and the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from carpediem.lab import paper
from carpediem.lab.records import RunRecord
from carpediem.lab.results import (
    Cell,
    PairedDifference,
    baseline_of,
    cells_by_setting,
    group_cells,
    paired_difference,
)
from carpediem.lab.table import Column, Table, Value
from carpediem.lab.tables import setting_titles


@dataclass(frozen=True)
class _Kind:
    """A column of errors: a method, and how it draws where that matters."""

    key: str
    title: str
    method: str
    draws: str | None = None

    def among(self, cells: list[Cell]) -> Cell | None:
        """The cell that stands in it: of two kinds of draws, that with more seeds."""
        fitting = [cell for cell in cells if cell.method == self.method and self.draws in (None, cell.draws)]
        return max(fitting, key=lambda cell: len(cell.runs), default=None)


_SHUFFLED = _Kind("random_shuffled", "Random Batch, shuffled", "random", "systematic")
_RECENCY = _Kind("recency", "Recency Bias", "recency")
_KINDS = (
    _Kind("random", "Random Batch", "random", "independent"),
    _SHUFFLED,
    _Kind("online", "Online Batch", "online"),
    _Kind("active", "Active Bias", "active"),
    _RECENCY,
)
_DIFFERENCES = (
    Column("difference", "Recency − Random", "difference"),
    Column("difference_shuffled", "Recency − shuffled", "difference"),
)
_NOTE = (
    "Best test error in percent, mean ± standard error (number of seeds). Recency − Random: the paired difference to "
    "Random Batch, drawn alike where that was run and with the same warm-up, with its 95% confidence interval; below 0 "
    "Recency Bias is better. Recency − shuffled: the same to Random Batch as a shuffle, whatever Recency Bias draws. "
    f"Paper: {paper.ICLR}."
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
        for own in cells_by_setting(cell for cell in group_cells(records) if cell.is_default and cell.runs)
    ]
    everything = [cell for _, own in experiments for cell in own]
    called = dict(zip((cell.setting for cell in everything), setting_titles(everything), strict=True))
    kinds = [kind for kind in _KINDS if any(kind.among(own) is not None for _, own in experiments)]
    rows: list[tuple[Value, ...]] = []
    for name, own in experiments:
        config = own[0].config
        title = called[own[0].setting]
        title = f"[{title}]({name}/)" if links else title
        found = [None if (cell := kind.among(own)) is None else cell.best_error for kind in kinds]
        rows.append((title, "ours", *found, *_differences(own)))
        published = [_published(config, kind) for kind in kinds]
        if any(published):
            rows.append(("" if links else title, "paper", *published, None, None))
    titles = [Column(kind.key, kind.title, "error of seeds") for kind in kinds]
    heading = (Column("experiment", "Experiment"), Column("whose", "Whose"))
    return Table("Best test error (%)", _NOTE, (*heading, *titles, *_DIFFERENCES), rows, grouped=1)


def _published(config: dict[str, Any], kind: _Kind) -> paper.Published | None:
    """What the paper has for a run of its own recipe and length."""
    is_papers = config["recipe"] == "fine-tuning" or (
        config["recipe"] == "paper" and config.get("iterations") == paper.ITERATIONS
    )
    if kind.draws == "systematic" or not is_papers:  # its Random Batch is known to have drawn independently
        return None
    return paper.best_error(config["net"], config["data"], config["optimizer"], kind.method)


def _differences(own: list[Cell]) -> list[PairedDifference | None]:
    """Of Recency Bias to Random Batch that draws alike, and to a shuffle."""
    recency, shuffled = (kind.among(own) for kind in (_RECENCY, _SHUFFLED))
    if recency is None:
        return [None, None]
    rivals = (baseline_of(recency, own), shuffled)
    return [None if rival is None else paired_difference(recency, rival) for rival in rivals]
