"""What came out, in a sentence for each setting."""

from __future__ import annotations

from carpediem.lab.results import Cell, baseline_of, method_name, paired_difference


def verdict(cells: list[Cell]) -> str | None:
    """Which methods differ from Random Batch by more than chance, or None where that cannot be said.

    Each is compared with Random Batch as it draws itself, if that was run, by the paired difference of best test errors
    and its 95% confidence interval.
    """
    better: list[str] = []
    worse: list[str] = []
    undecided: list[str] = []
    unsure: list[str] = []
    for cell in cells:
        baseline = baseline_of(cell, cells)
        if cell.method == "random" or not cell.runs or baseline is None:
            continue
        difference = paired_difference(cell, baseline)
        if difference is None:
            continue
        name = f"{method_name(cell, cells)} {difference.mean:+.2f}"
        if difference.low is None or difference.high is None:
            unsure.append(name)
        elif difference.low <= 0 <= difference.high:
            undecided.append(name)
        else:
            (better if difference.high < 0 else worse).append(name)
    found = [("better", better), ("worse", worse), ("undecided", undecided), ("without an interval", unsure)]
    parts = [f"{word}: {', '.join(names)}" for word, names in found if names]
    if not parts:
        return None
    said = "; ".join(parts)
    return f"Points of best test error against Random Batch, by the 95% interval of the paired difference: {said}."
