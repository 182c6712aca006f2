"""What an attacker who knows prior and noise believes of a whole path after a release."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from jaxpriv.certificates.verb import host_arrays
from jaxpriv.designs.long.dispatch import structured_priors
from jaxpriv.designs.request import LARGEST_SIZE
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.precision import double_precision
from jaxpriv.priors.process import ProcessPrior
from jaxpriv.priors.quasiseparable import QuasiseparablePrior


_DRAWN = 2000  # fixes of a long trace that a page draws, besides those around its secrets
_AROUND = 100  # fixes before and after each secret
_MOST_SECRETS = 40  # around which that many are drawn


def believed_path(
    prior: ProcessPrior, mechanism: GaussianMechanism, released: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means and 68 % half-widths, (n,) each, of one coordinate after seeing released values (n,), in their unit.

    The unknown mean of the prior is taken to be that of the released values; the half-widths hold for any mean. For
    pictures: no bound is claimed.
    """
    structured = structured_priors([prior])
    mean, around = np.mean(released), released - np.mean(released)
    if structured is not None and isinstance(structured[0], QuasiseparablePrior):
        apart, left = _by_structure(structured[0], mechanism, around)
    else:
        apart, left = _by_matrix(prior, mechanism, around)
    return mean + apart, np.sqrt(np.maximum(left, 0.0))


def _by_matrix(prior: ProcessPrior, mechanism: GaussianMechanism, around: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with double_precision():
        covariance, _ = host_arrays(prior, ())
    factor = cho_factor(covariance + np.asarray(mechanism.covariance, dtype=np.float64), lower=True)
    gain = cho_solve(factor, covariance).T
    return gain @ around, np.diag(covariance) - np.einsum("ij,ji->i", gain, covariance)


def _by_structure(
    prior: QuasiseparablePrior, mechanism: GaussianMechanism, around: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """With C the prior's covariance, noise ηI + LLᵀ, A = C + ηI, W = A⁻¹L and S = I + LᵀW: the mean is
    r − (ηI + LLᵀ)(A⁻¹r − W S⁻¹ Wᵀr), and the covariance ηI − η²A⁻¹ + Z S⁻¹ Zᵀ with Z = CW = L − ηW."""
    factor, floor = np.asarray(mechanism.factor, dtype=np.float64), float(mechanism.floor_sd) ** 2
    solved = prior.shifted_solve(floor, np.concatenate([factor, around[:, None]], axis=1))
    spread, own = solved[:, :-1], solved[:, -1]
    inner = cho_factor(np.eye(factor.shape[1]) + factor.T @ spread, lower=True) if factor.shape[1] else None
    left = floor - floor**2 * prior.inverse_diagonal(floor)
    if inner is not None:
        own = own - spread @ cho_solve(inner, spread.T @ around)
        moved = factor - floor * spread
        left = left + np.sum(moved * cho_solve(inner, moved.T).T, axis=1)
    return around - floor * own - factor @ (factor.T @ own), left


def drawn_fixes(n: int, positions: Sequence[int]) -> np.ndarray:
    """Which of n fixes a page draws, ascending: all, or of a long trace some evenly spread and those around secrets."""
    if n <= LARGEST_SIZE:
        return np.arange(n)
    spread = np.linspace(0, n - 1, _DRAWN).round().astype(np.int64)
    chosen = np.unique(np.asarray(positions, dtype=np.int64))
    near = chosen[np.linspace(0, len(chosen) - 1, min(len(chosen), _MOST_SECRETS)).round().astype(int)]
    around = (near[:, None] + np.arange(-_AROUND, _AROUND + 1)).ravel()
    return np.unique(np.concatenate([spread, chosen, around[(around >= 0) & (around < n)]]))
