"""The words that name secrets on a command line: a time, a window of time, a schedule, a place."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from jaxpriv.errors import InputError
from jaxpriv.jobs.calendar_words import CalendarWord, read_calendar
from jaxpriv.traces.instants import Instant, parse_instant


_EXAMPLES = (
    "write a time like 2024-05-01T08:30:00Z, a window START/END of two times, a schedule like "
    '"daily 22:00/06:00+02:00", or a place LAT,LON in degrees'
)
_DEGREES = r"\s*[+-]?(\d+\.?\d*|\.\d+)\s*"
_PLACE = re.compile(f"{_DEGREES},{_DEGREES}")


@dataclass(frozen=True)
class TimeWord:
    """One time, in microseconds since 1970; `naive` when its text had no offset from UTC."""

    us: int
    naive: bool


@dataclass(frozen=True)
class WindowWord:
    """All times from a start to an end, both included, in microseconds since 1970."""

    start_us: int
    end_us: int
    naive: bool


@dataclass(frozen=True)
class PlaceWord:
    """A place, in degrees."""

    latitude: float
    longitude: float


def read_word(text: str) -> TimeWord | WindowWord | CalendarWord | PlaceWord:
    """Tell a time, a window, a schedule and a place apart.

    Raises `InputError` for anything else, and for a reversed window.
    """
    if (schedule := read_calendar(text)) is not None:
        return schedule
    if _PLACE.fullmatch(text):
        latitude, longitude = (float(part) for part in text.split(","))
        if not (abs(latitude) <= 90 and abs(longitude) <= 180 and math.isfinite(latitude + longitude)):
            raise InputError(
                "--secret LAT,LON: a latitude is within ±90 and a longitude within ±180 degrees, latitude first"
            )
        return PlaceWord(latitude, longitude)
    parts = text.split("/")
    if len(parts) > 2:
        raise InputError(f"--secret {text}: more than one slash; {_EXAMPLES}")
    instants = [_instant(text, part) for part in parts]
    naive = any(one.naive for one in instants)
    if len(instants) == 1:
        return TimeWord(instants[0].us, naive)
    start, end = (one.us for one in instants)
    if end < start:
        raise InputError(f"--secret {text}: the window ends before it begins; write START/END")
    if end == start:
        raise InputError(f"--secret {text}: the window has no length; name the time alone")
    return WindowWord(start, end, naive)


def _instant(text: str, part: str) -> Instant:
    try:
        return parse_instant(part)
    except ValueError as problem:
        said = "TIME" if "," in text else text  # it may be a place that was not written as one
        raise InputError(f"--secret {said}: {problem}; {_EXAMPLES}") from None
