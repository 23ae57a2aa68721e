"""Convergence curves (Figures 5, 6 and 8 to 10)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from carpediem.lab.drawing import (
    GREY,
    check_formats,
    comparable,
    head,
    new_figure,
    plain_and_varied,
    plain_axes,
    style,
    title,
    write_all,
)
from carpediem.lab.records import RunRecord
from carpediem.lab.results import Cell, method_name
from carpediem.lab.titles import setting_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Which multiples of a power of ten are marked, by how many times the axis rises.
_STEPS: tuple[tuple[float, tuple[float, ...]], ...] = (
    (5, (1, 1.5, 2, 3, 4, 5, 6, 8)),
    (30, (1, 2, 3, 5, 7)),
    (1000, (1, 2, 5)),
    (math.inf, (1,)),
)
_END_EPOCHS = 15  # drawn once more, larger, of runs at least twice as long
_NEAR = 1.5  # times the lowest error, or a point above it: what ends higher may leave that panel
_LOSSES = {
    "training_set_loss": "Training loss (whole training set)",
    "train_loss": "Loss of the drawn samples",
}
"""What a panel is called by the field of an epoch's record that it shows, the paper's own first."""
_ALONG = {"iteration": "Iteration", "seconds": "Seconds of training"}


@dataclass(frozen=True)
class _Line:
    name: str
    colour: str
    dashes: Any
    x: list[float]
    middle: list[float]
    low: list[float]
    high: list[float]

    def since(self, epoch: int) -> _Line:
        """The line from this epoch on."""
        parts = {name: getattr(self, name)[epoch:] for name in ("x", "middle", "low", "high")}
        return replace(self, **parts)


def write_curves(
    records: Iterable[RunRecord],
    folder: str | Path,
    *,
    formats: Sequence[str] = ("png", "pdf"),
) -> list[Path]:
    """Write two figures for each set of runs that can be compared, by iteration and by seconds; return the files.

    Args:
        records: runs; those that have not finished are left out.
        folder: where the files go, named after data, network, optimizer and recipe. Methods that were run with
            several options have a figure of their own, named `_variants`; those by seconds are named `_seconds`.
        formats: "png" and "pdf".
    """
    check_formats(formats)
    groups = [part for cells in comparable(records) for part in plain_and_varied(cells)]
    figures = [
        (_file_name(cells) + more, convergence_figure(cells, along=along))
        for cells in groups
        for along, more in (("iteration", ""), ("seconds", "_seconds"))
    ]
    return write_all(figures, folder, formats)


def convergence_figure(cells: Sequence[Cell], *, along: str = "iteration") -> Figure:
    """Training loss and test error, a line a method: cells of one setting, as `group_cells` gives.

    The loss is that over the whole training set where all cells have recorded it, else that of the drawn samples.
    Around each mean over seeds a band from the lowest to the highest is shaded.

    Args:
        along: "iteration", or "seconds" of training, evaluation not counted.
    """
    cells = [cell for cell in cells if cell.runs]
    if not cells:
        raise ValueError("cells must hold at least one finished run, got none")
    config = cells[0].config
    loss = next(name for name in _LOSSES if all(_known(cell, name) for cell in cells))
    losses, errors = ([_line(cell, cells, name, along) for cell in cells] for name in (loss, "test_error"))
    end = min(len(line.x) for line in errors) - _END_EPOCHS
    # By seconds the ends of runs that were not equally fast lie apart.
    panels = 3 if end >= _END_EPOCHS and along == "iteration" else 2
    # Room on the right for the names, which stand beside the ends of their lines.
    names = [_two_lines(method_name(cell, cells)) for cell in cells]
    names_width = 0.5 + max(0.0085 * size * len(line) for name, size in names for line in name.split("\n"))
    width = 4.4 * panels + 0.6 + names_width
    figure = new_figure(width, 4.1)
    grid = {
        "left": 0.75 / width,
        "right": 1 - names_width / width,
        "bottom": 0.14,
        "top": 0.86,
        "wspace": 0.2,
    }
    axes = list(figure.subplots(1, panels, gridspec_kw=grid))
    warm_up, across = _warm_up(cells[0], along), _across(cells, along)
    for panel, lines, what in zip(axes, (losses, errors), (_LOSSES[loss], "Test error (%)"), strict=False):
        _draw(panel, lines, what, across)
        _scale_whole(panel, lines)
        if warm_up:
            panel.axvspan(0, warm_up, color="#000000", alpha=0.05, linewidth=0)
    if panels == 3:
        # There the lines lie upon each other in the panels before.
        errors = [line.since(end) for line in errors]
        _draw(axes[2], errors, f"Test error (%), last {_END_EPOCHS} epochs", across)
        _frame_the_lowest(axes[2], errors)
    _name_lines(axes[-1], errors)
    head(figure, title(config))
    # Above the panels: within one, some line would run through the words.
    axes[0].set_title("grey: the warm-up" if warm_up else "", loc="right", fontsize=8, color=GREY)
    axes[1].set_title(_caption(cells), loc="right", fontsize=8, color=GREY)
    return figure


def _file_name(cells: Sequence[Cell]) -> str:
    varied = len({(cell.method, cell.draws) for cell in cells}) < len(cells)
    return f"curves_{setting_name(cells[0].config)}" + ("_variants" if varied else "")


def _known(cell: Cell, field: str) -> list[tuple[dict[str, Any], ...]]:
    """The epochs whose records have the field in every run, as far as all runs went."""
    epochs = zip(*(run.epochs for run in cell.runs), strict=False)
    return [rows for rows in epochs if all(row.get(field) is not None for row in rows)]


def _line(cell: Cell, cells: Sequence[Cell], field: str, along: str) -> _Line:
    known = _known(cell, field)
    values = [[float(row[field]) for row in rows] for rows in known]
    colour, dashes = style(cell, cells)
    return _Line(
        method_name(cell, cells),
        colour,
        dashes,
        [fmean(row[along] for row in rows) for rows in known],
        *([of(row) for row in values] for of in (fmean, min, max)),
    )


def _across(cells: Sequence[Cell], along: str) -> str:
    """What runs across a panel, and of seconds how many runs shared the machine."""
    # As a rule: towards the end of a study fewer are left.
    most = [max(e.get("side_by_side", 1) for e in run.epochs) for cell in cells for run in cell.runs]
    if along == "iteration" or max(most) == 1:
        return _ALONG[along]
    counts = f"{max(most)}" if min(most) == max(most) else f"{min(most)} to {max(most)}"
    return f"{_ALONG[along]}, {counts} runs at once"


def _draw(axes: Axes, lines: Sequence[_Line], what: str, across: str) -> None:
    from matplotlib.ticker import FuncFormatter

    for order, line in enumerate(lines):
        axes.plot(
            line.x, line.middle, color=line.colour, linestyle=line.dashes, linewidth=1.7, zorder=3 + order
        )
        axes.fill_between(line.x, line.low, line.high, color=line.colour, alpha=0.15, linewidth=0, zorder=2)
    axes.set_xlim(right=max(line.x[-1] for line in lines))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel(across)
    axes.set_title(what, loc="left", fontsize=10)
    plain_axes(axes)


def _scale_whole(axes: Axes, lines: Sequence[_Line]) -> None:
    """All iterations, and an axis from the lowest to the highest: logarithmic, or linear where one has no logarithm."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xlim(left=0)
    values = [v for line in lines for v in (*line.low, *line.high, *line.middle) if math.isfinite(v)]
    if not values:
        return
    low, high = min(values), max(values)
    if low <= 0:
        margin = 0.03 * (high - low or 1.0)  # below too, where a line at 0 would lie on the axis
        axes.set_ylim(low - margin, (high or 1.0) + margin)
    else:
        axes.set_yscale("log")
        axes.set_ylim(low / 1.06, high * 1.06)
        wide = high / low
        steps = next(steps for most, steps in _STEPS if wide <= most)
        axes.yaxis.set_major_locator(LogLocator(subs=steps, numticks=20))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.minorticks_off()


def _frame_the_lowest(axes: Axes, lines: Sequence[_Line]) -> None:
    """Limits around the lines that end near the lowest: one far above would press all others together."""
    lowest = min(line.middle[-1] for line in lines)
    near = [line for line in lines if line.middle[-1] <= max(_NEAR * lowest, lowest + 1)]
    low, high = min(min(line.low) for line in near), max(max(line.high) for line in near)
    margin = 0.05 * (high - low) or 1.0
    below = min(margin, 0.05 * (high + margin)) if low <= 0 else margin  # no error is below 0
    axes.set_ylim(low - below, high + margin)
    axes.set_xlim(left=min(line.x[0] for line in lines))


def _name_lines(axes: Axes, lines: Sequence[_Line]) -> None:
    """Each line's name beside its end, pushed apart where the ends are close."""
    from matplotlib.lines import Line2D

    in_axes = axes.transScale + axes.transLimits
    ends = [min(1.0, max(0.0, in_axes.transform((line.x[-1], line.middle[-1]))[1])) for line in lines]
    order = sorted(range(len(lines)), key=ends.__getitem__)
    gap = 0.12 if any("(" in line.name for line in lines) else 0.075
    for index, place in zip(order, spread([ends[index] for index in order], gap=gap), strict=True):
        line = lines[index]
        leader: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False, "color": line.colour}
        if line.x[-1] >= 0.97 * axes.get_xlim()[1]:  # ends where the leader begins
            axes.add_line(Line2D([1.005, 1.025], [ends[index], place], linewidth=0.6, **leader))
        axes.add_line(Line2D([1.025, 1.075], [place, place], linewidth=1.7, linestyle=line.dashes, **leader))
        name, small = _two_lines(line.name)
        axes.text(
            1.085, place, name, color=line.colour, fontsize=small, va="center", transform=axes.transAxes
        )


def _two_lines(name: str) -> tuple[str, float]:
    """The name with its details below it, and the size to write it in."""
    return (name.replace(" (", "\n(", 1), 8.0) if " (" in name else (name, 9.0)


def spread(places: Sequence[float], *, gap: float) -> list[float]:
    """Ascending places in [0, 1], moved as little as needed to be at least `gap` apart.

    >>> [round(place, 2) for place in spread([0.0, 0.01, 0.9], gap=0.1)]
    [0.0, 0.1, 0.9]
    """
    if not places:
        return []
    gap = min(gap, 1.0 / max(1, len(places) - 1))
    clusters: list[tuple[float, int]] = []  # (middle, how many)
    for place in places:
        clusters.append((place, 1))
        # A cluster that overlaps the one below joins it, around the mean of both.
        while len(clusters) > 1:
            (below, few), (above, more) = clusters[-2:]
            below, above = (_kept(middle, count, gap) for middle, count in ((below, few), (above, more)))
            if above - below >= gap * (few + more) / 2 - 1e-12:
                break
            clusters[-2:] = [((below * few + above * more) / (few + more), few + more)]
    return [
        _kept(middle, count, gap) + gap * (index - (count - 1) / 2)
        for middle, count in clusters
        for index in range(count)
    ]


def _kept(middle: float, count: int, gap: float) -> float:
    """The middle of a cluster that stays inside [0, 1]."""
    half = gap * (count - 1) / 2
    return min(1 - half, max(half, middle))


def _warm_up(cell: Cell, along: str) -> float:
    """Where the warm-up ends."""
    warm_up = int(cell.config.get("warm_up") or 0)
    if not 0 < warm_up <= min(len(run.epochs) for run in cell.runs):
        return 0.0
    return fmean(run.epochs[warm_up - 1][along] for run in cell.runs)


def _caption(cells: Sequence[Cell]) -> str:
    counts = sorted({len(cell.runs) for cell in cells})
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    if counts == [1]:
        return "1 seed"
    return f"mean of {seeds} seeds; band: lowest to highest"
