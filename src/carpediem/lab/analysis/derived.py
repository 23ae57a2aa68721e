"""Numbers that the paper's text derives from its tables, each computed anew, with what runs of ours come to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from carpediem.lab.analysis import paper
from carpediem.lab.analysis.comparisons import Measured
from carpediem.lab.analysis.measures import Arm, setting_words
from carpediem.lab.config import METHODS
from carpediem.lab.results import relative_reduction, shared_means, time_to_error


@dataclass(frozen=True)
class Reduction:
    """By how much Recency Bias's best test error is below a rival's, in percent of it; or the time to the rival's."""

    net: str
    data: str
    optimizer: str
    rival: str
    of_time: bool = False

    @property
    def name(self) -> str:
        """Where, and against whom."""
        return f"{setting_words((self.net, self.data, self.optimizer))} against {METHODS[self.rival]}"

    @property
    def computed(self) -> float:
        """From the paper's tables."""
        if self.of_time:
            return paper.TIMES[self.data, self.rival].reduction
        reduction = paper.error_reduction(self.net, self.data, self.optimizer, self.rival)
        assert reduction is not None
        return reduction

    def ours(self, measured: Measured) -> float | None:
        """From runs, over the seeds that both have; None where there are none, or the error is never reached."""
        recency, rival = (Arm(self.net, self.data, self.optimizer, m) for m in ("recency", self.rival))
        for pair in measured.pairs(recency, rival):
            if self.of_time:
                time = time_to_error(*pair)
                return None if time is None else time.reduction
            if (means := shared_means(*pair)) is not None:
                return relative_reduction(ours=means[0], rival=means[1])
        return None


@dataclass(frozen=True)
class Derived:
    """A number, or the two ends of a range, that the text states.

    Args:
        where: the section.
        says: what the number is, in words of ours.
        stated: as printed, in percent: one number, or the lower and the upper end.
        over: what the number is the largest of, or the range of.
    """

    where: str
    says: str
    stated: tuple[str, ...]
    over: tuple[Reduction, ...]

    @property
    def computed(self) -> tuple[str, ...]:
        """The same from the paper's tables, to the digits that it prints."""
        return tuple(_to_the_digits(_end(self, i).computed, text) for i, text in enumerate(self.stated))

    @property
    def agrees(self) -> bool:
        """Whether the text is what the tables give."""
        return self.computed == self.stated

    @property
    def note(self) -> str:
        """For each end that does not agree, whose number the tables give and whose the text has."""
        return "; ".join(
            f"{computed} is {_end(self, i).name}, {stated} is {_whose(stated, self)}"
            for i, (computed, stated) in enumerate(zip(self.computed, self.stated, strict=True))
            if computed != stated
        )

    def ours(self, measured: Measured) -> tuple[float, ...]:
        """What runs come to in each setting of these that was measured, from the lowest."""
        found = (one.ours(measured) for one in self.over)
        return tuple(sorted(value for value in found if value is not None))


def _end(derived: Derived, index: int) -> Reduction:
    """Whose number one end is: with two ends the first is the lowest, the last always the highest."""
    ordered = sorted(derived.over, key=lambda one: one.computed)
    return ordered[-1] if index == len(derived.stated) - 1 else ordered[0]


def _to_the_digits(value: float, printed: str) -> str:
    return f"{value:.{len(printed.partition('.')[2])}f}"


def _whose(stated: str, derived: Derived) -> str:
    """Which setting has the stated number, and whether it is one of those that the text speaks of."""
    rivals = {one.rival for one in derived.over}
    for one in ALL_REDUCTIONS:
        if one.rival in rivals and _to_the_digits(one.computed, stated) == stated:
            return one.name + ("" if one in derived.over else ", which is left out here")
    return "none of the tables'"


def _over(
    nets: Iterable[str], optimizers: Iterable[str], data: Iterable[str], *rivals: str
) -> list[Reduction]:
    return [Reduction(n, d, o, r) for n in nets for o in optimizers for d in data for r in rivals]


_NETS = ("densenet-40-12", "resnet-50")
_TASK_1 = _over(_NETS, paper.OPTIMIZERS, paper.CLASSIFIED, *paper.RIVALS)
_TASK_2 = _over(["densenet-121"], ["momentum"], paper.FINE_TUNED, *paper.RIVALS)
ALL_REDUCTIONS = (*_TASK_1, *_TASK_2)
_TIMES = tuple(
    Reduction("densenet-121", data, "momentum", rival, of_time=True)
    for data in paper.FINE_TUNED
    for rival in paper.RIVALS
)


def _section_4_2_2(rival: str, *stated: str) -> Derived:
    over = _over(["densenet-40-12"], ["momentum"], paper.CLASSIFIED, rival)
    return Derived("4.2.2", f"lower error than {METHODS[rival]}'s, DenseNet, momentum", stated, tuple(over))


def _appendix(rival: str, *stated: str) -> Derived:
    over = [
        one
        for one in _TASK_1
        if one.rival == rival
        and (one.net, one.optimizer) != ("densenet-40-12", "momentum")
        and (one.data, one.optimizer) != ("mnist", "sgd")
    ]
    says = f"lower error than {METHODS[rival]}'s with SGD or ResNet, but for MNIST with SGD"
    return Derived("Appendix", says, stated, tuple(over))


def _times(data: str) -> tuple[Reduction, ...]:
    return tuple(one for one in _TIMES if one.data == data)


DERIVED = (
    Derived("Abstract, 1", "lower error, the largest", ("20.97",), ALL_REDUCTIONS),
    Derived("Abstract, 1", "less time to the same error, the largest", ("59.32",), _TIMES),
    _section_4_2_2("random", "3.22", "9.96"),
    _section_4_2_2("online", "4.72", "5.71"),
    _section_4_2_2("active", "2.94", "20.97"),
    *(
        Derived(
            "4.3.2",
            f"lower error than Random Batch's, {paper.DATA[data]}",
            (stated,),
            tuple(one for one in _TASK_2 if (one.data, one.rival) == (data, "random")),
        )
        for data, stated in (("mit67", "2.88"), ("food100", "1.81"))
    ),
    Derived("4.3.3", "less time to Random Batch's error, MIT-67", ("24.6",), _times("mit67")[:1]),
    Derived("4.3.3", "less time to the same error, MIT-67", ("24.57", "47.16"), _times("mit67")),
    Derived("4.3.3", "less time to the same error, FOOD-100", ("26.13", "59.32"), _times("food100")),
    *(
        Derived(
            "Table 5",
            f"less time to {METHODS[one.rival]}'s error, {paper.DATA[one.data]}",
            (paper.TIMES[one.data, one.rival].printed,),
            (one,),
        )
        for one in _TIMES
    ),
    _appendix("random", "2.32", "19.51"),
    _appendix("online", "2.51", "8.96"),
    _appendix("active", "5.15", "14.64"),
)
"""All of them, in the paper's order."""


def derived_data(derived: Derived, measured: Measured) -> dict[str, Any]:
    """A derived number as JSON can hold it."""
    return {
        "where": derived.where,
        "claim": derived.says,
        "stated": list(derived.stated),
        "computed": list(derived.computed),
        "agrees": derived.agrees,
        "note": derived.note,
        "settings": len(derived.over),
        "ours": [round(value, 6) for value in derived.ours(measured)],
    }
