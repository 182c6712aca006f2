"""A Gaussian prior given by its covariance matrix."""

from __future__ import annotations

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.errors import InputError


_SYMMETRY = 1e-8  # relative asymmetry above which a matrix is taken for a mistake, not for rounding


class GaussianPrior(eqx.Module):
    """X ~ N(μ, Σ) with any mean: each adversary knows its own μ and all share Σ.

    This is the conditional prior class of Meehan and Chaudhuri (AISTATS 2021, section 2): the covariance is what the
    guarantee is conditional on, the mean drops out of every loss.

    Args:
        covariance: Σ, (n, n), in squared units of the trace, symmetric. It may be singular.
        nugget: the variance of the independent part that Σ already contains, in squared units. It is declared, never
            added: rules about the resolution of the data read it.

    Raises:
        InputError: not square, not symmetric, values that are not finite, a negative variance, or a nugget that is
            larger than the smallest variance.
    """

    covariance: Float[Array | np.ndarray, "n n"]
    nugget: Float[Array | np.ndarray, ""]

    def __init__(self, covariance: Float[Array | np.ndarray, "n n"], nugget: float = 0.0):
        if not hasattr(covariance, "ndim"):
            covariance = np.asarray(covariance, dtype=np.float64)
        if covariance.ndim != 2 or covariance.shape[0] != covariance.shape[1] or covariance.shape[0] == 0:
            raise InputError(f"covariance has shape {covariance.shape}; expected a square matrix (n, n).")
        if isinstance(covariance, np.ndarray):
            covariance = _checked(covariance, nugget)
        self.covariance = covariance
        self.nugget = np.asarray(nugget, dtype=np.float64) if isinstance(nugget, (int, float)) else nugget

    @property
    def size(self) -> int:
        """n, the number of coordinates of the trace."""
        return self.covariance.shape[0]


def _checked(covariance: np.ndarray, nugget: float) -> np.ndarray:
    if not np.all(np.isfinite(covariance)):
        raise InputError("covariance holds values that are not finite.")
    scale = np.max(np.abs(covariance))
    worst = np.max(np.abs(covariance - covariance.T))
    if worst > _SYMMETRY * scale:
        i, j = np.unravel_index(np.argmax(np.abs(covariance - covariance.T)), covariance.shape)
        raise InputError(
            f"covariance is not symmetric: entries ({i}, {j}) and ({j}, {i}) differ by {worst:.3g}. "
            "Pass (A + A.T)/2 if that is what you mean."
        )
    variances = np.diagonal(covariance)
    if np.any(variances < 0.0):
        raise InputError(f"covariance has a negative variance at position {int(np.argmin(variances))}.")
    if not 0.0 <= nugget <= np.min(variances):
        raise InputError(
            f"nugget is {nugget}; expected a variance between 0 and the smallest prior variance, {np.min(variances)}."
        )
    # A fixed choice of triangle, so that what is certified is exactly symmetric.
    return np.tril(covariance) + np.tril(covariance, -1).T if worst > 0.0 else covariance
