"""Numbers held as an unevaluated sum of two doubles: error-free transforms, vectorised, and a Cholesky factor.

Sources: Knuth (1969) and Dekker (1971) for the transforms; Ogita, Rump and Oishi, *Accurate sum and dot product*,
SIAM J. Sci. Comput. 26 (2005). The transforms are exact while nothing overflows or underflows, which the callers see to
by scaling.
"""

from __future__ import annotations

import numpy as np

from jaxpriv.certificates.arithmetic import UNIT_ROUNDOFF, gamma


_SPLITTER = 2.0**27 + 1


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`(s, e)` with `s = fl(a + b)` and `s + e = a + b` exactly (Knuth)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def split(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`a` as an exact sum of two doubles of at most 26 bits each (Veltkamp)."""
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`(p, e)` with `p = fl(a b)` and `p + e = a b` exactly (Dekker)."""
    product = a * b
    a_high, a_low = split(a)
    b_high, b_low = split(b)
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def accumulate(terms: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sum of arrays as `(hi, lo, error)`: the exact entrywise sum differs from `hi + lo` by at most `error`.

    The running errors are exact, so only their plain sum is rounded: the bound is `gamma_k` times the sum of their
    absolute values, inflated for its own rounding.
    """
    total = terms[0]
    if len(terms) == 1:
        return total, np.zeros_like(total), np.zeros_like(total)
    total, low = two_sum(total, terms[1])
    size = np.abs(low)
    for term in terms[2:]:
        total, error = two_sum(total, term)
        low = low + error
        size = size + np.abs(error)
    hi, lo = two_sum(total, low)
    return hi, lo, size * (gamma(len(terms)) * (1 + 2.0**-40))


def multiply(a_hi: np.ndarray, a_lo: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Double-double times double, as `(hi, lo, error)` with a bound of the error of each entry."""
    product, error = two_product(a_hi, b)
    rest = a_lo * b
    hi, lo = two_sum(product, error + rest)
    return hi, lo, (np.abs(error) + np.abs(rest)) * (4 * UNIT_ROUNDOFF)


def cholesky(hi: np.ndarray, lo: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Upper triangular `R` (double-double) with `R' R` close to each matrix of a batch `(..., n, n)`.

    A proposal: no error bound is claimed. Entries are NaN where a pivot was not positive.
    """
    hi, lo = hi.copy(), lo.copy()
    size = hi.shape[-1]
    upper_hi, upper_lo = np.zeros_like(hi), np.zeros_like(lo)
    for j in range(size):
        pivot, pivot_low = hi[..., j, j], lo[..., j, j]
        root = np.sqrt(np.where(pivot > 0, pivot, np.nan))
        square, error = two_product(root, root)
        root_low = ((pivot - square) - error + pivot_low) / (2 * root)
        inverse = 1 / root
        product, error = two_product(root, inverse)
        inverse_low = inverse * ((1 - product) - error - root_low * inverse)
        row, row_low = hi[..., j, j:], lo[..., j, j:]
        product, error = two_product(row, inverse[..., None])
        row, row_low = two_sum(product, error + row * inverse_low[..., None] + row_low * inverse[..., None])
        row[..., 0], row_low[..., 0] = root, root_low
        upper_hi[..., j, j:], upper_lo[..., j, j:] = row, row_low
        if j + 1 == size:
            break
        row, row_low = row[..., 1:], row_low[..., 1:]
        high, low = split(row)
        left, across = row[..., :, None], row[..., None, :]
        square = left * across
        cross = high[..., :, None] * low[..., None, :]
        error = high[..., :, None] * high[..., None, :] - square + cross + np.swapaxes(cross, -1, -2)
        error += low[..., :, None] * low[..., None, :]
        cross = left * row_low[..., None, :]
        error += cross + np.swapaxes(cross, -1, -2)
        rest = slice(j + 1, None)
        difference, rounding = two_sum(hi[..., rest, rest], -square)
        rounding += lo[..., rest, rest] - error
        total = difference + rounding
        hi[..., rest, rest] = total
        lo[..., rest, rest] = rounding - (total - difference)
    return upper_hi, upper_lo
