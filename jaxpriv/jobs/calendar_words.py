"""Windows of a schedule: every night, working hours, some days of the week, at a stated offset from UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jaxpriv.errors import InputError


_DAY_NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_GROUPS = {"daily": range(7), "weekdays": range(5), "weekends": range(5, 7)}
_SCHEDULE = re.compile(r"\s*([A-Za-z]+(?:,[A-Za-z]+)*)[\s@]+(\S+)\s*")
_HOURS = re.compile(r"(\d\d):(\d\d)/(\d\d):(\d\d)(Z|[+-]\d\d:\d\d)?")
_EXAMPLE = '"daily 22:00/06:00+02:00", "weekdays 08:00/17:30Z" or "sat,sun 00:00/24:00-05:00"'
_MINUTE_US, _DAY_MIN = 60_000_000, 1440


@dataclass(frozen=True)
class CalendarWord:
    """A window on some days of the week (0 is Monday), in minutes of the local day; one that ends at or before its
    start ends on the next day. `offset_min` is local time minus UTC, the same on all dates."""

    days: frozenset[int]
    start_min: int
    end_min: int
    offset_min: int

    def windows(self, first_us: int, last_us: int) -> list[tuple[int, int]]:
        """All windows, both ends included, that meet the span from `first_us` to `last_us`, in order.

        In microseconds since 1970 (UTC). A window belongs to the day on which it begins.
        """
        shift = self.offset_min * _MINUTE_US
        day_us = _DAY_MIN * _MINUTE_US
        length = (self.end_min - self.start_min) * _MINUTE_US
        length += day_us if length <= 0 else 0
        found = []
        for day in range((first_us + shift) // day_us - 1, (last_us + shift) // day_us + 1):
            start = day * day_us + self.start_min * _MINUTE_US - shift
            # 1970-01-01 was a Thursday.
            if (day + 3) % 7 in self.days and start <= last_us and start + length >= first_us:
                found.append((start, start + length))
        return found


def read_calendar(text: str) -> CalendarWord | None:
    """Read DAYS HH:MM/HH:MM±HH:MM; None for text that does not begin with the name of days.

    DAYS is daily, weekdays, weekends, or names such as mon,thu; a Z stands for UTC. Raises `InputError` for a schedule
    that cannot be read, and for one without an offset from UTC: what 22:00 means must be said.
    """
    match = _SCHEDULE.fullmatch(text)
    if match is None:
        return None
    names = match[1].lower().split(",")
    days: set[int] = set()
    for name in names:
        if name in _GROUPS and len(names) == 1:
            days |= set(_GROUPS[name])
        elif name[:3] in _DAY_NAMES:
            days.add(_DAY_NAMES.index(name[:3]))
        else:
            raise InputError(f"--secret {text}: the days are not known; write {_EXAMPLE}")
    hours = _HOURS.fullmatch(match[2])
    if hours is None:
        raise InputError(f"--secret {text}: not a schedule; write {_EXAMPLE}")
    if hours[5] is None:
        raise InputError(f"--secret {text}: say the offset from UTC of these hours, such as +02:00, or Z for UTC")
    start, end = (_minutes(text, hours[i], hours[i + 1], 1440 if i == 3 else 1439) for i in (1, 3))
    return CalendarWord(frozenset(days), start, end, _offset(text, hours[5]))


def _minutes(text: str, hour: str, minute: str, largest: int) -> int:
    value = 60 * int(hour) + int(minute)
    if int(minute) > 59 or value > largest:
        raise InputError(f"--secret {text}: there is no such time of day; write {_EXAMPLE}")
    return value


def _offset(text: str, offset: str) -> int:
    if offset == "Z":
        return 0
    value = 60 * int(offset[1:3]) + int(offset[4:])
    if int(offset[4:]) > 59 or value > 14 * 60:
        raise InputError(f"--secret {text}: there is no such offset from UTC")
    return -value if offset[0] == "-" else value
