"""`jaxpriv fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxpriv.cli.console import progress, reporting_errors, say
from jaxpriv.cli.reading import (
    ColumnsOption,
    DuplicatesOption,
    StrictOption,
    TrackOption,
    WhoOption,
    reading_options,
)
from jaxpriv.errors import InputError


def fit(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES...", help="Traces: .csv (time, lat, lon), .gpx, .plt and others.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The prior file to write, such as prior.json.")],
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KERNEL",
            help="How positions vary over time: matern12, matern32, matern52, rbf (these can protect a trace), rq, iou "
            "or damped_iou; may be repeated. Default: matern32 and matern52.",
        ),
    ] = None,
    population: Annotated[
        bool, typer.Option("--population", metavar="", help="Fit each file by itself and keep all: one a person.")
    ] = False,
    columns: ColumnsOption = None,
    who: WhoOption = None,
    track: TrackOption = None,
    strict: StrictOption = False,
    duplicates: DuplicatesOption = "merge",
    force: Annotated[bool, typer.Option("--force", metavar="", help="Replace FILE.")] = False,
    json: Annotated[bool, typer.Option("--json", metavar="", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="Print nothing but errors.")] = False,
) -> None:
    """Fit a prior to recorded traces: what an attacker may expect of how a person moves.

    One file gives the prior of one person, several with --population that of many; give one trace, or one window, of
    each, which are all read in the same way. Pass the result to `jaxpriv protect --prior FILE` for *other* traces than
    those it was fitted to. It says how people move, not where, and is still personal. Exit codes: 0 done, 2 something
    in the input is wrong.

    Example: `jaxpriv fit monday.gpx --out prior.json`
    """
    with reporting_errors():
        if len(files) > 1 and not population:
            raise InputError(
                f"{len(files)} files were given: pass --population to fit each by itself and keep them all, or one "
                "file for the prior of one person"
            )
        reading = reading_options(columns, who, track, strict, duplicates)
        from jaxpriv.jobs import fit_text
        from jaxpriv.jobs.fit import fit_people, fit_person

        with progress(quiet or json) as step:
            if population:
                people = fit_people(files, out, kernels=kernel or (), reading=reading, force=force, progress=step)
                notes, text, data = (), fit_text.population_text(people), fit_text.population_json(people)
            else:
                person = fit_person(files[0], out, kernels=kernel or (), reading=reading, force=force, progress=step)
                notes, text, data = person.notes, fit_text.person_text(person), fit_text.person_json(person)
        if json:
            typer.echo(data)
        elif not quiet:
            typer.echo(text, nl=False)
        if not quiet:
            for note in notes:
                say(f"Note: {note}")
            say(f"Written: {out} (keep it private).")
