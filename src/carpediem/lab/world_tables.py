"""The paper's numbers, ours with its recipe, and ours with that of its released code, side by side."""

from __future__ import annotations

from collections.abc import Iterable

from carpediem.lab.analysis import paper
from carpediem.lab.analysis.released_outcome import told
from carpediem.lab.analysis.welch import welch
from carpediem.lab.blocks import Block, Key, blocks
from carpediem.lab.compared_cells import trained_in
from carpediem.lab.config import METHODS
from carpediem.lab.records import RunRecord
from carpediem.lab.results import best_error, estimate, group_cells, seed_differences
from carpediem.lab.table import Column, Table, Value
from carpediem.lab.titles import network_title
from carpediem.lab.versions import TABLE_2, TABLE_3, Shape, Version, own_version, versions
from carpediem.lab.words import joined

_DATA, _OPTIMIZER = "cifar10", "momentum"
_GAIN = "Recency − Random"
_NOTE = (
    "Best test error: the lowest of a run's evaluations, one an epoch; mean ± standard error (number of seeds). "
    "Recency − Random: the difference seed by seed, mean ± standard error; of the paper that of its means. Released − "
    "paper: the difference of the means of both recipes with its 95% confidence interval (Welch's t: a seed has "
    "nothing in common in both), which a single run does not have; below 0 the recipe of the released code has the "
    "lower error, and in the last row of a network Recency Bias gains more with it."
)


def world_table(records: Iterable[RunRecord]) -> Table:
    """CIFAR-10 with momentum, both networks: what the differences between the recipes are worth."""
    records = list(records)
    cells = [cell for cell in group_cells(records) if cell.runs]
    rows: list[tuple[Value, ...]] = []
    shown = []
    for shape in (TABLE_3, TABLE_2):
        found = versions(filter(shape.holds, cells), shape)
        own = next((one for one in found if one.is_own), own_version(shape))
        for name, other in _released(found, shape):
            mine, theirs = _block(own), _block(other)
            shown += [*mine.cells, *theirs.cells]
            rows += _rows((network_title(shape.net), name), (shape.net, _DATA, _OPTIMIZER), mine, theirs)
    columns = (
        Column("network", "Network"),
        Column("released_as", "Released code"),
        Column("method", "Method"),
        Column("paper", "The paper", "error"),
        Column("ours", "Ours, recipe paper", "error of seeds"),
        Column("released", "Ours, recipe released", "error of seeds"),
        Column("difference", "Released − paper", "unpaired difference"),
    )
    title = "Three worlds: best test error (%), CIFAR-10, momentum"
    verdict = f" Does the gain exist in the authors' world? {told(records)}"
    return Table(title, f"{_NOTE}{trained_in(shown)}{verdict}", columns, rows, grouped=2)


def _released(found: list[Version], shape: Shape) -> list[tuple[str, Version]]:
    """The released recipe by what it was run with otherwise; as it is where it was not run at all."""
    there = [one for one in found if one.recipe == "released" and _block(one).cells]
    if not there:
        return [("as it is", own_version(shape))]
    return [(f"with {joined(one.words)}" if one.words else "as it is", one) for one in there]


def _block(version: Version) -> Block:
    """Its cells of the data and optimizer that are compared."""
    key = (version.net, _DATA, _OPTIMIZER)
    return next((one for one in blocks(version, whole=False) if one.key == key), Block(key, key))


def _rows(labels: tuple[str, str], key: Key, mine: Block, theirs: Block) -> list[tuple[Value, ...]]:
    rows: list[tuple[Value, ...]] = []
    for method, name in METHODS.items():
        both = [_errors(block, method) for block in (mine, theirs)]
        rows.append((*labels, name, paper.best_error(*key, method), *_compared(*both)))
    gains = [_gains(block) for block in (mine, theirs)]
    return [*rows, (*labels, _GAIN, _printed_gain(key), *_compared(*gains))]


def _compared(mine: list[float], theirs: list[float]) -> tuple[Value, Value, Value]:
    means = [estimate(values) if values else None for values in (mine, theirs)]
    return means[0], means[1], welch(theirs, mine)


def _errors(block: Block, method: str) -> list[float]:
    cell = block.of(method)
    return [] if cell is None else [best_error(run) for run in cell.runs]


def _gains(block: Block) -> list[float]:
    """Recency Bias minus Random Batch by seed: below 0 it gains."""
    recency, random = block.of("recency"), block.of("random")
    return [] if recency is None or random is None else list(seed_differences(recency, random).values())


def _printed_gain(key: Key) -> paper.Published | None:
    recency, random = (paper.best_error(*key, method) for method in ("recency", "random"))
    return None if recency is None or random is None else paper.Published(f"{recency.mean - random.mean:.2f}")
