"""The paper's seven tables, its derived numbers and its claims, as tables to print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from carpediem.lab.analysis import paper
from carpediem.lab.analysis.claims import own_numbers, own_runs
from carpediem.lab.analysis.comparisons import Measured
from carpediem.lab.analysis.derived import DERIVED, Derived
from carpediem.lab.analysis.stated_claims import CLAIMS
from carpediem.lab.config import METHODS
from carpediem.lab.table import Column, Kind, Table, Value

_METHOD = Column("method", "Method")
_STRATEGY = Column("strategy", "Strategy")
_MEASURES = (
    "Training loss: over the whole training set; as a comparison the mean of its log₁₀ over the epochs after the "
    "warm-up, over which the mean error is taken too. Loss drawn: the mean loss of what is drawn, in the epoch that "
    "ends 30% or 70% of them. Settled share: of the tenth of the samples with the highest deviation, the share whose "
    "last q predictions all equal the label."
)
_RULES = (
    "Each claim is a set of comparisons, one number below another. The paper's own numbers: yes where all that are "
    "printed bear it out, no where none does; a tie does not. Ours, a comparison: yes where the 95% interval of the "
    "difference, seed by seed, lies below 0; no where it lies above 0; undecided otherwise. No interval is corrected "
    "for the number of comparisons, which stands in brackets. Ours, a claim: no where one comparison says no, yes "
    "where all say yes; of a claim about most cases no where half of them say no, yes where more than half say yes."
)


def paper_tables() -> dict[int, Table]:
    """Tables 1 to 7 as the paper prints them, by number."""
    return {
        1: _data_sets(),
        2: _classification("densenet-40-12"),
        3: _classification("resnet-50"),
        4: _fine_tuning(),
        5: _times(),
        6: _strategies("Table 6: converged training loss", "loss", paper.TRAINING_LOSSES),
        7: _strategies("Table 7: best test error (%)", "error", paper.STRATEGY_ERRORS),
    }


def _data_sets() -> Table:
    columns = (
        Column("data", "Data"),
        Column("training", "Training", "count"),
        Column("testing", "Testing", "count"),
        Column("classes", "Classes", "count"),
        Column("resolution", "Pixels a side", "count"),
    )
    rows: list[tuple[Value, ...]] = [
        (paper.DATA[name], one.training, one.testing, one.classes, one.resolution)
        for name, one in paper.DATA_SETS.items()
    ]
    return Table("Table 1: data sets", "", columns, rows)


def _data_columns(*names: str, kind: Kind = "error") -> tuple[Column, ...]:
    return tuple(Column(name, paper.DATA[name], kind) for name in names)


def _classification(net: str) -> Table:
    rows: list[tuple[Value, ...]] = [
        (optimizer_name, name, *(paper.best_error(net, data, optimizer, method) for data in paper.CLASSIFIED))
        for optimizer, optimizer_name in paper.OPTIMIZERS.items()
        for method, name in METHODS.items()
    ]
    title = f"Table {paper.TABLE_OF_NETWORK[net]}: best test error (%), {paper.NETWORKS[net]}"
    columns = (Column("optimizer", "Optimizer"), _METHOD, *_data_columns(*paper.CLASSIFIED))
    return Table(title, "", columns, rows, grouped=1)


def _fine_tuning() -> Table:
    rows: list[tuple[Value, ...]] = [
        (name, *(paper.best_error("densenet-121", data, "momentum", method) for data in paper.FINE_TUNED))
        for method, name in METHODS.items()
    ]
    title = f"Table 4: best test error (%), fine-tuning, {paper.NETWORKS['densenet-121']}"
    return Table(title, "", (_METHOD, *_data_columns(*paper.FINE_TUNED)), rows)


def _times() -> Table:
    columns = (
        Column("data", "Data"),
        Column("rival", "Rival"),
        Column("rival_seconds", "Rival (s)", "seconds"),
        Column("ours_seconds", "Recency Bias (s)", "seconds"),
        Column("reduction", "Less time (%)", "percent"),
    )
    rows: list[tuple[Value, ...]] = [
        (paper.DATA[data], METHODS[rival], time.rival, time.ours, paper.Published(time.printed))
        for (data, rival), time in paper.TIMES.items()
    ]
    return Table("Table 5: time to the rival's best error", "", columns, rows, grouped=1)


def _strategies(title: str, kind: Kind, numbers: dict[paper.Strategy, paper.Published]) -> Table:
    names = list(dict.fromkeys(data for _, _, data in numbers))
    rows: list[tuple[Value, ...]] = [
        (paper.strategy_name(strategy), *(numbers[(*strategy, data)] for data in names))
        for strategy in paper.STRATEGIES.values()
    ]
    title = f"{title}, Recency Bias, {paper.NETWORKS['densenet-40-12']}, momentum"
    return Table(title, "", (_STRATEGY, *_data_columns(*names, kind=kind)), rows)


def derived_table(measured: Measured) -> Table:
    """The numbers that the paper's text derives from its tables, computed anew, and what runs come to."""
    columns = (
        Column("where", "Section"),
        Column("claim", "Recency Bias (%)"),
        Column("stated", "Text"),
        Column("computed", "Tables"),
        Column("ours", "Ours (settings measured)"),
        Column("note", "Where text and tables differ"),
    )
    rows: list[tuple[Value, ...]] = [
        (
            one.where,
            one.says,
            " to ".join(one.stated),
            " to ".join(one.computed),
            _range(one, measured),
            one.note,
        )
        for one in DERIVED
    ]
    note = (
        "Tables: the same computed from the paper's own tables. Ours: of the mean errors over the seeds that both "
        "methods have; below 0 Recency Bias is worse."
    )
    return Table("Numbers that the paper derives from its tables", note, columns, rows)


def _range(derived: Derived, measured: Measured) -> str | None:
    found = derived.ours(measured)
    if not found:
        return None
    ends = [f"{value:.2f}" for value in dict.fromkeys((found[0], found[-1]))]
    return f"{' to '.join(ends)} ({len(found)} of {len(derived.over)})"


def claims_table(measured: Measured) -> Table:
    """The paper's claims in words, what would show each, and what the paper's numbers and runs say to it."""
    columns = (
        Column("where", "Section"),
        Column("claim", "Claim"),
        Column("shown_by", "Shown by"),
        Column("paper", "The paper's own numbers"),
        Column("ours", "Ours"),
    )
    printed, ours = [own_numbers(one) for one in CLAIMS], [own_runs(one, measured) for one in CLAIMS]
    rows: list[tuple[Value, ...]] = [
        (claim.where, claim.says, claim.shown_by, str(numbers), str(runs))
        for claim, numbers, runs in zip(CLAIMS, printed, ours, strict=True)
    ]
    tally = (
        f"its own numbers: {_counted(one.holds for one in printed)}; our runs: "
        f"{_counted(one.verdict for one in ours)}"
    )
    title = f"What the paper claims, {len(CLAIMS)} claims ({tally})"
    return Table(title, f"{_MEASURES} {_RULES}", columns, rows, grouped=2)


def _counted(verdicts: Iterable[str]) -> str:
    """How often each verdict occurs, the most frequent first."""
    return ", ".join(f"{verdict} {count}" for verdict, count in Counter(verdicts).most_common())
