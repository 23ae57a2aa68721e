"""Figure 3: the uncertainties of a run beside their rank-based and their quantised index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carpediem.lab.analysis.measures import EARLY, LATE, epoch_at
from carpediem.lab.drawing import COLOURS, head, new_figure, plain_axes, title
from carpediem.lab.figure_data import index_comparison
from carpediem.lab.records import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def index_figure(run: RunRecord, method: str) -> Figure | None:
    """One panel at 30% and one at 70% of a run's epochs; None where it did not record its uncertainties.

    Args:
        method: what the run's method is called among those that it is published with.
    """
    epochs = {share: epoch_at(len(run.epochs), share) for share in (EARLY, LATE)}
    shown = {share: one for share, n in epochs.items() if (one := index_comparison(run, n)) is not None}
    found = list(shown.values())
    if not found:
        return None
    width = max(7.6, 1.1 + 3.5 * len(found))
    figure = new_figure(width, 4.0)
    space = {"left": 0.85 / width, "right": 1 - 0.25 / width, "bottom": 0.235, "top": 0.78, "wspace": 0.08}
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False, gridspec_kw=space)[0]
    for axes, (share, one) in zip(panels, shown.items(), strict=True):
        axes.vlines(
            one.uncertainty,
            one.first_rank - 1,
            one.last_rank,
            color=COLOURS["active"],
            linewidth=2.2,
            label="rank-based index: equal samples spread over a range",
        )
        # The line of a few samples among thousands is too short to be seen.
        few = one.count < one.num_samples / 50
        axes.plot(
            one.uncertainty[few],
            (one.first_rank + one.last_rank)[few] / 2,
            linestyle="none",
            marker="_",
            markersize=7,
            markeredgewidth=1.6,
            color=COLOURS["active"],
        )
        axes.plot(
            one.uncertainty,
            one.quantised,
            linestyle="none",
            marker="o",
            markersize=4,
            color=COLOURS["recency"],
            label="quantised index (Eq. 7): one for all of them",
        )
        axes.set_xlim(-0.04, max(0.5, 1.04 * float(max(one.uncertainty.max() for one in found))))
        axes.set_ylim(-0.03 * one.num_samples, 1.03 * one.num_samples)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        settled = one.count[one.uncertainty == 0].sum() / one.num_samples
        known = ">99" if 0.995 <= settled < 1 else f"{100 * settled:.0f}"
        axes.set_title(f"Epoch {one.epoch + 1} of {len(run.epochs)} ({share:.0%})", loc="left", fontsize=10)
        axes.set_title(f"{known}% have uncertainty 0", loc="right", fontsize=8, color="#555555")
        axes.set_xlabel("Uncertainty")
        plain_axes(axes)
    panels[0].set_ylabel("Index")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="lower center", ncols=2, frameon=False, fontsize=9)
    seed = run.config["seed"]
    head(figure, title(run.config), f"{method}, seed {seed}; a low index is drawn the likeliest", left=0.85)
    return figure
