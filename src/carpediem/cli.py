"""The `carpediem` command: arguments in, one call into the lab, results out."""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
import webbrowser
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from typer.core import TyperCommand, TyperGroup

from carpediem import __version__
from carpediem.lab import data as lab_data
from carpediem.lab.atomic import write_whole, writing_out
from carpediem.lab.cli_config import config_option
from carpediem.lab.config import SELECTION_OPTIONS, RunConfig
from carpediem.lab.export import FORMATS, export_samples
from carpediem.lab.figures import write_figures
from carpediem.lab.groups import Shard
from carpediem.lab.overview import overview_table
from carpediem.lab.plans import PLANS, plan_called, plan_configs, run_configs
from carpediem.lab.publish import publish as publish_runs
from carpediem.lab.ray_cluster import LOCAL, ClusterError, RayCluster
from carpediem.lab.recipes import OPTIONS
from carpediem.lab.recipes import recipe as recipe_called
from carpediem.lab.records import read_runs
from carpediem.lab.report import Watch, write_report
from carpediem.lab.session import chosen_device, chosen_precision, list_studies, table_text, train_and_show
from carpediem.lab.stage_tables import stage_tables
from carpediem.lab.study import Study
from carpediem.lab.table import measured, render_csv, render_markdown
from carpediem.lab.tables import all_tables
from carpediem.lab.usercode import UserCodeError

TABLE_ENDINGS = {"": "text", ".txt": "text", ".md": "markdown", ".csv": "csv", ".json": "json"}
# What typer raises when a command is called wrongly; whose class it is depends on typer's version.
UsageError: Any = typer.BadParameter.__bases__[0]


class OneLineErrors(TyperGroup):
    """The command's words for a wrong call: one line, as for every other error."""

    def main(self, *args: Any, **options: Any) -> Any:
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        try:
            sys.exit(super().main(*args, **options | {"standalone_mode": False}))
        except UsageError as error:
            if "NoArgsIsHelp" in type(error).__name__:
                error.show()
            else:
                command = error.ctx.command_path if error.ctx else "carpediem"
                message = " ".join(error.format_message().split()).rstrip(".")
                typer.echo(f"error: {message}; see {command} --help", err=True)
            sys.exit(2)


class WithRay(TyperCommand):
    """A command whose option --ray may stand alone, without its address."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        told = []
        for word, following in zip(args, [*args, ""][1:], strict=True):
            told.append(word)
            # typer knows no options whose value may be left out.
            if word == "--ray" and (not following or following.startswith("-") or following in PLANS):
                told.append(LOCAL)
        return super().parse_args(ctx, told)


app = typer.Typer(
    cls=OneLineErrors,
    help="Adaptive batch selection: compare the methods, reproduce the paper, print its tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = typer.Typer(
    help="What data is there, and how to get it.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(data_app, name="data")

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="TOML file with options of this command, such as iterations = 200.",
        callback=config_option,
        is_eager=True,
        exists=True,
        dir_okay=False,
    ),
]
Data = Annotated[
    str,
    typer.Option(
        help="digits, mnist, cifar10, cifar100, mit67, food100, flowers-102, a folder of images, or module:function."
    ),
]
Net = Annotated[
    str,
    typer.Option(
        help="small-cnn, resnet-50 and densenet-40-12 (for small images), efficientnet-lite0, densenet-121, or "
        "module:function."
    ),
]
Recipe = Annotated[
    str | None,
    typer.Option(help="paper, modern, fine-tuning or demo. [default: demo for digits, else modern]"),
]
Optimizer = Annotated[str, typer.Option(help="momentum or sgd.")]
Epochs = Annotated[
    int | None, typer.Option(help="How long to train. [default: as long as the recipe]", min=1)
]
Iterations = Annotated[int | None, typer.Option(help="How long to train, in steps.", min=1)]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder for the runs; the same folder continues them. [default: runs/NAME]"),
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Where data is looked for. [default: $CARPEDIEM_DATA, else the user's cache]"),
]
Device = Annotated[str | None, typer.Option(help="cpu or cuda. [default: cuda where there is one]")]
SideBySide = Annotated[
    int | None, typer.Option(help="Runs that train at once. [default: 1 on cpu, 4 on cuda]", min=1)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines and nothing else.")]
TensorBoard = Annotated[
    bool, typer.Option("--tensorboard", help="Also write TensorBoard event files beside each run.")
]
TestDropout = Annotated[
    bool,
    typer.Option(
        "--test-dropout",
        help="Also test with dropout left on, as the paper's released ResNet does; tables --stages shows both.",
    ),
]
BatchSize = Annotated[int | None, typer.Option(help="[default: the recipe's]", min=1)]
Rate = Annotated[
    float | None,
    typer.Option("--learning-rate", "--lr", help="Learning rate at the start. [default: the recipe's]"),
]
Weights = Annotated[
    str | None,
    typer.Option(
        help="imagenet (efficientnet-lite0, densenet-121; the file is looked for with the data) or none. "
        "[default: the recipe's]"
    ),
]
Dropout = Annotated[float | None, typer.Option(help="[default: the recipe's]")]
Augmentation = Annotated[
    str | None, typer.Option(help="none, crop-flip or flip-jitter. [default: the recipe's]")
]
ImageSize = Annotated[
    int | None,
    typer.Option(
        help="Side to which image files are brought, in pixels. [default: the recipe's, else 224]", min=8
    ),
]
WarmUp = Annotated[
    int | None, typer.Option(help="Uniform epochs at the start. [default: the recipe's, 10]", min=0)
]
Window = Annotated[int | None, typer.Option(help="Predictions that Recency Bias keeps. [default: 10]", min=1)]
Pressure = Annotated[float | None, typer.Option(help="Selection pressure at the start. [default: 100]")]
Schedule = Annotated[
    str | None,
    typer.Option(help="decayed or constant pressure, of Online Batch and Recency Bias. [default: decayed]"),
]
DrawsOption = Annotated[
    str | None, typer.Option("--draws", help="independent or systematic. [default: the recipe's]")
]
Losses = Annotated[
    str | None,
    typer.Option(help="observe or evaluate: whence Online Batch has its losses. [default: observe]"),
]
Smoothness = Annotated[
    float | None,
    typer.Option(help="What Active Bias adds to every sample's deviation. [default: 0.02]"),
]
Mode = Annotated[
    str | None, typer.Option(help="sample or reweight: what Active Bias does. [default: sample]")
]
Methods = Annotated[
    str, typer.Option(help="Comma-separated; random-shuffle and the like say how a method draws.")
]
Folders = Annotated[
    list[Path], typer.Argument(metavar="DIR...", help="Folders of studies or of published results.")
]
ShardOption = Annotated[
    str | None,
    typer.Option(
        "--shard", metavar="I/N", help="Train the I-th of N shares of the study alone, as one of a job array."
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Train over a Ray cluster: auto, HOST:PORT, or local (a new one on this machine) if no address is given.",
    ),
]
Seeds = Annotated[int, typer.Option(help="How many repeats, with seeds 0, 1, …", min=1)]


def tidy(command: Callable[..., None]) -> Callable[..., None]:
    """Turns bad input into one line, and Ctrl-C into the news that nothing is lost."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            typer.echo("stopped: the same command continues where it was", err=True)
            raise typer.Exit(130) from None
        except BrokenPipeError:  # whoever reads has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except (ValueError, TypeError, OSError, ImportError, UserCodeError, ClusterError) as error:
            typer.echo(f"error: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(2) from None

    wrapped.__signature__ = _signature(command)  # type: ignore[attr-defined]
    return wrapped


def _signature(command: Callable[..., None]) -> inspect.Signature:
    """A command's own, with the options of a run, where it takes `**settings`, before --out."""
    own = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for name, parameter in own.parameters.items():
        if name == "out" and "settings" in own.parameters:
            parameters += inspect.signature(_run_settings, eval_str=True).parameters.values()
        if name != "settings":
            parameters.append(parameter)
    return own.replace(parameters=parameters)


def _run_settings(
    recipe: Recipe = None,
    optimizer: Optimizer = "momentum",
    epochs: Epochs = None,
    iterations: Iterations = None,
    batch_size: BatchSize = None,
    learning_rate: Rate = None,
    dropout: Dropout = None,
    augmentation: Augmentation = None,
    weights: Weights = None,
    image_size: ImageSize = None,
    warm_up: WarmUp = None,
    window: Window = None,
    pressure: Pressure = None,
    schedule: Schedule = None,
    draws: DrawsOption = None,
    losses: Losses = None,
    smoothness: Smoothness = None,
    mode: Mode = None,
) -> None:
    """The options of `compare` and `train` that say how a run is trained."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"carpediem {__version__} (torch {torch.__version__})")
        raise typer.Exit


@app.callback()
def carpediem(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Adaptive batch selection: compare the methods, reproduce the paper, print its tables."""


@app.command(cls=WithRay)
@tidy
def compare(
    data: Data = "digits",
    net: Net = "small-cnn",
    methods: Methods = "random,online,active,recency",
    seeds: Seeds = 3,
    out: Out = None,
    data_dir: DataDir = None,
    device: Device = None,
    side_by_side: SideBySide = None,
    shard: ShardOption = None,
    ray: Ray = None,
    test_dropout: TestDropout = False,
    tensorboard: TensorBoard = False,
    as_json: Json = False,
    config: Config = None,
    **settings: Any,
) -> None:
    """Train every method with every seed, the warm-up shared, and compare them."""
    share = Shard.parse(shard) if shard is not None else Shard(1, 1)
    with _cluster(ray) as cluster:
        where = chosen_device(device, cluster)
        configs = _own_configs(data, net, data_dir, _words(methods), range(seeds), where, settings)
        study = Study(_folder(out, "compare", data, net), configs, name="compare", test_dropout=test_dropout)
        train_and_show(
            study.share(share.of(configs)),
            device=where,
            data_dir=data_dir,
            side_by_side=side_by_side,
            tensorboard=tensorboard,
            as_json=as_json,
            cluster=cluster,
        )


@app.command()
@tidy
def train(
    data: Data = "digits",
    net: Net = "small-cnn",
    method: Annotated[
        str, typer.Option(help="random, online, active or recency; random-shuffle says how it draws.")
    ] = "recency",
    seed: Annotated[int, typer.Option(min=0)] = 0,
    out: Out = None,
    data_dir: DataDir = None,
    device: Device = None,
    test_dropout: TestDropout = False,
    tensorboard: TensorBoard = False,
    as_json: Json = False,
    config: Config = None,
    **settings: Any,
) -> None:
    """Train one run."""
    where = chosen_device(device)
    configs = _own_configs(data, net, data_dir, [method], [seed], where, settings)
    study = Study(_folder(out, "train", data, net), configs, name="train", test_dropout=test_dropout)
    train_and_show(study, device=where, data_dir=data_dir, tensorboard=tensorboard, as_json=as_json)


@app.command(cls=WithRay)
@tidy
def reproduce(
    name: Annotated[str | None, typer.Argument(help=", ".join(PLANS))] = None,
    show: Annotated[
        bool, typer.Option("--list", help="Show the studies, what is done and what is missing.")
    ] = False,
    datasets: Annotated[str | None, typer.Option(help="Comma-separated. [default: the study's]")] = None,
    methods: Annotated[str | None, typer.Option(help="Comma-separated. [default: the study's]")] = None,
    seeds: Seeds = 3,
    iterations: Iterations = None,
    batch_size: BatchSize = None,
    warm_up: WarmUp = None,
    image_size: ImageSize = None,
    out: Out = None,
    data_dir: DataDir = None,
    device: Device = None,
    side_by_side: SideBySide = None,
    shard: ShardOption = None,
    ray: Ray = None,
    test_dropout: TestDropout = False,
    tensorboard: TensorBoard = False,
    as_json: Json = False,
    config: Config = None,
) -> None:
    """Train a study of the paper, or the part of it that you ask for."""
    if show:
        if name is None and out is not None:
            raise ValueError("--out is the folder of one study; give its NAME too")
        chosen = list(PLANS) if name is None else [name]
        list_studies({one: _folder(out, one) for one in chosen}, as_json=as_json)
        return
    if name is None:
        taken = f" ({ray!r} was taken for the address of --ray)" if ray not in (None, LOCAL) else ""
        raise ValueError(f"NAME is missing{taken}; it is one of {', '.join(PLANS)}")
    share = Shard.parse(shard) if shard is not None else Shard(1, 1)
    changes = {
        "iterations": iterations,
        "batch_size": batch_size,
        "warm_up": warm_up,
        "image_size": image_size,
    }
    with _cluster(ray) as cluster:
        where = chosen_device(device, cluster)
        configs = plan_configs(
            plan_called(name),
            datasets=_words(datasets) if datasets else None,
            methods=_words(methods) if methods else None,
            seeds=range(seeds),
            precision=chosen_precision(where),
            data_dir=data_dir,
            **{key: value for key, value in changes.items() if value is not None},
        )
        study = Study(_folder(out, name), configs, name=name, test_dropout=test_dropout)
        train_and_show(
            study.share(share.of(configs)),
            device=where,
            data_dir=data_dir,
            side_by_side=side_by_side,
            tensorboard=tensorboard,
            as_json=as_json,
            cluster=cluster,
        )


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
) -> None:
    """The paper's tables from finished runs, ours beside the paper's figures, and summaries of other settings."""
    if form is None:
        ending = "" if out is None else out.suffix
        if ending not in TABLE_ENDINGS:
            raise ValueError(f"--out must end in .md, .csv, .json or .txt, or --format be given, got {out}")
        form = TABLE_ENDINGS[ending]
    if overview and stages:
        raise ValueError("--overview and --stages make different tables; call once with each")
    if stages:
        made = stage_tables(read_runs(*folders))
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
        text = "\n".join(table_text(table) for table in made)
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

    curves_…: training loss and test error (Figures 5, 6, 8 to 10). trails_…: predictions of a few samples, and what a
    growing and a sliding window make of them (Figure 2). index_…: uncertainty beside both indices (Figure 3). losses_…:
    the losses of what was drawn (Figure 4). grid_…: test error by window and pressure (Figure 7).
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
        complain=_note,
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
    file = write_report(folders, out or _first(folders) / "report.html", complain=_note)
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
                else "to be had from its publishers"
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


def _cluster(address: str | None) -> AbstractContextManager[RayCluster | None]:
    """Where to train: on a cluster, or None for this process."""
    return nullcontext() if address is None else RayCluster(address)


def _own_configs(
    data: str,
    net: str,
    data_dir: Path | None,
    methods: list[str],
    seeds: Iterable[int],
    device: str,
    settings: dict[str, Any],
) -> list[RunConfig]:
    """The runs that the options of `compare` and `train` describe."""
    if settings["epochs"] is not None and settings["iterations"] is not None:
        raise ValueError("--epochs and --iterations say the same thing twice; give one of them")
    recipe_name = settings["recipe"] or ("demo" if data == "digits" else "modern")
    image_size = settings["image_size"] or recipe_called(recipe_name)["image_size"]
    return run_configs(
        data,
        lab_data.open_data(data, data_dir, image_size=image_size),
        recipe_name=recipe_name,
        methods=methods,
        seeds=seeds,
        precision=chosen_precision(device),
        net=net,
        **{key: settings[key] for key in ("optimizer", "epochs", *OPTIONS, "draws", *SELECTION_OPTIONS)},
    )


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
        _note(f"there is no browser to open {address} with")


def _note(message: str) -> None:
    """Says something beside the result."""
    typer.echo(f"note: {message}", err=True)


def _first(folders: list[Path]) -> Path:
    """Where to write if nothing is told: the first folder, or the one in which a file of runs stands."""
    return folders[0] if folders[0].is_dir() else folders[0].parent


def _words(text: str) -> list[str]:
    """The parts of a comma-separated list."""
    return [word.strip() for word in text.split(",")]


def _folder(out: Path | None, *parts: str) -> Path:
    """Where a study goes: as told, or under runs/ by its name."""
    name = "-".join(
        "".join(c if c.isalnum() or c in "-_." else "-" for c in part).strip("-.") for part in parts
    )
    if out is not None and out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a folder, got the file {out}")
    return out or Path("runs") / name
