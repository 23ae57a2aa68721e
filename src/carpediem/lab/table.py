"""A table: columns, rows, and how they are written for people and for programs."""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal

from carpediem.lab.analysis.paper import Published
from carpediem.lab.analysis.welch import UnpairedDifference
from carpediem.lab.results import Estimate, PairedDifference

DASH = "—"
Value = str | int | float | Estimate | PairedDifference | UnpairedDifference | Published | None
Kind = (
    Literal["text", "count", "percent", "seconds", "loss"]
    | Literal["error", "error of seeds", "training loss", "difference", "unpaired difference"]
)


@dataclass(frozen=True)
class Column:
    """A column: `key` for machines, `title` for people, `kind` for how its values are written."""

    key: str
    title: str
    kind: Kind = "text"


@dataclass(frozen=True)
class Table:
    """Rows of values below a title, with a note on where they come from.

    Args:
        grouped: how many columns at the left name the group that a row belongs to.
    """

    title: str
    note: str
    columns: tuple[Column, ...]
    rows: list[tuple[Value, ...]]
    grouped: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The table as JSON can hold it; a value with an error or an interval becomes several entries."""
        return {
            "title": self.title,
            "note": self.note,
            "columns": {column.key: column.title for column in self.columns},
            "rows": [
                {
                    key: _plain(part)
                    for column, value in zip(self.columns, row, strict=True)
                    for key, part in _parts(column, value).items()
                }
                for row in self.rows
            ],
        }


def render_text(table: Table, *, colour: bool = False, width: int = 200) -> str:
    """The table for a terminal of `width` characters."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(
        file=io.StringIO(), width=width, color_system="standard" if colour else None, force_terminal=colour
    )
    drawn = RichTable(
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    texts = [row_texts(table, row) for row in table.rows]
    for column, title in zip(table.columns, _fitted_titles(table, texts, width), strict=True):
        side: Literal["left", "right"] = "left" if column.kind == "text" else "right"
        drawn.add_column(Text(title), justify=side, overflow="fold")
    for _, group in groupby(texts, key=lambda row: row[: table.grouped]):
        rows = list(group)
        for index, row in enumerate(rows):
            # A group's name stands in its first row only.
            shown = row if index == 0 else [""] * table.grouped + row[table.grouped :]
            drawn.add_row(*map(Text, shown), end_section=table.grouped > 0 and row is rows[-1])
    with console.capture() as captured:
        if table.title:
            console.print(Text(table.title, style="bold"))
        console.print(drawn)
        if table.note:
            console.print(Text(table.note, style="dim"))
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def _fitted_titles(table: Table, texts: list[list[str]], width: int) -> list[str]:
    """The columns' titles, broken into lines as far as the table needs it to fit without breaking its values."""
    for least in (30, 20, 12, 1):
        titles = []
        for index, column in enumerate(table.columns):
            body = max((len(row[index]) for row in texts), default=0)
            lines = textwrap.wrap(column.title, max(body, least), break_long_words=False)
            titles.append(("\n".join(lines), max(body, *map(len, lines))))
        if sum(size + 2 for _, size in titles) <= width:
            break
    return [title for title, _ in titles]


def render_markdown(table: Table) -> str:
    """The table as Markdown, its title in bold above it and its note below."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    lines = [f"**{table.title}**", "", line(column.title for column in table.columns)]
    lines.append(line("---" if column.kind == "text" else "---:" for column in table.columns))
    lines += [line(row_texts(table, row)) for row in table.rows]
    if table.note:
        lines += ["", table.note]
    return "\n".join(lines) + "\n"


def render_csv(table: Table) -> str:
    """The table as CSV: the title in the first column, numbers at full precision, nothing for what was not run."""
    stream = io.StringIO()
    header = ["table", *(key for column in table.columns for key in _parts(column, None))]
    writer = csv.DictWriter(stream, header, lineterminator="\n")
    writer.writeheader()
    writer.writerows({"table": table.title} | row for row in table.to_dict()["rows"])
    return stream.getvalue()


def measured(table: Table) -> Table:
    """The table with only the rows of which something has been run."""
    return replace(table, rows=[row for row in table.rows if is_measured(table, row)])


def is_measured(table: Table, row: tuple[Value, ...]) -> bool:
    """Whether something of the row has been run."""
    keys = [column.key for column in table.columns]
    return "seeds" not in keys or row[keys.index("seeds")] is not None


def sort_value(value: Value) -> str | float | None:
    """What a row is sorted by: of a value with an error or an interval, its mean."""
    return (
        value.mean
        if isinstance(value, Estimate | PairedDifference | UnpairedDifference | Published)
        else value
    )


def row_texts(table: Table, row: tuple[Value, ...]) -> list[str]:
    """A row's values as people read them."""
    return [_text(column, value) for column, value in zip(table.columns, row, strict=True)]


def _text(column: Column, value: Value) -> str:
    if value is None:
        return DASH
    if isinstance(value, Estimate):
        digits = 4 if column.kind == "training loss" else 2
        error = "" if value.error is None else f" ± {value.error:.{digits}f}"
        seeds = f" ({value.count})" if column.kind == "error of seeds" else ""
        return f"{value.mean:.{digits}f}{error}{seeds}"
    if isinstance(value, PairedDifference | UnpairedDifference):
        bounds = [_signed(bound) for bound in (value.low, value.high) if bound is not None]
        interval = f" [{', '.join(bounds)}]" if bounds else ""
        return f"{_signed(value.mean)}{interval}"
    if isinstance(value, str | Published):
        return str(value)
    if column.kind == "error":
        return f"{value:.2f}"
    if column.kind == "loss":
        return f"{value:.2f}" if value >= 1 else f"{value:.3f}"
    if column.kind == "percent":
        return f"{value:.1f}"
    if column.kind == "seconds":
        return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
    return f"{value:g}"


def _plain(value: Any) -> Any:
    """A value as programs read it: no NaN, and none of the digits that sums leave behind."""
    if not isinstance(value, float):
        return value
    return round(value, 12) + 0.0 if math.isfinite(value) else None  # -0.0 + 0.0 is 0.0


def _signed(value: float) -> str:
    """Two digits and the sign.

    >>> _signed(-0.001), _signed(-0.01)
    ('+0.00', '-0.01')
    """
    return f"{round(value, 2) + 0.0:+.2f}"  # -0.0 + 0.0 is 0.0


def _parts(column: Column, value: Value) -> dict[str, Any]:
    key = column.key
    if column.kind == "error of seeds":
        seeds = {f"{key}_seeds": value.count if isinstance(value, Estimate) else None}
        return _parts(replace(column, kind="error"), value) | seeds
    if column.kind in ("error", "training loss"):
        if isinstance(value, Estimate):
            return {key: value.mean, f"{key}_standard_error": value.error}
        if isinstance(value, Published):
            return {key: value.mean, f"{key}_standard_error": value.standard_error}
        return {key: value, f"{key}_standard_error": None}
    if column.kind == "difference":
        names = ("mean", "low", "high", "count")
        parts = (
            [getattr(value, name) for name in names] if isinstance(value, PairedDifference) else [None] * 4
        )
        return dict(zip((key, f"{key}_low", f"{key}_high", f"{key}_pairs"), parts, strict=True))
    if column.kind == "unpaired difference":
        bounds = [getattr(value, n) if value is not None else None for n in ("mean", "low", "high")]
        return dict(zip((key, f"{key}_low", f"{key}_high"), bounds, strict=True))
    return {key: value.mean if isinstance(value, Published) else value}
