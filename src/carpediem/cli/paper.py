"""The command `paper`: the paper's tables and claims, and what runs say to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from carpediem.cli.app import app, note, tidy
from carpediem.cli.options import Json
from carpediem.lab.analysis.claims import claim_data
from carpediem.lab.analysis.comparisons import Measured
from carpediem.lab.analysis.derived import DERIVED, derived_data
from carpediem.lab.analysis.paper_tables import claims_table, derived_table, paper_tables
from carpediem.lab.analysis.stated_claims import CLAIMS
from carpediem.lab.records import read_runs
from carpediem.lab.session import table_text

_DEFAULT = Path("results")


@app.command()
@tidy
def paper(
    results: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Folder of a study or of published results, or one that holds such folders: the runs that ours "
            "are; may be repeated. [default: results, where there is one]",
        ),
    ] = None,
    numbers: Annotated[
        list[int] | None,
        typer.Option(
            "--table", metavar="N", min=1, max=7, help="Only this table of the paper; may be repeated."
        ),
    ] = None,
    claims: Annotated[
        bool, typer.Option("--claims", help="Only the claims, those in numbers and those in words.")
    ] = False,
    as_json: Json = False,
) -> None:
    """The paper's seven tables, and its claims: do its own numbers bear them out, and do our runs?"""
    tables = paper_tables()
    wanted = sorted(set(numbers)) if numbers else [] if claims else list(tables)
    has_claims = claims or not numbers
    folders = _folders(results) if has_claims else []
    measured = Measured(read_runs(*folders) if folders else [])
    if as_json:
        made: dict[str, Any] = {"tables": {str(number): tables[number].to_dict() for number in wanted}}
        if has_claims:
            made["results"] = list(map(str, folders))
            made["derived"] = [derived_data(one, measured) for one in DERIVED]
            made["claims"] = [claim_data(one, measured) for one in CLAIMS]
        typer.echo(json.dumps(made, indent=2))
        return
    shown = [tables[number] for number in wanted]
    if has_claims:
        shown += [derived_table(measured), claims_table(measured)]
    typer.echo("\n".join(map(table_text, shown)), nl=False)
    if has_claims and not folders:
        note(
            f"no runs were found in {_DEFAULT}, so that nothing of ours is measured; --results DIR names others"
        )


def _folders(given: list[Path] | None) -> list[Path]:
    """The folders of runs: those named, or those in `results`, if there are any."""
    if not given:
        return _studies_in(_DEFAULT)
    return [folder for place in given for folder in _studies_in(place) or [place]]


def _studies_in(place: Path) -> list[Path]:
    return sorted({file.parent for name in ("runs.jsonl", "study.json") for file in place.glob(f"*/{name}")})
