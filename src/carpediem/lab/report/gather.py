"""From folders of records to one value that JSON can hold: everything that the page shows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from carpediem import __version__
from carpediem.lab.records import RunRecord, read_runs
from carpediem.lab.results import Cell, cells_by_setting, group_cells
from carpediem.lab.table import Table, is_measured, row_texts, sort_value
from carpediem.lab.tables import all_tables
from carpediem.lab.titles import setting_titles

from .curves import convergence
from .figures import ablations, grids, indices, losses
from .obtained import obtained
from .samples import galleries, strips
from .verdict import verdict


def gather(folders: Sequence[str | Path]) -> dict[str, Any]:
    """What the page shows about the runs in `folders`.

    Args:
        folders: studies' folders or published folders, as for `read_runs`.

    What is damaged is left out, and said so under `damage`.

    Raises:
        FileNotFoundError: a folder does not exist or holds no study.
    """
    damage: list[str] = []
    records = read_runs(*folders, damage=damage)
    places = [Path(folder) for folder in folders]
    cells = group_cells(records)
    groups = cells_by_setting(cells)
    titles = setting_titles([group[0] for group in groups])
    return {
        "version": __version__,
        "title": _title(list(dict.fromkeys(map(_name, places)))),
        "summary": _summary(records, len(groups)),
        "verdicts": [
            f"{title}. {found}" if len(groups) > 1 else found
            for title, group in zip(titles, groups, strict=True)
            if (found := verdict(group)) is not None
        ],
        "settings": [
            _setting(places, title, group, damage) for title, group in zip(titles, groups, strict=True)
        ],
        "damage": damage,
        "tables": [_table(table) for table in all_tables(records, empty=True)],
        "grids": grids(cells),
        "ablations": ablations(cells),
        "obtained": obtained(folders, groups, titles),
    }


def _name(folder: Path) -> str:
    """What the folder is called, however it was written: "." has a name too."""
    folder = folder.resolve()
    return (folder.parent if folder.is_file() else folder).name


def _title(names: list[str]) -> str:
    return ", ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more studies"


def _summary(records: list[RunRecord], settings: int) -> str:
    if not records:
        return "No run has begun yet."
    finished = sum(record.finished for record in records)
    text = f"{_counted(len(records), 'run')} in {_counted(settings, 'setting')}: "
    if finished == len(records):
        return text + "all finished."
    return text + f"{finished} finished, {len(records) - finished} not finished yet."


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _setting(folders: list[Path], title: str, cells: list[Cell], damage: list[str]) -> dict[str, Any]:
    return {
        "key": hashlib.sha256(cells[0].setting.encode()).hexdigest()[:8],
        "title": title,
        "convergence": convergence(cells),
        "losses": losses(cells),
        "indices": indices(cells),
        "strips": strips(folders, cells, damage),
        "gallery": galleries(folders, cells, damage),
    }


def _table(table: Table) -> dict[str, Any]:
    return {
        "title": table.title,
        "note": table.note,
        "columns": [{"title": column.title, "text": column.kind == "text"} for column in table.columns],
        "rows": [
            {
                "texts": row_texts(table, row),
                "order": [sort_value(value) for value in row],
                "values": values,
                "measured": is_measured(table, row),
            }
            for row, values in zip(table.rows, table.to_dict()["rows"], strict=True)
        ],
    }
