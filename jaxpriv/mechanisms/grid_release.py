"""The private release: an exact Gaussian mechanism rounded to a public grid, in integer arithmetic.

What is published is j = ⌊Z/Δ + ½⌋ with Z = X + L ξ + floor_sd ζ in real arithmetic and Δ = 2^k public. It is a function
of Z alone, so it loses nothing that Z does not. X, L and floor_sd are floats, hence exact dyadic numbers, and ξ, ζ are
integers over 2^160: the sum and the floor are those of exact arithmetic. (Double precision decides where an error
bound proves that it decides rightly, integers do elsewhere: see `bulk_rounding`.) Adding floats instead lets single
outputs prove inputs impossible (Mironov, CCS 2012; Jin et al., 2022; Haney et al., 2022).

The distance from the ideal. With draws within e of exact ones, coordinate i of Z is within e Λ, where
Λ = max_i Σ_j |L_ij| + floor_sd; it then rounds differently only within that distance of a boundary of the grid. A
unimodal density f summed over a lattice of step Δ is at most 1/Δ + max f, and max f ≤ 1/(√(2π) floor_sd), so in total
variation, for every X,

    τ ≤ pairs · PAIR_FAILURE + 2 n e Λ (1/Δ + 1/(√(2π) floor_sd)).        (derived here; proof in docs/design.md)

τ depends on public numbers only. It is a probability and adds to δ; a release whose τ is not below 2^-40 (a chance in
10^12) is refused. On the default grid, Δ > floor_sd/2, it is below (n + q + 1) 2^-69 + n 2^-87 Λ/floor_sd: for Λ up to
2^16 floor_sd below 2^-58 for 10^3 points and below 2^-48 for 10^6; the limit is reached at 4·10^8.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jaxpriv.errors import InputError
from jaxpriv.mechanisms.bulk_rounding import OUT_OF_RANGE, bulk_grid_integers
from jaxpriv.mechanisms.exact_normal import DRAW_ERROR, PAIR_FAILURE
from jaxpriv.mechanisms.exact_rounding import dyadic


#: The largest distance in total variation from the ideal release that is accepted.
LARGEST_TAU = Fraction(1, 2**40)

_SMALLEST_EXPONENT, _LARGEST_EXPONENT = -1074, 971  # integers below 2^53 times 2^k are then exact float64

# Messages about the trace are constants: no value, no position, no count.
_BAD_TRACE = (
    "The trace cannot be released: it must be a one-dimensional array of finite real numbers in at most double "
    "precision, one for each row of the mechanism's factor."
)
_OUT_OF_RANGE = (
    "The trace cannot be released: some output does not fit in the integers that float64 holds exactly. Use a coarser "
    "grid (a larger exponent), or an origin nearer to the trace."
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Release:
    """What may be published: integers on a public grid.

    Args:
        integers: j, (n,) int64, |j| < 2^53.
        exponent: k; the published values are j · 2^k, in the unit of the trace.
        tau: total variation distance from the ideal release that the integers are within (at most 2^-40): what is
            certified of the ideal release holds for this one except with that probability.
        resolution: the resolution of the data that was declared, in the unit of the trace.

    It keeps neither the trace nor the noise. `release` makes it; building one from stored integers is how a published
    file is read back. A simulated trace is a `SimulatedRelease`, never this.
    """

    integers: np.ndarray
    exponent: int
    tau: float
    resolution: float

    def __post_init__(self) -> None:
        integers = np.asarray(self.integers)
        if integers.dtype != np.int64 or integers.ndim != 1 or integers.size == 0:
            raise InputError("integers of a release must be a non-empty one-dimensional int64 array.")
        if not (np.all(integers < 2**53) and np.all(integers > -(2**53))):
            raise InputError(_OUT_OF_RANGE)
        integers = integers.copy()
        integers.setflags(write=False)
        object.__setattr__(self, "integers", integers)
        object.__setattr__(self, "exponent", _checked_exponent(self.exponent))

    @property
    def step(self) -> float:
        """Δ = 2^exponent, the step of the grid, in the unit of the trace."""
        return math.ldexp(1.0, self.exponent)

    @property
    def values(self) -> np.ndarray:
        """The published trace, (n,) float64, in the unit of the trace: integers · 2^exponent, exactly."""
        return np.ldexp(self.integers.astype(np.float64), self.exponent)

    def __repr__(self) -> str:
        return (
            f"Release({self.integers.size} values on a grid of step 2^{self.exponent}, tau={self.tau:.1e}, "
            f"resolution={self.resolution!r})"
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SimulatedRelease:
    """A noisy trace made from a seed in floating point, for studies: not private, and not to be published.

    Args:
        values: the noisy trace, (..., n), an array of whatever library made it.
        exponent: k if the values were rounded to multiples of 2^k, else None.
    """

    values: Any
    exponent: int | None = None

    def __repr__(self) -> str:
        return f"SimulatedRelease(simulated: not private; shape {tuple(np.shape(self.values))})"


def release(
    x: ArrayLike,
    factor: ArrayLike,
    floor_sd: float,
    *,
    resolution: float,
    exponent: int | None = None,
) -> Release:
    """Publish a trace with Gaussian noise of covariance factor @ factor.T + floor_sd² I, in exact arithmetic.

    Args:
        x: the trace, (n,), at most double precision.
        factor: L, (n, q), q ≥ 0, in the unit of the trace.
        floor_sd: standard deviation of the independent part, in the unit of the trace; above 0, and at least
            2 · resolution.
        resolution: the step to which the trace was recorded, in the unit of the trace; a public fact about the
            instrument, not measured on this trace. 0 declares that the data are not quantised.
        exponent: k of the public grid 2^k. Default: the largest power of two that is at most floor_sd. Choose it
            without looking at the trace.

    The randomness is the operating system's; there is no seed, and a second call draws again. Two releases of one trace
    combine: publish one, and answer later requests from it.

    Raises:
        InputError: about the trace, always one of two constant texts that hold no value or position; about the
            parameters, what to change.
    """
    return _release(x, factor, floor_sd, resolution=resolution, exponent=exponent, _bytes=os.urandom)


def _release(
    x: ArrayLike,
    factor: ArrayLike,
    floor_sd: float,
    *,
    resolution: float,
    exponent: int | None,
    _bytes: Callable[[int], bytes],
) -> Release:
    """`release` with the source of bytes as an argument, for tests of the same code."""
    load = _real_array(factor)
    if load is None or load.ndim != 2 or load.shape[0] == 0:
        raise InputError("factor must be a finite real array of shape (n, q) with n at least one.")
    floor, step_of_data = _real_array(floor_sd), _real_array(resolution)
    if floor is None or floor.ndim or step_of_data is None or step_of_data.ndim or step_of_data < 0:
        raise InputError("floor_sd and resolution must be finite real numbers, resolution not negative.")
    if floor <= 0:
        raise InputError(
            "floor_sd must be positive: noise without an independent part publishes some directions of the trace "
            "exactly, and quantised data then often in full. Design with a floor."
        )
    if floor < 2 * float(step_of_data):
        raise InputError(
            "floor_sd is below twice the resolution of the data: the steps of the data would show through the noise. "
            "Design with floor_sd at least twice the resolution."
        )
    grid = _checked_exponent(math.frexp(float(floor))[1] - 1 if exponent is None else exponent)
    tau = total_variation(load, float(floor), grid)
    if tau >= LARGEST_TAU:
        raise InputError(
            "The release would not be exact enough: the trace is too long, or floor_sd or the grid's step too small "
            "beside the noise. Raise floor_sd or the exponent, or release in parts designed jointly."
        )
    trace = _real_array(x)
    if trace is None or trace.shape != load.shape[:1]:
        raise InputError(_BAD_TRACE)
    integers = bulk_grid_integers(trace, load, float(floor), grid, _bytes)
    if not np.all(np.abs(integers) < OUT_OF_RANGE):
        raise InputError(_OUT_OF_RANGE)
    return Release(integers, grid, _rounded_up(tau), float(step_of_data))


def total_variation(factor: np.ndarray, floor_sd: float, exponent: int) -> Fraction:
    """The bound τ of the module's docstring, exactly; 2/5 stands for 1/√(2π) = 0.3989…

    factor: (n, q) finite float64; floor_sd: positive; exponent: of the grid's step.
    """
    size, rank = factor.shape
    floor = Fraction(floor_sd)
    reach = _largest_row_sum(np.abs(factor)) + floor
    pairs = (size + rank + 1) // 2
    return pairs * PAIR_FAILURE + 2 * size * DRAW_ERROR * reach * (1 / _power_of_two(exponent) + Fraction(2, 5) / floor)


def _largest_row_sum(sizes: np.ndarray) -> Fraction:
    """The largest sum over a row of `sizes`, (n, q) not negative, exactly."""
    rank = sizes.shape[1]
    largest = float(sizes.max(initial=0.0))
    if largest == 0.0:
        return Fraction(0)
    # Scaled so that no sum overflows; what underflows is below the margin. Only rows near the top are summed exactly.
    with np.errstate(under="ignore"):
        rough = np.sum(np.ldexp(sizes, -math.frexp(largest)[1]), axis=1)
    top = sizes[rough >= rough.max() * (1.0 - (rank + 2) * 2.0**-51)]
    top = top[np.lexsort(top.T)]
    repeated = np.all(top[1:] == top[:-1], axis=1)
    whole, exponent = dyadic(top[np.append(True, ~repeated)])
    return max(sum(whole[i : i + rank]) for i in range(0, len(whole), rank)) * _power_of_two(exponent)


def _power_of_two(exponent: int) -> Fraction:
    return Fraction(2**exponent) if exponent >= 0 else Fraction(1, 2**-exponent)


def _rounded_up(value: Fraction) -> float:
    """A float64 that is at least `value`."""
    return math.nextafter(float(value), math.inf)


def _checked_exponent(exponent: int) -> int:
    """`exponent` as an int for which the grid is exact in float64."""
    if isinstance(exponent, (bool, np.bool_)) or not hasattr(exponent, "__index__"):
        raise InputError("The exponent of the grid must be an integer.")
    exponent = operator.index(exponent)
    if not _SMALLEST_EXPONENT <= exponent <= _LARGEST_EXPONENT:
        raise InputError("The exponent of the grid is outside the range of float64.")
    return exponent


def _real_array(values: Any) -> np.ndarray | None:
    """A float64 copy that equals `values` exactly, or None where there is no finite one.

    The caller raises outside every handler, so that no exception about the values is chained to its own.
    """
    try:
        array = None if np.ma.isMaskedArray(values) else np.asarray(values)
    except Exception:  # whatever an array-like raises may quote its values
        return None
    if array is None or array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        return None
    if array.dtype.kind in "iu" and not (np.all(array <= 2**53) and np.all(array >= -(2**53))):
        return None
    array = array.astype(np.float64)
    return array if np.all(np.isfinite(array)) else None
