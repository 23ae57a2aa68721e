"""The tables of `bench_training.py`, from what it found: training_table.py FILE.json prints them as Markdown."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

BARS = {"resnet-50": 36_000, "densenet-40-12": 17_000}  # images a second with BAR_RUNS runs
BAR_RUNS, BAR_START_UP, BAR_OVER_EAGER, BAR_METHOD = 8, 60, 5, 1.01


def bars(net: str, found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """What was asked of a network: what, measured, bar, verdict. What was not measured is left out."""
    total, eager = found.get(f"{BAR_RUNS} runs at once"), fastest_eager(found)
    ready, method = (
        found.get(f"seconds until {BAR_RUNS} runs were ready"),
        found.get("epoch with recency, ratio"),
    )
    lines = []
    if total is not None and net in BARS:
        lines.append((f"images/s, {BAR_RUNS} runs", f"{total:,.0f}", f"≥ {BARS[net]:,}", total >= BARS[net]))
    if total is not None and eager is not None:
        ratio = total / eager
        lines.append(("times plain eager", f"{ratio:.2f}", f"≥ {BAR_OVER_EAGER}", ratio >= BAR_OVER_EAGER))
    if ready is not None:
        lines.append(
            (f"start-up of {BAR_RUNS} runs, s", f"{ready:.0f}", f"≤ {BAR_START_UP}", ready <= BAR_START_UP)
        )
    if method is not None:
        lines.append(
            ("epoch, Recency Bias / Random", f"{method:.4f}", f"≤ {BAR_METHOD}", method <= BAR_METHOD)
        )
    return [(what, value, bar, "ok" if kept else "MISSED") for what, value, bar, kept in lines]


def fastest_eager(found: dict[str, Any]) -> float | None:
    """Images a second of the fastest plain program, or None where none was measured."""
    return max((rate for name, rate in found.items() if name.startswith("eager")), default=None)


def share_line(found: dict[str, Any]) -> str:
    """How much of the chip the fastest case used, by what a step asks for at least."""
    operations, moved = found["operations a second"], found["bytes a second"]
    return (
        f"matrix rate {operations / 1e12:.0f} of {found['matrix rate'] / 1e12:.0f} TFLOP/s "
        f"({operations / found['matrix rate']:.0%}); memory at least {moved / 1e12:.2f} of "
        f"{found['bandwidth'] / 1e12:.2f} TB/s ({moved / found['bandwidth']:.0%})"
    )


def markdown(about: dict[str, Any]) -> str:
    """The whole page."""
    machine, versions = about["machine"]["machine"], about["machine"]["versions"]
    page = [
        "# How fast a GPU trains",
        "Written by `benchmarks/training_table.py` from what `benchmarks/bench_training.py --json` found.",
        f"{machine['device']}, {machine['cores']} cores; Python {versions['python']}, torch {versions['torch']}, "
        f"Triton {versions.get('triton', 'none')}, carpediem {versions['carpediem']}. Batch 128, images of 32×32, "
        f"recipe `paper`. {about['date']}.",
    ]
    for net, found in about["found"].items():
        page += [f"## {net}", _table(("images a second", "", "× eager"), _rates(found), numbers=(1, 2))]
        if methods := _methods(found):
            page.append(_table(("an epoch with", "seconds", "× Random Batch"), methods, numbers=(1, 2)))
        if "matrix rate" in found:
            page.append(f"Of the chip: {share_line(found)}.")
        page.append(_table(("bar", "measured", "asked", ""), bars(net, found), numbers=(1, 2)))
    return "\n\n".join(page) + "\n"


def _rates(found: dict[str, Any]) -> list[tuple[str, ...]]:
    eager = fastest_eager(found)
    rates = {n: found[n] for kind in ("eager", "captured", "1 run") for n in found if n.startswith(kind)}
    rates |= {n: rate for n, rate in found.items() if n.endswith("runs at once")}
    return [(name, f"{rate:,.0f}", f"{rate / eager:.1f}" if eager else "") for name, rate in rates.items()]


def _methods(found: dict[str, Any]) -> list[tuple[str, ...]]:
    names = [n.removeprefix("epoch with ").removesuffix(", ratio") for n in found if n.endswith(", ratio")]
    return [
        (n, f"{found[f'epoch with {n}, seconds']:.3f}", f"{found[f'epoch with {n}, ratio']:.4f}")
        for n in names
    ]


def _table(header: tuple[str, ...], rows: list[Any], *, numbers: tuple[int, ...]) -> str:
    rule = ["---:" if column in numbers else "---" for column in range(len(header))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, rule, *rows))


if __name__ == "__main__":
    print(markdown(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), end="")
