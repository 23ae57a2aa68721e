"""The commands that train: `compare`, `train` and `reproduce`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from carpediem.cli.app import app, tidy
from carpediem.cli.options import (
    Config,
    Data,
    DataDir,
    Device,
    DryRun,
    FirstSeed,
    Json,
    Methods,
    Net,
    Out,
    Ray,
    Seeds,
    ShardOption,
    SideBySide,
    TensorBoard,
    TestDropout,
    TrainingLoss,
)
from carpediem.lab import data as lab_data
from carpediem.lab.config import RunConfig
from carpediem.lab.groups import Shard
from carpediem.lab.plans import PLANS, plan_called, plan_configs, run_configs
from carpediem.lab.ray_cluster import LOCAL, RayCluster
from carpediem.lab.recipes import network_of
from carpediem.lab.recipes import recipe as recipe_called
from carpediem.lab.records import RunRecord
from carpediem.lab.session import (
    chosen_device,
    chosen_precision,
    list_studies,
    show_configs,
    train_and_show,
)
from carpediem.lab.study import Study
from carpediem.lab.table import Table
from carpediem.lab.tables import study_tables, summary_tables


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


@app.command(cls=WithRay)
@tidy
def compare(
    data: Data = "digits",
    net: Net = "small-cnn",
    methods: Methods = "random,online,active,recency",
    seeds: Seeds = 3,
    first_seed: FirstSeed = 0,
    out: Out = None,
    data_dir: DataDir = None,
    device: Device = None,
    side_by_side: SideBySide = None,
    shard: ShardOption = None,
    ray: Ray = None,
    test_dropout: TestDropout = False,
    training_loss_every: TrainingLoss = None,
    tensorboard: TensorBoard = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    config: Config = None,
    **settings: Any,
) -> None:
    """Train every method with every seed, the warm-up shared, and compare them."""
    chosen = range(first_seed, first_seed + seeds)
    _train(
        "compare",
        _folder(out, "compare", data, net),
        lambda where: _own_configs(data, net, data_dir, _words(methods), chosen, where, settings),
        Options(device, data_dir, test_dropout, training_loss_every or 0, tensorboard, dry_run, as_json),
        side_by_side=side_by_side,
        shard=shard,
        ray=ray,
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
    training_loss_every: TrainingLoss = None,
    tensorboard: TensorBoard = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    config: Config = None,
    **settings: Any,
) -> None:
    """Train one run."""
    _train(
        "train",
        _folder(out, "train", data, net),
        lambda where: _own_configs(data, net, data_dir, [method], [seed], where, settings),
        Options(device, data_dir, test_dropout, training_loss_every or 0, tensorboard, dry_run, as_json),
    )


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
    first_seed: FirstSeed = 0,
    out: Out = None,
    data_dir: DataDir = None,
    device: Device = None,
    side_by_side: SideBySide = None,
    shard: ShardOption = None,
    ray: Ray = None,
    test_dropout: TestDropout = False,
    training_loss_every: TrainingLoss = None,
    tensorboard: TensorBoard = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    config: Config = None,
    **settings: Any,
) -> None:
    """Train a study of the paper, the part of it that you ask for, or the same with other settings.

    It ends with the paper's table, ours beside the paper's numbers. What differs from the paper stands in the title.
    """
    if show:
        if name is None and out is not None:
            raise ValueError("--out is the folder of one study; give its NAME too")
        chosen = list(PLANS) if name is None else [name]
        published = sorted(file.parent for file in Path("results").glob("*/runs.jsonl"))
        list_studies({one: _folder(out, one) for one in chosen}, published, as_json=as_json)
        return
    if name is None:
        taken = f" ({ray!r} was taken for the address of --ray)" if ray not in (None, LOCAL) else ""
        raise ValueError(f"NAME is missing{taken}; it is one of {', '.join(PLANS)}")
    plan, changes = plan_called(name), _changes(settings)
    _train(
        name,
        _folder(out, name),
        lambda where: plan_configs(
            plan,
            datasets=_words(datasets) if datasets else None,
            methods=_words(methods) if methods else None,
            seeds=range(first_seed, first_seed + seeds),
            precision=changes.pop("precision", None) or chosen_precision(where),
            data_dir=data_dir,
            must_be_there=not dry_run,
            **changes,
        ),
        Options(
            device,
            data_dir,
            test_dropout,
            1 if training_loss_every is None else training_loss_every,
            tensorboard,
            dry_run,
            as_json,
        ),
        tables=lambda records: study_tables(plan, records),
        side_by_side=side_by_side,
        shard=shard,
        ray=ray,
    )


@dataclass(frozen=True)
class Options:
    """What all commands that train are asked beside what a run is."""

    device: str | None
    data_dir: Path | None
    test_dropout: bool
    training_loss_every: int
    tensorboard: bool
    dry_run: bool
    as_json: bool


def _train(
    name: str,
    folder: Path,
    configs_on: Callable[[str], list[RunConfig]],
    options: Options,
    *,
    tables: Callable[[list[RunRecord]], list[Table]] = summary_tables,
    side_by_side: int | None = None,
    shard: str | None = None,
    ray: str | None = None,
) -> None:
    """Trains a study, or a share of it, here or on a cluster. `configs_on` gives its runs for a kind of device."""
    share = Shard.parse(shard) if shard is not None else Shard(1, 1)
    with nullcontext() if ray is None else RayCluster(ray) as cluster:
        where = chosen_device(options.device, cluster)
        configs = configs_on(where)
        if options.dry_run:
            show_configs(configs if shard is None else share.of(configs), as_json=options.as_json)
            return
        study = Study(
            folder,
            configs,
            name=name,
            test_dropout=options.test_dropout,
            training_loss_every=options.training_loss_every,
        )
        train_and_show(
            study.share(share.of(configs)),
            device=where,
            data_dir=options.data_dir,
            tables=tables,
            side_by_side=side_by_side,
            tensorboard=options.tensorboard,
            as_json=options.as_json,
            cluster=cluster,
        )


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
    changes = _changes(settings)
    name = changes.pop("recipe_name", None) or ("demo" if data == "digits" else "modern")
    plain = recipe_called(name, data=lab_data.plain_name(data), net=network_of(name, net))
    return run_configs(
        data,
        lab_data.open_data(data, data_dir, image_size=changes.get("image_size") or plain["image_size"]),
        recipe_name=name,
        methods=methods,
        seeds=seeds,
        precision=changes.pop("precision", None) or chosen_precision(device),
        optimizer=changes.pop("optimizer", "momentum"),
        net=net,
        **changes,
    )


def _changes(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given, as `run_configs` and `plan_configs` call them."""
    given = {name: value for name, value in settings.items() if value is not None}
    if "epochs" in given and "iterations" in given:
        raise ValueError(
            "--epochs and --iterations say the same thing twice; give one of them, here or in the file of --config"
        )
    return {"recipe_name" if name == "recipe" else name: value for name, value in given.items()}


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
