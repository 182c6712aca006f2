"""Numbers for readers: few digits, rounded to the safe side, never a NaN."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Literal


Toward = Literal["nearest", "up", "down"]
_MODES = {"nearest": ROUND_HALF_EVEN, "up": ROUND_CEILING, "down": ROUND_FLOOR}


def significant(value: float | None, digits: int = 3, toward: Toward = "nearest") -> str:
    """Write a number with `digits` significant digits, without an exponent between 1e-4 and 1e9.

    Rounding starts from the exact binary value, so that "up" is never below it and "down" never above it. Missing
    values, infinities and NaN are said in words.
    """
    if value is None or math.isnan(value):
        return "not known"
    if math.isinf(value):
        return "unlimited"
    rounded = Context(prec=digits, rounding=_MODES[toward]).create_decimal(Decimal(value))
    if rounded == 0:
        return "0"
    if not 1e-4 <= abs(rounded) < 1e9:
        return f"{rounded:.{digits - 1}e}"
    return f"{rounded:f}"


def given(value: float) -> str:
    """Write a number that somebody chose the way they would: six digits at most, no trailing zeros."""
    return f"{value:g}"


def finite_or_none(value: float) -> float | None:
    """Return the number, or None (JSON null) where it is infinite or NaN."""
    return float(value) if math.isfinite(value) else None
