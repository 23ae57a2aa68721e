"""One sitting with a study: train what is missing, then show what came out."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from carpediem.lab.atomic import write_whole
from carpediem.lab.config import RunConfig
from carpediem.lab.curves import write_curves
from carpediem.lab.dropout_tables import is_tested_with_dropout
from carpediem.lab.folder_news import News
from carpediem.lab.groups import by_warm_up
from carpediem.lab.plans import is_of_plan, plan_called
from carpediem.lab.progress import StudyProgress
from carpediem.lab.ray_cluster import RayCluster
from carpediem.lab.records import RunRecord, read_runs
from carpediem.lab.results import diverged
from carpediem.lab.runfolder import RunFolder
from carpediem.lab.study import Study
from carpediem.lab.table import Column, Table, Value, render_markdown, render_text
from carpediem.lab.tables import summary_tables
from carpediem.lab.tensorboard import write_events
from carpediem.lab.terminal_curves import terminal_curves
from carpediem.lab.words import in_words


def train_and_show(
    study: Study,
    *,
    device: str,
    data_dir: Path | None,
    tables: Callable[[list[RunRecord]], list[Table]] = summary_tables,
    side_by_side: int | None = None,
    tensorboard: bool = False,
    as_json: bool = False,
    cluster: RayCluster | None = None,
) -> None:
    """Trains the runs that are not done; prints the tables, the curves and where everything lies.

    Args:
        device: cpu or cuda.
        tables: makes the tables of these runs.
        cluster: where to train; by default in this process.
    """
    folder, asked_for = study.folder, {name for config in study.configs for name in config.names}
    if not study.own:
        if as_json:
            print(json.dumps({"folder": str(folder), "tables": []}, indent=2))
        else:
            shares = len(by_warm_up(study.configs))
            print(
                f"this share is empty: runs that share a warm-up stay together, and the study has {shares} such "
                "groups; nothing is trained",
                file=sys.stderr,
            )
        return
    pending = study.pending()
    for sentence in _of_other_code(study):
        print(f"note: {sentence}", file=sys.stderr)
    with StudyProgress(pending, quiet=as_json) as progress:

        def on_news(news: News) -> None:
            progress.show(news)
            if tensorboard and not news.is_warm_up:
                write_events(RunFolder.of(news.configs[0], folder / "runs").folder)

        if cluster is None:
            study.train(
                device=device,
                data_dir=data_dir,
                side_by_side=side_by_side,
                on_epoch=lambda t, _: on_news(News(t.configs, t.records, t.is_warm_up)),
                complain=progress.complain,
            )
        else:
            cluster.train(
                study,
                device=device,
                data_dir=data_dir,
                side_by_side=side_by_side,
                on_news=on_news,
                complain=progress.complain,
            )
    everything = read_runs(folder)
    if not pending and not as_json:
        print("all of these runs are done already: nothing is trained", file=sys.stderr)
    records = [record for record in everything if record.hash in asked_for]
    untested = [run for run in records if run.finished and not is_tested_with_dropout(run)]
    if study.test_dropout and untested:
        print(
            f"note: {len(untested)} of these runs were trained without --test-dropout before; to test them so, train "
            "them in another folder",
            file=sys.stderr,
        )
    unseen = [run for run in records if run.finished and "training_set_loss" not in run.epochs[-1]]
    if study.training_loss_every and unseen:
        print(
            f"note: {len(unseen)} of these runs were trained before without the loss over the whole training set; to "
            "have it, train them in another folder",
            file=sys.stderr,
        )
    made = tables(records)
    finished = [record for record in records if record.finished]
    # Shown before anything is written, which a folder that is no longer writable would prevent.
    if as_json:
        print(json.dumps({"folder": str(folder), "tables": [table.to_dict() for table in made]}, indent=2))
    elif not finished:  # where other processes train all of the runs
        print(f"no run has finished yet; other processes train them in {folder}")
    else:
        for table in made:
            print(table_text(table))
        for sentence in diverged(records):
            print(f"note: {sentence}", file=sys.stderr)
        print(terminal_curves(records, ascii=not (sys.stdout.encoding or "").lower().startswith("utf")))
    if tensorboard:  # also for runs that were done before, or are no longer than the warm-up
        for record in finished:
            write_events(folder / "runs" / record.hash)
    figures = write_curves(everything, folder / "figures", formats=("png",)) if finished else []
    whole = tables(everything)
    write_whole(folder / "tables.md", "\n".join(render_markdown(table) for table in whole))
    if as_json or not finished:
        return
    if others := len(everything) - len(records):
        more = f"{others} more {'run' if others == 1 else 'runs'}"
        print(f"note: {folder} holds {more}; tables.md and figures/ show all of them", file=sys.stderr)
    print(f"written to {folder}: runs/, tables.md, {', '.join(str(f.relative_to(folder)) for f in figures)}")


def _of_other_code(study: Study) -> list[str]:
    """Sentences on runs in the folder that are not continued, since their data or network has changed."""
    if not (study.folder / "runs").is_dir():
        return []
    there, found = read_runs(study.folder, damage=[]), []
    for name, what in (("data", "the data"), ("net", "the code of the network")):
        key = f"{name}_fingerprint"
        now = {getattr(config, name): getattr(config, key) for config in study.own}
        named = [
            run.config[name] for run in there if run.config.get(key) not in (None, now.get(run.config[name]))
        ]
        for one, count in Counter(one for one in named if one in now).items():
            runs = "1 run" if count == 1 else f"{count} runs"
            found.append(f"{what} {one} is not that of {runs} in {study.folder}, which are not continued")
    return found


def list_studies(folders: dict[str, Path], published: Sequence[Path] = (), *, as_json: bool = False) -> None:
    """Prints studies of the paper: of each data set, how many of the runs for three seeds are done.

    Args:
        folders: where each study lies, by its name.
        published: folders of published runs, which count wherever they belong.
    """
    shown = read_runs(*published, damage=[]) if published else []
    rows = []
    for name, folder in folders.items():
        plan, runs = plan_called(name), read_runs(folder) if (folder / "runs").is_dir() else []
        here = {run.hash for run in runs}
        for data in plan.datasets:
            there = [run for run in runs if run.config["data"] == data]
            of_plan = [run for run in there if is_of_plan(run, plan)]
            also = [run for run in shown if run.config["data"] == data and is_of_plan(run, plan)]
            counts = {
                "runs": 3 * plan.runs_per_seed,
                "done": sum(run.finished for run in of_plan),
                "published": sum(run.finished for run in also if run.hash not in here),
                "unfinished": sum(not run.finished for run in of_plan),
                "others": len(there) - len(of_plan),
            }
            rows.append({"name": name, "shows": plan.shows, "data": data, "folder": str(folder)} | counts)
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        more = f", {row['published']} more published" if row["published"] else ""
        more += f", {row['unfinished']} unfinished" if row["unfinished"] else ""
        more += f", {row['others']} of other settings" if row["others"] else ""
        print(
            f"{row['name']:<20} {row['shows']:<24} {row['data']:<12} {row['done']} of {row['runs']} runs done{more}"
        )
    (place, *others) = folders.values()
    where = f"in {place.parent if others else place}" + (" and results" if published else "")
    print(f"counted {where}; three seeds are meant, and more count too")
    print(
        "carpediem reproduce NAME --datasets DATA trains what is not done there; "
        "carpediem paper shows the paper's tables"
    )


def show_configs(configs: Sequence[RunConfig], *, as_json: bool = False) -> None:
    """Prints what would be trained: the settings that all runs share, then what each has of its own."""
    if as_json:
        print(json.dumps([{"run": _name(config), **config.to_dict()} for config in configs], indent=2))
        return
    if not configs:
        print("this share is empty: nothing would be trained")
        return
    settings = [config.to_dict() for config in configs]
    shared = [name for name in settings[0] if all(one[name] == settings[0][name] for one in settings)]
    own = [name for name in settings[0] if name not in shared]
    print(f"{len(configs)} {'run' if len(configs) == 1 else 'runs'} would be trained, all with")
    for name in shared:
        if settings[0][name] == "":  # what only one's own network or data that is there has
            continue
        print(f"  {name:<20} {in_words(settings[0][name])}")
    columns = (Column("run", "Run"), *(Column(name, name) for name in own))
    rows: list[tuple[Value, ...]] = [
        (_name(config), *(in_words(one[name]) for name in own))
        for config, one in zip(configs, settings, strict=True)
    ]
    print("and each with")
    print(table_text(Table("", "", columns, rows)))
    if any(not config.data_fingerprint for config in configs):
        print("note: the data is not here; a run's name is known where it is", file=sys.stderr)


def _name(config: RunConfig) -> str | None:
    """What the run will be called; unknown without the data."""
    return config.hash if config.data_fingerprint else None


def table_text(table: Table) -> str:
    """The table for where standard output goes: coloured and fitted on a terminal, plain elsewhere."""
    terminal = sys.stdout.isatty()
    return render_text(table, colour=terminal, width=shutil.get_terminal_size().columns if terminal else 200)


def chosen_device(name: str | None, cluster: RayCluster | None = None) -> str:
    """The device that is meant: a CUDA one where there is one, unless something else is said."""
    if name not in (None, "cpu", "cuda"):
        raise ValueError(f"--device must be cpu or cuda, got {name!r}")
    if name == "cpu":
        return name
    if torch.cuda.is_available() if cluster is None else cluster.has_gpus:
        return "cuda"
    if name == "cuda":
        who = "torch sees" if cluster is None else "the Ray cluster has"
        raise ValueError(f"--device cuda needs a CUDA device, and {who} none; use --device cpu")
    return "cpu"


def chosen_precision(device: str) -> str:
    """bf16 where the device is fast at it."""
    return "bf16" if device == "cuda" else "float32"
