"""Every static figure of the paper that the records of a study allow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from carpediem.lab.curves import write_curves
from carpediem.lab.drawing import check_formats, comparable, plain_and_varied, write_all
from carpediem.lab.figure_grid import grid_figure
from carpediem.lab.figure_index import index_figure
from carpediem.lab.figure_losses import loss_figure
from carpediem.lab.figure_trails import trails_figure
from carpediem.lab.grid_data import grid_searches
from carpediem.lab.records import RunRecord, no_run_yet
from carpediem.lab.results import Cell, method_name
from carpediem.lab.samples import newest, read_gallery, read_trails, run_folder
from carpediem.lab.titles import setting_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("curves", "trails", "index", "losses", "grid")  # what the names of the files begin with


def write_figures(
    records: Iterable[RunRecord],
    studies: Sequence[Path],
    folder: str | Path,
    *,
    formats: Sequence[str] = ("png", "pdf"),
) -> list[Path]:
    """Writes the figures and returns the files: `curves_...` for each setting, by iteration and by seconds, and, where
    the records hold what they show, `trails_...` (Figure 2), `index_...` (Figure 3), `losses_...` (Figure 4) and
    `grid_...` (Figure 7).

    Args:
        records: runs; those that have not finished are left out.
        studies: the folders that the runs come from, where their sample records lie.
        folder: where the files go.
        formats: "png" and "pdf".
    """
    check_formats(formats)
    records = list(records)
    if not records:
        raise no_run_yet(studies)
    files = write_curves(records, folder, formats=formats)
    figures: list[tuple[str, Figure | None]] = []
    for cells in comparable(records):
        name = setting_name(cells[0].config)
        plain = plain_and_varied(cells)[0]
        recency = [cell for cell in plain if cell.method == "recency"]
        figures.append((f"trails_{name}", _trails([*recency, *plain, *cells], studies)))
        figures.append((f"index_{name}", _index([*recency, *cells], plain)))
        figures.append((f"losses_{name}", loss_figure(plain)))
    searches = grid_searches(cell for cells in comparable(records) for cell in cells)
    figures += [(f"grid_{setting_name(search.config)}", grid_figure(search)) for search in searches]
    drawn = [(name, figure) for name, figure in figures if figure is not None]
    return files + write_all(drawn, folder, formats)


def _index(cells: Iterable[Cell], among: Sequence[Cell]) -> Figure | None:
    """Figure 3 of the first run that knows its uncertainties."""
    figures = (index_figure(run, method_name(cell, among)) for cell in cells for run in cell.runs)
    return next((figure for figure in figures if figure is not None), None)


def _trails(cells: Sequence[Cell], studies: Sequence[Path]) -> Figure | None:
    """Figure 2 of the first run that has trails: the two windows see the same predictions, whatever draws them."""
    for cell in cells:
        for run in cell.runs:
            found = newest(read_trails, [run_folder(study, run.hash) for study in studies])
            if found is not None:
                place, trails = found
                return trails_figure(run, method_name(cell, cells), trails, read_gallery(place))
    return None
