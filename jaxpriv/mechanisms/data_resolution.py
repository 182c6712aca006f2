"""The step on which recorded data lie, measured only to refuse a resolution that was declared too fine."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from jaxpriv.errors import InputError


_TOO_FINE = (
    "The data are recorded in coarser steps than the declared resolution. Declare the resolution of the instrument "
    "and design again, with a floor of at least twice that."
)


def measured_resolution(x: np.ndarray) -> float:
    """The largest step s such that all differences between values of `x` are multiples of s, in the unit of x.

    x: finite float64, any shape. Two kinds of step are looked for: an exact one (every float64 is a fraction over a
    power of two, so this always exists and is tiny for data that were not quantised) and one in decimal digits, where a
    value may be off by eight units in the last place of the largest and four exact steps (which are what is left of the
    last places of data that were shifted). The answer is the larger. Differences are used, so an origin that was
    subtracted does not hide the step. 0.0 if all values are equal. Steps of other kinds (sixtieths of a
    degree, a grid seen through a map projection) are not found: this is a check, not a guarantee.

    The answer is a function of the data and is for the owner's eyes: never publish it, and never let it choose a
    mechanism.

    Raises:
        InputError: values that are not finite real numbers (constant text).
    """
    values = np.asarray(x)
    if values.dtype.kind not in "fiu" or values.size == 0 or not np.all(np.isfinite(values)):
        raise InputError("The data must be a non-empty array of finite real numbers.")
    values = values.astype(np.float64).ravel()
    exact = _exact_step(values)
    return max(exact, _decimal_step(values, exact))


def refuse_coarse_data(x: np.ndarray, resolution: float) -> None:
    """Raise `InputError`, with a constant text, if the data's own step is coarser than `resolution` (same unit)."""
    if measured_resolution(x) > resolution:
        raise InputError(_TOO_FINE)


def _exact_step(values: np.ndarray) -> float:
    """Greatest common divisor of the differences, as exact fractions over a power of two; 0.0 if there are none."""
    ratios = [value.as_integer_ratio() for value in np.unique(values).tolist()]
    over = max(denominator for _, denominator in ratios)  # powers of two, so the largest is a common one
    whole = [numerator * (over // denominator) for numerator, denominator in ratios]
    return _as_float(Fraction(math.gcd(*(value - whole[0] for value in whole)), over))


def _decimal_step(values: np.ndarray, exact: float) -> float:
    """The same with values read as decimals of the fewest digits that fit within rounding; 0.0 if none fits."""
    size = float(np.max(np.abs(values)))
    if size > 1e290:  # differences and powers of ten would overflow
        return 0.0
    shifted = values - values[0]
    largest = float(np.max(np.abs(shifted)))
    if largest < 1e-290:
        return 0.0
    error = 8 * np.finfo(np.float64).eps * size + 4 * exact
    leading = math.floor(math.log10(largest))
    for digits in range(-leading, -leading + 15):
        scale = 10.0**digits
        if error * scale > 0.05:  # every number would pass
            return 0.0
        scaled = shifted * scale
        whole = np.rint(scaled)
        if np.all(np.abs(scaled - whole) <= error * scale):
            return _as_float(Fraction(int(np.gcd.reduce(whole.astype(np.int64)))) / Fraction(10) ** digits)
    return 0.0


def _as_float(value: Fraction) -> float:
    """The nearest float64, and infinity above its range."""
    try:
        return float(value)
    except OverflowError:
        return math.inf
