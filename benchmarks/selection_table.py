"""From raw numbers to the table of `bench_selection.py`, with the bars of the project beside what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from measure import Pair
from selection_cases import LARGE_BATCH, Raw

LARGE = 100_000_000  # the size that the bars on the first batch, on growth and on memory are set at

EPOCH_BAR, LARGE_BATCH_BAR, INDEPENDENT_BAR = 1.0, 1.1, 1.5
WEIGHTED_BAR, WEIGHTED_BAR_FROM = 1 / 3, 1_281_167
FIRST_BATCH_BAR = 0.5
OBSERVE_BAR, OBSERVE_GROWTH_BAR = 100e-6, 2.0
MEMORY_BAR = 18.0

HEADER = ("what", "N", "carpediem", "beside", "value", "fastest", "bar", "verdict")
NUMBERS = (1, 2, 4, 5, 6)  # columns that are set flush right
FOOTNOTE = "~ extrapolated from a part of the epoch"


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes:
        ours, beside: the two things that are compared, in words.
        value: what is judged, in `unit`: "ratio", "seconds" or "bytes" (a sample); None where there is nothing.
        fastest: a ratio once more, of the fastest timings instead of the median over rounds.
        bar: the most that `value` may be; None where nothing is asked.
    """

    what: str
    num_samples: int
    ours: str = ""
    beside: str = ""
    value: float | None = None
    unit: str = "ratio"
    fastest: float | None = None
    bar: float | None = None

    @property
    def verdict(self) -> str:
        if self.value is None or self.bar is None:
            return ""
        return "ok" if self.value <= self.bar else "MISSED"

    def cells(self) -> list[str]:
        value, fastest, bar = (
            "" if number is None else _quantity(number, self.unit)
            for number in (self.value, self.fastest, self.bar)
        )
        bar = f"≤ {bar}" if bar else ""
        return [self.what, f"{self.num_samples:,}", self.ours, self.beside, value, fastest, bar, self.verdict]


def epoch_lines(n: int, raw: Raw) -> Iterator[Line]:
    """A whole epoch of one size beside other ways to draw it."""
    pair = Pair(**raw["random"])
    ours = median(pair.ours)
    yield _compared("epoch, refresh included", n, "RandomSampler", pair, EPOCH_BAR)
    independent = Pair(**raw["independent"])
    yield _compared("epoch, independent draws", n, "RandomSampler", independent, INDEPENDENT_BAR)
    large = Pair(**raw["large_batches"])
    yield _compared(f"epoch, batches of {LARGE_BATCH:,}", n, "RandomSampler", large, LARGE_BATCH_BAR)
    if "weighted" in raw:
        bar = WEIGHTED_BAR if n >= WEIGHTED_BAR_FROM else None
        yield _compared("epoch, refresh included", n, "WeightedRandomSampler", Pair(**raw["weighted"]), bar)
    choice = raw["choice"]
    if "extrapolated" in choice:
        yield _extrapolated(n, ours, "Generator.choice", choice["extrapolated"])
    else:
        yield _compared("epoch, refresh included", n, "Generator.choice", Pair(**choice), None)
    yield _extrapolated(n, ours, "released code's choice", raw["released"]["extrapolated"])
    refresh = median(raw["refresh"])
    yield Line("refresh alone, share of epoch", n, _time(refresh), f"epoch {_time(ours)}", refresh / ours)


def first_batch_lines(n: int, raw: Raw) -> Iterator[Line]:
    """The first batch beside one `torch.randperm`."""
    pair = Pair(**raw["with_refresh"])
    bar = FIRST_BATCH_BAR if n == LARGE else None
    yield _compared("first batch, refresh included", n, "torch.randperm", pair, bar)
    ours, permutation = median(raw["without_refresh"]), median(pair.other)
    yield Line(
        "first batch, refreshed before",
        n,
        _time(ours),
        f"torch.randperm {_time(permutation)}",
        ours / permutation,
    )


def observe_lines(raw: Raw) -> Iterator[Line]:
    """`observe` of a batch: the median call less the median argmax."""
    argmax = median(raw["argmax"])
    beyond = {int(n): median(timings) - argmax for n, timings in raw["observe"].items()}
    for n, time in beyond.items():
        whole, part = _time(time + argmax), f"argmax {_time(argmax)}"
        yield Line("observe, beyond the argmax", n, whole, part, time, "seconds", bar=OBSERVE_BAR)
    small, large = min(beyond), max(beyond)
    if small < large:
        bar = OBSERVE_GROWTH_BAR if large == LARGE else None
        ratio = beyond[large] / beyond[small]
        beside = f"{_time(beyond[small])} at N = {small:,}"
        yield Line("observe, growth with N", large, _time(beyond[large]), beside, ratio, bar=bar)


def memory_lines(n: int, raw: Raw) -> Iterator[Line]:
    """Growth of the peak of resident memory, in bytes a sample, up to the end of each stage."""
    for stage, peak in raw["peaks"].items():
        bar = MEMORY_BAR if n == LARGE and stage == "second epoch" else None
        yield Line(f"peak memory, {stage}", n, _bytes(peak), value=peak / n, unit="bytes", bar=bar)


def random_memory_lines(n: int, raw: Raw) -> Iterator[Line]:
    """The same for RandomSampler."""
    peak = raw["peak"]
    yield Line("peak memory, RandomSampler", n, "", _bytes(peak), peak / n, "bytes")


def weighted_limit_lines(n: int, raw: Raw) -> Iterator[Line]:
    """What WeightedRandomSampler does with so many samples."""
    yield Line("WeightedRandomSampler alone", n, beside=raw["outcome"])


def plain(lines: Sequence[Line]) -> str:
    """The table for a terminal."""
    rows = [list(HEADER), *(line.cells() for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    rows.insert(1, ["-" * width for width in widths])
    text = [
        "  ".join(
            cell.rjust(width) if column in NUMBERS else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([*text, "", FOOTNOTE])


def markdown(lines: Sequence[Line]) -> str:
    """The table for a page."""
    rule = ["---:" if column in NUMBERS else "---" for column in range(len(HEADER))]
    rows = [list(HEADER), rule, *(line.cells() for line in lines)]
    return "\n".join([*("| " + " | ".join(row) + " |" for row in rows), "", FOOTNOTE])


def _compared(what: str, n: int, name: str, pair: Pair, bar: float | None) -> Line:
    beside = f"{name} {_time(median(pair.other))}"
    return Line(what, n, _time(median(pair.ours)), beside, pair.ratio, "ratio", pair.ratio_of_fastest, bar)


def _extrapolated(n: int, ours: float, name: str, slow: float) -> Line:
    return Line("epoch, refresh included", n, _time(ours), f"{name} ~{_time(slow)}", ours / slow)


def _quantity(value: float, unit: str) -> str:
    if unit == "seconds":
        return _time(value)
    if unit == "bytes":
        return f"{value:.1f} B"
    return f"{value:.2f}" if value >= 0.01 else f"{value:.0e}"


def _time(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f} s"
    scale, name = (1.0, "s") if value >= 1 else (1e-3, "ms") if value >= 1e-3 else (1e-6, "µs")
    return f"{value / scale:.3g} {name}"


def _bytes(value: float) -> str:
    return f"{value / 2**20:,.0f} MiB"
