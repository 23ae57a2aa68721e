"""What a results folder holds: every run in one file, with the tables and figures made from it."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from carpediem.lab.atomic import write_whole, writing_out
from carpediem.lab.figures import write_figures
from carpediem.lab.records import export_runs, read_runs
from carpediem.lab.samplefiles import copy_shown
from carpediem.lab.samples import GALLERY, TRAILS
from carpediem.lab.stage_tables import stage_tables
from carpediem.lab.table import render_csv, render_markdown
from carpediem.lab.tables import all_tables

_OWN = [
    "runs.jsonl",
    "tables.md",
    "tables.csv",
    f"runs/*/{GALLERY}",
    f"runs/*/{TRAILS}",
    *(
        f"{kind}_*.{form}"
        for kind in ("curves", "trails", "index", "losses", "grid")
        for form in ("png", "pdf")
    ),
]


def publish(folders: Sequence[Path], out: Path) -> list[Path]:
    """Writes the runs of studies or published results, their tables and figures; returns the files.

    All of it is made before `out` is touched. What was published there before is replaced; a README and whatever else
    lies there stays.
    """
    if (out / "study.json").exists():
        raise ValueError(f"--out must be a folder of its own, got the study {out}; choose another")
    beside = out.parent / f".{out.name}.{secrets.token_hex(4)}.part"
    try:
        with writing_out(out):
            names = [file.relative_to(beside) for file in _make(folders, beside)]
            before = {file for pattern in _OWN for file in out.glob(pattern)}
            for name in names:
                (out / name).parent.mkdir(parents=True, exist_ok=True)
                (beside / name).replace(out / name)
            for file in before - {out / name for name in names}:
                file.unlink()
                if file.parent != out and not any(file.parent.iterdir()):
                    file.parent.rmdir()
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return [out / name for name in names]


def _make(folders: Sequence[Path], out: Path) -> list[Path]:
    export_runs(folders, out / "runs.jsonl")
    runs = read_runs(out)
    if not runs:
        raise ValueError(
            f"no run has begun in {', '.join(map(str, folders))}; train one with carpediem compare"
        )
    made = all_tables(runs) + stage_tables(runs)
    write_whole(out / "tables.md", "\n".join(render_markdown(table) for table in made))
    write_whole(out / "tables.csv", "\n".join(render_csv(table) for table in made))
    files = [out / name for name in ("runs.jsonl", "tables.md", "tables.csv")]
    return [*files, *copy_shown(runs, folders, out), *write_figures(runs, [out], out)]
