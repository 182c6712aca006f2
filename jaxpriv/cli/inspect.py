"""`jaxpriv inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxpriv.cli.columns import parse_columns
from jaxpriv.cli.console import reporting_errors
from jaxpriv.cli.quantities import parse_track


def inspect(
    trace: Annotated[
        Path, typer.Argument(metavar="FILE", help="A trace: .csv, .tsv, .txt, .gpx, .plt, .geojson, .parquet or .gpkg.")
    ],
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Which column of a table is what, by name or number from 1: time=when,lat=y,lon=x,who=cab. With "
            "dates=dmy times read like 20/03/2021 00:22.",
        ),
    ] = None,
    who: Annotated[str | None, typer.Option(metavar="NAME", help="Look at the rows of this person alone.")] = None,
    track: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Look at one track of a GPX or GeoJSON file, from 1, or all.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", metavar="", help="Print the result as JSON.")] = False,
) -> None:
    """Say what a trace file holds: what was understood, what is odd, and what would be dropped.

    Nothing is written and nothing is changed. The output tells times and names of the file, never positions. Exit
    codes: 0 the file can be read, 2 it cannot.

    Example: `jaxpriv inspect day.gpx`
    """
    with reporting_errors():
        from jaxpriv.jobs.inspect import inspect_file
        from jaxpriv.jobs.inspect_text import inspection_text
        from jaxpriv.traces.contents import ReadOptions

        found = inspect_file(trace, ReadOptions(parse_columns(columns), who, parse_track(track)))
        typer.echo(found.to_json() if json else inspection_text(found), nl=json)
