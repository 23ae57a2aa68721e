"""What a results folder holds: every run in one file, with the tables and figures made from it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from carpediem.lab.atomic import part_of, write_whole, writing_out
from carpediem.lab.figures import KINDS, write_figures
from carpediem.lab.records import RunRecord, export_runs, no_run_yet, read_runs
from carpediem.lab.samplefiles import copy_shown
from carpediem.lab.samples import GALLERY, TRAILS
from carpediem.lab.stage_tables import stage_tables
from carpediem.lab.table import Table, measured, render_csv, render_markdown
from carpediem.lab.tables import all_tables
from carpediem.lab.titles import setting_name

FILES = ("runs.jsonl", "tables.md", "tables.csv")


def publish(folders: Sequence[Path], out: Path) -> list[Path]:
    """Writes the runs of studies or published results, their tables and figures; returns the files.

    All of it is made before `out` is touched. What was published there before is replaced; a README and whatever else
    lies there stays.
    """
    before = _published_in(out)
    beside = part_of(out.resolve())
    try:
        with writing_out(out):
            beside.mkdir(parents=True)
            names = [file.relative_to(beside) for file in _make(folders, beside)]
            runs, *others = names
            for name in others if before else names:
                (out / name).parent.mkdir(parents=True, exist_ok=True)
                (beside / name).replace(out / name)
            for file in before - {out / name for name in names}:
                file.unlink()
                if file.parent != out and not any(file.parent.iterdir()):
                    file.parent.rmdir()
            # Last: were this one stopped before, the next publication finds by the old runs what is to go.
            if before:
                (beside / runs).replace(out / runs)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return [out / name for name in names]


def published_tables(runs: Sequence[RunRecord]) -> list[Table]:
    """What tables.md and tables.csv hold: the paper's tables as far as they were run, and how each method fared."""
    return [*map(measured, all_tables(runs)), *stage_tables(runs)]


def _published_in(out: Path) -> set[Path]:
    """What an earlier publication left in a folder, by the runs that it names.

    Raises:
        ValueError: the folder is none to publish in.
    """
    if any((place / "study.json").exists() for place in (out, out.parent)) or any(
        out.glob("runs/*/study.json")
    ):
        raise ValueError(
            f"--out must be a folder of its own, got {out}, which holds or is part of a study; choose another"
        )
    if not (out / "runs.jsonl").exists():
        if taken := [name for name in FILES if (out / name).exists()]:
            raise ValueError(
                f"--out must be a new folder or one that was published to, got {out}, which holds another "
                f"{taken[0]}; choose another"
            )
        return set()
    runs = read_runs(out / "runs.jsonl")
    patterns = [*FILES, *(f"runs/{run.hash}/{name}" for run in runs for name in (GALLERY, TRAILS))]
    for name in {setting_name(run.config) for run in runs}:
        patterns += [
            f"{kind}_{name}{more}.{form}" for kind in KINDS for more in ("", "_*") for form in ("png", "pdf")
        ]
    return {file for pattern in patterns for file in out.glob(pattern)}


def _make(folders: Sequence[Path], out: Path) -> list[Path]:
    export_runs(folders, out / "runs.jsonl")
    runs = read_runs(out)
    if not runs:
        raise no_run_yet(folders)
    made = published_tables(runs)
    write_whole(out / "tables.md", "\n".join(render_markdown(table) for table in made))
    write_whole(out / "tables.csv", "\n".join(render_csv(table) for table in made))
    files = [out / name for name in FILES]
    return [*files, *copy_shown(runs, folders, out), *write_figures(runs, [out], out)]
