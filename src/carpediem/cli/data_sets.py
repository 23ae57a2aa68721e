"""The commands on data sets: `data ls` and `data fetch`."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from carpediem.cli.app import app, tidy
from carpediem.cli.options import DataDir, Json
from carpediem.lab import data as lab_data

data_app = typer.Typer(
    help="What data is there, and how to get it.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(data_app, name="data")


@data_app.command("ls")
@tidy
def data_ls(data_dir: DataDir = None, as_json: Json = False) -> None:
    """What data is there, and where it is looked for."""
    found = lab_data.available(data_dir)
    places = [str(place) for place in lab_data.places(data_dir)]
    if as_json:
        sets = [
            {"name": d.name, "path": str(d.path) if d.path else None, "present": d.present} for d in found
        ]
        typer.echo(json.dumps({"places": places, "sets": sets}, indent=2))
        return
    for record in found:
        if record.present:
            state = str(record.path) if record.path else "comes with scikit-learn"
        else:
            remedy = (
                f"carpediem data fetch {record.name}"
                if record.downloadable
                else "not to be fetched by command"
            )
            state = f"missing: {record.expected} ({remedy})"
        typer.echo(f"{record.name:<12} {state}")
    typer.echo(f"looked for in {', then '.join(places)}")


@data_app.command("fetch")
@tidy
def data_fetch(
    name: Annotated[str, typer.Argument(help=", ".join(lab_data.DOWNLOADS))],
    data_dir: DataDir = None,
) -> None:
    """Download a data set; its published checksum is verified before it is put in place."""
    from rich.progress import Progress

    with Progress(transient=True, disable=not sys.stderr.isatty()) as bars:
        tasks: dict[str, Any] = {}

        def show(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = bars.add_task(file, total=total)
            bars.update(tasks[file], completed=done)

        typer.echo(lab_data.fetch(name, data_dir, progress=show))
