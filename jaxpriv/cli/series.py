"""`jaxpriv protect --series` and `jaxpriv inspect --series`: a column of a sensor's table instead of positions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jaxpriv.cli.console import progress
from jaxpriv.cli.written import say_release
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

    if dry_run:
        with progress(quiet) as step:
            text = dry_run_series(
                path, column, out, secrets, target, prior, reading=reading, force=force, progress=step
            )
        if not quiet:
            typer.echo(text, nl=False)
        return
    with progress(quiet) as step:
        done = protect_series_file(
            path,
            column,
            out,
            secrets,
            target,
            prior,
            reading=reading,
            simulate_seed=simulate,
            force=force,
            again=again,
            progress=step,
        )
    report, naive = done.report, done.made.secrets.naive
    say_release(report, series_text(report), out, report.cleaning, naive=naive, json=json, quiet=quiet)


def inspect_column(path: Path, column: str, reading: ReadOptions, *, json: bool) -> None:
    """Say what a column of a table holds."""
    from jaxpriv.jobs.series.inspect import inspect_series

    found = inspect_series(path, column, reading)
    typer.echo(found.to_json() if json else found.text(), nl=json)
