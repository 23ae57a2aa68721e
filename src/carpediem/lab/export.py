"""What runs found out about every training sample, as CSV and Parquet for other programs."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from carpediem.lab.atomic import write_whole, writing_out
from carpediem.lab.config import METHODS
from carpediem.lab.plans import parse_method
from carpediem.lab.records import RunRecord, no_run_yet, none_finished, read_runs
from carpediem.lab.results import selection_of
from carpediem.lab.samples import SampleRecord, newest, read_samples, run_folder

if TYPE_CHECKING:
    from polars import DataFrame, Expr

FORMATS = ("csv", "parquet")


def export_samples(
    folders: Sequence[Path],
    *,
    out: Path | None = None,
    formats: Sequence[str] = FORMATS,
    methods: Collection[str] = (),
    seeds: Collection[int] = (),
    runs: Collection[str] = (),
    complain: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Writes a line for every training sample of every chosen run; returns the files.

    Args:
        folders: studies' folders.
        out: the files' name; each gets the ending of its format. [default: samples in the first folder]
        formats: "csv", "parquet" or both.
        methods, seeds, runs: only runs with one of these; empty for all. A run's hash may be cut short.
        complain: told of runs that are passed over.
    """
    if unknown := [form for form in formats if form not in FORMATS]:
        raise ValueError(f"--format must be csv or parquet, got {unknown[0]!r}")
    if out is not None and out.is_dir():
        raise IsADirectoryError(
            f"--out must be a file, got the folder {out}; name one in it, such as {out / 'samples.csv'}"
        )
    table = sample_table(folders, methods=methods, seeds=seeds, runs=runs, complain=complain)
    files = []
    for form in formats:
        stream = io.BytesIO()
        if form == "csv":
            table.write_csv(stream)
        else:
            table.write_parquet(stream)
        files.append(_named(out or folders[0] / "samples", form))
        with writing_out(files[-1]):
            write_whole(files[-1], stream.getvalue())
    return files


def sample_table(
    folders: Sequence[Path],
    *,
    methods: Collection[str] = (),
    seeds: Collection[int] = (),
    runs: Collection[str] = (),
    complain: Callable[[str], None] = lambda _: None,
) -> DataFrame:
    """A line for every training sample of every chosen run, the runs in the order of method and seed.

    Raises:
        ValueError: no run is chosen, or none of those that are has left sample records.
    """
    try:
        import polars
    except ImportError as missing:
        raise ImportError("export needs polars: pip install polars") from missing

    wanted = [parse_method(method, "", option="--method") for method in methods]
    found = read_runs(*folders)
    chosen = [run for run in found if _is_chosen(run, wanted, seeds, runs)]
    if not found:
        raise no_run_yet(folders)
    if not chosen:
        there = (sorted({run.config[key] for run in found}) for key in ("method", "seed"))
        methods_there, seeds_there = (", ".join(map(str, values)) for values in there)
        raise ValueError(
            f"none of the {len(found)} runs has that method, seed or name; there are {methods_there} with the seeds "
            f"{seeds_there}, and the names are those of the folders in runs"
        )
    parts = [(run, record) for run in sorted(chosen, key=_order) if (record := _samples(folders, run))]
    if not parts and not any(run.finished for run in chosen):
        raise none_finished(len(chosen))
    if not parts:
        raise ValueError(
            f"none of the {len(chosen)} runs has left sample records (samples.npz): published results and runs of "
            "earlier versions have none; train the study in a new folder"
        )
    if len(parts) < len(chosen):
        complain(f"{len(chosen) - len(parts)} of the {len(chosen)} runs have left no sample records")
    return polars.concat([_part(run, record) for run, record in parts])


def _part(run: RunRecord, record: SampleRecord) -> DataFrame:
    """One run's lines. What a sample has not, such as a loss before its first draw, is null."""
    import polars
    from polars import col

    names, options = dict(enumerate(record.classes)), dict(selection_of(run.config))
    nowhere: list[str | None] = [None] * len(record)
    columns = polars.DataFrame(
        {
            "index": record.index,
            "label": record.label,
            "path": polars.Series(nowhere if record.path is None else record.path, dtype=polars.String),
            "uncertainty": record.uncertainty,
            "majority_prediction": record.majority,
            "agreement": record.agreement,
            "times_drawn": record.times_drawn,
            "last_change": record.last_change,
            "last_loss": record.last_loss,
        }
    )

    def class_of(column: str) -> polars.Expr:
        return col(column).replace_strict(names, default=None, return_dtype=polars.String)

    return columns.select(
        polars.lit(run.hash).alias("run"),
        polars.lit(str(run.config["method"])).alias("method"),
        polars.lit(run.config.get("draws"), dtype=polars.String).alias("draws"),
        polars.lit(run.config.get("window"), dtype=polars.Int64).alias("window"),
        polars.lit(options.get("pressure"), dtype=polars.Float64).alias("pressure"),
        polars.lit(options.get("schedule"), dtype=polars.String).alias("schedule"),
        polars.lit(int(run.config["seed"])).cast(polars.Int64).alias("seed"),
        polars.lit(record.epochs).cast(polars.Int64).alias("epochs"),
        "index",
        "path",
        "label",
        class_of("label").alias("class_name"),
        "uncertainty",
        _or_null("majority_prediction"),
        class_of("majority_prediction").alias("majority_class_name"),
        col("agreement").fill_nan(None),
        "times_drawn",
        _or_null("last_change"),
        col("last_loss").fill_nan(None),
    )


def _or_null(column: str) -> Expr:
    import polars

    return polars.when(polars.col(column) >= 0).then(polars.col(column)).alias(column)


def _is_chosen(
    run: RunRecord, methods: Collection[dict[str, str]], seeds: Collection[int], runs: Collection[str]
) -> bool:
    return (
        (not methods or any(_is_of(run, method) for method in methods))
        and (not seeds or run.config["seed"] in seeds)
        and (not runs or any(run.hash.startswith(name) for name in runs))
    )


def _order(run: RunRecord) -> tuple[int, int, str]:
    return (list(METHODS).index(run.config["method"]), run.config["seed"], run.hash)


def _samples(folders: Sequence[Path], run: RunRecord) -> SampleRecord | None:
    """The run's sample records, the newest of several copies."""
    found = newest(read_samples, (run_folder(folder, run.hash) for folder in folders))
    return None if found is None else found[1]


def _named(file: Path, form: str) -> Path:
    """The file with the ending of a format; one of ours that it has already is replaced."""
    return (
        file.with_suffix(f".{form}") if file.suffix[1:] in FORMATS else file.with_name(f"{file.name}.{form}")
    )


def _is_of(run: RunRecord, method: dict[str, str]) -> bool:
    """Whether a run is of a method, and draws so where that is said."""
    return run.config["method"] == method["method"] and method["draws"] in ("", run.config.get("draws"))
