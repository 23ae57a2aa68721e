"""Figure 4: how the losses of the drawn samples are distributed, by method, at 30% and at 70% of the epochs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from carpediem.lab.analysis.measures import EARLY, LATE, epoch_at
from carpediem.lab.drawing import head, new_figure, plain_axes, style, title
from carpediem.lab.figure_data import LossDistribution, loss_distributions
from carpediem.lab.results import Cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def loss_figure(cells: Sequence[Cell]) -> Figure | None:
    """Cells of one setting, a line a method; None where no record has histograms."""
    distributions = loss_distributions(cells)
    if not distributions:
        return None
    known = min(d.epochs for d in distributions)
    epochs = [epoch_at(known, share) for share in (EARLY, LATE)]
    named = [one.name for one in distributions]
    columns = min(2 if any("(" in name for name in named) else 4, len(named))
    width, legend = 1.0 + 3.5 * len(epochs), 0.2 * math.ceil(len(named) / columns)
    height = 3.7 + legend
    figure = new_figure(width, height)
    space = {
        "left": 0.75 / width,
        "right": 1 - 0.25 / width,
        "bottom": (0.72 + legend) / height,
        "top": 1 - 0.86 / height,
        "wspace": 0.08,
    }
    panels = figure.subplots(1, len(epochs), sharey=True, squeeze=False, gridspec_kw=space)[0]
    low, high = _span(distributions, epochs)
    for axes, epoch, share in zip(panels, epochs, (EARLY, LATE), strict=True):
        for order, one in enumerate(distributions):
            colour, dashes = style(one.cell, cells)
            centres = 10 ** ((one.edges_log10[:-1] + one.edges_log10[1:]) / 2)
            axes.plot(
                centres,
                100 * one.shares[epoch],
                color=colour,
                linestyle=dashes,
                linewidth=1.6,
                label=one.name,
                zorder=3 + order,
            )
        axes.set_xscale("log")
        axes.set_xlim(10**low, 10**high)
        # Every second power of ten, and none where the panels meet.
        axes.set_xticks([10.0**power for power in range(math.floor(low) + 1, math.ceil(high), 2)])
        axes.set_title(f"Epoch {epoch + 1} of {known} ({share:.0%})", loc="left", fontsize=10)
        axes.set_xlabel("Loss of a drawn sample")
        axes.minorticks_off()
        plain_axes(axes)
    panels[0].set_ylim(bottom=0)  # of all panels, now that each has its lines
    panels[0].set_ylabel("Share of the draws (%)")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(
        handles,
        names,
        loc="lower center",
        ncols=columns,
        frameon=False,
        fontsize=9,
        handlelength=3,
    )
    bins = np.diff(distributions[0].edges_log10)[0]
    below = f"what an epoch's mini-batches held; {1 / bins:.0f} bins to a power of ten, the outermost with all beyond"
    head(figure, title(cells[0].config), below)
    return figure


def _span(distributions: Sequence[LossDistribution], epochs: Sequence[int]) -> tuple[float, float]:
    """The powers of ten between which all lines lie."""
    edges = distributions[0].edges_log10
    taken = np.flatnonzero(sum(d.shares[list(epochs)].sum(axis=0) for d in distributions) > 1e-3)
    if not len(taken):
        return float(edges[0]), float(edges[-1])
    return float(edges[taken[0]]), float(edges[taken[-1] + 1])
