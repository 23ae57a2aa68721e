"""The command itself, and how each of its subcommands takes bad input and Ctrl-C."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import torch
import typer
from typer.core import TyperGroup

from carpediem import __version__
from carpediem.cli.options import run_settings
from carpediem.lab.ray_cluster import ClusterError
from carpediem.lab.usercode import UserCodeError

# What typer raises when a command is called wrongly; whose class it is depends on typer's version.
UsageError: Any = typer.BadParameter.__bases__[0]


class OneLineErrors(TyperGroup):
    """The command's words for a wrong call: one line, as for every other error."""

    def main(self, *args: Any, **options: Any) -> Any:
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        try:
            sys.exit(super().main(*args, **options | {"standalone_mode": False}))
        except UsageError as error:
            if "NoArgsIsHelp" in type(error).__name__:
                error.show()
            else:
                command = error.ctx.command_path if error.ctx else "carpediem"
                message = " ".join(error.format_message().split()).rstrip(".")
                typer.echo(f"error: {message}{_value(error)}; see {command} --help", err=True)
            sys.exit(2)


def _value(error: Exception) -> str:
    """What was given, where the words leave it out: those of a typer that checks values with pydantic."""
    faults = getattr(error.__cause__, "errors", None)
    return f", got {faults()[0]['input']!r}" if callable(faults) else ""


app = typer.Typer(
    cls=OneLineErrors,
    help="Adaptive batch selection: compare the methods, reproduce the paper, print its tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"carpediem {__version__} (torch {torch.__version__})")
        raise typer.Exit


@app.callback()
def carpediem(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Adaptive batch selection: compare the methods, reproduce the paper, print its tables."""


def tidy(command: Callable[..., None]) -> Callable[..., None]:
    """Turns bad input into one line, and Ctrl-C into the news that nothing is lost."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            typer.echo("stopped: the same command continues where it was", err=True)
            raise typer.Exit(130) from None
        except BrokenPipeError:  # whoever reads has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except (ValueError, TypeError, OSError, ImportError, UserCodeError, ClusterError) as error:
            typer.echo(f"error: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(2) from None

    wrapped.__signature__ = _signature(command)  # type: ignore[attr-defined]
    return wrapped


def _signature(command: Callable[..., None]) -> inspect.Signature:
    """A command's own, with the options of a run, where it takes `**settings`, before --out."""
    own = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for name, parameter in own.parameters.items():
        if name == "out" and "settings" in own.parameters:
            parameters += inspect.signature(run_settings, eval_str=True).parameters.values()
        if name != "settings":
            parameters.append(parameter)
    return own.replace(parameters=parameters)


def note(message: str) -> None:
    """Says something beside the result."""
    typer.echo(f"note: {message}", err=True)
