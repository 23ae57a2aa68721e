"""Options of a command from a TOML file."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Any

import typer

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def config_option(context: typer.Context, value: Path | None) -> Path | None:
    """Takes the defaults of the command's options from a file; what stands on the command line wins.

    The keys are the options' names, with - or _.
    """
    if value is None:
        return None
    try:
        settings: dict[str, Any] = tomllib.loads(value.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{value} is not a TOML file: {error}") from error
    known = {parameter.name: parameter for parameter in context.command.params if parameter.name != "config"}
    names = {option.lstrip("-").replace("-", "_"): p.name for p in known.values() for option in p.opts}
    defaults: dict[str, Any] = {}
    for key, setting in settings.items():
        name = names.get(key.replace("-", "_"))
        if name is None:
            close = difflib.get_close_matches(key.replace("-", "_"), names, n=1)
            meant = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(names))}"
            raise typer.BadParameter(f"{value} has the unknown key {key!r}; {meant}")
        defaults[name] = ",".join(map(str, setting)) if isinstance(setting, list) else setting
    context.default_map = {**(context.default_map or {}), **defaults}
    return value
