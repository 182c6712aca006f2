"""`jaxpriv demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxpriv.cli.console import progress, reporting_errors, say


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write.")] = Path("jaxpriv-demo"),
    force: Annotated[bool, typer.Option("--force", metavar="", help="Replace DIR, if jaxpriv wrote it.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="Print nothing but errors.")] = False,
) -> None:
    """Protect a visit to a clinic in a made-up day, draw the picture, and explain the result.

    The day is generated (home, clinic, work), nobody's data is used, and the release is simulated.
    """
    with reporting_errors():
        from jaxpriv.jobs.demo import run_demo
        from jaxpriv.report.text import report_text

        with progress(quiet) as step:
            done = run_demo(out, force=force, progress=step)
        if not quiet:
            typer.echo(report_text(done.report))
            say(f"The picture: {out / 'picture.png'}. The files: {out}/share and {out}/private.")
