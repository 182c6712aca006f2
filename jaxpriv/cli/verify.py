"""`jaxpriv verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxpriv.cli.console import EXIT_NOT_VERIFIED, progress, reporting_errors


def verify(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder that jaxpriv protect or batch wrote, or its share.")
    ],
    json: Annotated[bool, typer.Option("--json", metavar="", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="Print nothing but errors.")] = False,
) -> None:
    """Check a release again: the shared files against each other, and the promise against the mechanism.

    With DIR/private the certificate of the stored mechanism is computed anew, for a batch that of every trace; with the
    shared files alone only they are checked, and the answer says so. Simulated output is never accepted as a release.
    Exit codes: 0 all that could be checked is right, 2 something cannot be read, 3 something is wrong or could not be
    verified.
    """
    with reporting_errors():
        with progress(quiet or json) as step:
            step("Checking")
            from jaxpriv.jobs.verify import verify_folder

            found = verify_folder(folder, step)
        if json:
            typer.echo(found.to_json())
        elif not quiet:
            typer.echo(found.text(), nl=False)
        if not found.verified:
            raise typer.Exit(EXIT_NOT_VERIFIED)
