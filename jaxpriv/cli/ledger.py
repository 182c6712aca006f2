"""`jaxpriv ledger`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxpriv.cli.console import EXIT_NOT_VERIFIED, progress, reporting_errors


def ledger(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A ledger that jaxpriv protect --ledger keeps.")],
    check: Annotated[
        bool,
        typer.Option("--check", metavar="", help="Certify all releases together anew, and compare with what is kept."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", metavar="", help="Print the list as JSON.")] = False,
) -> None:
    """List the releases in a ledger: of whom, when, what each tells alone, and what all of them tell together.

    The list holds secret times and is as private as the ledger. Exit codes: 0 done, 2 the file cannot be read, 3 with
    --check when a joint ε on record is too small.
    """
    with reporting_errors():
        from jaxpriv.jobs.ledger.text import summarise

        with progress(json) as step:
            step("Certifying" if check else "Reading")
            found = summarise(file, check=check)
        typer.echo(found.to_json() if json else found.text(), nl=json)
        if not found.right:
            raise typer.Exit(EXIT_NOT_VERIFIED)
