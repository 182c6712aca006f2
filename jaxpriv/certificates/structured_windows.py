"""The losses of many secrets of a long trace, each from a window of it, with a bound of what the rest adds.

For any Y a secret's posterior covariance is `Z' Sigma Z + Y' G Y - R' N^-1 R`, Z = E - Y, and the last term is at most
|R|^2 / (s^2 + eta). With Y zero outside a window the first terms need the window only. The rows of R outside count with
their norm only, and that is at most the sum of |Y|, each entry times the largest covariance at its distance from the
outside. So the whole outside enters as one more coordinate whose products are unknown within that bound. Noise columns
that vanish on the window have no part in any of it. (Derived here; proof in docs/long_traces_approximations.md.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxpriv.certificates.loss import LossBound
from jaxpriv.certificates.structured import structured_loss_bounds
from jaxpriv.certificates.structured_markov import Term, kernel_columns


FADED = 1e-6  # correlation with the secret at the edge of its window
MARGIN = 1e-16  # correlation with the window where products with it end
_SMALLEST_TRACE = 4096  # fixes below which the whole trace costs little
_LOOSE = 1e-9  # relative width of a loss above which the whole trace is used as well
_LEAST = 256  # fixes of a window; lengths are powers of two, so that programs are compiled for few


class OutsideAsOne:
    """A prior on some fixes of a trace, and one last coordinate that stands for the norm of all others.

    `part` is the structured prior of the w fixes, `leak` (w,) bounds the norm of each one's covariances with all fixes
    outside, `nugget` is that of the whole trace. For vectors that are zero outside: products are exact on the fixes
    within the bounds of `part`, and the last coordinate of a product is zero within a bound of the norm of what the
    product is outside. `inner` are the fixes where solutions are proposed, by the prior `core` of these; they are zero
    elsewhere.
    """

    one_sided = False

    def __init__(self, part: Any, leak: np.ndarray, nugget: float, inner: slice, core: Any):
        self.part, self.leak, self.nugget, self.inner, self.core = part, leak, nugget, inner, core
        self.size = leak.size + 1
        if hasattr(part, "exact_block"):
            self.exact_block = part.exact_block

    def columns(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        """Of the fixes, and zero for the rest: (w + 1, k)."""
        return _with_row(np.asarray(self.part.columns(indices)))

    def columns_error(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        """Of the fixes, and a bound of the norm of the rest: (w + 1, k)."""
        errors = _with_row(np.asarray(self.part.columns_error(indices)))
        errors[-1] = self.leak[np.asarray(indices, dtype=int)]
        return errors

    def product(self, vectors: np.ndarray) -> np.ndarray:
        """Sigma V on the fixes, (w + 1, m)."""
        return _with_row(self.part.product(vectors[:-1]))

    def bounded_product(self, vectors: np.ndarray) -> _Product:
        """Sigma V on the fixes, (w + 1, m); the rest is in the error."""
        image = self.part.bounded_product(vectors[:-1])
        outside = (self.leak @ np.abs(vectors[:-1])) * (1.0 + 2.0**-30)
        entries = image.entries
        if entries is not None:
            entries = _with_row(entries)
            entries[-1] = outside
        return _Product(_with_row(image.values), entries, (image.norms + outside) * (1.0 + 2.0**-50))

    def shifted_solve(self, shift: float, right: np.ndarray) -> np.ndarray:
        """(Sigma + shift I)^-1 of the inner fixes alone, (w + 1, m), zero elsewhere: a proposal."""
        solution = np.zeros_like(right)
        solution[self.inner] = self.core.shifted_solve(shift, right[self.inner])
        return solution


class _Product:
    """What `bounded_product` gives: values (n, m), a bound of each entry's error (or None), and of each column's."""

    def __init__(self, values: np.ndarray, entries: np.ndarray | None, norms: np.ndarray):
        self.values, self.entries, self.norms = values, entries, norms


def windowed_loss_bounds(
    prior: Any, secrets: Sequence[Sequence[int]], factor: np.ndarray, floor_variance: float
) -> list[LossBound]:
    """`structured_loss_bounds`, by windows where that suffices: for a Markov prior and noise columns that end.

    `factor` (n, q). The cost of a secret is then that of its window, not of the trace. Where a window would be most of
    the trace, or proves less than the whole trace might, the whole trace is used. Losses are in 1 / squared unit of the
    trace.
    """
    size = factor.shape[0]
    lags = _lags(prior) if size >= _SMALLEST_TRACE else None
    bounds: list[LossBound | None] = [None] * len(secrets)
    if lags is not None and len(secrets) > 1:
        ends = column_ends(factor)
        for chosen in groups(secrets, ends).values():
            positions = [secrets[i] for i in chosen]
            found = window_bounds(prior, positions, factor, ends, floor_variance, *lags, largest=size // 2)
            for i, bound in zip(chosen, found or [], strict=False):
                bounds[i] = bound
    left = [i for i, bound in enumerate(bounds) if bound is None or not bound.upper <= bound.lower * (1.0 + _LOOSE)]
    whole = structured_loss_bounds(prior, [secrets[i] for i in left], factor, floor_variance) if left else []
    for i, bound in zip(left, whole, strict=True):
        other = bounds[i]
        bounds[i] = bound if other is None else LossBound(min(bound.upper, other.upper), max(bound.lower, other.lower))
    return [bound for bound in bounds if bound is not None]


def column_ends(factor: np.ndarray) -> np.ndarray:
    """(2, q): the first row of each column of `factor` (n, q) that is not zero, and the one after the last.

    A column of zeros starts at n and ends at 0.
    """
    there = factor != 0.0
    some = np.any(there, axis=0)
    first = np.where(some, np.argmax(there, axis=0), factor.shape[0])
    return np.stack([first, np.where(some, factor.shape[0] - np.argmax(there[::-1], axis=0), 0)])


def groups(secrets: Sequence[Sequence[int]], ends: np.ndarray) -> dict[tuple[int, ...], list[int]]:
    """The secrets that the same noise columns meet; those that none meets stand alone."""
    found: dict[tuple[int, ...], list[int]] = {}
    for i, indices in enumerate(secrets):
        met = tuple(_meeting(ends, min(indices), max(indices) + 1).tolist()) or (-1 - i,)
        found.setdefault(met, []).append(i)
    return found


def window_bounds(
    prior: Any,
    secrets: Sequence[Sequence[int]],
    factor: np.ndarray,
    ends: np.ndarray,
    floor_variance: float,
    reach: float,
    margin: float,
    largest: int,
) -> list[LossBound] | None:
    """Bounds with Y zero beyond `reach` of the secrets and of the noise columns that meet them; None if too long.

    Products end `margin` beyond that; both are lags, in the unit of the times, any of which give true bounds. `ends`
    (2, q) are those of the columns of `factor` (n, q); `largest` is how many fixes may be used.
    """
    times, size = np.asarray(prior.times), factor.shape[0]
    low, high = min(map(min, secrets)), max(map(max, secrets)) + 1
    met = _meeting(ends, low, high)
    low = int(min([np.searchsorted(times, times[low] - reach), *ends[0, met]]))
    high = int(max([np.searchsorted(times, times[high - 1] + reach, side="right"), *ends[1, met]]))
    low, high = _rounded(low, high, size)
    # A column that vanishes on the window is orthogonal to Y; all others are taken whole.
    near = _meeting(ends, low, high)
    start = int(min([np.searchsorted(times, times[low] - margin), *ends[0, near]]))
    stop = int(max([np.searchsorted(times, times[high - 1] + margin, side="right"), *ends[1, near]]))
    start, stop = _rounded(start, stop, size)
    if stop - start > largest:
        return None
    part, core = (prior.window(np.arange(*span)) for span in ((start, stop), (low, high)))
    window = OutsideAsOne(part, _leak(prior, start, stop), prior.nugget, slice(low - start, high - start), core)
    positions = [[index - start for index in indices] for indices in secrets]
    return structured_loss_bounds(window, positions, _with_row(factor[start:stop, near]), floor_variance)


def _meeting(ends: np.ndarray, low: int, high: int) -> np.ndarray:
    return np.flatnonzero((ends[0] < high) & (ends[1] > low))


def _lags(prior: Any) -> tuple[float, float] | None:
    """Where the correlation of a Markov prior at sorted times has faded to FADED and to MARGIN; None if it does not."""
    if not (hasattr(prior, "terms") and hasattr(prior, "near") and all(term.factors for term in prior.terms)):
        return None
    times = np.asarray(prior.times)
    span = float(times[-1] - times[0])
    if np.any(np.diff(times) < 0.0) or not span > 0.0:
        return None
    longest = max(factor.lengthscale for term in prior.terms for factor in term.factors)
    lags = longest * 2.0 ** np.arange(-20.0, 10.0, 0.125)
    values = _kernel(prior.terms, np.concatenate([[0.0], lags]))
    faded = [np.flatnonzero(values[1:] <= share * values[0]) for share in (FADED, MARGIN)]
    if any(found.size == 0 for found in faded):
        return None
    return float(lags[faded[0][0]]), float(lags[faded[1][0]])


def _leak(prior: Any, start: int, stop: int) -> np.ndarray:
    """For the fixes `start` ... `stop` - 1 a bound of the norm of each one's covariances with all others, (w,).

    Sums and products of Matérn kernels do not rise with the lag, so the nearest fix outside has the largest covariance.
    """
    times = np.asarray(prior.times)
    here, count = times[start:stop], times.size - (stop - start)
    leak = np.zeros(here.size)
    if count == 0:
        return leak
    away = np.full(here.size, np.inf)
    if start > 0:
        away = here - times[start - 1]
    if stop < times.size:
        away = np.minimum(away, times[stop] - here)
    return math.sqrt(count) * _kernel(prior.terms, away * (1.0 - 2.0**-40)) * (1.0 + 2.0**-50)


def _kernel(terms: tuple[Term, ...], lags: np.ndarray) -> np.ndarray:
    """Upper bounds of the kernel at `lags` (w,)."""
    values, errors = kernel_columns(terms, lags, np.zeros(1))
    return (values[:, 0] + errors[:, 0]) * (1.0 + 2.0**-50)


def _rounded(low: int, high: int, size: int) -> tuple[int, int]:
    """A few more fixes, up to a power of two."""
    wanted = min(max(_LEAST, 1 << (high - low - 1).bit_length()), size)
    low = max(0, min(low - (wanted - (high - low)) // 2, size - wanted))
    return low, low + wanted


def _with_row(values: np.ndarray) -> np.ndarray:
    return np.concatenate([values, np.zeros((1, values.shape[1]))])
