"""Times as text, against the calendar arithmetic of the standard library."""

from __future__ import annotations

import calendar
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from jaxpriv.traces.instants import format_instant, parse_instant


@pytest.mark.parametrize(
    ("text", "epoch_us"),
    [
        ("2018-04-04T10:36:53-0600", 1522859813_000000),  # an offset without a colon is the same instant
        ("2022-03-27T22:32:01.137+02:00", 1648413121_137000),  # on the day of a change of summer time
        ("2018-03-25 02:55:00+01:00", calendar.timegm((2018, 3, 25, 1, 55, 0)) * 10**6),
        ("2008-12-11 04:42:14+00", calendar.timegm((2008, 12, 11, 4, 42, 14)) * 10**6),
        ("2008-10-23 05:53:05 UTC", calendar.timegm((2008, 10, 23, 5, 53, 5)) * 10**6),
        ("1901-12-13T20:45:52Z", -(2**31) * 10**6),
        ("1522859813", 1522859813_000000),
        ("1522859813.25", 1522859813_250000),
        ("1522859813250", 1522859813_250000),  # milliseconds, by their size
    ],
)
def test_known_instants(text, epoch_us):
    assert parse_instant(text).us == epoch_us


def test_fractions_of_one_second_stay_apart():
    stamps = [parse_instant(f"2020-01-01T00:00:01.{digit}Z").us for digit in "269"]
    assert [b - a for a, b in pairwise(stamps)] == [400_000, 300_000]


def test_no_offset_means_utc_and_is_said():
    naive, said = parse_instant("2008-02-03 00:00:32"), parse_instant("2008-02-03T00:00:32Z")
    assert naive.us == said.us
    assert (naive.naive, said.naive) == (True, False)


@pytest.mark.parametrize("text", ["2016-12-31T23:59:60+00:00", "2017-01-01T08:59:60+09:00", "2016-12-31T23:59:60Z"])
def test_leap_second_is_the_first_second_of_the_next_day(text):
    instant = parse_instant(text)
    assert instant.us == calendar.timegm((2017, 1, 1, 0, 0, 0)) * 10**6
    assert instant.leap_second


@pytest.mark.parametrize(
    "text",
    [
        "",
        "noon",
        "20/03/2021 00:22",
        "2016-12-31T23:59:61Z",
        "2016-12-31T12:00:60Z",
        "2020-13-01T00:00:00Z",
        "1e30",
        "inf",
    ],
)
def test_other_text_is_refused_without_quoting_it(text):
    with pytest.raises(ValueError, match=r"\w") as problem:
        parse_instant(text)
    assert not text or text not in str(problem.value)


@given(st.integers(-62135596800 * 10**6, 253402300799 * 10**6 + 999_999))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_what_is_written_reads_back_exactly(us):
    assert parse_instant(format_instant(us)).us == us
    # A number below 1e11 in size is read as seconds, and above as milliseconds.
    if abs(us) < 10**17:
        assert parse_instant(format_instant(us, "epoch_s")).us == us
    if abs(us) >= 10**14:
        assert parse_instant(format_instant(us, "epoch_ms")).us == us
