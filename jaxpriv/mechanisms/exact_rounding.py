"""The rounding of trace plus noise to a grid in integer arithmetic: no rounding error at all."""

from __future__ import annotations

import operator

import numpy as np

from jaxpriv.mechanisms.exact_normal import FRACTION_BITS


def exact_grid_integers(
    trace: np.ndarray, factor: np.ndarray, floor_sd: float, normals: list[int], exponent: int
) -> list[int]:
    """⌊(trace + factor ξ + floor_sd ζ) / 2^exponent + ½⌋, (n,) exact integers; `normals` holds ξ (q,) then ζ (n,)."""
    rank = factor.shape[1]
    load, load_exponent = dyadic(factor)
    data, data_exponent = dyadic(trace)
    (floor,), floor_exponent = dyadic(np.array([floor_sd]))
    unit = min(load_exponent - FRACTION_BITS, floor_exponent - FRACTION_BITS, data_exponent, exponent - 1)
    load_shift, floor_shift = load_exponent - FRACTION_BITS - unit, floor_exponent - FRACTION_BITS - unit
    data_shift, grid_shift = data_exponent - unit, exponent - unit
    shared, half = normals[:rank], 1 << (grid_shift - 1)
    return [
        (
            (sum(map(operator.mul, load[i * rank : (i + 1) * rank], shared)) << load_shift)
            + (floor * own << floor_shift)
            + (value << data_shift)
            + half
        )
        >> grid_shift
        for i, (value, own) in enumerate(zip(data, normals[rank:], strict=True))
    ]


def dyadic(values: np.ndarray) -> tuple[list[int], int]:
    """Integers (row by row) and one exponent e with values == integers · 2^e, exactly; values finite float64."""
    mantissa, exponents = np.frexp(values.ravel())
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    nonzero = whole != 0
    base = int(exponents[nonzero].min()) if nonzero.any() else 0
    shifts = np.where(nonzero, exponents - base, 0)
    return list(map(operator.lshift, whole.tolist(), shifts.tolist())), base - 53
