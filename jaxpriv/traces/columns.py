"""Which columns of a table hold the time, the position and the person."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jaxpriv.errors import InputError
from jaxpriv.traces.contents import ColumnNames


# In order of preference; names are compared in lower case with everything but letters and digits removed.
_TIME = (
    "time", "timestamp", "datetime", "timestamputc", "timeutc", "datetimeutc", "utctime", "gpstime", "recordedat",
    "basedatetime", "aispostimestamp", "eventtime", "t", "ts", "utc", "epoch", "unixtime", "utcepochs", "date",
)  # fmt: skip
_LATITUDE = ("latitude", "lat", "locationlat", "latitudedeg", "latdeg", "gpslat", "gpslatitude", "positionlat", "y")
_LONGITUDE = (
    "longitude", "lon", "lng", "long", "locationlong", "longitudedeg", "londeg", "gpslon", "gpslng", "gpslong",
    "gpslongitude", "positionlong", "positionlon", "locationlon", "x",
)  # fmt: skip
_PERSON = (
    "uid", "user", "userid", "username", "person", "personid", "individuallocalidentifier", "individualid", "animalid",
    "taglocalidentifier", "tracker", "device", "deviceid", "imei", "mmsi", "vehicleid", "taxiid", "cabid", "id",
)  # fmt: skip
_TRIP = (
    "trajectoryid", "trajid", "trajectory", "tripid", "trip", "trackid", "journeyid", "traceid", "tid",
)  # fmt: skip


@dataclass(frozen=True)
class Columns:
    """Positions of the columns in a row; `date` is set where the date and the time of day stand apart.

    `people` and `trips` are in order of preference; `said` tells that the user named the only one that counts.
    """

    time: int
    latitude: int
    longitude: int
    date: int | None
    people: tuple[int, ...]
    trips: tuple[int, ...] = ()
    said: bool = False

    def narrowed(self) -> tuple[list[int], Columns]:
        """The columns that are used, in order, and where each of them is among those."""
        date = () if self.date is None else (self.date,)
        used = sorted({self.time, self.latitude, self.longitude, *date, *self.people, *self.trips})
        at = {column: place for place, column in enumerate(used)}
        return used, Columns(
            at[self.time],
            at[self.latitude],
            at[self.longitude],
            None if self.date is None else at[self.date],
            tuple(at[column] for column in self.people),
            tuple(at[column] for column in self.trips),
            self.said,
        )


def find_columns(header: Sequence[str], said: ColumnNames | None = None) -> Columns | None:
    """Find the columns by what the user said or by their names, or return None when one of the three is missing.

    Raises `InputError` when the name that is to be used occurs twice.
    """
    said = said or ColumnNames()
    names = [_plain(name) for name in header]
    found = [
        _first(names, wanted) if asked is None else asked_column(asked, header)
        for asked, wanted in ((said.time, _TIME), (said.latitude, _LATITUDE), (said.longitude, _LONGITUDE))
    ]
    who = None if said.who is None else asked_column(said.who, header)
    if None in found or (said.who is not None and who is None):
        return None
    time, latitude, longitude = (column for column in found if column is not None)
    apart = said.time is None and names[time] in ("time", "utctime", "gpstime") and "date" in names
    date = names.index("date") if apart else None
    if who is not None:
        return Columns(time, latitude, longitude, date, (who,), (), True)
    people, trips = (
        tuple(column for name in wanted for column, own in enumerate(names) if own == name)
        for wanted in (_PERSON, _TRIP)
    )
    return Columns(time, latitude, longitude, date, people, trips)


def asked_column(asked: str, header: Sequence[str]) -> int | None:
    """The column that a user names: as the header writes it, in another case, or by its number from 1."""
    for form in (str.strip, _plain):
        names = [form(name) for name in header]
        if form(asked) and names.count(form(asked)) > 1:
            raise InputError(f"the header has the column {asked} twice; give its number instead, such as time=3")
        if form(asked) in names:
            return names.index(form(asked))
    number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 9 else 0
    return number - 1 if 1 <= number <= len(header) else None


def tells_people_apart(name: str) -> bool:
    """Tell whether a name is one of a column that names people, devices or vehicles."""
    return _plain(name) in _PERSON


def is_position(name: str) -> bool:
    """Tell whether a name is one of a latitude or longitude column."""
    return _plain(name) in _LATITUDE + _LONGITUDE


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _first(names: list[str], wanted: tuple[str, ...]) -> int | None:
    for name in wanted:
        if names.count(name) > 1:
            raise InputError("two columns of the header have the same name; rename the one that is not meant")
        if name in names:
            return names.index(name)
    return None


def is_row_number(name: str, distinct: int, rows: int) -> bool:
    """Tell a column named id that numbers the rows from one that names the person: every row has its own value."""
    return _plain(name) == "id" and distinct == rows
