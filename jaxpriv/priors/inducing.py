"""Smooth stationary kernels at irregular times through inducing points: never above the true covariance."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import cho_solve_banded, cholesky_banded, solve_banded
from scipy.sparse import csr_array
from tinygp.kernels import Kernel

from jaxpriv.errors import InputError
from jaxpriv.linalg.banded import banded_gram, banded_product, smallest_eigenvalue_of_band
from jaxpriv.precision import double_precision, host_array
from jaxpriv.priors.kernel_values import kernel_values, require_ordinary_variance, rounding_of
from jaxpriv.priors.structured import BoundedProduct, require_dense


_UNIT = 2.0**-53
_ROUNDED = 1.0 + 2.0**-40
_FADED = 1e-17  # of the variance: beyond the lag where the kernel is below it, entries are dropped
_ROOM = 1e-8  # relative, by which the inducing points' own covariance is raised to pay for rounding
_WIDEST = 128  # inducing points on one side of a fix that may still be correlated with it
_USEFUL = 0.3  # largest share of the variance that the inducing points may miss


class InducingPrior:
    """X_i = f(t_i) + e_i with f a smooth stationary process at irregular times, through Σ̃ ⪯ Σ.

    Σ̃ = K_xz A⁻¹ K_zx + s̃² I with inducing points z on a regular grid and A ⪰ K_zz (Nyström): products and solves are
    with Σ̃, `columns` is of the true Σ. Noise designed and certified with both is private under the true kernel with
    no slack: a bad approximation costs noise, never privacy. K_xz and A are banded because the kernel fades, so that
    everything takes O(n). What the rounding and the dropped entries could add to Σ̃ is taken off the nugget (derived
    here; proof in docs/long_traces_approximations.md).

    Args:
        kernel: a stationary tinygp kernel that is smooth and fades, such as `kernels.rbf`, in squared units of the
            trace. Beyond the lag where it has fallen to 1e-17 of the variance it must not rise again.
        times: (n,), sorted, in the kernel's unit of time.
        noise_sd: standard deviation of what is independent from fix to fix, in the unit of the trace; positive.
        spacing: distance between inducing points, in the unit of the times. The default, 0.75 of the lag where the
            correlation is exp(−½), costs about 1e-6 of the noise for `rbf`; 1.5 costs 2 %, 2 costs 14 %.

    Raises:
        InputError: bad arguments, a kernel that does not fade fast enough, a spacing so fine that the inducing points
            are collinear to working precision, or so wide that they say too little; the message has the numbers.
    """

    one_sided = True

    def __init__(self, kernel: Kernel, times: Float[np.ndarray, " n"], noise_sd: float, spacing: float | None = None):
        if not isinstance(kernel, Kernel):
            raise InputError(
                f"kernel is a {type(kernel).__name__}; expected a tinygp kernel such as kernels.rbf(60.0)."
            )
        self.times = host_array(times, "times", 1)
        if np.any(np.diff(self.times) < 0.0):
            raise InputError(f"times is not sorted at position {int(np.argmax(np.diff(self.times) < 0.0)) + 1}.")
        if not (np.isfinite(noise_sd) and noise_sd > 0.0):
            raise InputError(f"noise_sd is {noise_sd}; inducing points need a positive standard deviation.")
        self.kernel, self.noise_sd = kernel, float(noise_sd)
        self.variance = float(self._at(np.zeros(1))[0])
        if not (math.isfinite(self.variance) and self.variance > 0.0):
            raise InputError("the kernel has no positive, finite variance.")
        require_ordinary_variance(self.variance)
        moved = kernel_values(kernel, np.array([3.0]), np.array([3.0, 4.0]))[0]
        if np.max(np.abs(moved - self._at(np.array([0.0, 1.0])))) > 1e-9 * self.variance:
            raise InputError("the kernel is not stationary: its value depends on the times, not their difference only.")
        self.lengthscale = self._lag_at(math.exp(-0.5))
        self.reach = self._lag_at(_FADED)
        wanted = 0.75 * self.lengthscale if spacing is None else float(spacing)
        if not (math.isfinite(wanted) and wanted > 0.0):
            raise InputError(f"spacing is {spacing}; expected a positive distance in the unit of the times.")
        # Few bits, so that every inducing point and every lag between two is exact.
        mantissa, exponent = math.frexp(wanted)
        self.spacing = math.ldexp(round(mantissa * 2**16), exponent - 16)
        if self.reach > _WIDEST * self.spacing:
            raise InputError(
                f"the kernel needs {self.reach:.4g} to fade to 1e-17 of its variance, {_WIDEST} inducing points of "
                f"spacing {self.spacing:.4g}: widen the spacing (0.75 of the length scale {self.lengthscale:.4g} is "
                "usual), or use a prior for kernels that are not smooth (Matérn) or times that are regular."
            )
        self._build()

    @property
    def size(self) -> int:
        """n, the number of fixes."""
        return self.times.size

    @property
    def count(self) -> int:
        """r, the number of inducing points."""
        return self._count

    @property
    def covariance(self) -> Float[np.ndarray, "n n"]:
        """The true Σ, (n, n), for at most 5,000 fixes; InputError above."""
        require_dense(self.size)
        return self.window(np.arange(self.size))

    def window(self, positions: Float[np.ndarray, " w"]) -> Float[np.ndarray, "w w"]:
        """The true Σ[W, W], (w, w)."""
        there = self.times[np.asarray(positions, dtype=int)]
        lags = np.abs(there[:, None] - there[None, :])
        values = self._at(lags.ravel()).reshape(lags.shape)
        np.fill_diagonal(values, self.variance + self.noise_sd**2)
        return values

    def columns(self, indices: Sequence[int] | np.ndarray) -> Float[np.ndarray, "n k"]:
        """The true Σ[:, S], (n, k)."""
        positions = np.asarray(indices, dtype=int)
        if positions.size and not (positions.min() >= 0 and positions.max() < self.size):
            raise InputError(f"the positions {positions.tolist()} are not all within the trace of {self.size} fixes.")
        lags = np.abs(self.times[:, None] - self.times[positions][None, :])
        values = self._at(lags.ravel()).reshape(lags.shape)
        values[positions, np.arange(positions.size)] += self.noise_sd**2
        return values

    def columns_error(self, indices: Sequence[int] | np.ndarray) -> Float[np.ndarray, "n k"]:
        """(n, k): a bound of the rounding of each of the kernel's values in `columns`."""
        return _rounding(self.columns(indices), self.variance + self.noise_sd**2)

    @functools.cached_property
    def missed(self) -> float:
        """The largest share of the variance that the inducing points around a fix do not explain, wherever it lies."""
        side = self._band.shape[0]
        places = self.spacing * np.arange(-side, side + 1)
        lag = np.abs(np.subtract.outer(np.arange(places.size), np.arange(places.size)))
        column = np.concatenate([self._band[:, 0], np.zeros(places.size)])
        offsets = self.spacing * np.linspace(0.0, 0.5, 17)
        rows = self._at(np.abs(offsets[:, None] - places[None, :]).ravel()).reshape(offsets.size, places.size)
        explained = np.einsum("ij,ji->i", rows, np.linalg.solve(column[lag], rows.T))
        return float(np.max(self.variance - explained)) / self.variance

    def product(self, vectors: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
        """Σ̃ V, (n, m), for V (n, m), in squared units of the values times the unit of V."""
        inner = cho_solve_banded((self._root, True), self._cross.T @ vectors)
        return self._cross @ inner + self.nugget * vectors

    def bounded_product(self, vectors: Float[np.ndarray, "n m"]) -> BoundedProduct:
        """Σ̃ V, (n, m), for V (n, m), with a bound of each column's error in the Euclidean norm, in the same unit."""
        gathered = self._cross.T @ vectors
        inner = cho_solve_banded((self._root, True), gathered)
        values = self._cross @ inner + self.nugget * vectors
        left = gathered - banded_product(self._band, inner)
        size = np.abs(inner)
        unsure = (
            _norms(left)
            + 3.0 * _UNIT * _norms(gathered)
            + (self._tallest + 8) * _UNIT * _norms(self._magnitude.T @ np.abs(vectors))
            + (4 * self._band.shape[0] + 8) * _UNIT * _norms(banded_product(np.abs(self._band), size))
        )
        spread = (self._widest + 8) * _UNIT * _norms(self._magnitude @ size) + 4.0 * _UNIT * self.nugget * _norms(
            vectors
        )
        return BoundedProduct(values, None, (self._gain * unsure / self._lowest + spread + 1e-290) * (1.0 + 2.0**-20))

    def shifted_solve(self, shift: float, right: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
        """(Σ̃ + shift I)⁻¹ B, (n, m), by the Woodbury identity and a banded factor; a proposal."""
        level = self.nugget + shift
        wide = np.zeros_like(self._gram)
        wide[: self._band.shape[0]] = level * self._band
        factor = (cholesky_banded(wide + self._gram, lower=True), True)

        def solve(b: np.ndarray) -> np.ndarray:
            return (b - self._cross @ cho_solve_banded(factor, self._cross.T @ b)) / level

        solution = solve(right)
        return solution + solve(right - self.product(solution) - shift * solution)

    def sample(self, key: Array) -> Float[Array, " n"]:
        """One draw of N(0, Σ̃), (n,), reproducible from the key; Σ̃ is the true Σ less the small part missed."""
        with double_precision():
            inner, outer = jax.random.split(key)
            normals = np.asarray(jax.random.normal(inner, (self.count,)))
            upper = np.zeros_like(self._root)
            for below in range(self._root.shape[0]):
                upper[self._root.shape[0] - 1 - below, below:] = self._root[below, : self.count - below]
            draw = self._cross @ solve_banded((0, self._root.shape[0] - 1), upper, normals)
            noise = np.asarray(jax.random.normal(outer, (self.size,)))
            return jax.numpy.asarray(draw + math.sqrt(self.nugget) * noise)

    def _at(self, lags: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
        return kernel_values(self.kernel, np.zeros(1), lags)[0]

    def _lag_at(self, share: float) -> float:
        """The lag where |correlation| has fallen to `share`, by doubling and bisection from above."""
        low, high = 0.0, 1e-6
        for _ in range(120):
            if abs(float(self._at(np.array([high]))[0])) <= share * self.variance:
                break
            low, high = high, 2.0 * high
        else:
            raise InputError("the kernel does not fade: inducing points are for kernels that do, such as rbf.")
        for _ in range(40):
            middle = 0.5 * (low + high)
            if abs(float(self._at(np.array([middle]))[0])) <= share * self.variance:
                high = middle
            else:
                low = middle
        return high

    def _build(self) -> None:
        """K_xz (sparse), A (banded) and what of the nugget is left after everything they may be wrong by."""
        h, times = self.spacing, self.times
        first = math.floor((times[0] - h) / h)
        r = math.floor((times[-1] + h) / h) - first + 2
        side = math.ceil(self.reach / h) + 1
        nearest = np.rint(times / h).astype(np.int64) - first
        places = nearest[:, None] + np.arange(-side, side + 1)[None, :]
        lags = np.abs(times[:, None] - h * (places + first))
        keep = (places >= 0) & (places < r) & (lags <= self.reach)
        values = np.zeros(lags.shape)
        values[keep] = self._at(lags[keep])
        ends = np.concatenate([[0], np.cumsum(np.sum(keep, axis=1))])
        self._count = int(r)
        self._cross = csr_array((values[keep], places[keep], ends), shape=(times.size, r))
        self._magnitude = abs(self._cross)
        self._widest = int(np.max(np.diff(ends)))
        self._tallest = int(np.max(np.bincount(places[keep], minlength=r)))
        column = self._at(h * np.arange(min(side, r)))
        dropped = abs(float(self._at(np.array([self.reach]))[0]))
        self._check_tail(dropped)
        rounding = rounding_of(column)
        wrong = 2.0 * float(np.sum(rounding)) + r * dropped + 8.0 * _UNIT * float(np.sum(np.abs(column)))
        column = column * (1.0 + 2.0 * _ROOM)
        column[0] += 4.0 * wrong
        self._lowest = smallest_eigenvalue_of_band(column)
        if not self._lowest > 1e-9 * self.variance:
            raise InputError(
                f"inducing points {h:.4g} apart are collinear to working precision under this kernel; widen them "
                f"(0.75 of its length scale {self.lengthscale:.4g} is usual)."
            )
        self._band = np.repeat(column[:, None], r, axis=1)
        for below in range(1, column.size):
            self._band[below, r - below :] = 0.0
        self._root = cholesky_banded(self._band, lower=True)
        self._gram = banded_gram(self._cross, 2 * side)
        error = csr_array((_rounding(self._cross.data, self.variance), self._cross.indices, self._cross.indptr))
        away = _operator_norm(error) + dropped * math.sqrt(float(times.size) * r)
        self._gain = _operator_norm(self._magnitude)
        lost = (1.0 + 1.0 / _ROOM) * away**2 / self._lowest * (1.0 + 2.0**-20)
        self.nugget = self.noise_sd**2 * (1.0 - 2.0**-50) - lost
        if not self.nugget > 0.5 * self.noise_sd**2:
            raise InputError(
                f"rounding takes {lost:.3g} of the nugget {self.noise_sd**2:.3g}: raise noise_sd, or widen the spacing."
            )
        if self.missed > _USEFUL:
            raise InputError(
                f"inducing points {h:.4g} apart miss {self.missed:.0%} of the variance (length scale "
                f"{self.lengthscale:.4g}), and the noise would pay for it; take a spacing of at most "
                f"{0.75 * self.lengthscale:.4g}, where about 1e-6 of the noise is lost."
            )

    def _check_tail(self, dropped: float) -> None:
        span = float(self.times[-1] - self.times[0])
        if span > self.reach:
            beyond = np.abs(self._at(np.geomspace(self.reach, span, 400)))
            if np.max(beyond) > dropped * (1.0 + 1e-9):
                raise InputError("the kernel rises again at long lags; inducing points are for kernels that fade.")


def _rounding(values: np.ndarray, top: float) -> np.ndarray:
    """A bound of the error of kernel values at any lags: the error of an exponential and of its argument."""
    size = np.abs(values)
    return 2.0**-50 * size * (2.0 + 2.0 * np.log(np.maximum(top / np.maximum(size, 1e-300 * top), 1.0))) + 1e-300


def _norms(columns: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("ij,ij->j", columns, columns)) * (1.0 + 2.0 * (columns.shape[0] + 8) * _UNIT)


def _operator_norm(matrix: csr_array) -> float:
    """An upper bound of the largest singular value: the geometric mean of the largest row and column sums."""
    rows, columns = np.max(matrix.sum(axis=1)), np.max(matrix.sum(axis=0))
    return math.sqrt(float(rows) * float(columns)) * _ROUNDED
