"""Products of many matrices with vectors, far more accurate than a plain product: what is small after cancellation.

A matrix M with entries of at most T (a power of two) is cut into the multiples of g = 2^-a T and the rest, a vector
v with |v|_1 <= l (a power of two) into the multiples of h = 2^-b l and the rest, both exactly. With a + b = 52 every
partial sum of the product of the first parts is a multiple of g h of at most 2 T l = 2^53 g h, so a conventional matrix
product, in any order and fused or not, makes no rounding error at all. The rest, M_1 v_2 + M_2 v, is about 2^-22 of
the size of |M| |v| and is evaluated plainly. (Cutting by addition of a large constant: Rump, Ogita and Oishi, *Accurate
floating-point summation*, SIAM J. Sci. Comput. 31 (2008), Lemma 3.3; exact products of the parts: Ozaki, Ogita, Oishi
and Rump, Numer. Algorithms 59 (2012). The bound is derived here; proof in docs/batches.md.)
"""

from __future__ import annotations

import math

import numpy as np

from jaxpriv.certificates.arithmetic import ROUNDED, SMALLEST, UNIT_ROUNDOFF, gamma


_FAR = 400  # binary exponents beyond +-_FAR are not evaluated (above) or cut no finer (below)


def applied(matrix: np.ndarray, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Matrices (..., n, n) times vectors (..., n): values (..., n) and bounds (..., n) of their absolute errors.

    The error is about a rounding of the value itself plus 1e-7 of what a plain product may lose. It is infinite or NaN
    where the entries are not finite or beyond 2^400.
    """
    n = vector.shape[-1]
    fine = 26 + math.ceil(math.log2(n) / 2)  # b; the two parts of the rest are then of about the same size
    coarse = 52 - fine  # a
    length = np.sum(np.abs(vector), axis=-1) * ROUNDED
    top, top_exponent = _power_above(np.max(np.abs(matrix), axis=(-2, -1)))
    reach, reach_exponent = _power_above(length)
    # 1.5 * 2^52 units: adding it rounds to whole units, taking it away again is exact.
    shift = np.ldexp(1.5, 52 - coarse + top_exponent)[..., None, None]
    first = matrix + shift
    first -= shift
    rest = matrix - first
    shift = np.ldexp(1.5, 52 - fine + reach_exponent)[..., None]
    whole = (vector + shift) - shift
    parts = first @ np.stack([whole, vector - whole], axis=-1)
    low = parts[..., 1] + (rest @ vector[..., None])[..., 0]
    value = parts[..., 0] + low
    share = n * 2.0 ** -(fine + 1) + 2.0 ** -(coarse + 1)
    error = top * reach * (gamma(n + 3) * share * ROUNDED) + SMALLEST
    return value, error[..., None] + np.abs(value) * (UNIT_ROUNDOFF * ROUNDED)


def quadratic(vector: np.ndarray, value: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inner products (...) of vectors (..., n) with `value` (..., n) known up to `error` (..., n), and error bounds."""
    n, size = vector.shape[-1], np.abs(vector)
    total = np.einsum("...i,...i->...", vector, value)
    # gamma also covers the rounding of the bound's own sums.
    spread = np.einsum("...i,...i->...", size, gamma(n + 2) * np.abs(value) + error)
    return total, spread * ROUNDED + SMALLEST


def _power_above(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Powers of two above non-negative values, from 2^-400, with their exponents; infinite above 2^400."""
    exponent = np.clip(np.frexp(values)[1], -_FAR, _FAR)
    power = np.ldexp(1.0, exponent)
    return np.where(values <= power, power, np.inf), exponent
