"""The option --columns: which column of a table is what."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jaxpriv.errors import InputError


if TYPE_CHECKING:
    from jaxpriv.traces.contents import ColumnNames

_KEYS = {"time": "time", "lat": "latitude", "lon": "longitude", "who": "who"}
_PART = re.compile(r"(?:^|,)\s*(time|lat|lon|who|dates)\s*=")


def parse_columns(text: str | None) -> ColumnNames:
    """Read time=NAME,lat=NAME,lon=NAME,who=NAME, any of them, and dates=dmy for times with the day first.

    Names may hold commas; numbers count the columns from 1. Raises `InputError` for anything else.
    """
    from jaxpriv.traces.contents import ColumnNames

    if text is None:
        return ColumnNames()
    parts = list(_PART.finditer(text))
    ends = [*(part.start() for part in parts), len(text)][1:]
    values = {part[1]: text[part.end() : end].strip() for part, end in zip(parts, ends, strict=True)}
    if not parts or parts[0].start() != 0 or len(values) < len(parts) or not all(values.values()):
        raise InputError("--columns: write which column is what, such as --columns time=when,lat=y,lon=x,who=cab")
    if values.pop("dates", "dmy") != "dmy":
        raise InputError("--columns: dates=dmy is the only way to write dates that needs to be said (20/03/2021 00:22)")
    return ColumnNames(**{_KEYS[key]: value for key, value in values.items()}, day_first="dates=" in text)
