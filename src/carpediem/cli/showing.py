"""The commands that show or write what runs found: tables, figures, pages and files."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from carpediem.cli.app import app, note, tidy
from carpediem.cli.options import Folders
from carpediem.lab.atomic import write_whole, writing_out
from carpediem.lab.export import FORMATS, export_samples
from carpediem.lab.figures import write_figures
from carpediem.lab.overview import overview_table
from carpediem.lab.publish import publish as publish_runs
from carpediem.lab.records import read_runs
from carpediem.lab.report import Watch, write_report
from carpediem.lab.session import table_text
from carpediem.lab.stage_tables import stage_tables
from carpediem.lab.table import measured, render_csv, render_markdown, render_text
from carpediem.lab.tables import all_tables
from carpediem.lab.world_tables import world_table

TABLE_ENDINGS = {"": "text", ".txt": "text", ".md": "markdown", ".csv": "csv", ".json": "json"}


@app.command()
@tidy
def tables(
    folders: Folders,
    form: Annotated[
        str | None,
        typer.Option("--format", help="text, markdown, csv or json. [default: as --out ends, else text]"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead.")] = None,
    only_measured: Annotated[
        bool, typer.Option("--measured", help="Leave out the tables and rows of which nothing was run.")
    ] = False,
    overview: Annotated[
        bool, typer.Option("--overview", help="One table instead, of what was measured in each DIR.")
    ] = False,
    stages: Annotated[
        bool,
        typer.Option(
            "--stages",
            help="How each method fared at each learning rate, and method and draws taken apart, instead.",
        ),
    ] = False,
    worlds: Annotated[
        bool,
        typer.Option(
            "--worlds",
            help="On CIFAR-10 with momentum: the paper, ours with the recipe paper, ours with released, instead.",
        ),
    ] = False,
) -> None:
    """The paper's tables from finished runs, ours beside the paper's numbers; then summaries of what has none there.

    Runs that differ from the paper's in anything make a table of the same shape that is titled by what differs.
    """
    if form is None:
        ending = "" if out is None else out.suffix
        if ending not in TABLE_ENDINGS:
            raise ValueError(f"--out must end in .md, .csv, .json or .txt, or --format be given, got {out}")
        form = TABLE_ENDINGS[ending]
    if overview + stages + worlds > 1:
        raise ValueError("--overview, --stages and --worlds make different tables; call once with each")
    if stages:
        made = stage_tables(read_runs(*folders))
    elif worlds:
        made = [world_table(read_runs(*folders))]
    elif overview:
        by_folder = {folder.as_posix(): read_runs(folder) for folder in folders}
        made = [overview_table(by_folder, links=form == "markdown")]
    else:
        made = all_tables(read_runs(*folders), empty=not only_measured)
    if only_measured:
        made = [table for table in map(measured, made) if table.rows]
    if not any(table.rows for table in made):
        where = ", ".join(map(str, folders))
        raise ValueError(
            f"no run has finished in {where}, so there is nothing to show; train with carpediem compare"
        )
    if form == "json":
        text = json.dumps([table.to_dict() for table in made], indent=2) + "\n"
    elif form in ("markdown", "csv"):
        render = render_markdown if form == "markdown" else render_csv
        text = "\n".join(render(table) for table in made)
    elif form == "text":
        text = "\n".join((table_text if out is None else render_text)(table) for table in made)
    else:
        raise ValueError(f"--format must be text, markdown, csv or json, got {form!r}")
    if out is None:
        typer.echo(text, nl=False)
    else:
        with writing_out(out):
            write_whole(out, text)
        typer.echo(out)


@app.command()
@tidy
def figures(
    folders: Folders,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files. [default: figures in the first DIR]")
    ] = None,
) -> None:
    """The paper's figures from finished runs, as PNG and PDF, as far as the runs' records hold what they show.

    curves_…: training loss and test error by iteration, curves_…_seconds by seconds of training (Figures 5 and 6; the
    paper's 8 to 10 show the test error alone). trails_…: predictions of a few samples, and what a growing and a sliding
    window make of them (Figure 2). index_…: uncertainty beside both indices (Figure 3) and losses_…: the losses of what
    was drawn (Figure 4), both at 30% and 70% of the epochs. grid_…: test error by window and pressure (Figure 7).
    """
    for file in write_figures(read_runs(*folders), folders, out or _first(folders) / "figures"):
        typer.echo(file)


@app.command()
@tidy
def publish(
    folders: Folders,
    out: Annotated[
        Path, typer.Option(help="Folder to write to, such as results/2026-11-15_cifar10_resnet50.")
    ],
) -> None:
    """Every run in one file, with the tables and figures made from it: what a results folder holds.

    Of the sample records, only what a report shows of one seed of each method goes along. What was published in the
    folder before is replaced; other files, such as a README, stay.
    """
    for file in publish_runs(folders, out):
        typer.echo(file)
    runs = read_runs(out)
    if unfinished := sum(not run.finished for run in runs):
        note(
            f"{unfinished} of the {len(runs)} runs have not finished; they are in runs.jsonl, but in no table"
        )


@app.command()
@tidy
def export(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of studies.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write; .csv or .parquet says in which format. [default: samples in the first DIR]"
        ),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="csv or parquet. [default: as --out ends, else both]")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Only runs of this method, such as recency; may be repeated.")
    ] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Only runs with this seed; may be repeated.")] = None,
    run: Annotated[
        list[str] | None, typer.Option(help="Only the run of this name in DIR/runs; may be repeated.")
    ] = None,
) -> None:
    """What runs found out about every training sample, a line each: to prune data with, or to check its labels."""
    files = export_samples(
        folders,
        out=out,
        formats=_formats(out, form),
        methods=method or (),
        seeds=seed or (),
        runs=run or (),
        complain=note,
    )
    for file in files:
        typer.echo(file)


@app.command()
@tidy
def report(
    folders: Folders,
    out: Annotated[
        Path | None, typer.Option(help="File to write. [default: report.html in the first DIR]")
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """One self-contained HTML page on the runs: curves, tables, what was selected, the samples themselves."""
    if out is not None and not out.is_dir() and out.suffix not in (".html", ".htm"):
        raise ValueError(f"--out must end in .html, got {out}")
    file = write_report(folders, out or _first(folders) / "report.html", complain=note)
    typer.echo(file)
    if show:
        _open(file.resolve().as_uri())


@app.command()
@tidy
def watch(
    folders: Folders,
    port: Annotated[int, typer.Option(help="0 takes any port that is free.", min=0, max=65535)] = 8000,
    host: Annotated[
        str, typer.Option(help="The address to listen on; others than loopback let other machines read it.")
    ] = "127.0.0.1",
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Serve the report while the runs train, and refresh it as their records come in. Ctrl-C ends it."""
    served = Watch(folders, host=host, port=port)
    typer.echo(f"{served.address} shows {', '.join(map(str, folders))}; Ctrl-C ends it")
    if show:
        _open(served.address)
    try:
        served.serve()
    except KeyboardInterrupt:
        typer.echo("")
    finally:
        served.close()


def _formats(out: Path | None, form: str | None) -> tuple[str, ...]:
    """The formats of an export: as told, as the file's name says, or all."""
    ending = out.suffix[1:] if out is not None else ""
    if ending.isalpha() and ending not in FORMATS:  # not the end of a name such as v1.2
        raise ValueError(f"--out must end in .csv or .parquet, or have no ending for both, got {out}")
    if form is not None and ending in FORMATS and form != ending:
        raise ValueError(f"--format must be {ending}, since --out ends so, got {form!r}; give one of them")
    return (form,) if form is not None else (ending,) if ending in FORMATS else FORMATS


def _open(address: str) -> None:
    """Shows a page in the user's browser."""
    if not webbrowser.open(address):
        note(f"there is no browser to open {address} with")


def _first(folders: list[Path]) -> Path:
    """Where to write if nothing is told: the first folder, or the one in which a file of runs stands."""
    return folders[0] if folders[0].is_dir() else folders[0].parent
