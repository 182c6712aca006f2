"""Secrets from a schedule: windows on all dates, whatever the trace did in them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from jaxpriv.errors import InputError
from jaxpriv.jobs.calendar_words import CalendarWord, read_calendar
from jaxpriv.jobs.secret_sources import choose_secrets
from jaxpriv.traces.cleaning import clean
from jaxpriv.traces.csv_format import read_csv


def us(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * 10**6


def word(text: str) -> CalendarWord:
    found = read_calendar(text)
    assert found is not None
    return found


def test_every_night_at_a_local_time_that_is_not_utc():
    found = word("daily 22:00/06:00+02:00").windows(us("2024-05-01T00:00Z"), us("2024-05-02T23:00Z"))
    assert [(a, b) for a, b in found] == [
        (us("2024-04-30T20:00Z"), us("2024-05-01T04:00Z")),
        (us("2024-05-01T20:00Z"), us("2024-05-02T04:00Z")),
        (us("2024-05-02T20:00Z"), us("2024-05-03T04:00Z")),
    ]


def test_days_of_the_week_are_those_of_the_local_date():
    span = us("2024-05-03T00:00Z"), us("2024-05-07T23:59Z")  # Friday to Tuesday
    assert word("weekends 00:00/24:00Z").windows(*span) == [
        (us("2024-05-04T00:00Z"), us("2024-05-05T00:00Z")),
        (us("2024-05-05T00:00Z"), us("2024-05-06T00:00Z")),
    ]
    # Monday 01:00 in Auckland is Sunday in UTC.
    assert word("mon@01:00/02:00+12:00").windows(*span) == [(us("2024-05-05T13:00Z"), us("2024-05-05T14:00Z"))]
    assert len(word("weekdays 09:00/17:00-05:00").windows(*span)) == 3
    assert len(word("Fri,Sunday 09:00/10:00Z").windows(*span)) == 2
    assert word("daily 08:00/08:00Z").windows(*span)[1] == (us("2024-05-03T08:00Z"), us("2024-05-04T08:00Z"))


@settings(max_examples=60, deadline=None)
@given(
    days=st.sets(st.integers(0, 6), min_size=1),
    start=st.integers(0, 1439),
    end=st.integers(0, 1440),
    offset=st.integers(-14 * 4, 14 * 4),
    first=st.integers(-2 * 10**9, 4 * 10**9),
    length=st.integers(0, 12 * 86_400),
)
def test_windows_hold_exactly_the_minutes_of_the_schedule(days, start, end, offset, first, length):
    """Against the calendar of the standard library, minute by minute for some minutes of the span."""
    schedule = CalendarWord(frozenset(days), start, end, 15 * offset)
    windows = schedule.windows(first * 10**6, (first + length) * 10**6)
    zone = timezone(timedelta(minutes=15 * offset))
    for second in range(first, first + length + 1, 5431):
        local = datetime(1970, 1, 1, tzinfo=UTC).astimezone(zone) + timedelta(seconds=second)
        minutes = local.hour * 60 + local.minute + local.second / 60
        today, yesterday = local.weekday() in days, (local.weekday() - 1) % 7 in days
        stop = end if end > start else end + 1440
        inside = (today and start <= minutes <= stop) or (yesterday and minutes + 1440 <= stop)
        assert inside == any(a <= second * 10**6 <= b for a, b in windows)
    assert windows == sorted(windows)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("daily 22:00/06:00", "offset from UTC"),
        ("always 22:00/06:00Z", "days are not known"),
        ("daily,mon 22:00/06:00Z", "days are not known"),
        ("daily 25:00/06:00Z", "no such time"),
        ("daily 24:00/06:00Z", "no such time"),
        ("daily 22:61/06:00Z", "no such time"),
        ("daily 22:00/06:00+15:00", "no such offset"),
        ("daily 22:00-06:00", "not a schedule"),
        ("mon tomorrow", "not a schedule"),
    ],
)
def test_schedules_that_say_too_little_are_refused(text, words):
    with pytest.raises(InputError, match=words):
        read_calendar(text)


@pytest.mark.parametrize(
    "text", ["2024-05-01T08:30:00Z", "2024-05-01/2024-05-02", "48.2,16.4", "2024-05-01 08:30Z", ""]
)
def test_other_words_are_no_schedules(text):
    assert read_calendar(text) is None


def trace(positions: np.ndarray):
    lines = ["time,lat,lon"]
    for i, (lat, lon) in enumerate(positions):
        lines.append(f"{1_714_521_600 + 1800 * i},{lat:.6f},{lon:.6f}")  # from 2024-05-01T00:00Z
    return clean(read_csv("\n".join(lines) + "\n"))


def test_the_secrets_are_the_same_wherever_the_person_was():
    rng = np.random.default_rng(1)
    chosen = [choose_secrets(trace(rng.uniform(-50, 50, (96, 2))), ["daily 22:00/23:00+02:00"]) for _ in range(3)]
    assert [one.positions for one in chosen[0].secrets] == [(40,), (41,), (42,), (88,), (89,), (90,)]
    assert all(one.secrets == chosen[0].secrets and one.warnings == () for one in chosen)
    assert chosen[0].understood == ("daily 22:00/23:00+02:00: 6 fixes in 2 windows, each by itself.",)


def test_windows_together_and_windows_without_a_fix():
    day = trace(np.full((96, 2), 40.0))
    together = choose_secrets(day, ["daily 22:00/23:00+02:00"], together=True)
    assert [one.positions for one in together.secrets] == [(40, 41, 42), (88, 89, 90)]
    thin = choose_secrets(day, ["daily 00:00/00:20Z"])
    assert len(thin.secrets) == 2 and not thin.warnings
    with pytest.raises(InputError, match="no fix lies in a window"):
        choose_secrets(day, ["daily 10:05/10:25Z"])
    half = choose_secrets(day, ["daily 23:40/00:10-01:00"])  # 00:40 to 01:10 UTC: a fix at 01:00 on both days
    assert [one.positions for one in half.secrets] == [(2,), (50,)]
