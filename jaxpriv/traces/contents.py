"""All that a trace file holds, before one person's rows are taken from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from jaxpriv.errors import InputError
from jaxpriv.traces.trace import Duplicates, RawRows, TrackChoice


_SHOWN = 12
_MAX_NAME = 40


@dataclass(frozen=True)
class ColumnNames:
    """What the user says of the columns: names of the header, or numbers from 1; None is found by its usual name.

    `day_first` reads times as 20/03/2021 00:22, which nothing in a file tells from the month first.
    """

    time: str | None = None
    latitude: str | None = None
    longitude: str | None = None
    who: str | None = None
    day_first: bool = False


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file: its columns, whose rows, which track of a GPX or GeoJSON file, what rows of one instant are.

    `strict` refuses a file that needs cleaning.
    """

    columns: ColumnNames = field(default_factory=ColumnNames)
    who: str | None = None
    track: TrackChoice = None
    duplicates: Duplicates = "merge"
    strict: bool = False


@dataclass(frozen=True)
class Person:
    """The rows of one person, by the identifier in the file (None where nothing tells people apart)."""

    name: str | None
    raw: RawRows


class People(Protocol):
    """People of a file, gone through one by one; those of a large table are read only then."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Person]: ...


@dataclass(frozen=True)
class Contents:
    """What a file holds.

    `names` are the identifiers in the order of the file (rows without one may form a group that has none). `who` says
    in words where they stand; `trips` is set when they tell trips apart, not people. `columns` says which column was
    taken for what, and `counts` what else the format counts.
    """

    kind: str
    people: People
    names: tuple[str, ...] = ()
    who: str | None = None
    trips: bool = False
    columns: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def one_person(self) -> RawRows:
        """The rows of the only person. Raises `InputError` with the identifiers when there are several."""
        if len(self.people) == 1:
            return next(iter(self.people)).raw
        what = "trips" if self.trips else "people or devices"
        advice = " (or, if one person made all trips, --track all: they are one trace then)" if self.trips else ""
        raise InputError(
            f"the file holds {len(self.names)} {what} ({self.who}): {self.identifiers()}. One trace is protected at a "
            f"time: choose one with --who NAME{advice}, or split the file by that column"
        )

    def identifiers(self, shown: int = _SHOWN) -> str:
        """The identifiers, with control characters escaped, shortened when there are many or they are long."""
        return ", ".join(shown_name(name) for name in self.names[:shown]) + (" ..." if len(self.names) > shown else "")


def shown_name(name: str) -> str:
    """A name as it can be printed: control characters escaped, at most 40 characters."""
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name[: _MAX_NAME + 1])
    return plain if len(plain) <= _MAX_NAME else plain[: _MAX_NAME - 3] + "..."
