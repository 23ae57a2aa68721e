"""Grid searches among cells (Figure 7): Recency Bias by pressure and window."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from carpediem.lab.recipes import recipe_of
from carpediem.lab.results import Cell, Estimate, draws_name, without_warm_up
from carpediem.lab.titles import config_title

Point = tuple[float, int]  # pressure at the start, window
LEAST = 2  # so many points beside the recipe's own make a search


@dataclass(frozen=True)
class GridSearch:
    """The best test error of Recency Bias by pressure and window.

    Args:
        warm_up: that of every point whose window is not longer; a longer window has a warm-up of its own length.
        cells: by point, those that were run. With a pressure of 1 no window changes anything.
        randoms: Random Batch in the same setting, whatever its warm-up.
    """

    warm_up: int
    cells: dict[Point, Cell]
    randoms: list[Cell]

    @property
    def config(self) -> dict[str, Any]:
        """Of one of the runs, with the warm-up of the search."""
        return next(iter(self.cells.values())).config | {"warm_up": self.warm_up}

    @property
    def title(self) -> str:
        """The setting, with the warm-up where that is not the recipe's."""
        return config_title(self.config)

    @property
    def pressures(self) -> tuple[float, ...]:
        """Those that were tried, ascending."""
        return tuple(sorted({pressure for pressure, _ in self.cells}))

    @property
    def windows(self) -> tuple[int, ...]:
        """Those that were tried, ascending."""
        return tuple(sorted({window for (_, window) in self.cells}))

    @property
    def warm_ups(self) -> tuple[int, ...]:
        """Those of the points, ascending."""
        return tuple(sorted({warm_up_of(cell) for cell in self.cells.values()}))

    @property
    def points(self) -> dict[Point, Cell]:
        """The cells by point, those with a pressure of 1 at every window."""
        uniform = self.uniform
        filled = {} if uniform is None else {(1.0, window): uniform for window in self.windows}
        return dict(sorted((filled | self.cells).items()))

    @property
    def others(self) -> int:
        """How many points are not the recipe's own."""
        usual = recipe_of(self.config)
        own = (usual.get("pressure"), usual.get("window"))
        return sum(point != own for point in self.cells)

    @property
    def uniform(self) -> Cell | None:
        """What was trained with a pressure of 1, of several windows that with the most runs."""
        found = [cell for (pressure, _), cell in self.cells.items() if pressure == 1]
        return max(found, key=lambda cell: len(cell.runs), default=None)

    @property
    def errors(self) -> dict[Point, Estimate]:
        """The best test error of every point that has a finished run."""
        return {point: cell.best_error for point, cell in self.points.items() if cell.best_error is not None}

    @property
    def best(self) -> list[Point]:
        """Pressure and window of the lowest mean error: of all that have it, as equal runs with a pressure of 1 do."""
        lowest = min(error.mean for error in self.errors.values())
        return [point for point, error in self.errors.items() if error.mean == lowest]

    @property
    def random(self) -> Cell | None:
        """Random Batch drawn as the points are, where it was run so, with the most runs."""
        draws = next(iter(self.cells.values())).draws
        return min(
            (cell for cell in self.randoms if cell.runs),
            key=lambda cell: (cell.draws != draws, -len(cell.runs)),
            default=None,
        )

    @property
    def random_draws(self) -> str:
        """How Random Batch draws, where that is not as the points do."""
        random, draws = self.random, next(iter(self.cells.values())).draws
        return draws_name("random", random.draws) if random is not None and random.draws != draws else ""


def grid_searches(cells: Iterable[Cell], *, least: int = LEAST) -> list[GridSearch]:
    """One for each setting in which Recency Bias has points beside the recipe's own pressure and window.

    A longer window needs a longer warm-up: points of one search differ in it so, and not otherwise.

    Args:
        least: how many such points a search must have.
    """
    cells = list(cells)
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.method == "recency":
            others = [(n, v) for n, v in cell.selection if n not in ("window", "pressure")]
            groups.setdefault(json.dumps([without_warm_up(cell), others]), []).append(cell)
    found = []
    for group in groups.values():
        setting = without_warm_up(group[0])
        randoms = [cell for cell in cells if cell.method == "random" and without_warm_up(cell) == setting]
        found += [GridSearch(warm_up, points, randoms) for warm_up, points in _by_warm_up(group).items()]
    return [search for search in found if search.others >= least]


def point_of(cell: Cell) -> Point:
    """The cell's pressure at the start and its window."""
    return float(cell.options["pressure"]), int(cell.options["window"])


def warm_up_of(cell: Cell) -> int:
    """The cell's warm-up, in epochs."""
    return int(cell.config.get("warm_up") or 0)


def _by_warm_up(cells: list[Cell]) -> dict[int, dict[Point, Cell]]:
    """The points of a search by its warm-up, the recipe's first; one whose points are all in another is left out."""
    usual = recipe_of(cells[0].config).get("warm_up", 0)
    found: dict[int, dict[Point, Cell]] = {}
    for warm_up in dict.fromkeys([usual, *sorted(map(warm_up_of, cells))]):
        points = {
            point_of(cell): cell for cell in cells if warm_up_of(cell) == max(warm_up, point_of(cell)[1])
        }
        if points and points not in found.values():
            found[warm_up] = points
    return {
        warm_up: points
        for warm_up, points in found.items()
        if not any(points.items() < others.items() for others in found.values())
    }
