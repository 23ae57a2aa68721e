"""How things are measured: pairs of timings taken in turns, peaks of memory, cases in processes of their own."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

Action = Callable[[], object]


@dataclass
class Pair:
    """Seconds of two actions, measured in turns, so that a busy moment of the machine falls on both."""

    ours: list[float] = field(default_factory=list)
    other: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Median over the rounds of ours/other, each round's two timings being neighbours in time."""
        return statistics.median(a / b for a, b in zip(self.ours, self.other, strict=True))

    @property
    def ratio_of_fastest(self) -> float:
        """The same from the fastest of each, since noise only ever adds."""
        return min(self.ours) / min(self.other)


def seconds(action: Action) -> float:
    """How long the action took, to the nanosecond; what it returns is freed after the clock has stopped."""
    start = time.perf_counter()
    result = action()
    stop = time.perf_counter()
    del result
    return round(stop - start, 9)


def in_turns(ours: Action, other: Action, *, budget: float, fewest: int = 3, most: int = 201) -> Pair:
    """Time both in turns, the order changing each round, until `budget` seconds are spent.

    Args:
        fewest: rounds that are made even when the budget does not suffice.
        most: rounds that are enough when it does.
    """
    pair = Pair()
    turns = [(ours, pair.ours), (other, pair.other)]
    begin = time.perf_counter()
    for done in range(most):
        spent = time.perf_counter() - begin
        if done >= fewest and spent * (done + 1) / done > budget:  # another round would not fit
            break
        for action, timings in turns:
            timings.append(seconds(action))
        turns.reverse()
    return pair


def resident_bytes() -> tuple[int, int]:
    """Memory that this process holds now, and the most it ever held (Linux).

    Not `getrusage`, whose peak a new process inherits from the one that started it.
    """
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    now, peak = (int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return now, peak


def in_fresh_process(function: Callable[..., Any], *arguments: object, limit: float | None = None) -> Any:
    """The function's result, computed in a new process, whose memory is given back when it ends.

    Args:
        function: importable by its name.
        limit: seconds after which the process is ended.

    Raises:
        RuntimeError: it raised, died or took too long; the message says which.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_result, args=(sender, function, arguments), daemon=True)
    process.start()
    sender.close()
    try:
        if not receiver.poll(limit):
            raise RuntimeError(f"ended after the limit of {limit:g} s")
        succeeded, value = receiver.recv()
    except EOFError:
        process.join()
        raise RuntimeError(
            f"the process died with exit code {process.exitcode} (-9: out of memory)"
        ) from None
    finally:
        process.kill()
        process.join()
    if not succeeded:
        raise RuntimeError(value)
    return value


def _send_result(sender: Connection, function: Callable[..., Any], arguments: tuple[object, ...]) -> None:
    try:
        sender.send((True, function(*arguments)))
    except Exception as error:
        sender.send((False, f"{type(error).__name__}: {error}"))
