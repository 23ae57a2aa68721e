"""A claim that the paper makes in words: what it says, whether its own numbers bear it out, and whether runs do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, get_args

from carpediem.lab.analysis.comparisons import Comparison, Measured, Verdict, judge
from carpediem.lab.results import PairedDifference

Holds = Literal["yes", "no", "partly", "no numbers"]


@dataclass(frozen=True)
class Claim:
    """A claim in words.

    Args:
        where: the section.
        says: the claim, in words of ours.
        shown_by: the measure that would show it.
        comparisons: what must hold, each one number below another.
        is_general: whether the paper itself says "in general" or "mostly", so that most of the comparisons suffice.
    """

    where: str
    says: str
    shown_by: str
    comparisons: tuple[Comparison, ...]
    is_general: bool = False


@dataclass(frozen=True)
class OwnNumbers:
    """What the paper's own numbers say to a claim.

    Args:
        holds: yes where every comparison that the paper prints numbers for holds, no where none does.
        against: those that do not, with the numbers.
        printed: for how many comparisons of how many the paper prints numbers.
    """

    holds: Holds
    against: tuple[str, ...]
    printed: int
    comparisons: int

    def __str__(self) -> str:
        some = (
            ""
            if self.printed in (0, self.comparisons)
            else f" ({self.printed} of {self.comparisons} printed)"
        )
        more = f"; and {len(self.against) - 2} more" if len(self.against) > 2 else ""
        but = f"; not {'; '.join(self.against[:2])}{more}" if self.against else ""
        return f"{self.holds}{some}{but}"


@dataclass(frozen=True)
class Judged:
    """What runs say to one comparison."""

    comparison: Comparison
    verdict: Verdict
    difference: PairedDifference | None

    def __str__(self) -> str:
        return f"{self.comparison.name} {difference_words(self.difference, self.comparison.digits)}"


@dataclass(frozen=True)
class OwnRuns:
    """What runs say to a claim, comparison by comparison."""

    verdict: Verdict
    judged: tuple[Judged, ...]

    def __str__(self) -> str:
        """The verdict, how many comparisons say what, and one of them: of those that decide, one of the most seeds."""
        if self.verdict == "not measured":
            return self.verdict
        counts = Counter(one.verdict for one in self.judged)
        told = ", ".join(f"{counts[word]} {word}" for word in get_args(Verdict) if counts[word])
        deciding = [one for one in self.judged if one.verdict == self.verdict]
        telling = max(
            deciding or self.judged, key=lambda one: 0 if one.difference is None else one.difference.count
        )
        return f"{self.verdict} ({told}); {telling}"


def difference_words(difference: PairedDifference | None, digits: int) -> str:
    """A difference with its interval and seeds.

    >>> difference_words(PairedDifference(0.5, 0.25, 0.75, 3), 2)
    '+0.50 [+0.25, +0.75] (3 seeds)'
    """
    if difference is None:
        return "not measured"
    numbers = [
        f"{round(value, digits) + 0.0:+.{digits}f}"  # -0.0 + 0.0 is 0.0
        for value in (difference.mean, difference.low, difference.high)
        if value is not None
    ]
    interval = f" [{', '.join(numbers[1:])}]" if numbers[1:] else ""
    return f"{numbers[0]}{interval} ({difference.count} seed{'s' * (difference.count > 1)})"


def own_numbers(claim: Claim) -> OwnNumbers:
    """What the paper's tables say to a claim. A tie does not bear out that a number is below another."""
    printed = [one.printed for one in claim.comparisons if one.printed is not None]
    against = tuple(one.text for one in printed if one.difference >= 0)
    holds: Holds = "partly"
    if not printed:
        holds = "no numbers"
    elif not against:
        holds = "yes"
    elif len(against) == len(printed):
        holds = "no"
    return OwnNumbers(holds, against, len(printed), len(claim.comparisons))


def own_runs(claim: Claim, measured: Measured) -> OwnRuns:
    """What runs say to a claim.

    Not measured where no comparison is. Else, a claim of all cases: no where one comparison says no, yes where all
    say yes. A general one: yes where more than half of the comparisons say yes, no where at least half say no.
    Undecided otherwise.
    """
    judged = tuple(Judged(one, *judge(one, measured)) for one in claim.comparisons)
    counts, half = Counter(one.verdict for one in judged), len(judged) / 2
    verdict: Verdict = "undecided"
    if counts["not measured"] == len(judged):
        verdict = "not measured"
    elif counts["no"] >= half if claim.is_general else counts["no"]:
        verdict = "no"
    elif counts["yes"] > half if claim.is_general else counts["yes"] == len(judged):
        verdict = "yes"
    return OwnRuns(verdict, judged)


def claim_data(claim: Claim, measured: Measured) -> dict[str, Any]:
    """A claim as JSON can hold it, comparison by comparison."""
    numbers, runs = own_numbers(claim), own_runs(claim, measured)
    return {
        "where": claim.where,
        "claim": claim.says,
        "shown_by": claim.shown_by,
        "paper": {"holds": numbers.holds, "against": list(numbers.against), "printed": numbers.printed},
        "ours": {"verdict": runs.verdict},
        "comparisons": [_judged_data(one) for one in runs.judged],
    }


def _judged_data(judged: Judged) -> dict[str, Any]:
    printed, found = judged.comparison.printed, judged.difference
    names = ("mean", "low", "high", "count")
    ours = {name: None if found is None else getattr(found, name) for name in names}
    return {
        "below_zero": judged.comparison.name,
        "paper": None if printed is None else round(printed.difference, 6),
        "ours": {"verdict": judged.verdict} | ours,
    }
