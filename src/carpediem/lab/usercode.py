"""The user's own functions, named as `module:function`."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class UserCodeError(RuntimeError):
    """The user's own code raised; the message names the function and what it raised."""


@contextmanager
def told_of(name: str) -> Iterator[None]:
    """What the code inside raises is told of as the error of the function that `name` names."""
    try:
        yield
    except Exception as error:
        raise UserCodeError(f"{name} raised {type(error).__name__}: {error}") from error


def source_fingerprint(function: Callable[..., Any], module_name: str) -> str:
    """Twelve hexadecimal digits of the source file of the module, or of the function where there is no file.

    Raises:
        ValueError: there is no source at all, so that nobody could tell one version from the next.
    """
    module = sys.modules.get(module_name)
    file = getattr(module, "__file__", None)
    if file is not None and Path(file).is_file():
        content = Path(file).read_bytes()
    else:
        try:
            content = inspect.getsource(function).encode()
        except (OSError, TypeError) as error:
            raise ValueError(f"{module_name} must have source code that can be read, got none") from error
    return hashlib.sha256(content).hexdigest()[:12]
