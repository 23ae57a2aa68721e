"""What runs left on disk, read back.

A study's folder holds `runs/<hash>/config.json`, `epochs.jsonl` and, once the run has finished, `done.json`. A
published folder holds the same in one file, `runs.jsonl`, a run a line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from carpediem.lab.atomic import write_whole, writing_out
from carpediem.lab.config import LATER_FIELDS, RunConfig

# What tables and curves cannot do without; everything else in a record may be absent.
_CONFIG_FIELDS = ("recipe", "data", "net", "optimizer", "method", "seed")
_EPOCH_FIELDS = ("epoch", "iteration", "train_loss", "test_error", "seconds")
# What a run leaves behind, in the order in which it does.
_FILES = ("config.json", "epochs.jsonl", "done.json")
# What held before these fields were recorded.
_LATER_FIELDS = {"net_fingerprint": ""} | LATER_FIELDS
# What depends on the machine's other work.
_CLOCKS = {"seconds", "seconds_with_evaluation", "side_by_side"}
# JSON knows neither NaN nor infinity: these two are null for a run that diverged, and read as NaN.
_LOSSES = ("train_loss", "training_set_loss", "test_loss")


class RecordError(ValueError):
    """A record is damaged; the message names the file and the line."""


@dataclass(frozen=True)
class RunRecord:
    """One run, as far as it came.

    Args:
        hash: names the configuration.
        config: the whole configuration.
        epochs: one dict a finished epoch, from epoch 0.
        done: when and where the run finished, or None while it has not.
    """

    hash: str
    config: dict[str, Any]
    epochs: list[dict[str, Any]]
    done: dict[str, Any] | None

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return self.done is not None


def read_runs(*folders: str | Path, damage: list[str] | None = None) -> list[RunRecord]:
    """Every run in the given folders, finished or not, sorted by hash.

    Args:
        folders: studies' folders, published folders, or `runs.jsonl` files themselves. Of a run that occurs
            more than once the longer record counts.
        damage: where given, a damaged run is left out and its sentence added here instead of raised.

    Raises:
        FileNotFoundError: a folder does not exist or holds no study.
        RecordError: a line is damaged, or two finished records of the same run differ. Only a last line of
            `epochs.jsonl` that is cut off is passed over, since its writer may be in the middle of it.
    """
    if not folders:
        raise ValueError("folders must name at least one study, got none")
    runs: dict[str, RunRecord] = {}
    for folder in folders:
        for read in _readers(Path(folder)):
            try:
                run = read()
                name = _name_of(run)
                runs[name] = _longer(runs[name], run) if name in runs else run
            except RecordError as error:
                if damage is None:
                    raise
                damage.append(str(error))
    return sorted(runs.values(), key=lambda run: run.hash)


def no_run_yet(folders: Sequence[str | Path]) -> ValueError:
    """What to raise where folders of studies hold no run at all."""
    first = folders[0]
    return ValueError(f"{first} holds no run yet; carpediem compare --out {first} trains some")


def none_finished(count: int) -> ValueError:
    """What to raise where none of so many runs has come to its end."""
    return ValueError(f"no run of {count} has finished yet; the command that trains them continues them")


def read_run(folder: str | Path) -> RunRecord:
    """The run in `folder`."""
    folder = Path(folder)
    if not any((folder / name).is_file() for name in _FILES):
        raise FileNotFoundError(f"{folder} holds no run: there is no config.json in it")
    try:
        return _read_folder(folder)
    except RecordError as error:
        can_go_on = not any((folder / name).is_file() for name in ("config.json", "done.json"))
        remedy = (
            "the command that trains it writes it anew"
            if can_go_on
            else f"delete {folder} and train it again"
        )
        raise RecordError(f"{error}; {remedy}") from error


def _read_folder(folder: Path) -> RunRecord:
    path = folder / "config.json"
    if not path.is_file():
        raise RecordError(f"{path} is missing")
    config = _check_config(_read_object(path), where=str(path))
    # First whether it has finished: a run that is still being trained may finish while its epochs are read.
    ended = folder / "done.json"
    done = _read_object(ended) if ended.is_file() else None
    epochs = read_epochs(folder / "epochs.jsonl")
    wanted, reached = config.get("iterations"), epochs[-1]["iteration"] if epochs else 0
    if done is not None and wanted is not None and reached < wanted:
        raise RecordError(
            f"{folder / 'epochs.jsonl'} lacks the end of a finished run: {reached} of {wanted} iterations"
        )
    return RunRecord(folder.name, config, epochs, done)


def export_runs(folders: Iterable[str | Path], file: str | Path) -> None:
    """Write every run of `folders` to `file`, a JSON object a line, in the form of `runs.jsonl`.

    The file is replaced in one step: it holds either what it held before or everything.
    """
    file = Path(file)
    lines = [
        record_line({"run": run.hash, "config": run.config, "done": run.done, "epochs": run.epochs})
        for run in read_runs(*folders)
    ]
    with writing_out(file.parent):
        write_whole(file, b"".join(lines))


def record_line(record: dict[str, Any]) -> bytes:
    """The record as a line of JSON, with null for numbers that are not finite.

    >>> record_line({"train_loss": math.nan, "loss_quantiles": {"0.5": math.inf, "0.05": 1.0}})
    b'{"train_loss": null, "loss_quantiles": {"0.5": null, "0.05": 1.0}}\\n'
    """
    return (json.dumps(_finite(record), allow_nan=False) + "\n").encode()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _readers(place: Path) -> list[Callable[[], RunRecord]]:
    """What reads each run of a place."""
    if place.is_file():
        if place.suffix != ".jsonl":
            raise FileNotFoundError(f"{place} is no study: name folders, or runs.jsonl files")
        return _exported(place)
    if not place.is_dir():
        raise FileNotFoundError(f"{place} does not exist")
    exported, runs = place / "runs.jsonl", place / "runs"
    if not (exported.is_file() or runs.is_dir() or (place / "study.json").is_file()):
        raise FileNotFoundError(
            f"{place} holds no study: neither {exported.name} nor {runs.name}/ is in it{_studies_in(place)}"
        )
    if remedy := _studies_in(runs):
        raise FileNotFoundError(f"{place} holds no study itself{remedy}")
    found = _exported(exported) if exported.is_file() else []
    # A folder with none of its files was made a moment ago: its run has not begun.
    begun = {file.parent for name in _FILES for file in runs.glob(f"*/{name}")}
    return found + [partial(read_run, folder) for folder in sorted(begun)]


def _studies_in(place: Path) -> str:
    """The remedy where a folder is named that holds studies and is none."""
    inside = any(place.glob("*/runs.jsonl")) or any(place.glob("*/study.json"))
    return f"; its folders hold some, so name {place}/*/" if inside else ""


def _exported(file: Path) -> list[Callable[[], RunRecord]]:
    lines = enumerate(file.read_bytes().splitlines(), start=1)
    return [partial(_read_line, line, f"{file}, line {number}") for number, line in lines if line.strip()]


def _read_line(line: bytes, where: str) -> RunRecord:
    """The run in a line of `runs.jsonl`."""
    row = _parse(line, where)
    if missing := [name for name in ("run", "config", "epochs") if name not in row]:
        raise RecordError(f"{where} lacks {', '.join(missing)}")
    config = _check_config(row["config"], where=where)
    epochs = [_check_epoch(epoch, index, where=where) for index, epoch in enumerate(row["epochs"])]
    return RunRecord(row["run"], config, epochs, row.get("done"))


def read_epochs(file: Path) -> list[dict[str, Any]]:
    """The epochs in a run's `epochs.jsonl`; none where there is no such file."""
    if not file.is_file():
        return []
    *lines, last = file.read_bytes().split(b"\n")
    epochs: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        where = f"{file}, line {number}"
        epochs.append(_check_epoch(_parse(line, where), len(epochs), where=where))
    # What follows the last line end is being written, or was when its writer was stopped. It counts only if it
    # is whole; no part of a JSON object is itself JSON.
    try:
        whole = json.loads(last)
    except ValueError:
        return epochs
    return [*epochs, _check_epoch(whole, len(epochs), where=f"{file}, line {len(lines) + 1}")]


def _parse(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:  # not JSON, or not UTF-8
        raise RecordError(f"{where} is damaged: {error}") from error
    if not isinstance(value, dict):
        raise RecordError(f"{where} must hold a JSON object, got {type(value).__name__}")
    return value


def _read_object(file: Path) -> dict[str, Any]:
    return _parse(file.read_bytes(), str(file))


def _check_config(config: Any, *, where: str) -> dict[str, Any]:
    if not isinstance(config, dict):
        raise RecordError(f"{where}: config must be an object, got {type(config).__name__}")
    if missing := [name for name in _CONFIG_FIELDS if name not in config]:
        raise RecordError(f"{where}: the configuration lacks {', '.join(missing)}")
    return _LATER_FIELDS | config


def _check_epoch(epoch: Any, index: int, *, where: str) -> dict[str, Any]:
    if not isinstance(epoch, dict):
        raise RecordError(f"{where}: an epoch must be an object, got {type(epoch).__name__}")
    if missing := [name for name in _EPOCH_FIELDS if name not in epoch]:
        raise RecordError(f"{where}: the epoch lacks {', '.join(missing)}")
    if epoch["epoch"] != index:
        raise RecordError(f"{where}: epoch must be {index}, one after the last, got {epoch['epoch']}")
    return epoch | {name: math.nan for name in _LOSSES if name in epoch and epoch[name] is None}


def _name_of(run: RunRecord) -> str:
    """The first of the run's names, under which a record of an earlier name is the same run."""
    try:
        return RunConfig.from_dict(run.config).hash
    except (TypeError, ValueError):  # made by another version, or by hand
        return run.hash


def _longer(one: RunRecord, other: RunRecord) -> RunRecord:
    if one.finished and other.finished and not _are_alike(one, other):
        raise RecordError(
            f"run {one.hash} ({one.config['method']}, seed {one.config['seed']}) occurs twice with different epochs; "
            f"read one of its folders only, or take runs/{one.hash} out of the other"
        )
    # Of two that are alike the one that looked at more.
    return max(one, other, key=lambda run: (run.finished, len(run.epochs), sum(map(_looked_at, run.epochs))))


def _looked_at(epoch: dict[str, Any]) -> int:
    return len(epoch.keys() - _CLOCKS)


def _are_alike(one: RunRecord, other: RunRecord) -> bool:
    """Whether the epochs are the same, but for the machine's other work and for what one alone has looked at."""
    return len(one.epochs) == len(other.epochs) and all(
        json.dumps([a[name], b[name]]) == json.dumps([a[name], a[name]])
        for a, b in zip(one.epochs, other.epochs, strict=True)
        for name in a.keys() & b.keys() - _CLOCKS
    )
