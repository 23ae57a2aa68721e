"""How the results were obtained: configuration, machine, versions, seeds, and the command to repeat them."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from carpediem.lab.config import METHOD_OPTIONS
from carpediem.lab.plans import DRAW_SUFFIXES, PLANS, is_of_plan
from carpediem.lab.recipes import OPTIONS, departures, recipe_of
from carpediem.lab.results import Cell, method_name

_SUFFIX = {
    ("random", "systematic"): "-shuffle",
    **{("", draws): suffix for suffix, draws in DRAW_SUFFIXES.items()},
}


def obtained(
    folders: Sequence[str | Path], groups: Sequence[Sequence[Cell]], titles: Sequence[str]
) -> dict[str, Any]:
    """What the last section of the page says."""
    return {
        "studies": [study for folder in folders if (study := _study(Path(folder))) is not None],
        "settings": [
            {
                "title": title,
                "config": _rows(json.loads(cells[0].setting)),
                "methods": [
                    {
                        "name": method_name(cell, cells),
                        "selection": [row for row in _rows(cell.options) if row[0] != "method"],
                        "seeds": [run.config["seed"] for run in cell.runs],
                        "unfinished": [run.config["seed"] for run in cell.unfinished],
                        "hashes": [run.hash for run in (*cell.runs, *cell.unfinished)],
                    }
                    for cell in cells
                ],
                "machines": _machines(cells),
                "finished": _times(cells),
                "commands": commands(cells),
            }
            for title, cells in zip(titles, groups, strict=True)
        ],
    }


def commands(cells: Sequence[Cell]) -> list[str]:
    """Commands that train the runs of one setting again, ready for a shell."""
    config = cells[0].config
    device = ["--device", "cuda" if config.get("precision") == "bf16" else "cpu"]
    runs = [run for cell in cells for run in (*cell.runs, *cell.unfinished)]
    by_seeds = _by_seeds(cells)
    named = [method for methods in by_seeds.values() for method in methods]
    # A study of the paper trains every set of options of a method, and with the same seeds, one after the other.
    is_even = all(map(_seed_options, by_seeds)) and len(set(named)) == len(named)
    sets = Counter(map(_method, cells))
    for name, plan in PLANS.items():
        is_whole = all(sets[_method(cell)] == len(plan.sets_of_options(cell.method)) for cell in cells)
        if is_even and is_whole and all(is_of_plan(run, plan) for run in runs):
            words = ["carpediem", "reproduce", name, "--datasets", str(config["data"])]
            return [
                shlex.join([*words, "--methods", ",".join(methods), *_seed_options(seeds), *device])
                for seeds, methods in by_seeds.items()
            ]
    words = ["--data", str(config["data"]), "--net", str(config["net"])]
    words += ["--recipe", str(config["recipe"]), "--optimizer", str(config["optimizer"])]
    words += _changed(config, OPTIONS)
    starts_anew = config.get("weights") is None and ":" not in str(config["net"])
    if starts_anew and recipe_of(config).get("weights") is not None:
        words += ["--weights", "none"]
    variations: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        options = _changed(cell.config, METHOD_OPTIONS.get(cell.method, ()))
        variations.setdefault(tuple(options), []).append(cell)
    return [
        shlex.join(["carpediem", *start, *extra, *device])
        for extra, group in variations.items()
        for found, methods in _by_seeds(group).items()
        for start in _own_study(words, found, methods)
    ]


def _own_study(words: list[str], seeds: tuple[int, ...], methods: list[str]) -> list[list[str]]:
    if options := _seed_options(seeds):
        return [["compare", *words, "--methods", ",".join(methods), *options]]
    return [
        ["train", *words, "--method", method, "--seed", str(seed)] for method in methods for seed in seeds
    ]


def _seed_options(seeds: tuple[int, ...]) -> list[str]:
    """What tells compare and reproduce of these seeds; empty where they do not follow one after the other."""
    first, count = seeds[0], len(seeds)
    if seeds != tuple(range(first, first + count)):
        return []
    return ["--seeds", str(count)] + (["--first-seed", str(first)] if first else [])


def _by_seeds(cells: Sequence[Cell]) -> dict[tuple[int, ...], list[str]]:
    """The methods that were run with the same seeds; those that differ in their options have one name."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for cell in cells:
        seeds = tuple(sorted(run.config["seed"] for run in (*cell.runs, *cell.unfinished)))
        groups.setdefault(seeds, []).append(_method(cell))
    return {seeds: list(dict.fromkeys(methods)) for seeds, methods in groups.items()}


def _method(cell: Cell) -> str:
    usual = recipe_of(cell.config).get("draws")
    if cell.draws in (None, usual):
        return cell.method
    return cell.method + (_SUFFIX.get((cell.method, cell.draws)) or _SUFFIX[("", cell.draws)])


def _changed(config: dict[str, Any], names: Sequence[str]) -> list[str]:
    return [
        word
        for name, value in departures(config, names).items()
        for word in ("--" + name.replace("_", "-"), _text(value))
    ]


def _study(folder: Path) -> dict[str, Any] | None:
    """What a study's own description says; published folders have none."""
    try:
        described = json.loads((folder / "study.json").read_text())
        command = shlex.join(_without_folders(str(word)) for word in described["command"])
        return {"folder": folder.name, "command": command, "runs": len(described["runs"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _without_folders(word: str) -> str:
    """A word of a command; where it is an absolute path, its name alone: a page may be sent to others.

    >>> _without_folders("--out=/home/anna/runs/one"), _without_folders("runs/one")
    ('--out=…/one', 'runs/one')
    """
    option, is_given, value = word.rpartition("=")
    path = Path(value)
    return f"{option}{is_given}…/{path.name}" if path.is_absolute() else word


def _machines(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Each machine with its versions once, with how many runs it finished."""
    found: dict[str, dict[str, Any]] = {}
    for cell in cells:
        for run in cell.runs:
            done = run.done or {}
            # A package that was installed and not checked out knows of no commit.
            versions = done.get("versions") or {}
            rows = _rows(
                {**(done.get("machine") or {}), **versions, "commit": versions.get("commit", "not recorded")}
            )
            one = found.setdefault(json.dumps(rows), {"rows": rows, "runs": 0})
            one["runs"] += 1
    return list(found.values())


def _times(cells: Sequence[Cell]) -> list[str]:
    """When the first and the last run finished."""
    times = sorted(str(t) for cell in cells for run in cell.runs if (t := (run.done or {}).get("finished")))
    return [times[0], times[-1]] if times else []


def _rows(values: dict[str, Any]) -> list[list[str]]:
    return [[name, _text(value)] for name, value in values.items()]


def _text(value: Any) -> str:
    if value is None or value == "":
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.10g}" if isinstance(value, float) else str(value)
