"""The one place that looks a whole state over before any of it is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from carpediem.record.checks import MOST, integer, kind, plain
from carpediem.record.column import Column

SETTINGS = ("num_samples", "num_classes", "keys")


def check_state(state: object, own: Mapping[str, Any], columns: Mapping[str, Column]) -> Mapping[str, Any]:
    """The state, if a record such as this can have left it; else TypeError or ValueError with the reason.

    Args:
        own: this record's own state.
        columns: its columns by the names that the state has for them.
    """
    if not isinstance(state, Mapping):
        raise TypeError(f"state must be what state_dict gave, a dictionary, got {kind(state)}")
    _check_names(state, own)
    for name in SETTINGS:
        _check_setting(name, state[name], own[name])
    for name, value in own.items():
        if isinstance(value, Tensor):
            _check_tensor(name, state[name], value)
    observed = integer("the state's 'observed'", state["observed"], at_least=0, at_most=2**62)
    epoch = integer("the state's 'epoch'", state["epoch"], at_least=-1, at_most=MOST)
    if bool((state["faults"] < 0).any()):
        raise ValueError(f"the state's 'faults' must be at least 0, got {state['faults'].tolist()}")
    for name, column in columns.items():
        integer(f"the state's '{name}.began'", state[f"{name}.began"], at_least=0, at_most=observed)
        column.check(tensors_of(state, name, column), epoch)
    _check_agreement(state, columns, observed)
    return state


def tensors_of(state: Mapping[str, Any], name: str, column: Column) -> dict[str, Tensor]:
    """A column's tensors in a state."""
    return {part: state[f"{name}.{part}"] for part in column.tensors}


def _check_names(state: Mapping[Any, Any], own: Mapping[str, Any]) -> None:
    for name in state:
        if not isinstance(name, str):
            raise TypeError(
                f"the state's keys must be strings, got {kind(name)}; hand in what state_dict gave"
            )
    if absent := [name for name in (*SETTINGS, "observed", "epoch", "faults") if name not in state]:
        raise ValueError(
            f"the state must hold {absent[0]!r}, and does not; it is no state of a Record, hand in what state_dict gave"
        )
    if state.keys() != own.keys():
        alone = [sorted(one.keys() - two.keys()) or "nothing" for one, two in ((state, own), (own, state))]
        raise ValueError(
            f"the state must hold this record's columns; it alone holds {alone[0]}, this record alone {alone[1]}; "
            "build the record with the columns of the state"
        )


def _check_setting(name: str, found: object, own: object) -> None:
    if type(found) is not type(own) or found != own:
        raise ValueError(
            f"the state must be of a record with {name}={own!r}, as this one, got {name}={kind(found)}; "
            + ("hand in the keys that it was made with" if name == "keys" else f"build it with that {name}")
        )


def _check_tensor(name: str, found: object, own: Tensor) -> None:
    tensor = plain(f"the state's {name!r}", found, "a dense tensor")
    assert isinstance(found, Tensor)
    if found.requires_grad:
        raise TypeError(f"the state's {name!r} must not require gradients; hand in its detach()")
    if tensor.dtype != own.dtype or tensor.shape != own.shape:
        raise ValueError(
            f"the state's {name!r} must be {own.dtype} of shape {tuple(own.shape)}, got {tensor.dtype} of shape "
            f"{tuple(tensor.shape)}"
        )


def _check_agreement(state: Mapping[str, Any], columns: Mapping[str, Column], observed: int) -> None:
    """Refuse columns that contradict each other, where they have watched the same steps."""
    together: dict[tuple[int, str], list[tuple[Tensor, Tensor]]] = {}
    for name, column in columns.items():
        for quantity, bounds in column.bounds(tensors_of(state, name, column)).items():
            least, most = (torch.as_tensor(bound).cpu() for bound in bounds)
            together.setdefault((state[f"{name}.began"], quantity), []).append((least, most))
    for (began, quantity), told in together.items():
        least, most = told[0]
        for low, high in told[1:]:
            least, most = least.maximum(low), most.minimum(high)
        if bool((wrong := (least > most).reshape(-1)).any()):
            raise ValueError(
                f"the state's columns must agree on {quantity!r}, how often each sample was so, and do not for sample "
                f"{int(wrong.nonzero()[0])}"
            )
        if quantity == "seen" and int(least.sum()) > observed - began:
            raise ValueError(
                f"the state's columns must tell of at most the {observed - began} samples that they were shown by its "
                f"'observed' = {observed}, and tell of {int(least.sum())}"
            )
