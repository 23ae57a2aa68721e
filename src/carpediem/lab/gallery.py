"""Which samples of a run are worth a look: rows of a `SampleRecord`, the most telling first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carpediem.lab.samples import SampleRecord

OVERALL, BY_CLASS = 12, 24  # samples a kind that are kept: of all classes, and of each, shared out
Choice = Callable[..., NDArray[np.int64]]


def most_uncertain(
    record: SampleRecord, count: int | None = None, *, label: int | None = None
) -> NDArray[np.int64]:
    """Samples that were drawn and are predicted otherwise again and again: by uncertainty, then by loss."""
    rows = _of(record, label, (record.majority >= 0) & (record.uncertainty > 0))
    return _sorted(rows, -record.uncertainty[rows], -record.last_loss[rows], count=count)


def recently_changed(
    record: SampleRecord, count: int | None = None, *, label: int | None = None
) -> NDArray[np.int64]:
    """Samples whose prediction changed: the latest change first, then the settled before the restless."""
    rows = _of(record, label, record.last_change >= 0)
    return _sorted(rows, -record.last_change[rows], record.uncertainty[rows], count=count)


def against_label(
    record: SampleRecord, count: int | None = None, *, label: int | None = None
) -> NDArray[np.int64]:
    """Samples with a full window that agree on a class other than their label: often, the label is wrong.

    The window mostly holds one other class; the surest contradiction comes first.
    """
    full, other = (record.window >= 0).all(axis=1), record.majority != record.label
    rows = _of(record, label, full & other & (record.agreement < 0.5))
    return _sorted(
        rows, record.agreement[rows], record.uncertainty[rows], -record.last_loss[rows], count=count
    )


KINDS: dict[str, Choice] = {
    "most uncertain": most_uncertain,
    "changed most recently": recently_changed,
    "against their label": against_label,
}


def gallery_rows(record: SampleRecord, always: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows to keep images of: the first of each kind, some of every class, and those in `always`."""
    each = max(1, BY_CLASS // len(record.classes)) if len(record.classes) <= 2 * BY_CLASS else 0
    rows = [always]
    for choose in KINDS.values():
        rows.append(choose(record, OVERALL))
        rows += [choose(record, each, label=label) for label in range(len(record.classes)) if each]
    return np.unique(np.concatenate(rows)).astype(np.int64)


def _of(record: SampleRecord, label: int | None, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.flatnonzero(chosen if label is None else chosen & (record.label == label))


def _sorted(rows: NDArray[np.int64], *keys: NDArray[Any], count: int | None) -> NDArray[np.int64]:
    # The last key of lexsort counts first; equal samples stay in the order of the data.
    return rows[np.lexsort(keys[::-1])][:count]
