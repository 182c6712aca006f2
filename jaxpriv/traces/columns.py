"""Which columns of a table hold the time, the position and the person."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jaxpriv.errors import InputError


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


@dataclass(frozen=True)
class Columns:
    """Positions of the columns in a row; `date` is set where the date and the time of day stand apart."""

    time: int
    latitude: int
    longitude: int
    date: int | None
    people: tuple[int, ...]


def find_columns(header: list[str]) -> Columns | None:
    """Find the columns by their names, or return None when this header lacks one of the three.

    Raises `InputError` when the name that is to be used occurs twice.
    """
    names = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in header]
    found = [_first(names, wanted) for wanted in (_TIME, _LATITUDE, _LONGITUDE)]
    if None in found:
        return None
    time, latitude, longitude = (column for column in found if column is not None)
    date = names.index("date") if names[time] in ("time", "utctime", "gpstime") and "date" in names else None
    people = tuple(column for column, name in enumerate(names) if name in _PERSON)
    return Columns(time, latitude, longitude, date, people)


def _first(names: list[str], wanted: tuple[str, ...]) -> int | None:
    for name in wanted:
        if names.count(name) > 1:
            raise InputError("two columns of the header have the same name; rename the one that is not meant")
        if name in names:
            return names.index(name)
    return None


def is_row_number(name: str, values: set[str], rows: int) -> bool:
    """Tell a column named id that numbers the rows from one that names the person: every row has its own value."""
    return re.sub(r"[^a-z0-9]", "", name.lower()) == "id" and len(values) == rows
