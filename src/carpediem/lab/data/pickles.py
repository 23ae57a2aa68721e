"""Reading a pickled dictionary without running anything that a stranger wrote into it.

A pickle is a program: unpickling one with `pickle.load` may call any function. CIFAR's "python version" is
pickled by Python 2, so this reader takes the few names that an array of numbers needs, answers each with a
constructor of its own, and refuses every other name.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from .errors import DataError

_SIMPLE_KINDS = "biuf"  # booleans, integers and floats: never objects


def read_pickled_dict(blob: bytes, *, where: str) -> dict[str, Any]:
    """The dictionary pickled in `blob`, with its keys as text and its arrays as NumPy arrays.

    Values are arrays, bytes, str, int, float, bool, None, and lists, tuples and dicts of them. Text that
    Python 2 wrote comes as bytes, because there it cannot be told apart.

    Args:
        where: the file's name for messages.

    >>> read_pickled_dict(pickle.dumps({"labels": [3, 1]}), where="batch")
    {'labels': [3, 1]}
    """
    try:
        _check_lengths(blob)
        found = _Unpickler(io.BytesIO(blob), encoding="bytes").load()
    except _Refused as error:
        raise DataError(f"{where} {error}; do not trust this file") from None
    except Exception as error:  # a damaged pickle may fail in any way that its program can
        raise DataError(
            f"{where} is not a whole pickle ({type(error).__name__}: {error}); remove it and fetch it again"
        ) from error
    if not isinstance(found, dict):
        raise DataError(f"{where} must hold a pickled dict, got {type(found).__name__}")
    return {_text(key): value.array if isinstance(value, _Array) else value for key, value in found.items()}


class _Refused(pickle.UnpicklingError):
    """The pickle asks for something that no array of numbers needs."""


def _check_lengths(blob: bytes) -> None:
    """Refuse lengths that are not the file's own, for which unpickling would set gigabytes aside.

    `genops` reads the program without running it, and itself refuses strings that go on past the end.
    """
    starts, frame_ends = {len(blob)}, set()
    for opcode, argument, position in pickletools.genops(blob):
        starts.add(position or 0)
        if opcode.name == "FRAME":
            frame_ends.add((position or 0) + 9 + int(argument or 0))
        elif opcode.name.endswith("PUT") and int(argument or 0) > len(blob):
            raise _Refused("numbers its objects beyond its own length")
    # The unpickler in C, on a frame that ends inside of an instruction, reads a length from elsewhere.
    if not frame_ends <= starts:
        raise _Refused("is framed wrongly")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _MARKS:
            return name
        if (module, name) in _MAKERS:
            return _Maker(_MAKERS[module, name])
        raise _Refused(f"asks for {module}.{name}, which a pickled array of numbers does not need")

    def persistent_load(self, pid: object) -> NoReturn:
        raise _Refused("asks for an object outside of the file")


class _Sealed:
    """An object whose state a pickle cannot set."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        raise _Refused(f"tries to change {type(self).__name__}")


class _Maker(_Sealed):
    """A callable that a pickle may call and cannot change, as it could a plain function."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[..., Any]) -> None:
        self.make = make

    def __call__(self, *args: Any) -> Any:
        return self.make(*args)


class _Dtype:
    """Stands for numpy.dtype: of its pickled state only the byte order counts.

    numpy's own would take flags and fields from the file, and trust them.
    """

    __slots__ = ("dtype",)

    def __init__(self, code: str | bytes, align: object = False, copy: object = True) -> None:
        self.dtype = np.dtype(_text(code))
        if self.dtype.kind not in _SIMPLE_KINDS:
            raise _Refused(f"holds an array of {self.dtype}, not of numbers")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order = _text(state[1])
        self.dtype = self.dtype.newbyteorder("=" if order == "|" else order)  # type: ignore[arg-type]


class _Array:
    """Stands for numpy.ndarray: built from its bytes with every length checked by NumPy."""

    __slots__ = ("array",)

    def __init__(self) -> None:
        self.array: npt.NDArray[Any] = np.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, shape, kind, fortran, raw = state
        self.array = _from_bytes(raw, kind, shape, "F" if fortran else "C")


def _from_bytes(raw: bytes, kind: _Dtype, shape: tuple[int, ...], order: str = "C") -> npt.NDArray[Any]:
    flat = np.frombuffer(raw, dtype=kind.dtype)
    return flat.reshape(shape, order="F" if order == "F" else "C").copy()


def _reconstruct(subtype: object, shape: object, code: object) -> _Array:
    if subtype != "ndarray":
        raise _Refused("builds an array of an unknown type")
    return _Array()


def _frombuffer(raw: bytes, kind: _Dtype, shape: tuple[int, ...], order: str) -> _Array:
    built = _Array()
    built.array = _from_bytes(raw, kind, shape, order)
    return built


def _latin1_bytes(text: str, encoding: str) -> bytes:
    """Bytes as Python 3 writes them under protocols 0 to 2."""
    if encoding != "latin1":
        raise _Refused(f"encodes text as {encoding!r}")
    return text.encode("latin1")


def _text(value: object) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


_MARKS = {("numpy", "ndarray")}
_MAKERS: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "dtype"): _Dtype,
    # NumPy 2 moved these from numpy.core to numpy._core; files of both ages are about.
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy.core.numeric", "_frombuffer"): _frombuffer,
    ("numpy._core.numeric", "_frombuffer"): _frombuffer,
    ("_codecs", "encode"): _latin1_bytes,
}
