"""Matrix products to about 100 bits from float64 products that are exact.

Each factor is cut into slices of few bits, so that the product of two slices, and the sum of all products of one
weight, is a sum of integers below 2^53 in some unit: any conventional matrix product computes it without error.
(Ozaki, Ogita, Oishi and Rump, *Error-free transformations of matrix multiplication*, Numer. Algorithms 59, 2012;
the bound below is derived here.)

Bound. Let there be p slices of b bits, m the inner dimension, `|A| <= alpha`, `|B| <= beta` (powers of two, beta by
column). Slice i of A is at most `alpha 2^(-b(i-1))`, what is left after p slices at most `alpha 2^(-bp)`. The pairs
with i + j > p + 1 are dropped: at most `(p-1)(1 + 2^(1-b)) 2^(-bp)` times `alpha beta` for a term; the two remainders
add at most `(2 + 2^(1-b)) 2^(-bp)`. In all less than `m (p+2) 2^(-bp) alpha beta`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jaxpriv.certificates.arithmetic import ROUNDED, SMALLEST
from jaxpriv.certificates.doubledouble import accumulate, two_sum


SLICES = 5
_TINY = 2.0**-600  # columns below this are treated as if they were this large: only an absolute error matters there


@dataclass(frozen=True)
class Sliced:
    """One factor of a product: slices side by side (left factor) or on top of each other, last first (right)."""

    stacked: np.ndarray
    scale: np.ndarray
    inner: int
    bits: int


def left_factor(hi: np.ndarray, lo: np.ndarray | None = None) -> Sliced:
    """Prepare a matrix (n, m), or a double-double one, for use on the left."""
    inner, bits = hi.shape[1], _bits(hi.shape[1])
    scale = _scale(np.max(np.abs(hi), initial=0.0))
    return Sliced(np.concatenate(_slices(hi, lo, scale, bits), axis=1), scale, inner, bits)


def right_factor(hi: np.ndarray, lo: np.ndarray | None = None) -> Sliced:
    """Prepare a matrix (m, k), or a double-double one, for use on the right."""
    inner, bits = hi.shape[0], _bits(hi.shape[0])
    scale = _scale(np.max(np.abs(hi), axis=0, initial=0.0))
    return Sliced(np.concatenate(_slices(hi, lo, scale, bits)[::-1], axis=0), scale, inner, bits)


def product_terms(left: Sliced, right: Sliced) -> tuple[list[np.ndarray], np.ndarray]:
    """Exact partial products, largest first, and a bound (by column) of what they leave out of the product."""
    width = left.inner
    terms = [left.stacked[:, : (j + 1) * width] @ right.stacked[(SLICES - j - 1) * width :, :] for j in range(SLICES)]
    factor = width * (SLICES + 2) * math.ldexp(ROUNDED, -left.bits * SLICES)
    return terms, factor * left.scale * right.scale + SMALLEST


def product(left: Sliced, right: Sliced) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The product as `(hi, lo, error)`, `error` a bound for each entry."""
    terms, left_out = product_terms(left, right)
    hi, lo, error = accumulate(terms)
    return hi, lo, error + left_out


def _bits(inner: int) -> int:
    return (53 - (max(inner, 1) * SLICES - 1).bit_length()) // 2


def _scale(largest: np.ndarray) -> np.ndarray:
    _, exponent = np.frexp(np.maximum(largest, _TINY))
    return np.ldexp(1.0, exponent)


def _slices(hi: np.ndarray, lo: np.ndarray | None, scale: np.ndarray, bits: int) -> list[np.ndarray]:
    slices = []
    for i in range(1, SLICES + 1):
        shift = math.ldexp(1.5, 52 - bits * i) * scale
        part = (hi + shift) - shift
        slices.append(part)
        hi = hi - part
        if lo is not None:
            hi, lo = two_sum(hi, lo)
    return slices
