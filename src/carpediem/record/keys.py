"""Names that a data set has for its samples, such as file names or ids: what is saved is matched by them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from carpediem.record.checks import kind

Key = str | int
Keys = tuple[str, ...] | tuple[int, ...]


def checked_keys(keys: object, size: int | None = None) -> Keys:
    """The keys as a tuple of strings or of integers: unique, and `size` of them.

    >>> checked_keys(np.array(["a.png", "b.png"]))
    ('a.png', 'b.png')
    """
    if isinstance(keys, np.ndarray | torch.Tensor):
        keys = keys.tolist()
    if isinstance(keys, str | bytes) or not isinstance(keys, Iterable):
        raise TypeError(f"keys must be a sequence of strings or of integers, got {kind(keys)}")
    held = tuple(_plain(key) for key in keys)
    wanted = str if held and type(held[0]) is str else int
    if odd := [key for key in held if type(key) is not wanted]:
        raise TypeError(
            f"keys must be all strings or all integers, got {kind(odd[0])} among them; hand in str(key) for each"
        )
    if size is not None and len(held) != size:
        raise ValueError(f"keys must be as many as samples = {size}, got {len(held)}")
    if len(set(held)) != len(held):
        again = Counter(held).most_common(1)[0][0]
        raise ValueError(f"keys must be unique, got {again!r} more than once")
    _refuse_unwritable(held)
    return held


def places(own: Sequence[Key], wanted: Sequence[Key]) -> NDArray[np.int64]:
    """Positions of the wanted keys among one's own."""
    where = {key: place for place, key in enumerate(own)}
    if unknown := [key for key in wanted if key not in where]:
        raise ValueError(
            f"keys must be known ones, got {unknown[0]!r} and {len(unknown) - 1} more that are not; leave them out"
        )
    return np.array([where[key] for key in wanted], dtype=np.int64)


def digest(keys: Keys | None) -> str | None:
    """A short name for the keys and their order."""
    return None if keys is None else hashlib.sha256(json.dumps(keys).encode()).hexdigest()[:16]


def _plain(key: Any) -> Any:
    """NumPy's strings and integers as Python's."""
    if isinstance(key, str):
        return str(key)
    return int(key) if isinstance(key, int | np.integer) and not isinstance(key, bool) else key


def _refuse_unwritable(keys: tuple[Any, ...]) -> None:
    for key in keys:
        if isinstance(key, str):
            try:
                key.encode()
            except UnicodeEncodeError:
                raise ValueError(f"keys must be text that UTF-8 can write, got {key!r}") from None
        elif not -(2**63) <= key < 2**63:
            raise ValueError(f"keys must fit 64 bits, got {key}; hand in str(key)")
