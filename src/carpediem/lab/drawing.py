"""What all static figures share: which runs go together, their colours, titles and files."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from carpediem.lab.atomic import write_whole, writing_out
from carpediem.lab.line_styles import SPARE, line_style
from carpediem.lab.records import RunRecord, none_finished
from carpediem.lab.results import Cell, cells_by_setting, group_cells
from carpediem.lab.titles import config_title, setting_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

# Okabe and Ito's palette, told apart under every common colour blindness.
COLOURS = {"random": "#000000", "online": "#E69F00", "active": "#0072B2", "recency": "#D55E00"}
SPARE_COLOURS = ("#009E73", "#CC79A7", "#56B4E9", "#7F7F7F")
DASHES = ("solid", (0, (4, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))
GREY = "#555555"
# Nothing about the time or the program, so that equal records give equal files.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def comparable(records: Iterable[RunRecord]) -> list[list[Cell]]:
    """The cells with finished runs, setting by setting.

    Raises:
        ValueError: no run has finished.
    """
    records = list(records)
    groups = cells_by_setting(cell for cell in group_cells(records) if cell.runs)
    if not groups:
        raise none_finished(len(records))
    return sorted(groups, key=lambda cells: (setting_name(cells[0].config), cells[0].setting))


def plain_and_varied(cells: list[Cell]) -> list[list[Cell]]:
    """One cell a method; then, of methods with more, all beside Random Batch.

    The one is that of the paper's options where it has been run, else that with the most runs.
    """
    by_method: dict[tuple[str, str | None], list[Cell]] = {}
    for cell in cells:
        by_method.setdefault((cell.method, cell.draws), []).append(cell)
    plain = [max(found, key=lambda cell: (cell.is_default, len(cell.runs))) for found in by_method.values()]
    varied = [
        cell
        for found in by_method.values()
        if len(found) > 1 or found[0].method == "random"
        for cell in found
    ]
    return [plain] if len(plain) == len(cells) else [plain, varied]


def style(cell: Cell, cells: Sequence[Cell]) -> tuple[str, Any]:
    """The colour and dashes of a cell's line among others."""
    found = line_style(cell, cells)
    return (COLOURS | dict(zip(SPARE, SPARE_COLOURS, strict=True)))[found.colour], DASHES[found.dashes]


def title(config: dict[str, Any]) -> str:
    """Data, network, optimizer and recipe, as the head of a figure says them."""
    return literal(config_title(config))


def literal(text: str) -> str:
    """Text from data as it stands: between two dollar signs matplotlib would set mathematics."""
    return text.replace("$", r"\$")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches, that belongs to no window."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise ImportError("figures need matplotlib: pip install matplotlib") from missing
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def head(figure: Figure, text: str, below: str = "", *, left: float = 0.75) -> None:
    """A title at the top of a figure, with a line below it, `left` inches from the edge; long ones are set smaller."""
    width, height = figure.get_size_inches()
    _fitted(figure.text(left / width, 1 - 0.3 / height, text, fontsize=12, fontweight="bold"))
    if below:
        _fitted(figure.text(left / width, 1 - 0.4 / height, below, fontsize=8, color=GREY, va="top"))


def _fitted(text: Text) -> None:
    """Makes a text as much smaller as its figure needs to hold it."""
    figure = text.get_figure(root=True)
    assert figure is not None
    room = figure.bbox.x1 - text.get_window_extent().x0 - 0.1 * figure.dpi
    for _ in range(20):  # letters are not to scale at every size
        if (width := text.get_window_extent().width) <= room:
            break
        text.set_fontsize(text.get_fontsize() * room / width)


def plain_axes(axes: Axes, *, grid: str = "y") -> None:
    """Two spines and a light grid."""
    axes.grid(axis=grid, color="#DDDDDD", linewidth=0.7)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def check_formats(formats: Sequence[str]) -> None:
    """Refuse what no figure can be written as."""
    if unknown := sorted(set(formats) - set(_METADATA)):
        raise ValueError(f"formats must be among {', '.join(_METADATA)}, got {', '.join(unknown)}")


def write_all(
    figures: Sequence[tuple[str, Figure]], folder: str | Path, formats: Sequence[str]
) -> list[Path]:
    """Writes figures by their names; those of one name, which differ in something finer, are numbered."""
    check_formats(formats)
    names = [name for name, _ in figures]
    files = []
    for index, (name, figure) in enumerate(figures):
        number = f"_{names[:index].count(name) + 1}" if names.count(name) > 1 else ""
        for form in formats:
            stream = io.BytesIO()
            figure.savefig(stream, format=form, dpi=160, metadata=_METADATA[form])
            files.append(Path(folder) / f"{name}{number}.{form}")
            if number:  # drawn when it was the only one of that name
                (Path(folder) / f"{name}.{form}").unlink(missing_ok=True)
            with writing_out(folder):
                write_whole(files[-1], stream.getvalue())
    return files
