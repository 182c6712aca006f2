"""The curves that decide a least-noise design: what white noise of variance μ on the whole trace would give away.

With N = Σ + μ I, Q(μ) = Σ_S: N⁻¹ Σ_:S and P(μ) = V − Q(μ), V = Σ_SS, the precision gain under that noise is
M(μ) = P⁻¹ − V⁻¹. The floor F(t) of a target t has as many eigenvalues above μ as M(μ) has above t, so its k positive
eigenvalues are the roots μ_i of λ_i(M(μ)) = t; and with X = N⁻¹ Σ_:S and unit eigenvectors y_i of M,

    dλ_i/dμ = −‖X P⁻¹ y_i‖²,        u_i = X P⁻¹ y_i / ‖X P⁻¹ y_i‖   is the eigenvector of F(t).

The same holds with products by Σ̃ ⪯ Σ, where P may fail to be positive: λ_i is then infinite. (Derived here; proofs in
docs/long_traces.md.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.priors.structured import StructuredPrior


_CAP = 1e-14  # smallest eigenvalue of V^(-1/2) P V^(-1/2) that is told from zero where P is a difference


@dataclass(frozen=True)
class Point:
    """The curves at one μ: `values` (k,) descending, their `slopes` dλ/dμ, and the unit `directions` u_i (n, k)."""

    mu: float
    values: np.ndarray
    slopes: np.ndarray
    directions: np.ndarray


class Curves:
    """λ_i(M(μ)) for one secret under one prior."""

    def __init__(self, prior: StructuredPrior, indices: Sequence[int]):
        self.prior, self.chosen = prior, np.asarray(indices, dtype=int)
        self.cross = np.asarray(prior.columns(self.chosen))
        variance = self.cross[self.chosen]
        self.variance = (variance + variance.T) / 2
        try:
            # L⁻¹, with V = L Lᵀ: k is small, and products of small matrices start no threads.
            self.unroot = np.linalg.inv(np.linalg.cholesky(self.variance))
        except np.linalg.LinAlgError:
            raise InputError(
                "parts of the secret are perfectly correlated under the prior (equal times without a nugget, or a "
                "variance of zero): leave out what the rest determines."
            ) from None
        self.evaluations = 0

    @property
    def width(self) -> int:
        """k."""
        return self.chosen.size

    def regression(self) -> np.ndarray:
        """H = Σ_:S V⁻¹, (n, k)."""
        return self.cross @ (self.unroot.T @ self.unroot)

    def __call__(self, mu: float) -> Point:
        self.evaluations += 1
        solved = self.prior.shifted_solve(mu, self.cross)
        solved_here = solved[self.chosen]
        gained = _whitened(self.unroot, self.cross.T @ solved)
        if self.prior.one_sided:
            share, basis = np.linalg.eigh(gained)
            left = np.maximum(1.0 - share, _CAP)
        else:
            # P = μ X_S without a difference; the share that is gained, 1 − left, without one where it is small.
            left, basis = np.linalg.eigh(_whitened(self.unroot, mu * solved_here))
            left = np.maximum(left, _CAP**2)
            share = np.where(left < 0.5, 1.0 - left, np.einsum("ij,ik,kj->j", basis, gained, basis))
        # M = L⁻ᵀ E diag(share / left) Eᵀ L⁻¹: the λ are squares of singular values.
        half = (self.unroot.T @ basis) * np.sqrt(np.maximum(share, 0.0) / left)
        vectors, singular, _ = np.linalg.svd(half)
        middle = basis @ ((basis.T @ (self.unroot @ vectors)) / left[:, None])
        directions = solved @ (self.unroot.T @ middle)
        lengths = np.sqrt(np.sum(directions**2, axis=0))
        return Point(mu, singular**2, -(lengths**2), directions / lengths)


def _whitened(unroot: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    whole = unroot @ matrix @ unroot.T
    return (whole + whole.T) / 2
