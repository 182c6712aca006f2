"""Numbers in reports are rounded to the safe side and never a NaN."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given, settings, strategies as st

from jaxpriv.report.rounding import finite_or_none, significant


@given(st.floats(1e-300, 1e300), st.integers(1, 6))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_up_is_never_below_and_down_never_above(value, digits):
    exact = Decimal(value)
    up, down = Decimal(significant(value, digits, "up")), Decimal(significant(value, digits, "down"))
    assert down <= exact <= up
    # Neighbouring numbers of that many digits.
    assert up - down <= abs(exact) * Decimal(10) ** (1 - digits) * Decimal("1.0000001")


@pytest.mark.parametrize(
    ("value", "digits", "toward", "text"),
    [
        (1.0, 3, "up", "1"),
        (1.0000000001, 3, "up", "1.01"),
        (0.99999999, 3, "up", "1.00"),
        (1234.4, 3, "nearest", "1230"),
        (0.000123456, 2, "down", "0.00012"),
        (3.01e-9, 2, "up", "3.1e-9"),
        (0.0, 3, "up", "0"),
        (-1.234, 2, "up", "-1.2"),
        (None, 3, "up", "not known"),
        (math.nan, 3, "up", "not known"),
        (math.inf, 3, "up", "unlimited"),
    ],
)
def test_known_texts(value, digits, toward, text):
    assert significant(value, digits, toward) == text


def test_json_gets_null():
    assert [finite_or_none(value) for value in (1.5, math.inf, math.nan)] == [1.5, None, None]
