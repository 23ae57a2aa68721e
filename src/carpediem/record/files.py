"""Scores as files that other tools read: CSV, Parquet, and the JSON lines of dataset cartography."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carpediem.record.keys import checked_keys

Table = dict[str, NDArray[Any]]
MAP = ("confidence", "variability", "correctness")


def write_table(path: str | os.PathLike[str], table: Table) -> None:
    """Write a table of one row a sample, whole or not at all; the ending of the path says how."""
    path = Path(path)
    content = {".csv": _as_csv, ".parquet": _as_parquet, ".jsonl": _as_map}[ending(path)](table)
    beside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read what `write_table` wrote; `key` is there always, the index where the file has no keys."""
    path = Path(path)
    read = {".csv": _from_csv, ".parquet": _from_parquet, ".jsonl": _from_map}[ending(path)]
    content = path.read_bytes()
    try:
        table = read(content)
        if "key" not in table:
            table = {"key": table["index"], **table}
        checked_keys(table["key"])
    except ModuleNotFoundError:
        raise
    except Exception as error:
        reason = f"no column {error}" if isinstance(error, KeyError) else str(error).splitlines()[0]
        raise ValueError(
            f"{path} must hold scores as Record.save writes them, and does not ({reason}); save them again"
        ) from error
    return table


def ending(path: str | os.PathLike[str]) -> str:
    """The ending of the path, one of those that can be written."""
    try:
        found = Path(path).suffix.lower()
    except TypeError:
        raise TypeError(f"path must be a path, got {path!r}") from None
    if found not in (".csv", ".parquet", ".jsonl"):
        raise ValueError(f"path must end in .csv, .parquet or .jsonl, got {str(path)!r}")
    return found


def _as_csv(table: Table) -> bytes:
    """Strings in quotation marks, so that a reader can tell the key "7" from 7."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
    return text.getvalue().encode()


def _from_csv(content: bytes) -> Table:
    text = content.decode()
    header, *rows = list(csv.reader(io.StringIO(text, newline="")))
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    table = {name: _typed(column) for name, column in zip(header, columns, strict=True)}
    if "key" in table and text.partition("\n")[2].startswith('"'):
        table["key"] = np.array(columns[header.index("key")])
    return table


def _typed(column: tuple[str, ...]) -> NDArray[Any]:
    for kind in (np.int64, np.float64):
        try:
            return np.array([*column], dtype=str).astype(kind)
        except (ValueError, OverflowError):
            continue
    return np.array(column)


def _as_parquet(table: Table) -> bytes:
    stream = io.BytesIO()
    _polars().DataFrame({name: column.tolist() for name, column in table.items()}).write_parquet(stream)
    return stream.getvalue()


def _from_parquet(content: bytes) -> Table:
    frame = _polars().read_parquet(io.BytesIO(content))
    return {
        name: np.array(column.to_list()) if name == "key" else column.to_numpy()
        for name, column in frame.to_dict().items()
    }


def _polars() -> Any:
    try:
        import polars
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a path that ends in .parquet needs polars, which is not installed; pip install polars, or choose .csv"
        ) from error
    return polars


def _as_map(table: Table) -> bytes:
    """A line a sample as `td_metrics.jsonl` of allenai/cartography; a number that is not there is null."""
    if absent := [name for name in MAP if name not in table]:
        raise ValueError(
            f"the data map needs {', '.join(absent)}, which this record does not hold; build "
            "Record(columns=[Moments(), TimesSeen(), TimesRight(), ...]), or choose .csv"
        )
    guids = table.get("key", table["index"]).tolist()
    lines = []
    for guid, index, *three in zip(guids, *(table[name].tolist() for name in ("index", *MAP)), strict=True):
        confidence, variability, correctness = (None if math.isnan(v) else v for v in three)
        close = None if confidence is None else confidence * (1 - confidence)
        line = {"guid": guid, "index": index, "threshold_closeness": close}
        line |= {"confidence": confidence, "variability": variability, "correctness": correctness}
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    return "".join(lines).encode()


def _from_map(content: bytes) -> Table:
    lines: list[Mapping[str, Any]] = [
        json.loads(line) for line in content.decode().split("\n") if line.strip()
    ]
    table = {"key": np.array(checked_keys([line["guid"] for line in lines]))}
    table["index"] = np.array([line["index"] for line in lines], dtype=np.int64)
    for name in ("threshold_closeness", *MAP):
        found = [line[name] for line in lines]
        table[name] = np.array([math.nan if v is None else v for v in found], dtype=np.float64)
    return table
