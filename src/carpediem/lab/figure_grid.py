"""Figure 7: the best test error of Recency Bias by window and pressure, as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from carpediem.lab.drawing import GREY, head, literal, new_figure
from carpediem.lab.grid_data import GridSearch
from carpediem.lab.results import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def grid_figure(search: GridSearch) -> Figure:
    """A field for each pressure and window, the best framed."""
    from matplotlib.patches import Rectangle

    columns, rows = len(search.windows), len(search.pressures)
    notes = _notes(search)
    under, above = 0.65 + 0.17 * len(notes), 0.75
    width, height = max(5.4, 1.9 + 1.15 * columns), under + above + 0.15 + 0.5 * rows
    figure = new_figure(width, height)
    low, tall = under / height, (height - under - above) / height
    axes = figure.add_axes((0.95 / width, low, (width - 2.0) / width, tall))
    errors = np.full((rows, columns), np.nan)
    for (pressure, window), found in search.errors.items():
        errors[search.pressures.index(pressure), search.windows.index(window)] = found.mean
    shown = axes.imshow(errors, cmap="cividis", aspect="auto", origin="lower")
    middle = (np.nanmin(errors) + np.nanmax(errors)) / 2
    for (pressure, window), found in search.errors.items():
        place = (search.windows.index(window), search.pressures.index(pressure))
        dark = found.mean <= middle
        axes.text(*place, _words(found), ha="center", va="center", fontsize=9, color="w" if dark else "k")
    for row, column in zip(*np.nonzero(np.isnan(errors)), strict=True):
        axes.text(column, row, "not run", ha="center", va="center", fontsize=8, color=GREY)
    for pressure, window in search.best:
        corner = (search.windows.index(window) - 0.5, search.pressures.index(pressure) - 0.5)
        axes.add_patch(
            Rectangle(corner, 1, 1, fill=False, edgecolor="#D55E00", linewidth=2.5, clip_on=False, zorder=5)
        )
    axes.set_xticks(range(columns), [str(window) for window in search.windows])
    axes.set_yticks(range(rows), [f"{pressure:,g}" for pressure in search.pressures])
    axes.set_xlabel("Window q")
    axes.set_ylabel("Pressure s₀")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(
        shown,
        ax=axes,
        cax=figure.add_axes((1 - 0.9 / width, low, 0.14 / width, tall)),
    )
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)
    counts = sorted({found.count for found in search.errors.values()})
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    below = f"Recency Bias: best test error (%), {seeds} seed{'s' * (counts != [1])} a field; the lowest is framed"
    head(figure, literal(search.title), below, left=0.3)
    for line, note in enumerate(notes):
        figure.text(0.3 / width, (under - 0.6 - 0.17 * line) / height, note, fontsize=8, color=GREY, va="top")
    return figure


def _notes(search: GridSearch) -> list[str]:
    """What is said under the map, line by line."""
    found = []
    if len(search.warm_ups) > 1:
        found.append(f"Points differ in their warm-up: {', '.join(map(str, search.warm_ups))} epochs.")
    if 1.0 in search.pressures:
        found.append("With s₀ = 1 the window changes nothing: one training stands at every window.")
    if search.random is not None and (random := search.random.best_error) is not None:
        draws = f" ({search.random_draws})" if search.random_draws else ""
        found.append(f"Random Batch{draws} beside it: {_words(random)}.")
    return found


def _words(estimate: Estimate) -> str:
    return f"{estimate.mean:.2f}" + (f" ± {estimate.error:.2f}" if estimate.error is not None else "")
