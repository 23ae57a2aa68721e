"""The `carpediem` command: arguments in, one call into the lab, results out."""

from carpediem.cli.app import app

# The order in which the help names the commands.
from carpediem.cli import training  # isort: skip
from carpediem.cli import showing  # isort: skip
from carpediem.cli import paper  # isort: skip
from carpediem.cli import data_sets  # isort: skip

__all__ = ["app", "data_sets", "paper", "showing", "training"]
