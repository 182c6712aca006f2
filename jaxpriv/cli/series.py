"""`jaxpriv protect --series` and `jaxpriv inspect --series`: a column of a sensor's table instead of positions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jaxpriv.cli.console import progress, say
from jaxpriv.errors import InputError


if TYPE_CHECKING:
    from jaxpriv.jobs.requests import PriorRequest, SecretRequest
    from jaxpriv.jobs.target import Target
    from jaxpriv.traces.contents import ReadOptions


def refuse_with_series(**options: object) -> None:
    """Raise `InputError` for options of positions that were given; `hide_ends=` is --hide-ends."""
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]
    if given:
        raise InputError(f"{' and '.join(given)}: not for a series; leave {'it' if len(given) == 1 else 'them'} out")


def protect_column(
    path: Path,
    column: str,
    out: Path,
    secrets: SecretRequest,
    target: Target,
    prior: PriorRequest,
    *,
    reading: ReadOptions,
    strict: bool,
    simulate: int | None,
    dry_run: bool,
    force: bool,
    again: bool,
    json: bool,
    quiet: bool,
) -> None:
    """Protect a column, and say what was done."""
    from jaxpriv.jobs.series.job import dry_run_series, protect_series_file
    from jaxpriv.jobs.series.text import series_text
    from jaxpriv.report.text import SIMULATED

    with progress(quiet) as step:
        if dry_run:
            text = dry_run_series(
                path, column, out, secrets, target, prior, reading=reading, strict=strict, force=force, progress=step
            )
            done = None
        else:
            text = ""
            done = protect_series_file(
                path,
                column,
                out,
                secrets,
                target,
                prior,
                reading=reading,
                strict=strict,
                simulate_seed=simulate,
                force=force,
                again=again,
                progress=step,
            )
    if done is None:
        if not quiet:
            typer.echo(text, nl=False)
        return
    if not quiet:
        if done.made.secrets.naive:
            say("Note: --secret has no offset from UTC and was taken as UTC.")
        for sentence in done.report.cleaning:
            say(f"Note: {sentence}")
        if done.released.simulated:
            say(SIMULATED)
            say(f"Written: {out}/share and {out}/private.")
        else:
            say(f"Written: {out}/share (to share) and {out}/private (to keep). To check: jaxpriv verify {out}")
    if json:
        typer.echo(done.report.to_json())
    elif not quiet:
        typer.echo("\n" + series_text(done.report), nl=False)


def inspect_column(path: Path, column: str, reading: ReadOptions, *, json: bool) -> None:
    """Say what a column of a table holds."""
    from jaxpriv.jobs.series.inspect import inspect_series

    found = inspect_series(path, column, reading)
    typer.echo(found.to_json() if json else found.text(), nl=json)
