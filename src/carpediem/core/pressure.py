"""Selection pressure: pure functions from the epoch (0-based) to s >= 1."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

Schedule = Callable[[int], float]


def decayed_pressure(epoch: int, *, start: float, warm_up: int, epochs: int) -> float:
    """Pressure that falls geometrically to 1 in the last epoch.

        s(e) = s0 * exp(log(1/s0) / (e_end - e0))^(e - e0)      (Eq. 9)

    with e = epoch + 1 (the paper counts from 1), e0 = warm_up and e_end = epochs.

    >>> decayed_pressure(9, start=100.0, warm_up=0, epochs=20)
    10.0
    >>> decayed_pressure(19, start=100.0, warm_up=0, epochs=20)
    1.0
    """
    return float(start ** ((epochs - (epoch + 1)) / (epochs - warm_up)))


def constant_pressure(epoch: int, *, start: float, warm_up: int, epochs: int) -> float:
    """The same pressure in every epoch, as in the paper's ablation.

    >>> constant_pressure(19, start=100.0, warm_up=0, epochs=20)
    100.0
    """
    return float(start)


SCHEDULES: dict[str, Callable[..., float]] = {"decayed": decayed_pressure, "constant": constant_pressure}


def pressure_schedule(name: str, *, start: float, warm_up: int, epochs: int) -> Schedule:
    """The schedule called `name`, with its arguments checked and bound.

    >>> pressure_schedule("constant", start=4.0, warm_up=1, epochs=5)(3)
    4.0
    """
    if not isinstance(name, str) or name not in SCHEDULES:
        raise ValueError(f"schedule must be one of {', '.join(sorted(SCHEDULES))}, got {name!r}")
    # `not >=` rather than `<`, so that NaN is refused too.
    if not start >= 1 or start == float("inf"):
        raise ValueError(
            f"pressure must be a finite number of at least 1 (1 is uniform sampling), got {start}"
        )
    if epochs <= warm_up:
        raise ValueError(
            f"epochs must exceed warm_up = {warm_up} (nothing is selected during warm-up), got {epochs}; "
            "train longer or warm up less"
        )
    return partial(SCHEDULES[name], start=start, warm_up=warm_up, epochs=epochs)
