"""What training has shown of each sample of a data set."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from carpediem.record.checks import MOST, device_of, in_range, integer, kind, whole_numbers
from carpediem.record.column import Column
from carpediem.record.columns.given_label import GivenLabel
from carpediem.record.columns.last_labels import LastLabels
from carpediem.record.columns.last_loss import LastLoss
from carpediem.record.columns.last_turn import LastTurn
from carpediem.record.columns.mean_margin import MeanMargin
from carpediem.record.columns.moments import Moments
from carpediem.record.columns.running_margin import RunningMargin
from carpediem.record.columns.times_right import TimesRight
from carpediem.record.columns.times_seen import TimesSeen
from carpediem.record.files import ending, read_table, write_table
from carpediem.record.keys import checked_keys, digest, places
from carpediem.record.observed import Observed
from carpediem.record.scores import scores_of, suspects_of
from carpediem.record.state import check_state
from carpediem.record.watching import Held, Watching

Scores = dict[str, NDArray[Any]]


class Record(Watching):
    """Columns of N values that every training step is shown to.

    >>> record = Record(num_samples=3, num_classes=2)
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    >>> record.observe(torch.tensor([0, 2]), logits, targets=torch.tensor([0, 0]))
    >>> record.suspects()
    array([2])
    >>> record.scores()["majority"]
    array([ 0, -1,  1])

    Args:
        num_samples: N, the length of the data set.
        num_classes: k, the number of columns of the logits; None for a record of numeric columns alone.
        columns: what is remembered; None takes, with classes, the given label, the last ten labels, the moments of the
            label's probability, times seen, times right, mean and running margin and the last turn, and without them
            times seen and the last loss.
        keys: the data set's own names of its samples, strings or integers, N of them.
        device: where the columns lie. On an accelerator `observe` never waits for the host.
        on_nonfinite: "raise" refuses a batch with a logit or loss that is not finite, "skip" passes over it and counts
            it in `skipped`.

    On an accelerator a batch with a number out of range, or another label than its sample has, is dropped, and reported
    by the next `scores`, `suspects`, `save` or `report_faults`, since looking any sooner would stall the device.
    """

    def __init__(
        self,
        num_samples: int,
        num_classes: int | None = None,
        *,
        columns: Iterable[Column] | None = None,
        keys: Sequence[str] | Sequence[int] | None = None,
        device: torch.device | str = "cpu",
        on_nonfinite: Literal["raise", "skip"] = "raise",
    ) -> None:
        num_samples = integer("num_samples", num_samples, at_least=1, at_most=2**48)
        if num_classes is not None:
            num_classes = integer("num_classes", num_classes, at_least=2, at_most=MOST)
        if on_nonfinite not in ("raise", "skip"):
            raise ValueError(f"on_nonfinite must be 'raise' or 'skip', got {kind(on_nonfinite)}")
        self.on_nonfinite = on_nonfinite
        self.keys = None if keys is None else checked_keys(keys, num_samples)
        super().__init__(num_samples, num_classes, device_of(device), skip=on_nonfinite == "skip")
        for column in _chosen(columns, num_classes):
            if column in self._columns:
                raise ValueError(f"columns must differ, got {column!r} more than once")
            self.column(column)

    def _first(self, kind_of: type[Held], wanted_by: str) -> Held:
        for column in self._columns:
            if isinstance(column, kind_of):
                return column
        raise ValueError(
            f"{wanted_by} needs the column {kind_of.__name__}, which this record does not hold; build "
            f"Record(columns=[{kind_of.__name__}(), ...])"
        )

    def set_labels(self, labels: Tensor, *, keys: Sequence[str] | Sequence[int] | None = None) -> None:
        """Say which label the data set gives each sample, before any of them is observed or in agreement with that.

        Args:
            labels: (N,), integers in [0, k).
            keys: the samples that they belong to, where that is another order than the record's own.
        """
        given = self._first(GivenLabel, "set_labels")
        found = whole_numbers("labels", labels)
        if len(found) != self.num_samples:
            raise ValueError(f"labels must be as many as samples = {self.num_samples}, got {len(found)}")
        found = found.to("cpu", torch.int64)
        assert self.num_classes is not None
        in_range("labels", found, self.num_classes, "num_classes")
        step = Observed(torch.arange(self.num_samples, device="cpu"), self.num_samples, 0)
        if keys is not None:
            if self.keys is None:
                raise ValueError("keys must be those of the record, which has none; build Record(..., keys=)")
            step.indices = torch.from_numpy(places(self.keys, checked_keys(keys, self.num_samples)))
        step.indices, step.values = step.indices.to(self.device), found.to(self.device)
        given.take(step, name="labels")

    # -- what training has shown ---------------------------------------------------------------------------------

    def scores(self) -> Scores:
        """What the columns say of each sample, by name, as int64 or float64 of shape (N,).

        What no column says is absent; of two columns that say the same the first counts. Each column's docstring
        defines its scores. `agreement` is the share of the window of `LastLabels` that equals the given label, NaN
        where the window is empty or no label is given. `correctness` is times right over times seen.
        """
        self.report_faults()
        return scores_of(self._columns)

    def suspects(
        self, below: float | None = None, *, count: int | None = None, keys: bool = False
    ) -> NDArray[Any]:
        """The samples whose given label the record contradicts, the lowest mean margin first.

        A suspect is a sample to look at, not a wrong label. Samples never seen are none.

        Args:
            below: the mean margin under which a sample is a suspect; 0 unless `count` is given.
            count: so many of the lowest, whatever their margin, fewer where fewer were seen or are below `below`.
            keys: give the samples' keys in place of their indices.
        """
        margin = self._first(MeanMargin, "suspects")
        if keys and self.keys is None:
            raise ValueError("keys must be False for a record that has none; build Record(..., keys=)")
        self.report_faults()
        found = suspects_of(margin.values, below, count)
        return np.array([self.keys[i] for i in found]) if keys and self.keys is not None else found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the scores to a file, whole or not at all.

        `.csv` and `.parquet` (which needs polars) hold `key` where the record has keys, `index` and all scores.
        `.jsonl` holds a line a sample for the data maps of allenai/cartography: guid (the key, or the index), index,
        threshold_closeness, confidence, variability and correctness, a share; null where a sample was never seen.
        """
        ending(path)
        table: Scores = {} if self.keys is None else {"key": np.array(self.keys)}
        write_table(path, {**table, "index": np.arange(self.num_samples), **self.scores()})

    @staticmethod
    def read_scores(
        path: str | os.PathLike[str], *, keys: Sequence[str] | Sequence[int] | None = None
    ) -> Scores:
        """Read what `save` wrote: `key` (the index, where the record had no keys), `index` and the scores.

        Args:
            keys: the samples that are wanted, in their order; None reads all as they were saved.
        """
        table = read_table(path)
        if keys is None:
            return table
        rows = places(table["key"].tolist(), checked_keys(keys))
        return {name: column[rows] for name, column in table.items()}

    # -- checkpoints ------------------------------------------------------------------------------------------

    def _named(self) -> dict[str, Column]:
        """The columns by what a state calls them."""
        named: dict[str, Column] = {}
        for column in self._columns:
            same = sum(repr(other) == repr(column) for other in named.values())
            named[f"{column!r} {same + 1}" if same else repr(column)] = column
        return named

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            "num_samples": self.num_samples,
            "num_classes": self.num_classes,
            "keys": digest(self.keys),
            "observed": int(self._observed),
            "epoch": int(self._epoch),
            "faults": self._faults,
        }
        for (name, column), began in zip(self._named().items(), self._began, strict=True):
            state[f"{name}.began"] = began
            state |= {f"{name}.{part}": t[..., : self.num_samples] for part, t in column.tensors.items()}
        return state

    def state_dict(self) -> dict[str, Any]:
        """All that the record knows, as a flat dictionary of tensors, numbers and strings; always the same keys."""
        return {
            name: value.clone() if isinstance(value, Tensor) else value
            for name, value in self._state().items()
        }

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the state of a record with the same sizes, keys and columns.

        Raises:
            TypeError, ValueError: no training leaves such a state behind; nothing was changed.
        """
        own = self._state()
        named = self._named()
        found = check_state(state, own, named)
        for name, value in own.items():
            if isinstance(value, Tensor):
                value.copy_(found[name])
        self._began = [int(found[f"{name}.began"]) for name in named]
        if isinstance(self._observed, Tensor) and isinstance(self._epoch, Tensor):
            self._observed.fill_(found["observed"])
            self._epoch.fill_(found["epoch"])
        else:
            self._observed, self._epoch = int(found["observed"]), int(found["epoch"])

    def __len__(self) -> int:
        return self.num_samples

    def __repr__(self) -> str:
        """The record as it is built.

        >>> Record(60, columns=[TimesSeen()])
        Record(60, None, columns=[TimesSeen()])
        """
        return f"Record({self.num_samples}, {self.num_classes}, columns={self._columns})"


def _chosen(columns: Iterable[Column] | None, num_classes: int | None) -> list[Column]:
    if columns is not None:
        if isinstance(columns, Column | str) or not isinstance(columns, Iterable):
            raise TypeError(
                f"columns must be a list of columns, got {kind(columns)}; hand in [LastLabels(10)]"
            )
        return list(columns)
    if num_classes is None:
        return [TimesSeen(), LastLoss()]
    counts = [GivenLabel(), LastLabels(10), Moments(), TimesSeen(), TimesRight()]
    return [*counts, MeanMargin(), RunningMargin(), LastTurn()]
