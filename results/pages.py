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

from carpediem.lab import paper
from carpediem.lab.compared_cells import setting_key
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
    paired_difference,
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
    "flowers102_efficientnet_lite0_fine-tuning": "Flowers",
}
# Augmentation and dropout, each with and without the other; all with systematic draws.
FACTORIAL = {
    ("flips, jitter", 0.2): "CIFAR-10, paper",
    ("flips, jitter", 0.0): "CIFAR-10, no dropout",
    ("flips, crops", 0.2): "CIFAR-10, crops",
    ("flips, crops", 0.0): "CIFAR-10, modern",
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

    def difference(self, measure: Callable[[RunRecord], float] = best_error) -> PairedDifference | None:
        return paired_difference(self.recency, self.random, measure)

    def by_seed(self, measure: Callable[[RunRecord], float] = best_error) -> dict[int, float]:
        theirs = {run.config["seed"]: measure(run) for run in self.random.runs}
        return {
            s: measure(run) - theirs[s] for run in self.recency.runs if (s := run.config["seed"]) in theirs
        }

    @property
    def stages(self) -> list[Stage]:
        return stages_of([*self.random.runs, *self.recency.runs])


def pairs_of(folders: dict[str, list[RunRecord]]) -> dict[str, dict[str, Pair]]:
    """By the experiment's name and the kind of draws, in the page's order."""
    found: dict[str, dict[str, Pair]] = {}
    for folder, runs in folders.items():
        name = NAMES[folder.partition("_")[2]]  # a new experiment needs a name there
        cells = {
            (cell.method, cell.draws): cell for cell in group_cells(runs) if cell.runs and cell.is_default
        }
        for draws in ("independent", "systematic"):
            if ("recency", draws) in cells:
                pair = Pair(cells["random", draws], cells["recency", draws])
                found.setdefault(name, {})[draws] = pair
    return {name: found[name] for name in NAMES.values() if name in found}


def last(run: RunRecord) -> float:
    """The test error of the last epoch."""
    return float(run.epochs[-1]["test_error"])


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
            by_draws["both"] = [
                {seed: (one[seed] + other[seed]) / 2 for seed in one if seed in other}
                for one, other in zip(*by_draws.values(), strict=True)
            ]
        for draws, found in by_draws.items():
            behind = f"{sum(value > 0 for value in found[0].values())} of {len(found[0])}"
            means = [mean_difference(list(values.values())) for values in found]
            gain = _gain_of_the_paper(kinds[draws]) if draws == "independent" else None
            rows.append((name if draws == next(iter(kinds)) else "", draws, behind, *means, gain))
    note = (
        "Behind: the seeds whose best error is higher with Recency Bias. Both: the two kinds of draws averaged seed by "
        "seed, over the seeds that have both, so that a seed counts once."
    )
    return Table("Recency Bias − Random Batch (points of test error)", note, columns, rows)


def _published(pair: Pair) -> list[paper.Published] | None:
    """The paper's errors of Random Batch and Recency Bias in this setting."""
    if not is_of_tables(pair.random.runs):
        return None
    found = [paper.best_error(*setting_key(pair.random), method) for method in ("random", "recency")]
    return [one for one in found if one is not None] if all(found) else None


def _gain_of_the_paper(pair: Pair) -> PairedDifference | None:
    published = _published(pair)
    if published is None:
        return None
    return PairedDifference(published[1].mean - published[0].mean, None, None, 0)


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
        by_seed = ", ".join(f"{value:+.2f}" for value in pair.by_seed().values())
        errors = (pair.random.best_error, pair.recency.best_error)
        rows.append((augmentation, f"{dropout:g}", *errors, by_seed, pair.difference()))
    return Table("Best test error (%), systematic draws", "", columns, rows)


def effects(pairs: dict[str, dict[str, Pair]]) -> Table:
    """What augmentation and dropout do to the difference, from the four cells."""
    cells = {key: pairs[name]["systematic"] for key, name in FACTORIAL.items()}
    stages = next(iter(cells.values())).stages
    columns = (Column("effect", ""), *(Column(stage.key, stage.title, "difference") for stage in stages))
    with_crops = {key: key[0] == "flips, crops" for key in cells}
    with_dropout = {key: key[1] > 0 for key in cells}
    lines: dict[str, dict[tuple[str, float], float]] = {
        "crops − jitter": {key: 0.5 if with_crops[key] else -0.5 for key in cells},
        "dropout − none": {key: 0.5 if with_dropout[key] else -0.5 for key in cells},
        "difference with crops": {key: 0.5 * with_crops[key] for key in cells},
        "difference with jitter": {key: 0.5 * (not with_crops[key]) for key in cells},
    }
    count = sum(len(pair.by_seed()) for pair in cells.values())
    rows: list[tuple[Value, ...]] = []
    for what, shares in lines.items():
        found = [
            _contrast(
                [(shares[key], list(pair.by_seed(stage.error).values())) for key, pair in cells.items()]
            )
            for stage in stages
        ]
        rows.append((what, *found))
    note = (
        "From the four cells' differences seed by seed: the mean of the two cells with it minus that of the two "
        "without, or that of the two alone. The intervals take one spread for all cells and the "
        f"{count} differences for independent, which leaves {count - len(cells)} degrees of freedom."
    )
    return Table("What moves the difference of Recency Bias to Random Batch (points)", note, columns, rows)


def _contrast(groups: Sequence[tuple[float, Sequence[float]]]) -> PairedDifference:
    """The sum of the groups' means times their shares, with its interval from the spread within groups."""
    degrees = sum(len(values) - 1 for _, values in groups)
    spread = sum((len(values) - 1) * variance(values) for _, values in groups) / degrees
    mean = sum(share * fmean(values) for share, values in groups)
    half = student_t(degrees) * math.sqrt(spread * sum(share**2 / len(values) for share, values in groups))
    return PairedDifference(mean, mean - half, mean + half, sum(len(values) for _, values in groups))


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
        published = pair and _published(pair)
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
        four = [kinds[kind][place] for kind in ("systematic", "independent") for place in (0, 1)]
        shared = set.intersection(*({run.config["seed"] for run in cell.runs} for cell in four))
        by_seed = [{run.config["seed"]: run for run in cell.runs} for cell in four]
        found[name] = {
            stage.key: [
                fmean(
                    stage.error(by_seed[place][seed]) - stage.error(by_seed[place + 2][seed])
                    for place in (0, 1)
                )
                for seed in sorted(shared)
            ]
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
        if found["name"] == "overview":
            table = overview_table({f"results/{name}": runs for name, runs in folders.items()}, links=True)
        else:
            table = TABLES[found["name"]](pairs)
        text = render_markdown(table).strip()
        return f"{found['begin']}\n{re.sub(r'(?<![0-9A-Za-z])-(?=[0-9])', '−', text)}\n{found['end']}"

    blocks = r"(?P<begin><!-- results/pages.py (?P<name>\w+) -->)\n(?P<old>.*?)(?P<end><!-- end -->)"
    return [re.sub(blocks, made, page, flags=re.DOTALL) for page in pages]


if __name__ == "__main__":
    texts = with_tables(*(page.read_text(encoding="utf-8") for page in PAGES))
    for page, text in zip(PAGES, texts, strict=True):
        page.write_text(text, encoding="utf-8")
