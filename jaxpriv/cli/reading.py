"""The options that say how a trace file is read, for every command that reads one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jaxpriv.cli.columns import parse_columns
from jaxpriv.cli.quantities import parse_track


if TYPE_CHECKING:
    from jaxpriv.traces.contents import ReadOptions

_READING = "How the file is read"

ColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Which column of a table is what, by name or number from 1: time=when,lat=y,lon=x,who=cab. With "
        "dates=dmy times read like 20/03/2021 00:22.",
        rich_help_panel=_READING,
    ),
]
WhoOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Take the rows of this person alone from a table of several.",
        rich_help_panel=_READING,
    ),
]
TrackOption = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        help="Take one track of a GPX or GeoJSON file, from 1, or all of one person's.",
        rich_help_panel=_READING,
    ),
]
StrictOption = Annotated[
    bool,
    typer.Option(
        "--strict",
        metavar="",
        help="Refuse a file that needs cleaning; repair nothing.",
        rich_help_panel=_READING,
    ),
]
DuplicatesChoice = Literal["merge", "noise"]
DuplicatesOption = Annotated[
    DuplicatesChoice,
    typer.Option(
        metavar="RULE",
        help="What several rows of one instant are: one fix, written more than once (merge), or repeated measurements "
        "(noise).",
        rich_help_panel=_READING,
    ),
]


def reading_options(
    columns: str | None,
    who: str | None,
    track: str | None,
    strict: bool = False,
    duplicates: DuplicatesChoice = "merge",
) -> ReadOptions:
    """Read the options. Raises `InputError` for those that say nothing."""
    from jaxpriv.traces.contents import ReadOptions

    return ReadOptions(parse_columns(columns), who, parse_track(track), duplicates, strict)
