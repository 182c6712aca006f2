"""Secrets that are a linear function of the trace."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.radius import checked_radius


class LinearSecret(eqx.Module):
    """A linear function T = W X of the trace: a mean over a window, a displacement, a speed.

    Args:
        weights: W, (k, n), or (n,) for one number.
        radius: the largest separation of two hypotheses about T, in the unit of T (metres, metres a second, …).

    Raises:
        InputError: wrong shape, values that are not finite, a radius that is not positive.
    """

    weights: Float[Array | np.ndarray, "k n"]
    radius: Float[Array | np.ndarray, ""]

    def __init__(self, weights: Float[Array | np.ndarray, "k n"] | Sequence[float], radius: float):
        array = np.asarray(weights, dtype=np.float64) if isinstance(weights, Sequence) else weights
        weights = array[None, :] if array.ndim == 1 else array
        if weights.ndim != 2 or 0 in weights.shape or weights.shape[0] > weights.shape[1]:
            raise InputError(f"weights has shape {weights.shape}; expected (k, n) with 1 ≤ k ≤ n.")
        if isinstance(weights, np.ndarray) and not np.all(np.isfinite(weights)):
            raise InputError("weights holds values that are not finite.")
        self.weights = weights
        self.radius = checked_radius(radius)

    @property
    def size(self) -> int:
        """k, the number of linear functions."""
        return self.weights.shape[0]

    @property
    def n_times(self) -> int:
        """1: the radius bounds the whole vector T."""
        return 1

    def joint(self, prior: Prior) -> tuple[Float[Array | np.ndarray, "n k"], Float[Array | np.ndarray, "k k"]]:
        """Σ Wᵀ and W Σ Wᵀ."""
        if self.weights.shape[1] != prior.size:
            raise InputError(f"weights has {self.weights.shape[1]} columns for a trace of {prior.size} coordinates.")
        with jax.default_matmul_precision("highest"):
            cross = prior.covariance @ self.weights.T
            variance = self.weights @ cross
        return cross, 0.5 * (variance + variance.T)

    def rounding(self, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the rounding errors of `joint` computed by NumPy in float64, entry by entry, (n, k) and (k, k).

        A product of inner dimension m errs by at most γ_m |A| |B| with γ_m = m u/(1 − m u) (Higham, 2002,
        section 3.5); one more rounding is allowed for everywhere.
        """
        size = np.abs(np.asarray(self.weights, dtype=np.float64))
        unit = 2.0**-53
        share = (covariance.shape[0] + 8) * unit / (1.0 - (covariance.shape[0] + 8) * unit)
        reached = np.abs(covariance) @ size.T
        return share * reached, 2.0 * share * (size @ reached) * (1.0 + 2.0 * share)
