"""A comparison that a claim of the paper consists of: one number below another, in the paper's tables and in runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from carpediem.lab.analysis import paper
from carpediem.lab.analysis.measures import BEST_ERROR, Arm, Measure, setting_words
from carpediem.lab.compared_cells import setting_key
from carpediem.lab.config import METHODS, SELECTION_OPTIONS
from carpediem.lab.plans import is_of_tables
from carpediem.lab.recipes import PAPER, departures
from carpediem.lab.records import RunRecord
from carpediem.lab.results import (
    Cell,
    PairedDifference,
    group_cells,
    mean_difference,
    relative_reduction,
    without_warm_up,
)

Verdict = Literal["yes", "no", "undecided", "not measured"]


@dataclass(frozen=True)
class Printed:
    """The difference between two numbers of the paper, and both as it prints them."""

    difference: float
    text: str


class Comparison(Protocol):
    """One number that the paper says is below another."""

    @property
    def name(self) -> str:
        """Where, and which two."""

    @property
    def digits(self) -> int:
        """How many stand behind the point of a difference."""

    @property
    def printed(self) -> Printed | None:
        """The paper's own numbers, or None where it prints none."""

    def by_seed(self, measured: Measured) -> dict[int, float]:
        """The number that should be lower minus the other, for every seed that has both."""


class Measured:
    """The finished runs that were trained as the paper's were, its draws included."""

    def __init__(self, runs: Iterable[RunRecord]) -> None:
        self._cells = [
            cell for cell in group_cells(runs) if cell.runs and cell.draws in (None, PAPER["draws"])
        ]

    def cells(self, arm: Arm) -> list[Cell]:
        """What was trained as an arm says: several where their settings differ in what the paper leaves open."""
        # A point of the grid may have a longer warm-up, which a longer window needs.
        but = ("warm_up",) if arm.is_of_grid else ()
        wanted = PAPER | dict(arm.options)
        # With a pressure of 1 every sample is as likely as any other, whatever the window.
        unread = ("window",) if wanted["pressure"] == 1 else ()
        return [
            cell
            for cell in self._cells
            if (setting_key(cell), cell.method) == (arm.setting, arm.method)
            and all(
                cell.options[name] == wanted[name] for name in cell.options if name in wanted.keys() - unread
            )
            and _is_the_papers(cell, but)
        ]

    def pairs(self, one: Arm, other: Arm) -> list[tuple[Cell, Cell]]:
        """Cells of both arms that differ in nothing else, first those of one warm-up."""
        found = [
            (a, b)
            for a in self.cells(one)
            for b in self.cells(other)
            if without_warm_up(a) == without_warm_up(b)
        ]
        return sorted(found, key=lambda pair: pair[0].setting != pair[1].setting)


def _is_the_papers(cell: Cell, but: tuple[str, ...]) -> bool:
    if cell.config["recipe"] != "paper":
        return is_of_tables(cell.runs)
    names = PAPER.keys() - {*SELECTION_OPTIONS, "draws", *but}
    return not departures(cell.config, names)


@dataclass(frozen=True)
class Below:
    """One arm's measure below another's, or below the same arm's at another time."""

    lower: Arm
    higher: Arm
    measure: Measure = BEST_ERROR
    higher_measure: Measure | None = None  # where it is another one

    @property
    def name(self) -> str:
        """Where, and which two."""
        where = setting_words(self.lower.setting)
        if self.higher_measure is not None:
            return f"{where}: {self.measure.name} − {self.higher_measure.name}"
        return f"{where}: {self.lower.name} − {self.higher.name}, {self.measure.name}"

    @property
    def digits(self) -> int:
        """How many stand behind the point of a difference."""
        return self.measure.digits

    @property
    def printed(self) -> Printed | None:
        """The paper's own numbers, or None where it prints none."""
        one, other = self.measure.printed(self.lower), self.measure.printed(self.higher)
        if one is None or other is None:
            return None
        where = setting_words(self.lower.setting)
        text = f"{where}: {one.value} ({self.lower.name}), {other.value} ({self.higher.name})"
        return Printed(one.mean - other.mean, text)

    def by_seed(self, measured: Measured) -> dict[int, float]:
        """The number that should be lower minus the other, for every seed that has both."""
        best: dict[int, float] = {}
        for lower, higher in measured.pairs(self.lower, self.higher):
            ours, theirs = values(lower, self.measure), values(higher, self.higher_measure or self.measure)
            found = {seed: ours[seed] - theirs[seed] for seed in ours if seed in theirs}
            best = max(best, found, key=len)
        return best


@dataclass(frozen=True)
class Above:
    """An arm's measure above a number."""

    arm: Arm
    measure: Measure
    bound: float

    @property
    def printed(self) -> None:
        """None: the paper prints no such number."""

    @property
    def name(self) -> str:
        """Where, and which two."""
        return f"{setting_words(self.arm.setting)}: {self.bound:g} − {self.measure.name}"

    @property
    def digits(self) -> int:
        """How many stand behind the point of a difference."""
        return self.measure.digits

    def by_seed(self, measured: Measured) -> dict[int, float]:
        """The number that should be lower minus the other, for every seed."""
        found = [values(cell, self.measure) for cell in measured.cells(self.arm)]
        return {seed: self.bound - value for seed, value in max(found, key=len, default={}).items()}


@dataclass(frozen=True)
class LargerGain:
    """Recency Bias's gain over a rival, in percent of the rival's error, larger with SGD than with momentum."""

    net: str
    data: str
    rival: str

    @property
    def digits(self) -> int:
        """How many stand behind the point of a difference."""
        return 1

    @property
    def name(self) -> str:
        """Where, and which two."""
        where = setting_words((self.net, self.data, "sgd")).removesuffix(", SGD")
        return f"{where}, against {METHODS[self.rival]}: gain with momentum − with SGD"

    @property
    def printed(self) -> Printed | None:
        """The paper's own numbers."""
        gains = [paper.error_reduction(self.net, self.data, o, self.rival) for o in ("momentum", "sgd")]
        momentum, sgd = gains
        if momentum is None or sgd is None:
            return None
        where = setting_words((self.net, self.data, "sgd")).removesuffix(", SGD")
        text = f"{where}, against {METHODS[self.rival]}: {momentum:.2f}% with momentum, {sgd:.2f}% with SGD"
        return Printed(momentum - sgd, text)

    def by_seed(self, measured: Measured) -> dict[int, float]:
        """The gain with momentum minus that with SGD, for every seed that has both."""
        momentum, sgd = (self._gains(measured, optimizer) for optimizer in ("momentum", "sgd"))
        return {seed: momentum[seed] - sgd[seed] for seed in momentum if seed in sgd}

    def _gains(self, measured: Measured, optimizer: str) -> dict[int, float]:
        ours, rival = (Arm(self.net, self.data, optimizer, method) for method in ("recency", self.rival))
        best: dict[int, float] = {}
        for pair in measured.pairs(ours, rival):
            one, other = (values(cell, BEST_ERROR) for cell in pair)
            gains = {s: relative_reduction(ours=one[s], rival=other[s]) for s in one if s in other}
            best = max(best, {s: gain for s, gain in gains.items() if gain is not None}, key=len)
        return best


def values(cell: Cell, measure: Measure) -> dict[int, float]:
    """The measure by seed, of the runs that recorded it."""
    found = {run.config["seed"]: measure.of(run) for run in cell.runs}
    return {seed: value for seed, value in found.items() if value is not None}


def judge(comparison: Comparison, measured: Measured) -> tuple[Verdict, PairedDifference | None]:
    """Whether runs bear a comparison out, and the difference seed by seed that says so.

    Yes where its interval lies below 0; no where it lies above 0; undecided otherwise, and always without an interval.
    """
    difference = mean_difference(list(comparison.by_seed(measured).values()))
    if difference is None:
        return "not measured", None
    if difference.low is None or difference.high is None:
        return "undecided", difference
    if difference.high < 0:
        return "yes", difference
    return ("no" if difference.low > 0 else "undecided"), difference
