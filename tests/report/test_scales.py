"""Round numbers for axes and clocks."""

from __future__ import annotations

import re

import pytest

from jaxpriv.report.page.scales import clock_ticks, length_text, round_below, ticks


def test_round_numbers():
    for value in (0.0123, 0.05, 1, 1.99, 7, 250, 99_999):
        found = round_below(value)
        assert found <= value * (1 + 1e-9) < 2.5 * found + 1e-12
        assert re.fullmatch(r"[125]0*|0\.0*[125]", f"{found:.10f}".rstrip("0").rstrip("."))
    assert ticks(-0.31, 1.02) == pytest.approx([-0.2, 0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert [length_text(value) for value in (1500.0, 0.5, 999)] == ["1.5 km", "0.5 m", "999 m"]
    assert [length_text(-1500.0, unit) for unit in ("bpm", "")] == ["−1500 bpm", "−1500"]


def test_clock_ticks_are_round_and_name_each_day_once():
    start = 1_714_950_000 * 10**6  # 2024-05-05T23:00:00Z
    found = clock_ticks(start, start + 5 * 3600 * 10**6)
    assert [clock for _, clock, _ in found] == ["23:00", "00:00", "01:00", "02:00", "03:00", "04:00"]
    assert [date for _, _, date in found if date] == ["2024-05-05", "2024-05-06"]
    assert [clock for _, clock, _ in clock_ticks(start, start + 3 * 10**6)][:2] == ["23:00:00", "23:00:01"]
    for days in (9, 400, 40_000):
        many = clock_ticks(start, start + days * 86_400 * 10**6)
        assert 1 <= len(many) <= 9
        assert all(clock == "" and date for _, clock, date in many)
