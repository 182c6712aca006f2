"""`jaxpriv inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxpriv.cli.console import progress, reporting_errors
from jaxpriv.cli.reading import (
    ColumnsOption,
    DuplicatesOption,
    StrictOption,
    TrackOption,
    WhoOption,
    reading_options,
)
from jaxpriv.cli.series import inspect_column, refuse_with_series


def inspect(
    trace: Annotated[
        Path, typer.Argument(metavar="FILE", help="A trace: .csv, .tsv, .txt, .gpx, .plt, .geojson, .parquet or .gpkg.")
    ],
    columns: ColumnsOption = None,
    who: WhoOption = None,
    track: TrackOption = None,
    strict: StrictOption = False,
    duplicates: DuplicatesOption = "merge",
    series: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Look at this column of a sensor's table instead of positions.")
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

        options = reading_options(columns, who, track, strict, duplicates)
        if series is not None:
            refuse_with_series(duplicates=None if duplicates == "merge" else duplicates)
            inspect_column(trace, series, options, json=json)
            return
        with progress(json) as step:
            found = inspect_file(trace, options, step)
        typer.echo(found.to_json() if json else inspection_text(found), nl=json)
