"""The paper's own runs and others in their shape: which stand in one table, and what it is titled by.

A table of the paper holds what was trained with the paper's settings. Runs that differ from them in anything make a
table of the same shape, a **version** of it, which is titled by all that differs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from carpediem.lab.analysis import paper
from carpediem.lab.compared_cells import setting_key
from carpediem.lab.config import METHOD_OPTIONS, SELECTION_OPTIONS
from carpediem.lab.recipes import OPTIONS, departures, network_of, plain_network, recipe_of
from carpediem.lab.results import Cell
from carpediem.lab.titles import data_title, network_title, optimizer_title
from carpediem.lab.words import joined, told


@dataclass(frozen=True)
class Shape:
    """The runs that a table or figure of the paper is made from.

    Args:
        recipe, net, datasets, optimizers: the paper's own.
        also: (network, data) that the lab has in their place.
        methods: None is all of them.
        in_rows: settings that the rows tell, in which runs of one table may differ.
    """

    recipe: str
    net: str
    datasets: tuple[str, ...]
    optimizers: tuple[str, ...] = ("momentum",)
    also: tuple[tuple[str, str], ...] = ()
    methods: tuple[str, ...] | None = None
    in_rows: tuple[str, ...] = ()

    def holds(self, cell: Cell) -> bool:
        """Whether the cell is of these networks and data sets, and of a method that is shown."""
        place = (plain_network(cell.config["net"]), cell.config["data"])
        own = [(self.net, data) for data in self.datasets]
        return self.takes(cell) and place in (*own, *self.also)

    def takes(self, cell: Cell) -> bool:
        """Whether the cell is of these networks, on whatever data, and of a method that is shown."""
        nets = {self.net, *(net for net, _ in self.also)}
        return plain_network(cell.config["net"]) in nets and cell.method in (self.methods or (cell.method,))

    def printed_key(self, cell_key: tuple[str, str, str]) -> tuple[str, str, str]:
        """Network, data and optimizer under which the paper has the number to stand beside a cell's."""
        _, data, optimizer = cell_key
        return self.net, data, optimizer if optimizer in self.optimizers else self.optimizers[0]


_TWO = ("cifar10", "cifar100")
TABLE_2 = Shape("paper", "densenet-40-12", paper.CLASSIFIED, ("momentum", "sgd"))
TABLE_3 = Shape("paper", "resnet-50", paper.CLASSIFIED, ("momentum", "sgd"))
TABLE_4 = Shape(
    "fine-tuning", "densenet-121", paper.FINE_TUNED, also=(("efficientnet-lite0", "flowers-102"),)
)
ABLATION = Shape("paper", "densenet-40-12", _TWO, methods=("recency",), in_rows=("pressure", "schedule"))
GRID = Shape(
    *("paper", "resnet-50", _TWO), methods=("random", "recency"), in_rows=("window", "pressure", "warm_up")
)
FIGURE_3 = Shape("paper", "densenet-40-12", ("cifar100",), methods=("recency",))
FIGURE_4 = Shape("paper", "densenet-40-12", ("cifar10",))


@dataclass(frozen=True)
class Version:
    """Cells that stand in one table.

    Args:
        words: what differs from the paper but the recipe.
        telling: the cells that differ so; the others are what they are compared with.
        beside: Random Batch that differs from them in its draws alone, to compare with too.
    """

    shape: Shape
    recipe: str
    net: str
    words: tuple[str, ...] = ()
    cells: list[Cell] = field(default_factory=list)
    telling: list[Cell] = field(default_factory=list)
    beside: list[Cell] = field(default_factory=list)

    @property
    def is_own(self) -> bool:
        """Whether these are the paper's own settings."""
        return self.recipe == self.shape.recipe and not self.words

    def title(self, name: str, what: str, *, more: tuple[str, ...] = ()) -> str:
        """The title of a table that the paper calls `name` and that shows `what`.

        Args:
            more: what differs besides.
        """
        words = (*self.words, *more)
        differs = f", recipe {self.recipe}" if self.recipe != self.shape.recipe else ""
        differs += f" with {joined(words)}" if words else ""
        own = "" if differs else f", recipe {self.recipe}"
        length = "" if differs or self.recipe != "paper" else f", {paper.ITERATIONS:,} iterations"
        return f"{name}{differs}: {what}{own}{length}"


def own_version(shape: Shape) -> Version:
    """The paper's own with nothing run."""
    return Version(shape, shape.recipe, shape.net)


def versions(cells: Iterable[Cell], shape: Shape) -> list[Version]:
    """The paper's own first; then by the recipe and by what differs."""
    worlds: dict[tuple[str, str, tuple[str, ...]], list[Cell]] = {}
    for cell in cells:
        worlds.setdefault(_world(cell, shape), []).append(cell)
    found = []
    for (recipe, net, words), group in worlds.items():
        for options, members in _by_options(group, shape):
            for more, layer in _layers(members, shape):
                all_words = (*words, *(told(name, value) for name, value in options.items()), *more)
                telling = [cell for cell in layer if _options(cell, shape)] if options else layer
                beside = [c for c in _randoms(group, layer) if c not in layer]
                found.append(Version(shape, recipe, net, all_words, layer, telling, beside))
    return sorted(found, key=lambda one: (not one.is_own, one.recipe, one.words))


def _randoms(cells: list[Cell], layer: list[Cell]) -> list[Cell]:
    """Random Batch in the settings of these cells."""
    settings = {cell.setting for cell in layer}
    return [cell for cell in cells if cell.method == "random" and cell.setting in settings]


def _world(cell: Cell, shape: Shape) -> tuple[str, str, tuple[str, ...]]:
    """Recipe, network, and what differs for all methods alike, in words."""
    recipe, (net, data, optimizer) = cell.config["recipe"], setting_key(cell)
    words = [data_title(data)] if data not in shape.datasets else []
    if plain_network(net) != shape.net:
        words.append(network_title(net))
    elif net != _expected_network(recipe, shape.net):
        words.append("the network of the released code" if net != shape.net else "the paper's network")
    if optimizer not in shape.optimizers:
        words.append(f"the optimizer {optimizer_title(optimizer)}")
    words += [told(name, value) for name, value in _shared(cell, shape).items()]
    return recipe, net, tuple(words)


def _expected_network(recipe: str, net: str) -> str:
    try:
        return network_of(recipe, net)
    except ValueError:  # the recipe has none in its place
        return net


def _shared(cell: Cell, shape: Shape) -> dict[str, Any]:
    """The settings of all methods that are not the recipe's."""
    found = departures(json.loads(cell.setting), OPTIONS)
    return {name: value for name, value in found.items() if name not in shape.in_rows}


def _options(cell: Cell, shape: Shape) -> dict[str, Any]:
    """The settings of the cell's method alone, draws included, that are not the recipe's."""
    names = (*OPTIONS, *METHOD_OPTIONS.get(cell.method, SELECTION_OPTIONS))
    passed = {*shape.in_rows, *departures(json.loads(cell.setting), OPTIONS)}
    return {name: v for name, v in departures(cell.config, names).items() if name not in passed}


def _by_options(cells: list[Cell], shape: Shape) -> list[tuple[dict[str, Any], list[Cell]]]:
    """The cells by options, each method with those of them that it reads.

    What is part of another is left out: Random Batch alone, where it stands beside Recency Bias with another window.
    """
    kinds = {json.dumps(_options(cell, shape)): _options(cell, shape) for cell in cells}
    found = [(options, _members(options, cells, shape)) for options in kinds.values()]
    sets = [{id(cell) for cell in members} for _, members in found]
    return [one for one, own in zip(found, sets, strict=True) if not any(own < other for other in sets)]


def _members(options: dict[str, Any], cells: list[Cell], shape: Shape) -> list[Cell]:
    found = [cell for cell in cells if _options(cell, shape) == _read(options, cell)]
    if not options:
        return found
    places = {setting_key(cell) for cell in found if _options(cell, shape)}
    return [cell for cell in found if setting_key(cell) in places]


def _read(options: dict[str, Any], cell: Cell) -> dict[str, Any]:
    """Those of the options that the cell's method reads and its recipe has otherwise."""
    names = (*OPTIONS, *METHOD_OPTIONS.get(cell.method, SELECTION_OPTIONS))
    usual = recipe_of(cell.config)
    return {name: value for name, value in options.items() if name in names and usual.get(name) != value}


def _layers(cells: list[Cell], shape: Shape) -> list[tuple[tuple[str, ...], list[Cell]]]:
    """Where one row has several settings, such as two precisions: the one with the most runs, then each of the others.

    A recipe says nothing about these; the first is not titled by them.
    """
    places: dict[tuple[str, str, str], dict[str, list[Cell]]] = {}
    for cell in cells:
        setting = {n: v for n, v in json.loads(cell.setting).items() if n not in shape.in_rows}
        places.setdefault(setting_key(cell), {}).setdefault(json.dumps(setting), []).append(cell)
    found: dict[tuple[str, ...], list[Cell]] = {(): []}
    for settings in places.values():
        first, *others = sorted(settings, key=lambda one: (-sum(len(c.runs) for c in settings[one]), one))
        found[()] += settings[first]
        usual = json.loads(first)
        for other in others:
            differing = {n: v for n, v in json.loads(other).items() if usual.get(n) != v}
            found.setdefault(tuple(told(n, v) for n, v in differing.items()), []).extend(settings[other])
    return list(found.items())
