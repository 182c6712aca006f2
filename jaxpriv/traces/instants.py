"""Instants of time as text: ISO 8601 and epoch numbers, read to whole microseconds in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Literal, NamedTuple


TimeStyle = Literal["iso", "epoch_s", "epoch_ms", "epoch_us", "epoch_ns"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d{1,2})?")
# Dates without hyphens, with or without a time of day: as numbers they would be instants of 1970, or far ahead.
_COMPACT = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(([01]\d|2[0-3])([0-5]\d){1,2})?")
_LEAP = re.compile(r"(.*\d\d:\d\d:)60(.*)", re.DOTALL)
_DATE = re.compile(r"\d{4}-\d\d-")
_FINER_THAN_US = re.compile(r"[.,]\d{6}\d*[1-9]")
# Seconds of this size lie after the year 5000: such a number is taken as milliseconds.
_MILLISECONDS_FROM = Decimal(10) ** 11
# As milliseconds these lie beyond the year 9999; as micro- and nanoseconds they are instants of 2001 to 2286.
_FINER: dict[TimeStyle, tuple[Decimal, Decimal]] = {
    "epoch_us": (Decimal(10) ** 15, Decimal(1)),
    "epoch_ns": (Decimal(10) ** 18, Decimal(1) / 1000),
}
_DAY_FIRST = re.compile(r"(\d{1,2})[/.-](\d{1,2})[/.-](\d{4})([ T].*)?", re.DOTALL)
# Years 1 to 9999, what a calendar date can say.
_FIRST_US, _LAST_US = -62135596800 * 10**6, 253402300800 * 10**6 - 1


class Instant(NamedTuple):
    """One instant: microseconds since 1970-01-01T00:00:00Z, and how the text said it."""

    us: int
    style: TimeStyle
    naive: bool = False
    leap_second: bool = False
    offset: bool = False
    cut: bool = False


def parse_instant(text: str) -> Instant:
    """Read ISO 8601 (a space for the T is fine) or a number of epoch seconds.

    Text without an offset means UTC (`naive` is set); `offset` tells another offset than UTC's. Numbers of 1e11 and
    more are milliseconds, those of 1e15 to 1e16 microseconds, of 1e18 to 1e19 nanoseconds. Digits beyond the
    microsecond are cut, those of seconds and milliseconds rounded (`cut` tells). The leap second 23:59:60 UTC maps, as
    in POSIX, to the first second of the next day. Raises `ValueError`, without the text, for anything else, and for
    digits that read as a date (20240501, 20240501083000).
    """
    text = text.strip()
    if not _DATE.match(text):
        if _COMPACT.fullmatch(text):
            raise ValueError("a number that may be a date; write dates with hyphens")
        if _NUMBER.fullmatch(text):
            return _from_number(Decimal(text))
    if text.endswith(("UTC", "GMT")):
        text = f"{text[:-3].rstrip()}Z"
    leap = _LEAP.fullmatch(text) if ":60" in text else None
    if leap:
        text = f"{leap[1]}59{leap[2]}"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("not ISO 8601 and not a number of seconds since 1970") from None
    naive = moment.tzinfo is None
    moment = moment.replace(tzinfo=UTC) if naive else moment
    offset = bool(moment.utcoffset())
    us = (moment - _EPOCH) // _MICROSECOND
    if leap:
        if us // 60_000_000 % 1440 != 1439:
            raise ValueError("second 60 exists only at 23:59 UTC")
        us += 1_000_000
    if not _FIRST_US <= us <= _LAST_US:
        raise ValueError("a time outside the years 1 to 9999 in UTC")
    # The shortest time with seven decimals has 22 characters.
    cut = len(text) >= 22 and _FINER_THAN_US.search(text) is not None
    return Instant(us, "iso", naive=naive, leap_second=bool(leap), offset=offset, cut=cut)


def day_first(text: str) -> str:
    """Turn 20/03/2021 00:22 (also with dots or hyphens, day before month) into ISO 8601; other text stays."""
    match = _DAY_FIRST.fullmatch(text.strip())
    if match is None:
        return text
    day, month, year, rest = match.groups()
    return f"{year}-{int(month):02d}-{int(day):02d}{rest or ''}"


def _from_number(number: Decimal) -> Instant:
    for style, (smallest, microseconds) in _FINER.items():
        if smallest <= number < 10 * smallest:
            us = int(number * microseconds)
            return Instant(us, style, cut=us != number * microseconds)
    milliseconds = abs(number) >= _MILLISECONDS_FROM
    exact = number * (1_000 if milliseconds else 1_000_000)
    us = int(exact.to_integral_value())
    if not _FIRST_US <= us <= _LAST_US:
        raise ValueError("a time outside the years 1 to 9999")
    return Instant(us, "epoch_ms" if milliseconds else "epoch_s", cut=us != exact)


def format_instant(us: int, style: TimeStyle = "iso") -> str:
    """Write an instant as ISO 8601 in UTC, or as a number in the unit of the style; exact to the microsecond."""
    us = int(us)
    if style == "iso":
        moment = _EPOCH + us * _MICROSECOND
        fraction = f".{moment.microsecond:06d}".rstrip("0").rstrip(".")
        return f"{moment.replace(microsecond=0, tzinfo=None).isoformat()}{fraction}Z"
    if style in ("epoch_us", "epoch_ns"):
        return str(us if style == "epoch_us" else 1000 * us)
    digits = 6 if style == "epoch_s" else 3
    text = format(Decimal(us).scaleb(-digits), "f")
    return text.rstrip("0").rstrip(".")
