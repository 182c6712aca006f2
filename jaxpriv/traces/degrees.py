"""Degrees as text: what counts as missing, what is refused, and how many decimals were printed."""

from __future__ import annotations

import math
import re

from jaxpriv.errors import InputError


_MISSING = {"", "na", "n/a", "nan", "null", "none", "-"}
# One way to match each text, so that the time taken grows with its length and no faster.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
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


def place_name(place: str | int) -> str:
    """How messages call the place of a row; a number is that of a row of a table."""
    return f"row {place}" if isinstance(place, int) else place


def read_degrees(cell: str, place: str | int, name: str) -> tuple[float, int]:
    """Read a cell as degrees: (value, decimals printed); (NaN, 0) where it is missing.

    Exponents are read (5.17e-4). Raises `InputError` that names the place and the column, not the value.
    """
    cell = cell.strip()
    number = _NUMBER.fullmatch(cell)
    if number is None:
        if is_missing(cell):
            return math.nan, 0
        hint = "; write decimals with a point, not a comma" if "," in cell else ""
        raise InputError(f"{place_name(place)}: the {name} is not a number of degrees{hint}")
    mantissa, exponent = (cell, "0") if number[3] is None else (cell[: number.start(3)], number[3][1:])
    point = mantissa.find(".")
    decimals = len(mantissa) - point - 1 if point >= 0 else 0
    return float(cell), max(0, decimals - int(exponent))
