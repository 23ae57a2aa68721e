"""From records to results: pure functions, no files.

A **cell** is a set of runs that differ in nothing but the seed. Cells that differ in nothing but how batches
are selected share a **setting**, and can be compared seed by seed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carpediem.lab.config import METHOD_OPTIONS, METHODS, SELECTION_OPTIONS
from carpediem.lab.recipes import PAPER, recipe_of
from carpediem.lab.records import RunRecord
from carpediem.lab.words import told


@dataclass(frozen=True)
class Estimate:
    """A mean over `count` seeds, with its standard error (None for a single seed)."""

    mean: float
    error: float | None
    count: int


@dataclass(frozen=True)
class PairedDifference:
    """The mean of ours minus theirs over `count` shared seeds, with its 95% confidence interval.

    A single pair has no interval, nor have pairs that all differ by the same.
    """

    mean: float
    low: float | None
    high: float | None
    count: int


@dataclass(frozen=True)
class TimeToError:
    """When we first reached the best error of a rival, beside when the rival itself did.

    Args:
        error: the rival's best test error, in percent.
        rival: seconds of training after which the rival had it.
        ours: seconds of training after which we were as good, or None if we never were.
        rival_iterations, our_iterations: the same in steps, which no other load on the machine changes.
        seeds: how many both have run, over which all of these are means.
        missed: how many of our seeds never came there, where each is looked at by itself.
    """

    error: float
    rival: float
    ours: float | None
    rival_iterations: float
    our_iterations: float | None
    seeds: int
    missed: int = 0

    @property
    def fewer_iterations(self) -> float | None:
        """The share of the steps saved, in percent."""
        if self.our_iterations is None:
            return None
        return relative_reduction(ours=self.our_iterations, rival=self.rival_iterations)

    @property
    def reduction(self) -> float | None:
        """(rival - ours) / rival x 100: the share of the time saved, in percent."""
        return None if self.ours is None else relative_reduction(ours=self.ours, rival=self.rival)


@dataclass(frozen=True)
class Curve:
    """Test error by epoch: the mean over seeds."""

    iterations: list[int]
    seconds: list[float]
    test_error: list[float]


@dataclass(frozen=True)
class Cell:
    """Runs that differ in nothing but the seed.

    Args:
        setting: what the run shares with the other methods that it can be compared with.
        selection: how it selects batches, as (field, value) pairs.
        runs: the finished runs, one a seed, by seed.
        unfinished: the runs that have not come to their end. They count in no mean.
    """

    setting: str
    selection: tuple[tuple[str, Any], ...]
    runs: tuple[RunRecord, ...]
    unfinished: tuple[RunRecord, ...]

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of one of the runs."""
        return (self.runs or self.unfinished)[0].config

    @property
    def method(self) -> str:
        """random, online, active or recency."""
        return str(self.config["method"])

    @property
    def draws(self) -> str | None:
        """independent or systematic."""
        return self.config.get("draws")

    @property
    def options(self) -> dict[str, Any]:
        """How it selects batches, by field."""
        return dict(self.selection)

    @property
    def is_default(self) -> bool:
        """Whether every option of the method has the recipe's value, which for most is the paper's."""
        return not self.other_options

    @property
    def other_options(self) -> list[tuple[str, Any]]:
        """The method's options that have not the recipe's value, with the values that they have."""
        usual = recipe_of(self.config) or PAPER
        return [(n, v) for n, v in self.selection if n not in ("method", "draws") and v != usual.get(n, v)]

    @property
    def best_error(self) -> Estimate | None:
        """The best test error over the seeds, or None while no run has finished."""
        return estimate([best_error(run) for run in self.runs]) if self.runs else None

    def of_seeds(self, seeds: Container[int]) -> Cell:
        """The same with the finished runs of these seeds alone."""
        return replace(self, runs=tuple(run for run in self.runs if run.config["seed"] in seeds))


def best_error(run: RunRecord) -> float:
    """The lowest test error of any epoch, in percent."""
    return float(min(epoch["test_error"] for epoch in _epochs(run)))


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and standard error s / sqrt(n), with s over n - 1.

    >>> estimate([1.0, 2.0, 3.0])
    Estimate(mean=2.0, error=0.5773502691896258, count=3)
    """
    if not values:
        raise ValueError("values must hold at least one number, got none")
    count = len(values)
    return Estimate(fmean(values), stdev(values) / math.sqrt(count) if count > 1 else None, count)


def relative_reduction(*, ours: float, rival: float) -> float | None:
    """(rival - ours) / rival x 100, in percent: negative where ours is the larger, None where the rival has 0.

    >>> round(relative_reduction(ours=3936, rival=5218), 1)
    24.6
    """
    return (rival - ours) / rival * 100 if rival else None


def shared_means(ours: Cell, theirs: Cell) -> tuple[float, float] | None:
    """Mean best test error of both over the seeds that both have finished, or None where there are none."""
    pairs = _pairs(ours, theirs, best_error).values()
    return (fmean(a for a, _ in pairs), fmean(b for _, b in pairs)) if pairs else None


def paired_difference(
    ours: Cell, theirs: Cell, measure: Callable[[RunRecord], float] = best_error
) -> PairedDifference | None:
    """Our measure minus theirs, seed by seed, or None where they share no finished seed."""
    return mean_difference(list(seed_differences(ours, theirs, measure).values()))


def seed_differences(
    ours: Cell, theirs: Cell, measure: Callable[[RunRecord], float] = best_error
) -> dict[int, float]:
    """Our measure minus theirs by seed, for every seed that both have finished."""
    return {seed: mine - other for seed, (mine, other) in _pairs(ours, theirs, measure).items()}


def mean_difference(differences: Sequence[float]) -> PairedDifference | None:
    """The mean of differences taken seed by seed, or None where there are none.

    The interval is mean ± t s / sqrt(n), with Student's t of n - 1 degrees of freedom.

    >>> mean_difference([1.0])
    PairedDifference(mean=1.0, low=None, high=None, count=1)
    """
    if not differences:
        return None
    mean = estimate(differences)
    # Seeds that differ by exactly the same say how coarse the test set is, not how sure the mean is.
    if mean.error is None or mean.error < 1e-9:
        return PairedDifference(mean.mean, None, None, mean.count)
    half = student_t(mean.count - 1) * mean.error
    return PairedDifference(mean.mean, mean.mean - half, mean.mean + half, mean.count)


def _pairs(ours: Cell, theirs: Cell, measure: Callable[[RunRecord], float]) -> dict[int, tuple[float, float]]:
    """What both come to by seed, for every seed that both have finished."""
    mine, other = ({run.config["seed"]: measure(run) for run in cell.runs} for cell in (ours, theirs))
    return {seed: (mine[seed], other[seed]) for seed in mine if seed in other}


def student_t(degrees: float, confidence: float = 0.95) -> float:
    """The t with P(|T| < t) = confidence.

    With theta = atan(t / sqrt(degrees)) that probability is the integral of cos(x)^(degrees - 1) from 0 to theta over
    the same up to pi / 2, so that bisection on theta finds t to the last digits.

    >>> round(student_t(2), 3), round(student_t(2.5), 3)
    (4.303, 3.575)
    """
    if degrees < 1:
        raise ValueError(f"degrees must be at least 1, got {degrees}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < confidence else (low, middle)
    return math.sqrt(degrees) * math.tan(low)


@cache
def _legendre() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places and weights of a quadrature that is exact to the last digits for what is integrated here."""
    return np.polynomial.legendre.leggauss(128)


def _within(theta: float, degrees: float) -> float:
    places, weights = _legendre()
    part = theta / 2 * float(weights @ np.cos(theta / 2 * (places + 1)) ** (degrees - 1))
    whole = math.sqrt(math.pi) / 2 * math.exp(math.lgamma(degrees / 2) - math.lgamma((degrees + 1) / 2))
    return part / whole


def mean_curve(cell: Cell) -> Curve:
    """The mean over the finished runs, epoch by epoch, as far as all of them went."""
    if not cell.runs:
        raise ValueError("cell must hold at least one finished run, got none")
    epochs = list(zip(*(_epochs(run) for run in cell.runs), strict=False))
    return Curve(
        iterations=[int(rows[0]["iteration"]) for rows in epochs],
        **{
            name: [fmean(float(row[name]) for row in rows) for rows in epochs]
            for name in ("seconds", "test_error")
        },
    )


def time_to_error(ours: Cell, rival: Cell) -> TimeToError | None:
    """The comparison in time of the paper's Table 5, or None while the cells share no finished seed.

    The error to reach is the mean of the rival's best errors. Each run of the rival counts with the epoch of its own
    best error, each of ours with its first epoch at or below the error to reach; a single one that never comes
    there leaves no mean.
    """
    mine, theirs = ({run.config["seed"]: run for run in cell.runs} for cell in (ours, rival))
    seeds = mine.keys() & theirs.keys()
    if not seeds:
        return None
    best = [min(_epochs(theirs[seed]), key=lambda epoch: epoch["test_error"]) for seed in seeds]
    target = fmean(epoch["test_error"] for epoch in best)
    # The mean of equal errors may be a last digit below them.
    firsts = [_first_epoch_at(mine[seed], target + 1e-9) for seed in seeds]
    there = [epoch for epoch in firsts if epoch is not None]
    all_there = len(there) == len(seeds)
    return TimeToError(
        target,
        fmean(epoch["seconds"] for epoch in best),
        fmean(epoch["seconds"] for epoch in there) if all_there else None,
        fmean(epoch["iteration"] for epoch in best),
        fmean(epoch["iteration"] for epoch in there) if all_there else None,
        len(seeds),
        missed=len(seeds) - len(there),
    )


def _first_epoch_at(run: RunRecord, error: float) -> dict[str, Any] | None:
    """The first epoch with at most this test error, or None if there is none."""
    return next((epoch for epoch in _epochs(run) if epoch["test_error"] <= error), None)


def time_on_mean_curves(ours: Cell, rival: Cell) -> TimeToError | None:
    """The time to the lowest point of the rival's mean curve, or None while the cells share no finished seed.

    Both curves are means over the seeds that both have.
    """
    seeds = {run.config["seed"] for run in ours.runs} & {run.config["seed"] for run in rival.runs}
    if not seeds:
        return None
    one, other = (mean_curve(cell.of_seeds(seeds)) for cell in (ours, rival))
    target = min(other.test_error)
    best = other.test_error.index(target)
    reached = next((epoch for epoch, error in enumerate(one.test_error) if error <= target), None)
    return TimeToError(
        target,
        other.seconds[best],
        None if reached is None else one.seconds[reached],
        other.iterations[best],
        None if reached is None else one.iterations[reached],
        len(seeds),
    )


def group_cells(records: Iterable[RunRecord]) -> list[Cell]:
    """The cells that these runs make up, in the paper's order of methods within each setting.

    Runs of one cell with the same seed are the same computation: the first by hash counts.
    """
    groups: dict[tuple[str, tuple[tuple[str, Any], ...]], list[RunRecord]] = {}
    for record in sorted(records, key=lambda record: record.hash):
        groups.setdefault((setting_of(record.config), selection_of(record.config)), []).append(record)
    cells = []
    for (setting, selection), runs in groups.items():
        finished: dict[Any, RunRecord] = {}
        for run in runs:
            if run.finished:
                finished.setdefault(run.config["seed"], run)
        waiting = tuple(run for run in runs if run.config["seed"] not in finished)
        by_seed = sorted(finished.values(), key=lambda run: run.config["seed"])
        cells.append(Cell(setting, selection, tuple(by_seed), waiting))
    return sorted(cells, key=_order)


def cells_by_setting(cells: Iterable[Cell]) -> list[list[Cell]]:
    """The cells that can be compared with each other, together, in the order in which they come."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.setting, []).append(cell)
    return list(groups.values())


def setting_of(config: dict[str, Any]) -> str:
    """Everything but the seed and how batches are selected, as sorted JSON."""
    own, plain = recipe_of(config), recipe_of(config, of_method=False)
    # What the recipe sets for one method parts nothing: it is how the recipe compares its methods.
    usual = {name: plain[name] for name in own if config.get(name) == own[name]}
    selected = ("method", "draws", *SELECTION_OPTIONS, "seed")
    rest = {name: usual.get(name, value) for name, value in config.items() if name not in selected}
    return json.dumps(rest, sort_keys=True)


def without_warm_up(cell: Cell) -> str:
    """The setting, but for the warm-up, which a longer window makes longer."""
    return json.dumps({name: value for name, value in json.loads(cell.setting).items() if name != "warm_up"})


def selection_of(config: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """How this run selects batches: its method, draws, the options that its method reads, and what is its own.

    The last is what the recipe sets for the method alone, such as another weight decay.
    """
    options = METHOD_OPTIONS.get(config["method"], SELECTION_OPTIONS)
    usual = recipe_of(config) or PAPER
    plain = recipe_of(config, of_method=False)
    own = [name for name in plain if usual[name] != plain[name]]
    return tuple((name, config.get(name, usual.get(name))) for name in ("method", "draws", *options, *own))


def diverged(runs: Iterable[RunRecord]) -> list[str]:
    """A sentence on each run whose loss ceased to be a number: its errors are in the tables like any other's."""
    found = []
    for run in runs:
        lost = next((e["epoch"] for e in run.epochs if not math.isfinite(e["train_loss"])), None)
        if lost is not None:
            name = METHODS.get(run.config["method"], run.config["method"])
            found.append(
                f"{name}, seed {run.config['seed']}: the training loss is no number in epoch {lost + 1}"
            )
    return found


def method_name(cell: Cell, among: Iterable[Cell], *, with_draws: bool = True) -> str:
    """The cell's method as tables print it.

    Its draws stand beside it where the cells in `among` have both kinds or the recipe has the other, and so does
    every option that is not the paper's.
    """
    details = []
    kinds = {other.draws for other in among}
    usual = recipe_of(cell.config).get("draws", cell.draws)
    if with_draws and (len(kinds) > 1 or cell.draws not in (None, usual)):
        details.append(draws_name(cell.method, cell.draws))
    details += [told(name, value) for name, value in cell.other_options]
    name = METHODS.get(cell.method, cell.method)
    return f"{name} ({', '.join(details)})" if details else name


def draws_name(method: str, draws: str | None) -> str:
    """How a method draws, in words.

    >>> draws_name("random", "systematic"), draws_name("recency", "systematic")
    ('shuffle', 'systematic draws')
    """
    if draws == "systematic":
        return "shuffle" if method == "random" else "systematic draws"
    return "independent draws"


def baselines(cells: Iterable[Cell]) -> list[Cell]:
    """The Random Batch cells among these, first the one that the recipe itself would run."""
    found = [cell for cell in cells if cell.method == "random"]
    return sorted(found, key=lambda cell: cell.draws != recipe_of(cell.config).get("draws"))


def baseline_of(cell: Cell, among: Iterable[Cell]) -> Cell | None:
    """The finished Random Batch to compare a cell with: drawn as the cell is, where it has been run so."""
    finished = [one for one in baselines(among) if one.runs]
    return next((one for one in finished if one.draws == cell.draws), finished[0] if finished else None)


def _epochs(run: RunRecord) -> list[dict[str, Any]]:
    if not run.epochs:
        raise ValueError(f"run {run.hash} has no finished epoch")
    return run.epochs


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _order(cell: Cell) -> tuple[Any, ...]:
    known = list(METHODS)
    rank = known.index(cell.method) if cell.method in known else len(known)
    # Numbers as numbers, everything else as text: the values of one field need not compare.
    options = [(_is_number(value), value if _is_number(value) else str(value)) for _, value in cell.selection]
    return (cell.setting, rank, not cell.is_default, options)
