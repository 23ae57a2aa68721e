"""Figure 2: what the growing window of Active Bias and the sliding one of Recency Bias make of the same samples."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from carpediem.lab.drawing import COLOURS, GREY, head, literal, new_figure, plain_axes, title
from carpediem.lab.figure_data import telling_trails
from carpediem.lab.records import RunRecord
from carpediem.lab.samples import Integers, SampleRecord, Trails

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The report's colours of up to ten classes, by their numbers: d3.schemeTableau10.
OF_TEN = (
    "#4E79A7",
    "#F28E2C",
    "#E15759",
    "#76B7B2",
    "#59A14F",
    "#EDC949",
    "#AF7AA1",
    "#FF9DA7",
    "#9C755F",
    "#BAB0AB",
)
# Of more, as many as can be told apart have a colour; a grey one would look like the rest.
OF_MANY = (*OF_TEN[:-1], "#17375E", "#7B1E3A", "#1E5631", "#C3DB3B", "#9AD7F5")
OF_REST = "#7F7F7F"
_LEGEND_COLUMNS = 5


def trails_figure(
    run: RunRecord, method: str, trails: Trails, gallery: SampleRecord | None, *, samples: int = 4
) -> Figure | None:
    """A strip of predictions and two lines a sample, for samples that tell the two windows apart.

    Args:
        method: what the run's method is called among those that it is published with.
    """
    chosen = telling_trails(trails, samples)
    if not len(chosen):
        return None
    colours = class_colours(trails, chosen)
    rest = len(_classes_seen(trails, chosen)) - len(colours)
    entries = [(_short(trails.classes[number]), colour) for number, colour in colours.items()]
    entries += [(f"{rest} more classes", OF_REST)] if rest else []
    width, each = 9.6, 1.55
    legend = 0.1 + 0.19 * math.ceil(len(entries) / _LEGEND_COLUMNS)
    height = 1.3 + each * len(chosen) + legend
    figure = new_figure(width, height)
    left, right = 1.75, 2.35
    for row, column in enumerate(chosen):
        bottom = 0.55 + legend + each * (len(chosen) - 1 - row)
        across = (left / width, (width - left - right) / width)
        lines = figure.add_axes((across[0], (bottom + 0.08) / height, across[1], 0.82 / height))
        strip = figure.add_axes((across[0], (bottom + 0.98) / height, across[1], 0.22 / height))
        _draw_strip(strip, trails, int(column), colours)
        _draw_lines(lines, trails, int(column), warm_up=int(run.config.get("warm_up") or 0))
        if row < len(chosen) - 1:
            lines.tick_params(labelbottom=False)
        else:
            lines.set_xlabel("Epoch", fontsize=9)
        picture = figure.add_axes((0.25 / width, (bottom + 0.22) / height, 0.85 / width, 0.85 / height))
        _draw_picture(picture, gallery, int(trails.index[column]))
        _name_lines(lines, trails, int(column))
    below = (
        f"{method}, seed {run.config['seed']}.\n"
        "Strip: the prediction in each epoch; a short bar is right, a tall one wrong, a gap means not drawn.\n"
        "Lines: uncertainty of the last predictions, and twice the deviation of the label's probability since the "
        "start. Grey: the warm-up."
    )
    head(figure, title(run.config), below, left=0.25)
    _legend(figure, entries)
    return figure


def class_colours(trails: Trails, columns: Integers) -> dict[int, str]:
    """The colours of the classes that these samples have or were predicted, by number: one a class in every strip.

    Of more than ten classes the samples' labels and what was predicted most have a colour, as far as they go.
    """
    seen = _classes_seen(trails, columns)
    if len(trails.classes) <= len(OF_TEN):
        return {number: OF_TEN[number] for number in sorted(seen)}
    return dict(zip(sorted(seen[: len(OF_MANY)]), OF_MANY, strict=False))


def _classes_seen(trails: Trails, columns: Integers) -> list[int]:
    """The samples' labels, then the other classes that they were predicted, the most frequent first."""
    predicted = Counter(p for p in trails.prediction[:, columns].ravel().tolist() if p >= 0)
    return list(dict.fromkeys([*trails.label[columns].tolist(), *(p for p, _ in predicted.most_common())]))


def _draw_strip(axes: Axes, trails: Trails, column: int, colours: dict[int, str]) -> None:
    predictions = trails.prediction[:, column].tolist()
    label = int(trails.label[column])
    axes.set_xlim(0.5, len(predictions) + 0.5)
    axes.set_ylim(0, 1)
    for epoch, predicted in enumerate(predictions, start=1):
        if predicted >= 0:
            # What agrees with the label recedes; what does not stands out.
            top = 0.5 if predicted == label else 1.0
            colour = colours.get(predicted, OF_REST)
            axes.axvspan(epoch - 0.5, epoch + 0.5, ymax=top, color=colour, linewidth=0)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color("#BBBBBB")
    words = literal(f"label: {_short(trails.classes[label])}")
    axes.text(1.02, 0.5, words, transform=axes.transAxes, fontsize=8, va="center")


def _legend(figure: Figure, entries: list[tuple[str, str]]) -> None:
    """Coloured squares with the names of their classes, below all strips."""
    from matplotlib.patches import Patch

    width, height = figure.get_size_inches()
    figure.legend(
        handles=[Patch(color=colour, label=literal(name)) for name, colour in entries],
        loc="lower left",
        bbox_to_anchor=(0.25 / width, 0.08 / height),
        ncols=_LEGEND_COLUMNS,
        frameon=False,
        fontsize=8,
        handlelength=0.9,
        handleheight=0.9,
        columnspacing=1.8,
        handletextpad=0.5,
        labelspacing=0.35,
        borderaxespad=0,
        borderpad=0,
    )


def _short(name: str, most: int = 16) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _draw_lines(axes: Axes, trails: Trails, column: int, *, warm_up: int) -> None:
    epochs = np.arange(1, trails.epochs + 1)
    axes.plot(epochs, trails.uncertainty[:, column], color=COLOURS["recency"], linewidth=1.7)
    axes.plot(
        epochs,
        2 * trails.deviation[:, column],
        color=COLOURS["active"],
        linewidth=1.7,
        linestyle=(0, (4, 1.5)),
    )
    axes.set_xlim(0.5, trails.epochs + 0.5)
    axes.set_ylim(-0.03, 1.03)
    axes.set_yticks([0, 0.5, 1])
    axes.tick_params(labelsize=8)
    if warm_up:
        end = min(warm_up, trails.epochs) + 0.5
        axes.axvspan(0.5, end, color="#000000", alpha=0.05, linewidth=0)
    plain_axes(axes)


def _name_lines(axes: Axes, trails: Trails, column: int) -> None:
    ends = (float(trails.uncertainty[-1, column]), 2 * float(trails.deviation[-1, column]))
    names = (f"Recency Bias: uncertainty {ends[0]:.2f}", f"Active Bias: deviation {ends[1] / 2:.2f}")
    places = [
        end if abs(ends[0] - ends[1]) >= 0.2 else sum(ends) / 2 + (0.1 if end == max(ends) else -0.1)
        for end in ends
    ]
    if places[0] == places[1]:
        places = [ends[0] - 0.1, ends[1] + 0.1]
    for name, place, method in zip(names, places, ("recency", "active"), strict=True):
        axes.text(
            1.02,
            min(0.95, max(0.05, place)),
            name,
            transform=axes.get_yaxis_transform(),
            fontsize=8,
            color=COLOURS[method],
            va="center",
        )


def _draw_picture(axes: Axes, gallery: SampleRecord | None, index: int) -> None:
    axes.set_axis_off()
    axes.set_title(f"sample {index:,}", fontsize=8, color=GREY, pad=3)
    if gallery is None or gallery.images is None:
        return
    for image in gallery.images[gallery.index == index]:
        grey = image.shape[2] == 1
        axes.imshow(image[:, :, 0] if grey else image, cmap="gray" if grey else None, vmin=0, vmax=255)
