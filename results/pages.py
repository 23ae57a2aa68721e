"""Makes the tables of README.md and docs/findings.md from the records in the folders beside this file.

`python results/pages.py` writes them into the pages, each in its place between two comments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, variance
from typing import NamedTuple

from carpediem.lab.analysis import paper
from carpediem.lab.compared_cells import setting_key
from carpediem.lab.config import METHODS
from carpediem.lab.dropout_tables import dropout_tables
from carpediem.lab.overview import overview_table
from carpediem.lab.plans import is_of_tables
from carpediem.lab.records import RunRecord, read_runs
from carpediem.lab.results import (
    Cell,
    PairedDifference,
    best_error,
    group_cells,
    mean_difference,
    seed_differences,
    student_t,
)
from carpediem.lab.stages import Stage, stages_of
from carpediem.lab.table import Column, Table, Value, render_markdown

RESULTS = Path(__file__).parent
PAGES = (RESULTS.parent / "README.md", RESULTS.parent / "docs" / "findings.md")
# What findings.md calls an experiment, in its order.
NAMES = {
    "cifar10_resnet50_momentum_paper": "CIFAR-10, paper",
    "cifar10_resnet50_momentum_modern": "CIFAR-10, modern",
    "cifar10_resnet50_momentum_paper_crops": "CIFAR-10, crops",
    "cifar10_resnet50_momentum_paper_no-dropout": "CIFAR-10, no dropout",
    "cifar100_resnet50_momentum_paper": "CIFAR-100, paper",
    "cifar100_resnet50_momentum_modern": "CIFAR-100, modern",
    "cifar10_resnet50_sgd_paper": "CIFAR-10, SGD",
    "cifar100_resnet50_sgd_paper": "CIFAR-100, SGD",
    "mnist_resnet50_momentum_paper": "MNIST",
    "mnist_resnet50_sgd_paper": "MNIST, SGD",
    "cifar10_densenet40_momentum_paper": "CIFAR-10, DenseNet",
    "cifar100_densenet40_momentum_paper": "CIFAR-100, DenseNet",
    "flowers102_efficientnet_lite0_fine-tuning": "Flowers",
    "cifar10_resnet50_momentum_grid": "CIFAR-10, grid",
}
# Augmentation and dropout, each with and without the other; all with systematic draws.
FACTORIAL = {
    ("flips, jitter", "0.2"): "CIFAR-10, paper",
    ("flips, jitter", "0"): "CIFAR-10, no dropout",
    ("flips, crops", "0.2"): "CIFAR-10, crops",
    ("flips, crops", "0"): "CIFAR-10, modern",
}
# How much each of these counts in an effect.
EFFECTS = {
    "crops − jitter": (-0.5, -0.5, 0.5, 0.5),
    "dropout − none": (0.5, -0.5, 0.5, -0.5),
    "difference with crops": (0, 0, 0.5, 0.5),
    "difference with jitter": (0.5, 0.5, 0, 0),
}
EXPERIMENT, DRAWS, SEEDS = (
    Column("experiment", ""),
    Column("draws", "Draws"),
    Column("seeds", "Seeds", "count"),
)


class Pair(NamedTuple):
    """Random Batch and Recency Bias of one experiment that draw alike."""

    random: Cell
    recency: Cell

    def by_seed(self, measure: Callable[[RunRecord], float] = best_error) -> dict[int, float]:
        return seed_differences(self.recency, self.random, measure)

    @property
    def stages(self) -> list[Stage]:
        return stages_of([*self.random.runs, *self.recency.runs])


def pairs_of(folders: dict[str, list[RunRecord]]) -> dict[str, dict[str, Pair]]:
    """By the experiment's name and the kind of draws, in the page's order, where both methods were run."""
    found: dict[str, dict[str, Pair]] = {}
    for name, runs in by_name(folders).items():
        cells = {
            (cell.method, cell.draws): cell for cell in group_cells(runs) if cell.runs and cell.is_default
        }
        for draws in ("independent", "systematic"):
            if ("recency", draws) in cells and ("random", draws) in cells:
                pair = Pair(cells["random", draws], cells["recency", draws])
                found.setdefault(name, {})[draws] = pair
    return {name: found[name] for name in NAMES.values() if name in found}


def by_name(folders: dict[str, list[RunRecord]]) -> dict[str, list[RunRecord]]:
    """The runs by the experiment's name, which a new one needs in `NAMES`."""
    found: dict[str, list[RunRecord]] = {}
    for folder, runs in folders.items():
        found.setdefault(NAMES[folder.partition("_")[2]], []).extend(runs)
    return found


def last(run: RunRecord) -> float:
    """The test error of the last epoch."""
    return float(run.epochs[-1]["test_error"])


def averaged(one: dict[int, float], other: dict[int, float]) -> dict[int, float]:
    """The mean of both, for the seeds that both have."""
    return {seed: (one[seed] + other[seed]) / 2 for seed in one if seed in other}


def differences(pairs: dict[str, dict[str, Pair]]) -> Table:
    """Recency Bias against Random Batch, with the difference that the paper reports."""
    columns = (
        EXPERIMENT,
        DRAWS,
        Column("behind", "Behind"),
        Column("best", "Best epoch", "difference"),
        Column("last", "Last epoch", "difference"),
        Column("paper", "The paper, best epoch", "difference"),
    )
    rows: list[tuple[Value, ...]] = []
    for name, kinds in pairs.items():
        by_draws: dict[str, list[dict[int, float]]] = {
            draws: [pair.by_seed(measure) for measure in (best_error, last)] for draws, pair in kinds.items()
        }
        if len(kinds) == 2:
            by_draws["both"] = [averaged(*two) for two in zip(*by_draws.values(), strict=True)]
        for draws, found in by_draws.items():
            behind = f"{sum(value > 0 for value in found[0].values())} of {len(found[0])}"
            means = [mean_difference(list(values.values())) for values in found]
            published = _published(kinds[draws].random) if draws == "independent" else None
            gain = _gain(published) if published else None
            rows.append((name if draws == next(iter(kinds)) else "", draws, behind, *means, gain))
    note = (
        "Behind: the seeds whose best error is higher with Recency Bias. Both: the two kinds of draws averaged seed by "
        "seed, over the seeds that have both, so that a seed counts once."
    )
    return Table("Recency Bias − Random Batch (points of test error)", note, columns, rows)


def _published(cell: Cell, methods: Sequence[str] = ("random", "recency")) -> list[paper.Published] | None:
    """The paper's errors in a cell's setting, of these methods."""
    if not is_of_tables(cell.runs):
        return None
    found = [paper.best_error(*setting_key(cell), method) for method in methods]
    return [one for one in found if one is not None] if all(found) else None


def _gain(two: Sequence[paper.Published]) -> PairedDifference:
    """What the paper's second error is above its first."""
    return PairedDifference(two[1].mean - two[0].mean, None, None, 0)


def factorial(pairs: dict[str, dict[str, Pair]]) -> Table:
    """The four cells of augmentation and dropout."""
    columns = (
        Column("augmentation", "Augmentation"),
        Column("dropout", "Dropout"),
        Column("random", "Random Batch", "error"),
        Column("recency", "Recency Bias", "error"),
        Column("by_seed", "Difference, seed by seed"),
        Column("difference", "Mean", "difference"),
    )
    rows: list[tuple[Value, ...]] = []
    for (augmentation, dropout), name in FACTORIAL.items():
        pair = pairs[name]["systematic"]
        values = list(pair.by_seed().values())
        by_seed = ", ".join(f"{value:+.2f}" for value in values)
        errors = (pair.random.best_error, pair.recency.best_error)
        rows.append((augmentation, dropout, *errors, by_seed, mean_difference(values)))
    return Table("Best test error (%), systematic draws", "", columns, rows)


def effects(pairs: dict[str, dict[str, Pair]]) -> Table:
    """What augmentation and dropout do to the difference, from the four cells."""
    cells = [pairs[name]["systematic"] for name in FACTORIAL.values()]
    stages = cells[0].stages
    columns = (Column("effect", ""), *(Column(stage.key, stage.title, "difference") for stage in stages))
    groups = [[list(pair.by_seed(stage.error).values()) for pair in cells] for stage in stages]
    rows: list[tuple[Value, ...]] = [
        (what, *(_contrast(shares, values) for values in groups)) for what, shares in EFFECTS.items()
    ]
    count = sum(map(len, groups[0]))
    note = (
        "From the four cells' differences seed by seed: the mean of the two cells with it minus that of the two "
        "without, or that of the two alone. The intervals take one spread for all cells and the "
        f"{count} differences for independent, which leaves {count - len(cells)} degrees of freedom."
    )
    return Table("What moves the difference of Recency Bias to Random Batch (points)", note, columns, rows)


def _contrast(shares: Sequence[float], groups: Sequence[Sequence[float]]) -> PairedDifference:
    """The sum of the groups' means times their shares, with its interval from the spread within groups."""
    count = sum(map(len, groups))
    degrees = count - len(groups)
    spread = sum((len(values) - 1) * variance(values) for values in groups) / degrees
    parts = list(zip(shares, groups, strict=True))
    mean = sum(share * fmean(values) for share, values in parts)
    half = student_t(degrees) * math.sqrt(spread * sum(share**2 / len(values) for share, values in parts))
    return PairedDifference(mean, mean - half, mean + half, count)


def beside_the_paper(pairs: dict[str, dict[str, Pair]]) -> Table:
    """Our errors with the paper's recipe, and the paper's."""
    columns = (
        EXPERIMENT,
        Column("random", "Random Batch", "error"),
        Column("random_paper", "the paper's", "error"),
        Column("recency", "Recency Bias", "error"),
        Column("recency_paper", "the paper's", "error"),
    )
    rows: list[tuple[Value, ...]] = []
    for name, kinds in pairs.items():
        pair = kinds.get("independent")
        published = pair and _published(pair.random)
        if pair and published:
            rows.append((name, pair.random.best_error, published[0], pair.recency.best_error, published[1]))
    return Table("Best test error (%), independent draws", "", columns, rows)


def dropout_left_on(pairs: dict[str, dict[str, Pair]]) -> Table:
    """The trainings that were tested in both ways."""
    found = {
        name: dropout_tables(name, list(kinds["independent"]))
        for name, kinds in pairs.items()
        if "independent" in kinds
    }
    rows: list[tuple[Value, ...]] = [
        (name, *row) for name, made in found.items() for table in made for row in table.rows
    ]
    columns = next(table.columns for made in found.values() for table in made)
    return Table("Tested as usual and with dropout left on", "", (EXPERIMENT, *columns), rows, grouped=1)


def draws(pairs: dict[str, dict[str, Pair]]) -> Table:
    """Systematic minus independent draws, Random Batch and Recency Bias averaged seed by seed."""
    found: dict[str, dict[str, list[float]]] = {}
    stages: list[Stage] = []
    for name, kinds in pairs.items():
        if len(kinds) < 2:
            continue
        first, *_, last_five, last_one, best = kinds["systematic"].stages
        stages = [first, last_five, last_one, best]
        methods = list(zip(kinds["systematic"], kinds["independent"], strict=True))
        found[name] = {
            stage.key: list(averaged(*(seed_differences(*two, stage.error) for two in methods)).values())
            for stage in stages
        }
    found["all of them"] = {
        stage.key: [v for one in found.values() for v in one[stage.key]] for stage in stages
    }
    rows: list[tuple[Value, ...]] = [
        (name, len(one["best"]), *(mean_difference(one[stage.key]) for stage in stages))
        for name, one in found.items()
    ]
    columns = (EXPERIMENT, SEEDS, *(Column(stage.key, stage.title, "difference") for stage in stages))
    return Table("Systematic − independent draws (points)", "", columns, rows)


def pressures(folders: dict[str, list[RunRecord]]) -> Table:
    """The grid search: the best error by pressure and window, and what a pressure does at each learning rate."""
    runs = by_name(folders)["CIFAR-10, grid"]
    cells = {
        (cell.options["pressure"], cell.options["window"]): cell
        for cell in group_cells(runs)
        if cell.runs and cell.method == "recency" and cell.options["schedule"] == "decayed"
    }
    windows = sorted({window for _, window in cells})
    *rates, _, _, best = stages_of(runs)
    columns = (
        Column("pressure", "s₀", "count"),
        *(Column(f"window_{window}", f"q = {window}", "error") for window in windows),
        *(Column(stage.key, stage.title, "difference") for stage in (*rates, best)),
    )
    rows: list[tuple[Value, ...]] = []
    for pressure in sorted({pressure for pressure, _ in cells}):
        own = [cells.get((pressure, window)) for window in windows]
        pairs = [(cell, cells[1.0, window]) for cell, window in zip(own, windows, strict=True) if cell]
        shown = [_mean_over_pairs(pairs, stage) if pressure != 1 else None for stage in (*rates, best)]
        rows.append((pressure, *(cell.best_error if cell else None for cell in own), *shown))
    seeds = len({run.config["seed"] for cell in cells.values() for run in cell.runs})
    note = (
        "Left: best test error in percent. Right: difference to s₀ = 1 in points, the mean over the windows."
    )
    title = f"Recency Bias by pressure and window, {seeds} seed{'s' * (seeds > 1)}"
    return Table(title, note, columns, rows)


def _mean_over_pairs(pairs: Sequence[tuple[Cell, Cell]], stage: Stage) -> PairedDifference | None:
    """The mean over pairs seed by seed, of the seeds that all of them have."""
    found = [seed_differences(*two, stage.error) for two in pairs]
    seeds = set.intersection(*(set(one) for one in found))
    return mean_difference([fmean(one[seed] for one in found) for seed in sorted(seeds)])


def schedules(folders: dict[str, list[RunRecord]]) -> Table:
    """A pressure that stays against one that decays, with the seeds that both have."""
    cells = [
        cell
        for cell in group_cells(by_name(folders)["CIFAR-10, paper"])
        if cell.runs and cell.draws == "independent" and "schedule" in cell.options
    ]
    columns = (
        Column("method", "Method"),
        SEEDS,
        Column("decayed", "Decayed", "error"),
        Column("constant", "Constant", "error"),
        Column("by_seed", "Constant − decayed, seed by seed"),
        Column("difference", "Mean", "difference"),
    )
    rows: list[tuple[Value, ...]] = []
    for constant in (cell for cell in cells if cell.options["schedule"] == "constant"):
        (decayed,) = (cell for cell in cells if cell.is_default and cell.method == constant.method)
        found = seed_differences(constant, decayed)
        errors = [cell.of_seeds(found).best_error for cell in (decayed, constant)]
        values = list(found.values())
        by_seed = ", ".join(f"{value:+.2f}" for value in values)
        rows.append((METHODS[constant.method], len(found), *errors, by_seed, mean_difference(values)))
    return Table("Best test error (%) by the pressure's schedule, independent draws", "", columns, rows)


def rivals(folders: dict[str, list[RunRecord]]) -> Table:
    """Online Batch and Active Bias against Random Batch, and Recency Bias against them, all drawn alike."""
    columns = (
        EXPERIMENT,
        Column("method", "Method"),
        SEEDS,
        Column("best", "− Random Batch, best epoch", "difference"),
        Column("last", "− Random Batch, last epoch", "difference"),
        Column("best_paper", "the paper's, best", "difference"),
        Column("recency", "Recency Bias − it, best epoch", "difference"),
        Column("recency_paper", "the paper's, best", "difference"),
    )
    rows: list[tuple[Value, ...]] = []
    runs = by_name(folders)
    for name, kinds in pairs_of(folders).items():
        for cell in group_cells(runs[name]):
            pair = kinds.get(str(cell.draws))
            if not (pair and cell.runs and cell.is_default and cell.method in ("online", "active")):
                continue
            published = _published(cell, ("random", cell.method, "recency"))
            by_seed = [seed_differences(cell, pair.random, measure) for measure in (best_error, last)]
            by_seed.append(seed_differences(pair.recency, cell))
            best, at_last, recency = (mean_difference(list(found.values())) for found in by_seed)
            gains = [_gain(published[:2]), _gain(published[1:])] if published else [None, None]
            shown = (best, at_last, gains[0], recency, gains[1])
            rows.append((name, METHODS[cell.method], len(by_seed[0]), *shown))
    return Table("Online Batch and Active Bias (points of test error)", "", columns, rows, grouped=1)


def overview(folders: dict[str, list[RunRecord]]) -> Table:
    """What was measured, with links."""
    return overview_table({f"results/{name}": runs for name, runs in folders.items()}, links=True)


OF_FOLDERS: dict[str, Callable[[dict[str, list[RunRecord]]], Table]] = {
    "overview": overview,
    "rivals": rivals,
    "pressures": pressures,
    "schedules": schedules,
}
TABLES: dict[str, Callable[[dict[str, dict[str, Pair]]], Table]] = {
    "differences": differences,
    "factorial": factorial,
    "effects": effects,
    "beside_the_paper": beside_the_paper,
    "dropout_left_on": dropout_left_on,
    "draws": draws,
}


def with_tables(*pages: str) -> list[str]:
    """The pages with every table made anew.

    Raises:
        KeyError: one asks for a table that is not made here.
        ValueError: a table's place has no end.
    """
    folders = {file.parent.name: read_runs(file.parent) for file in sorted(RESULTS.glob("*/runs.jsonl"))}
    pairs = pairs_of(folders)

    def made(found: re.Match[str]) -> str:
        if "<!-- results/pages.py" in found["old"]:
            raise ValueError(
                f"the table {found['name']} must end with <!-- end -->, got another table before it"
            )
        name = found["name"]
        table = OF_FOLDERS[name](folders) if name in OF_FOLDERS else TABLES[name](pairs)
        text = render_markdown(table).strip()
        return f"{found['begin']}\n{re.sub(r'(?<![0-9A-Za-z])-(?=[0-9])', '−', text)}\n{found['end']}"

    blocks = r"(?P<begin><!-- results/pages.py (?P<name>\w+) -->)\n(?P<old>.*?)(?P<end><!-- end -->)"
    return [re.sub(blocks, made, page, flags=re.DOTALL) for page in pages]


if __name__ == "__main__":
    texts = with_tables(*(page.read_text(encoding="utf-8") for page in PAGES))
    for page, text in zip(PAGES, texts, strict=True):
        page.write_text(text, encoding="utf-8")
