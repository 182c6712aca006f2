"""`jaxpriv obfuscate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxpriv.cli.console import progress, reporting_errors, say
from jaxpriv.cli.quantities import parse_duration, parse_length
from jaxpriv.cli.reading import (
    ColumnsOption,
    DuplicatesOption,
    StrictOption,
    TrackOption,
    WhoOption,
    reading_options,
)
from jaxpriv.errors import InputError


def obfuscate(
    map_file: Annotated[
        Path,
        typer.Argument(
            metavar="MAP",
            help="Places, cells or check-ins as .csv (lat, lon, count), regions as .geojson or .gpkg, or with --cell a "
            "trace.",
        ),
    ],
    epsilon: Annotated[float, typer.Option(metavar="NATS", help="How much any output may tell, as a log ratio.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write.")],
    min_error: Annotated[
        str | None,
        typer.Option(metavar="DISTANCE", help="The least expected error of an adversary after any output: 300m."),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="personalized or uniform (protection sets around each place), optimal (a linear program, small maps) "
            "or gradient (large maps).",
        ),
    ] = "personalized",
    radius: Annotated[
        str | None,
        typer.Option(
            metavar="DISTANCE",
            help="With optimal and gradient: epsilon is for places this far apart, and grows with the distance.",
        ),
    ] = None,
    places: Annotated[int | None, typer.Option(metavar="NUMBER", help="Keep the likeliest places only.", min=2)] = None,
    cell: Annotated[
        str | None, typer.Option(metavar="DISTANCE", help="Count a trace's positions in square cells of this side.")
    ] = None,
    columns: ColumnsOption = None,
    who: WhoOption = None,
    track: TrackOption = None,
    strict: StrictOption = False,
    duplicates: DuplicatesOption = "merge",
    count: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column or property with the counts.")] = None,
    apply: Annotated[
        Path | None,
        typer.Option(metavar="CHECKINS.csv", help="Release these check-ins (lat, lon, and time if there is one)."),
    ] = None,
    time_limit: Annotated[
        str | None, typer.Option(metavar="SPAN", help="With gradient: stop after this long, such as 2min.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Replace DIR.")] = False,
    json: Annotated[bool, typer.Option("--json", metavar="", help="Print the audit as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="Print nothing but errors.")] = False,
) -> None:
    """Publish check-ins as other places of a map: an obfuscation table with its audit.

    DIR/share holds the table (whole numbers, drawn from exactly), its audit, a map of what it costs and what an
    adversary is left with, and the released check-ins; DIR/private says which place each check-in was taken for. The
    map's counts are part of the promise: take them from elsewhere than the people to protect. The options of reading
    (--columns, --who, --track, --strict, --duplicates) go with a trace. Exit codes: 0 done, 2
    something in the input is wrong, 3 the promise is out of reach (the message says what is possible).

    Example: `jaxpriv obfuscate cells.csv --epsilon 1 --min-error 300m --out DIR --apply checkins.csv`
    """
    with reporting_errors():
        lengths = [
            None if text is None else parse_length(option, text)
            for option, text in (("--min-error", min_error), ("--radius", radius), ("--cell", cell))
        ]
        seconds = None if time_limit is None else parse_duration("--time-limit", time_limit)
        if seconds is not None and method != "gradient":
            raise InputError("--time-limit goes with --method gradient")
        reading = reading_options(columns, who, track, strict, duplicates)
        with progress(quiet or json) as step:
            step("Loading")
            from jaxpriv.jobs.obfuscate import obfuscate as run

            report = run(
                map_file,
                out,
                epsilon=epsilon,
                min_error_m=lengths[0] or 0.0,
                method=method,
                radius_m=lengths[1],
                places=places,
                cell_m=lengths[2],
                count=count,
                reading=reading,
                checkins=apply,
                seconds=seconds,
                force=force,
                progress=step,
            )
        if json:
            typer.echo(report.to_json(), nl=False)
        elif not quiet:
            typer.echo(report.text(), nl=False)
        if not quiet:
            say(f"Written: {out}")
