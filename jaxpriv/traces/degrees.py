"""Degrees as text: what counts as missing, what is refused, and how many decimals were printed."""

from __future__ import annotations

import math
import re

from jaxpriv.errors import InputError


_MISSING = {"", "na", "n/a", "nan", "null", "none", "-"}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_COMMA = re.compile(r"([+-]?\d{1,3}),(\d+)")


def is_missing(cell: str) -> bool:
    """Tell whether a cell stands for no value: empty, NA, NaN, null, none, or a dash."""
    return cell.strip().lower() in _MISSING


def is_number(cell: str) -> bool:
    """Tell whether a cell is a number written with a point."""
    return bool(_NUMBER.fullmatch(cell.strip()))


def with_point(cell: str) -> str | None:
    """A number with a decimal comma, up to three digits before it, written with a point; None for any other cell."""
    match = _COMMA.fullmatch(cell.strip())
    return f"{match[1]}.{match[2]}" if match else None


def read_degrees(cell: str, place: str, name: str) -> tuple[float, int]:
    """Read a cell as degrees: (value, decimals printed); (NaN, 0) where it is missing.

    Exponents are read (5.17e-4). Raises `InputError` that names the place and the column, not the value.
    """
    cell = cell.strip()
    if is_missing(cell):
        return math.nan, 0
    if not _NUMBER.fullmatch(cell):
        hint = "; write decimals with a point, not a comma" if "," in cell else ""
        raise InputError(f"{place}: the {name} is not a number of degrees{hint}")
    mantissa, _, exponent = cell.lower().partition("e")
    decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return float(cell), max(0, decimals)
