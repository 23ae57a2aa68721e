"""The user's own functions, named as `module:function`."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_SPEC = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


class UserCodeError(RuntimeError):
    """The user's own code raised; the message names the function and what it raised."""


def is_spec(name: str) -> bool:
    """Whether `name` reads `module:function`.

    >>> is_spec("my.package:load"), is_spec("cifar10"), is_spec("C:\\\\images")
    (True, False, False)
    """
    return _SPEC.fullmatch(name) is not None


def user_function(spec: str) -> Callable[..., Any]:
    """The function that `spec` names.

    Raises:
        ValueError: `spec` names none.
        ImportError: the module is there, and something that it imports is not.
        UserCodeError: the module raised while it was imported.
    """
    if not is_spec(spec):
        raise ValueError(f"{spec!r} must read module:function")
    module_name, _, name = spec.partition(":")
    # A command's first search folder is its own, not the user's: look there too, as `python -m` does.
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, and something that it imports is not
        remedy = (
            f"; leave .py out: {module_name.removesuffix('.py')}:{name}"
            if module_name.endswith(".py")
            else ""
        )
        raise ValueError(f"{spec}: no module {error.name!r} in {here} nor on PYTHONPATH{remedy}") from error
    except ImportError:
        raise
    except Exception as error:
        raise UserCodeError(f"{module_name} of {spec} raised {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(here)
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(
            f"{spec}: {getattr(module, '__file__', module_name)} must define a function {name!r}"
        )
    return function  # type: ignore[no-any-return]


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
