"""Which runs of a study belong together, and how a study is cut into parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from carpediem.lab.config import RunConfig


def by_setting(configs: Iterable[RunConfig]) -> list[list[RunConfig]]:
    """The runs that can train in one wave together: of the same data and the same compiled network."""
    return _grouped(configs, _setting)


def by_warm_up(configs: Iterable[RunConfig]) -> list[list[RunConfig]]:
    """The runs that share a warm-up together."""
    return _grouped(configs, lambda config: config.warm_up_hash)


def waves(configs: Iterable[RunConfig], at_once: int) -> list[list[RunConfig]]:
    """The runs in the order of their warm-ups, cut so that no warm-up is split."""
    cut: list[list[RunConfig]] = [[]]
    for group in by_warm_up(configs):
        if cut[-1] and len(cut[-1]) + len(group) > at_once:
            cut.append([])
        cut[-1].extend(group)
    return [wave for wave in cut if wave]


@dataclass(frozen=True)
class Shard:
    """One share of a study, counted from 1: `Shard(3, 16)` is the third of sixteen."""

    number: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise ValueError(
                f"--shard must be I/N with I from 1 to N, such as 3/16, got {self.number}/{self.count}"
            )

    @staticmethod
    def parse(text: str) -> Shard:
        """The share that `I/N` names.

        >>> Shard.parse("3/16")
        Shard(number=3, count=16)
        """
        match = re.fullmatch(r"([0-9]+)/([0-9]+)", text.strip())
        if match is None:
            raise ValueError(f"--shard must be I/N with I from 1 to N, such as 3/16, got {text!r}")
        return Shard(int(match[1]), int(match[2]))

    def of(self, configs: Iterable[RunConfig]) -> list[RunConfig]:
        """The runs of this share, none where there are more shares than warm-ups.

        The shares cover the study and have no run in common. They depend on the runs and on `count` alone, not on
        what is done, so that every job of an array makes the same cut.
        """
        shares = _cut(configs, self.count)
        return shares[self.number - 1] if self.number <= len(shares) else []


def _cut(configs: Iterable[RunConfig], count: int) -> list[list[RunConfig]]:
    """At most `count` shares of about the same work, none empty, no warm-up split.

    Warm-ups of one setting stand side by side in the order that is cut, so that a share loads and compiles little
    and has much to train side by side.
    """
    rest = by_warm_up(sorted(set(configs), key=lambda c: (str(_setting(c)), c.seed, c.warm_up_hash, c.hash)))
    shares = []
    for left in range(min(count, len(rest)), 0, -1):
        work = [sum(config.iterations * config.batch_size for config in group) for group in rest]
        fair, taken, end = sum(work) / left, work[0], 1
        # As near to the fair share as may be, with one warm-up left for each of the shares to come.
        while len(rest) - end >= left and abs(taken + work[end] - fair) <= abs(taken - fair):
            taken, end = taken + work[end], end + 1
        shares.append([config for group in rest[:end] for config in group])
        rest = rest[end:]
    return shares


def _setting(config: RunConfig) -> tuple[Any, ...]:
    c = config
    return (
        c.data,
        c.data_fingerprint,
        c.image_size,
        c.normalisation,
        c.net,
        c.net_fingerprint,
        c.weights,
        c.dropout,
        c.dropout_in_testing,
        c.precision,
    )


def _grouped(configs: Iterable[RunConfig], key: Callable[[RunConfig], Any]) -> list[list[RunConfig]]:
    groups: dict[Any, list[RunConfig]] = {}
    for config in configs:
        groups.setdefault(key(config), []).append(config)
    return list(groups.values())
