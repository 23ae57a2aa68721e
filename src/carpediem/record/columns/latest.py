"""The latest value of whatever a program wants to know of each sample."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from carpediem.record.checks import kind
from carpediem.record.column import Column
from carpediem.record.observed import Observed
from carpediem.record.step import Step


class Latest(Column):
    """What a function made of each sample's last step.

    >>> Latest(lambda step: 1 - step.probabilities.amax(dim=1), initial=1.0, name="doubt")
    Latest(function=<lambda>, initial=1.0, name='doubt')

    Args:
        function: from a `Step` to one value a sample, (b,).
        initial: the value before the first step; a float keeps float32, an integer int64, a boolean booleans.
        name: the name under which `Record.scores` gives the values; "" leaves them out.
    """

    takes_repeats = True

    def __init__(
        self, function: Callable[[Step], Tensor], *, initial: float | int | bool = 0.0, name: str = ""
    ) -> None:
        if not callable(function):
            raise TypeError(
                f"function must take a step and give one value a sample, got {kind(function)}; hand in a lambda such "
                "as lambda step: step.losses"
            )
        if type(initial) not in (float, int, bool):
            raise TypeError(f"initial must be a float, an integer or a boolean, got {kind(initial)}")
        if type(initial) is int and not -(2**63) <= initial < 2**63:
            raise ValueError(f"initial must fit 64 bits, got {initial}")
        if not isinstance(name, str):
            raise TypeError(f"name must be a string, got {kind(name)}")
        self.function, self.initial, self.name = function, initial, name
        super().__init__(function=function, initial=initial, **({"name": name} if name else {}))

    def measure(self, step: Step) -> Tensor:
        return self.function(step)

    def keep(self, step: Observed) -> None:
        held = self.tensors["values"]
        step.put(held, step.values.to(held.dtype))
