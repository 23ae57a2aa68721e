"""What columns say of each sample, put together for people and files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from carpediem.record.checks import integer, number
from carpediem.record.column import Column
from carpediem.record.columns.given_label import GivenLabel
from carpediem.record.columns.last_labels import LastLabels

ORDER = (
    *("label", "majority", "agreement", "uncertainty", "confidence", "variability", "correctness"),
    *("mean_margin", "running_margin", "times_seen", "times_right"),
    *("last_loss", "forgotten", "learnt_at", "turned_at"),
)


def scores_of(columns: Sequence[Column]) -> dict[str, NDArray[Any]]:
    """The scores by name, those of the library's own columns first, as int64 or float64."""
    found: dict[str, Tensor] = {}
    for column in columns:
        found = {**column.scores(), **found}
    given = next((c for c in columns if isinstance(c, GivenLabel)), None)
    window = next((c for c in columns if isinstance(c, LastLabels)), None)
    if given is not None and window is not None:
        share = window.share_of(given.values.clamp(min=0))
        found["agreement"] = torch.where(given.values < 0, torch.nan, share)
    if "times_right" in found and "times_seen" in found:
        found["correctness"] = found["times_right"].double() / found["times_seen"]
    names = [name for name in ORDER if name in found]
    names += [name for name in found if name not in ORDER]
    return {name: _array(found[name]) for name in names}


def suspects_of(margins: Tensor, below: float | None, count: int | None) -> NDArray[np.int64]:
    """Indices of the lowest margins, the lowest first, of equal ones the lower index; NaN is none."""
    if count is not None:
        count = integer("count", count, at_least=0)
    limit = (
        number("below", below, -torch.inf, torch.inf)
        if below is not None
        else 0.0
        if count is None
        else torch.inf
    )
    order = margins.sort(stable=True)
    found: NDArray[np.int64] = order.indices[order.values < limit][:count].cpu().numpy()
    return found


def _array(values: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = values.to(
        "cpu", torch.float64 if values.is_floating_point() else torch.int64
    ).numpy()
    return array.copy()
