"""A stationary Gaussian process seen at regular times, through FFT products: any kernel, up to millions of points."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float
from tinygp.kernels import Kernel

from jaxpriv.errors import InputError
from jaxpriv.linalg.toeplitz import Toeplitz, embedding_length
from jaxpriv.precision import double_precision
from jaxpriv.priors.kernel_values import kernel_values, require_ordinary_variance, rounding_at
from jaxpriv.priors.structured import BoundedProduct, require_dense


_LARGEST = 2**24


class GridPrior:
    """X_i = f(i · step) + e_i, i = 0 … count − 1, with f a stationary Gaussian process and e_i independent.

    Products with the covariance take O(n log n) by circulant embedding; solves are by preconditioned conjugate
    gradients. The exact covariance is the Toeplitz matrix of the kernel's float64 values at the lags; what it may lack
    in positive semidefiniteness because of their rounding is taken off the declared nugget.

    Args:
        kernel: a tinygp kernel that depends on the difference of two times only, in squared units of the trace.
        step: time between two fixes, positive, in the kernel's unit of time.
        count: n, the number of fixes, at most 2²⁴.
        noise_sd: standard deviation of what is independent from fix to fix, in the unit of the trace.

    Raises:
        InputError: a kernel that is none or not stationary, or numbers out of range.
    """

    one_sided = False

    def __init__(self, kernel: Kernel, step: float, count: int, noise_sd: float = 0.0):
        if not isinstance(kernel, Kernel):
            raise InputError(
                f"kernel is a {type(kernel).__name__}; expected a tinygp kernel such as kernels.rbf(60.0)."
            )
        if not (np.isfinite(step) and step > 0.0):
            raise InputError(f"step is {step}; expected a positive time between two fixes.")
        if not (isinstance(count, (int, np.integer)) and 1 <= count <= _LARGEST):
            raise InputError(f"count is {count!r}; expected a whole number of fixes from 1 to {_LARGEST}.")
        if not (np.isfinite(noise_sd) and noise_sd >= 0.0):
            raise InputError(f"noise_sd is {noise_sd}; expected a finite standard deviation of at least 0.")
        self.kernel, self.step, self.count, self.noise_sd = kernel, float(step), int(count), float(noise_sd)
        self._check_stationary()

    @property
    def size(self) -> int:
        """n, the number of fixes."""
        return self.count

    @property
    def times(self) -> Float[np.ndarray, " n"]:
        """i · step, (n,)."""
        return self.step * np.arange(self.count)

    @functools.cached_property
    def toeplitz(self) -> Toeplitz:
        """Σ, the nugget included."""
        lags = np.arange(embedding_length(self.count) // 2 + 1) * self.step
        values = kernel_values(self.kernel, np.zeros(1), lags)[0]
        values[0] += self.noise_sd**2
        return Toeplitz(values, self.count)

    @functools.cached_property
    def nugget(self) -> float:
        """A variance s² with Σ ⪰ s² I: noise_sd² less what the rounding of the kernel's values may have cost, or the
        smallest eigenvalue of the circulant embedding where that is better; at least 0."""
        rounding = rounding_at(self.kernel, self.step * np.arange(self.count))
        lost = 2.0 * float(np.sum(rounding)) * (1.0 + 2.0**-20)
        declared = self.noise_sd**2 * (1.0 - 2.0**-51) - lost
        return max(declared, self.toeplitz.smallest_eigenvalue, 0.0)

    @property
    def covariance(self) -> Float[np.ndarray, "n n"]:
        """Σ, (n, n), for at most 5,000 fixes; InputError above."""
        require_dense(self.count)
        lag = np.abs(np.subtract.outer(np.arange(self.count), np.arange(self.count)))
        return self.toeplitz.lags[lag]

    def columns(self, indices: Sequence[int] | np.ndarray) -> Float[np.ndarray, "n k"]:
        """Σ[:, S], (n, k)."""
        positions = np.asarray(indices, dtype=int)
        if positions.size and not (positions.min() >= 0 and positions.max() < self.count):
            raise InputError(f"the positions {positions.tolist()} are not all within the trace of {self.count} fixes.")
        return self.toeplitz.lags[np.abs(np.arange(self.count)[:, None] - positions[None, :])]

    def columns_error(self, indices: Sequence[int] | np.ndarray) -> Float[np.ndarray, "n k"]:
        """Zeros, (n, k): the kernel's float64 values are what is exact."""
        return np.zeros((self.count, len(indices)))

    def product(self, vectors: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
        """Σ V, (n, m), for V (n, m), in squared units of the values times the unit of V."""
        return self.toeplitz.product(vectors)

    def bounded_product(self, vectors: Float[np.ndarray, "n m"]) -> BoundedProduct:
        """Σ V, (n, m), for V (n, m), with a bound of each column's error in the Euclidean norm, in the same unit."""
        return BoundedProduct(self.toeplitz.product(vectors), None, self.toeplitz.product_error(vectors))

    def shifted_solve(
        self, shift: float, right: Float[np.ndarray, "n m"], start: Float[np.ndarray, "n m"] | None = None
    ) -> Float[np.ndarray, "n m"]:
        """(Σ + shift I)⁻¹ B, (n, m), for B (n, m) and shift in squared units, by conjugate gradients.

        They begin at `start` (n, m). A proposal: nothing is claimed about its error.
        """
        return self.toeplitz.shifted_solve(shift, right, start)

    def sample(self, key: Array) -> Float[Array, " n"]:
        """One draw of N(0, Σ), (n,), reproducible from the key; the dense factor serves where an FFT cannot."""
        with double_precision():
            length = self.toeplitz.length
            normals = np.asarray(jax.random.normal(key, (length,)))
            if self.count <= 2000 and float(np.min(self.toeplitz.symbol)) < 0.0:
                values, vectors = np.linalg.eigh(self.covariance)
                return jax.numpy.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ normals[: self.count])
            return jax.numpy.asarray(self.toeplitz.draw(normals))

    def window(self, positions: Float[np.ndarray, " w"]) -> Float[np.ndarray, "w w"]:
        """Σ[W, W] for sorted positions W, (w, w)."""
        places = np.asarray(positions, dtype=int)
        return self.toeplitz.lags[np.abs(places[:, None] - places[None, :])]

    def _check_stationary(self) -> None:
        lags = self.step * np.array([0.0, 1.0, 2.0, 7.0])
        first = kernel_values(self.kernel, np.zeros(1), lags)[0]
        shift = 5.0 * self.step
        moved = kernel_values(self.kernel, np.array([shift]), shift + lags)[0]
        if not np.all(np.isfinite(first)) or first[0] <= 0.0:
            raise InputError("the kernel has no positive, finite variance.")
        require_ordinary_variance(float(first[0]))
        if np.max(np.abs(first - moved)) > 1e-9 * first[0]:
            raise InputError("the kernel is not stationary: its value depends on the times, not their difference only.")


def on_regular_times(prior: Any, tolerance: float = 1e-9) -> GridPrior:
    """The same belief as a `ProcessPrior` at regular times.

    Raises:
        InputError: times that are not regular within `tolerance` of a step.
    """
    times = np.asarray(prior.times, dtype=np.float64)
    if times.size < 2:
        raise InputError("regular times need at least two fixes.")
    step = float((times[-1] - times[0]) / (times.size - 1))
    away = np.abs(times - times[0] - step * np.arange(times.size))
    if step <= 0.0 or np.max(away) > tolerance * step:
        raise InputError(
            f"the times are not regular: fix {int(np.argmax(away))} is {np.max(away):.3g} away from a grid of step "
            f"{step:.6g}."
        )
    return GridPrior(prior.kernel, step, times.size, float(np.asarray(prior.noise_sd)))
