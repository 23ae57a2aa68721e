"""What the runs in the authors' world say, by a rule that was written down before the first of them.

`docs/decisions/0010-released-world.md` has the rule in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from carpediem.lab.analysis import paper
from carpediem.lab.recipes import OPTIONS, departures
from carpediem.lab.records import RunRecord
from carpediem.lab.results import (
    Cell,
    PairedDifference,
    best_error,
    group_cells,
    mean_difference,
    seed_differences,
)
from carpediem.lab.titles import network_title

PILOT_DROPOUTS = (0.3, 0.2)  # the code's, then the paper's: the first that fits is frozen


@dataclass(frozen=True)
class World:
    """What one network must show on CIFAR-10 with momentum.

    Args:
        network: as the paper calls it.
        near: how far Random Batch's mean best error may lie from the paper's for the world to count as reproduced.
        small: an interval that lies within so much of 0 says that there is no gain of the paper's size.
        seeds: how many pairs the verdict rests on.
    """

    network: str
    near: float
    small: float
    seeds: int

    @property
    def random(self) -> float:
        """The paper's best error of Random Batch."""
        return self._of("random")

    @property
    def difference(self) -> float:
        """The paper's best error of Recency Bias minus that of Random Batch."""
        return round(self._of("recency") - self.random, 2)

    def _of(self, method: str) -> float:
        published = paper.best_error(self.network, "cifar10", "momentum", method)
        assert published is not None
        return published.mean

    def is_reproduced(self, errors: Sequence[float]) -> bool:
        """Whether these best errors of Random Batch have a mean within the range."""
        return abs(fmean(errors) - self.random) <= self.near


WORLDS = {
    "resnet-50-released": World("resnet-50", near=0.5, small=0.3, seeds=8),
    "densenet-40-12-released": World("densenet-40-12", near=0.4, small=0.5, seeds=5),
}


def frozen_dropout(pilot: Mapping[float, Sequence[float]], world: World) -> float | None:
    """The dropout that the recipe is frozen with, or None where neither fits.

    Args:
        pilot: best errors of Random Batch by dropout.
    """
    return next((d for d in PILOT_DROPOUTS if d in pilot and world.is_reproduced(pilot[d])), None)


@dataclass(frozen=True)
class Outcome:
    """The first line of the rule that holds, and whether the gain is one of choosing the epoch.

    Args:
        letter: a, b, b′, c or d.
        sentence: what it means.
        is_of_choosing: of a gain, whether it is one of choosing the epoch (e).
    """

    letter: str
    sentence: str
    is_of_choosing: bool


def outcome(random: Cell, recency: Cell, world: World) -> Outcome:
    """What pairs of finished runs say, seed by seed; two seeds that both have are the least.

    Raises:
        ValueError: there are fewer.
    """
    best = seed_differences(recency, random)
    if len(best) < 2:
        raise ValueError(
            f"runs must hold two seeds of both methods at least, got {len(best)}; train more of them"
        )
    at_the_end = seed_differences(recency, random, _last_error)
    chosen = mean_difference([best[seed] - at_the_end[seed] for seed in best])
    letter, sentence = _line(
        world, [best_error(run) for run in random.runs], mean_difference(list(best.values()))
    )
    is_of_choosing = letter == "b" and chosen is not None and chosen.high is not None and chosen.high < 0
    return Outcome(letter, sentence + ", one of choosing the epoch" * is_of_choosing, is_of_choosing)


def _line(world: World, errors: Sequence[float], found: PairedDifference | None) -> tuple[str, str]:
    if not world.is_reproduced(errors):
        return "a", (
            f"not reproduced, no verdict: Random Batch's mean best error is {fmean(errors):.2f}, not "
            f"{world.random:.2f} ± {world.near:g}"
        )
    if found is None or found.low is None or found.high is None:
        return "d", "undecided: the pairs have no interval"
    interval = f"{found.mean:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"
    if found.high < 0:
        holds = "lies" if found.low <= world.difference <= found.high else "does not lie"
        return "b", f"a gain, {interval}; the paper's {world.difference:+.2f} {holds} in that interval"
    if found.low > 0:
        return "b′", f"a loss, {interval}"
    if -world.small <= found.low and found.high <= world.small:
        return "c", f"no gain of the paper's size, {interval}"
    return "d", f"undecided, {interval}"


def _last_error(run: RunRecord) -> float:
    return float(run.epochs[-1]["test_error"])


def outcomes(runs: Iterable[RunRecord]) -> dict[str, Outcome | None]:
    """The outcome of each network in the authors' world; None where there are too few pairs yet."""
    cells = [cell for cell in group_cells(runs) if _is_of_this_world(cell)]
    found: dict[str, Outcome | None] = {}
    for net, world in WORLDS.items():
        own = {cell.method: cell for cell in cells if cell.config["net"] == net}
        random, recency = own.get("random"), own.get("recency")
        found[net] = None
        if random and recency:
            # The first so many pairs: who goes on after them decides nothing by that.
            seeds = sorted(seed_differences(recency, random))[: world.seeds]
            if len(seeds) == world.seeds:
                found[net] = outcome(random.of_seeds(seeds), recency.of_seeds(seeds), world)
    return found


def told(runs: Iterable[RunRecord]) -> str:
    """A sentence for each network: what came out or, while it waits for runs, what its pilot says."""
    runs = list(runs)
    said = {
        net: f"waits for its runs{_of_the_pilot(runs, net)}" if found is None else found.sentence
        for net, found in outcomes(runs).items()
    }
    return " ".join(f"{network_title(net)}: {sentence}." for net, sentence in said.items())


def _of_the_pilot(runs: Iterable[RunRecord], net: str) -> str:
    """What Random Batch says of the dropout, where it was run with one of the two."""
    pilot = {
        cell.config["dropout"]: [best_error(run) for run in cell.runs]
        for cell in group_cells(runs)
        if cell.method == "random" and cell.config["net"] == net and _is_of_this_world(cell, but="dropout")
    }
    if not pilot.keys() & set(PILOT_DROPOUTS):
        return ""
    frozen = frozen_dropout(pilot, WORLDS[net])
    return f"; its pilot {'fits with neither dropout yet' if frozen is None else f'fits with dropout {frozen:g}'}"


def _is_of_this_world(cell: Cell, *, but: str = "") -> bool:
    """Whether a cell is of the recipe as it is frozen, on CIFAR-10 with momentum.

    Args:
        but: a setting that may be another.
    """
    config = cell.config
    asked = (config["recipe"], config["data"], config["optimizer"], config.get("precision"))
    is_plain = not departures(config, (name for name in OPTIONS if name != but)) and cell.is_default
    return asked == ("released", "cifar10", "momentum", "bf16") and is_plain and bool(cell.runs)
