"""What every bound here assumes of the machine's arithmetic, the check of it, and outward rounding.

Assumed: IEEE binary64 with rounding to nearest, no flushing of subnormal numbers, and matrix products by conventional
inner products (any order, fused or not; no Strassen recursion, no splitting into shorter formats). Nothing is assumed
about Cholesky, eigenvalue or triangular solvers: their results are only proposals.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from jaxpriv.errors import CertificateError, InputError


UNIT_ROUNDOFF = 2.0**-53
SMALLEST = 1e-290  # covers every underflow once the entries have been scaled to about 1
LARGEST = 1e290
ROUNDED = 1 + 2.0**-40  # covers the rounding of sums of up to a few thousand non-negative error terms


def gamma(count: int) -> float:
    """Upper bound of `k u / (1 - k u)`, the relative error of `k` rounded operations (Higham, 2002, Lemma 3.1)."""
    product = count * UNIT_ROUNDOFF
    return product / (1 - product) * (1 + 4 * UNIT_ROUNDOFF)


def up(value: float) -> float:
    """The next double above: an upper bound of an exact value whose correctly rounded double is `value`."""
    return math.nextafter(value, math.inf)


def down(value: float) -> float:
    """The next double below: a lower bound of an exact value whose correctly rounded double is `value`."""
    return math.nextafter(value, -math.inf)


def fraction_up(value: Fraction) -> float:
    """The smallest double not below an exact rational (`inf` above the range of doubles)."""
    try:
        rounded = float(value)
    except OverflowError:
        return math.inf if value > 0 else -np.finfo(np.float64).max
    return rounded if Fraction(rounded) >= value else up(rounded)


def fraction_down(value: Fraction) -> float:
    """The largest double not above an exact rational (`-inf` below the range of doubles)."""
    return -fraction_up(-value)


def square_bounds(value: float) -> tuple[float, float]:
    """The doubles just around the exact square of a double: `(lower, upper)`, equal when the square is a double."""
    exact = Fraction(value) ** 2
    return fraction_down(exact), fraction_up(exact)


def scale_up(value: float, unit: float) -> float:
    """Upper bound of `value * unit**2` for a non-negative value and a power of two."""
    scaled = value * unit * unit
    return scaled if SMALLEST < scaled < LARGEST or value == 0 else up(scaled)


def scale_down(value: float, unit: float) -> float:
    """Lower bound of `value * unit**2` for a non-negative value and a power of two."""
    scaled = value * unit * unit
    return scaled if SMALLEST < scaled < LARGEST else max(down(scaled), 0.0)


def norm_up(values: np.ndarray) -> float:
    """Upper bound of the Frobenius norm of an array (any shape); nan where it holds one."""
    flat = np.ravel(values)
    top = float(np.max(np.abs(flat), initial=0.0))
    if not 0 < top < math.inf:
        return top + SMALLEST
    # Scaled by a power of two, which is exact but for entries that vanish beside the largest: no square underflows.
    exponent = math.frexp(top)[1]
    flat = np.ldexp(flat, -exponent)
    bound = float(np.sqrt(np.dot(flat, flat))) * (1 + (flat.size + 8) * UNIT_ROUNDOFF)
    return float(np.ldexp(bound, exponent)) + SMALLEST


def power_of_two(values: np.ndarray) -> np.ndarray:
    """Powers of two `d` with `d**2 * values` in [1/2, 2]; `values` must be positive and in the safe range."""
    return np.ldexp(1.0, -np.rint(np.log2(values) / 2).astype(int))


def safely_positive(values: np.ndarray) -> bool:
    """Whether all entries are finite, positive, and so far from the ends of the range that scaling is exact."""
    return bool(np.all((values > SMALLEST) & (values < LARGEST)))


def float64_array(values: Any, name: str) -> np.ndarray:
    """Exact float64 copy of an array-like. Raises InputError for anything that float64 does not hold exactly."""
    try:
        array = np.asarray(values)
    except Exception as error:  # an abstract array inside a traced function has no values to certify
        if "Tracer" in type(error).__name__:
            raise InputError(
                f"{name} has no values yet (it is being traced by a compiled function): certificates are computed on "
                "the host. Call this outside jit, vmap and grad."
            ) from error
        raise InputError(f"{name} cannot be read as an array: {error}") from error
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} must hold real numbers; it has dtype {array.dtype}.")
    exact = array.astype(np.float64)
    if not np.all(np.isfinite(exact)):
        where = np.argwhere(~np.isfinite(np.atleast_1d(exact)))[0]
        raise InputError(f"{name} has an entry that is not finite, at position {tuple(int(i) for i in where)}.")
    if array.dtype.itemsize > 4 and array.dtype != np.float64 and not np.all(exact.astype(array.dtype) == array):
        raise InputError(
            f"{name} (dtype {array.dtype}) has entries that float64 does not hold exactly; round it first."
        )
    return np.ascontiguousarray(exact) if exact.ndim else exact


def symmetric_array(values: Any, name: str, size: int | None = None) -> np.ndarray:
    """A finite, exactly symmetric float64 matrix. Raises InputError otherwise."""
    array = float64_array(values, name)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or (size is not None and array.shape[0] != size):
        wanted = "(n, n)" if size is None else f"({size}, {size})"
        raise InputError(f"{name} must have shape {wanted}; it has shape {array.shape}.")
    if array.shape[0] == 0:
        raise InputError(f"{name} is empty.")
    if not np.array_equal(array, array.T):
        row, column = np.unravel_index(np.argmax(np.abs(array - array.T)), array.shape)
        raise InputError(
            f"{name} is not symmetric: entries ({row}, {column}) and ({column}, {row}) differ by "
            f"{abs(array[row, column] - array[column, row]):.3g}. Pass (A + A.T) / 2."
        )
    return array


def require_arithmetic() -> None:
    """Check the assumptions of this module, the slow part once; raises CertificateError when one does not hold."""
    smallest = np.full(4, np.nextafter(0.0, 1.0))
    if not (np.all(np.multiply(smallest, 1.0) > 0) and np.all(np.multiply(smallest * 2.0**60, 2.0**-60) == smallest)):
        raise CertificateError(
            "subnormal numbers are flushed to zero in this thread (a library built with fast-math can do this); "
            "no bound can be verified here."
        )
    _check_rounding_and_products()


@functools.cache
def _check_rounding_and_products() -> None:
    one, unit = np.ones(8), UNIT_ROUNDOFF
    vector = np.array_equal(np.add(one, unit), one) and np.array_equal(np.add(one, 3 * unit), one + 4 * unit)
    scalar = 1.0 + unit == 1.0 and 1.0 + 3 * unit == 1.0 + 4 * unit
    if not (vector and scalar):
        raise CertificateError("floating-point addition does not round to nearest-even; no bound can be verified here.")
    rng = np.random.default_rng(20060101)
    left, right = rng.integers(-(2**22), 2**22, size=(2, 64, 64))
    if not np.array_equal(np.matmul(left.astype(np.float64), right.astype(np.float64)), left @ right):
        raise CertificateError("a float64 matrix product of integers is inexact; no bound can be verified here.")
    size = 12
    for _ in range(8):
        rows, columns = np.exp2(rng.integers(-20, 21, size=(2, size)))
        a = rng.standard_normal((size, size)) * rows[:, None]
        b = rng.standard_normal((size, size)) * columns
        exact = _exact_integers(a) @ _exact_integers(b)
        bound = _exact_integers(np.abs(a)) @ _exact_integers(np.abs(b))
        computed = _exact_integers(np.matmul(a, b), 2 * _SHIFT)
        if np.any(np.abs(computed - exact) * 2**53 > bound * (size + 1)):
            raise CertificateError(
                "float64 matrix products lose more than conventional inner products do (a shorter format or a fast "
                "matrix algorithm is in use); no bound can be verified here."
            )


_SHIFT = 110


def _exact_integers(matrix: np.ndarray, shift: int = _SHIFT) -> np.ndarray:
    mantissa, exponent = np.frexp(matrix)
    integers = np.array([int(m) for m in np.ldexp(mantissa, 53).ravel()], dtype=object)
    scaled = [m << (int(e) - 53 + shift) for m, e in zip(integers, exponent.ravel(), strict=True)]
    return np.array(scaled, dtype=object).reshape(matrix.shape)
