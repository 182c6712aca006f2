"""Approximate solutions of `N Y = Sigma_:S`, N = Sigma + G; nothing is claimed about them."""

from __future__ import annotations

from typing import Any

import numpy as np


_GOOD = 1e-18  # of the secret's variance: what a residual may add to the certificate, |R|^2 / m, to be good enough
_ROUNDS = 4


class Proposals:
    """Solutions for several secrets under one noise: in the span of its factor if that is enough, else by a solver.

    The least-noise mechanism of a secret has its solution in the span of its own factor, so that no factorisation is
    needed to certify it. Otherwise `(Sigma + eta I)^-1` of the prior, corrected for the factor (Woodbury), is refined.
    Where the prior names some of its coordinates as `inner`, solutions are zero at all others.

    Args:
        prior: a `StructuredPrior` of n coordinates.
        factor: (n, q), of the noise; floor_variance: in squared units of the trace.
    """

    def __init__(self, prior: Any, factor: np.ndarray, floor_variance: float):
        self.prior, self.factor, self.floor_variance = prior, factor, floor_variance
        self.definite = float(prior.nugget) + floor_variance
        kept = np.sqrt(np.sum(factor * factor, axis=0)) > 0.0
        basis = factor[:, kept]
        if hasattr(prior, "inner"):
            basis = np.zeros_like(basis)
            basis[prior.inner] = factor[prior.inner][:, kept]
        lengths = np.sqrt(np.sum(basis * basis, axis=0))
        self.basis = basis[:, lengths > 0.0] / lengths[lengths > 0.0]
        self.span: tuple[np.ndarray, np.ndarray] | None = None
        self.woodbury: tuple[np.ndarray, np.ndarray] | None = None

    def solution(self, chosen: np.ndarray, cross: np.ndarray) -> np.ndarray:
        """Y (n, k) for the columns `cross` (n, k) of the covariance at the positions `chosen`."""
        enough = _GOOD * self.definite * float(np.min(np.diagonal(cross[chosen])))
        best, image = self._in_span(cross)
        residual = cross - image
        for _ in range(_ROUNDS):
            size = float(np.sum(residual * residual))
            if size <= enough:
                break
            trial = best + self._solve(residual)
            left = cross - self._noisy(trial)
            if not float(np.sum(left * left)) < size:
                break
            best, residual = trial, left
        return best

    def _noisy(self, columns: np.ndarray) -> np.ndarray:
        """N V, (n, m), for V (n, m)."""
        image = self.prior.product(columns) + self.floor_variance * columns
        return image + self.factor @ (self.factor.T @ columns)

    def _in_span(self, cross: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The Galerkin solution Y in the span of the factor, (n, k), and N Y, (n, k), for `cross` (n, k)."""
        if self.basis.shape[1] == 0:
            return np.zeros_like(cross), np.zeros_like(cross)
        if self.span is None:
            images = self._noisy(self.basis)
            gram = self.basis.T @ images
            self.span = images, (gram + gram.T) / 2
        images, gram = self.span
        weights = np.linalg.lstsq(gram, self.basis.T @ cross, rcond=1e-14)[0]
        return self.basis @ weights, images @ weights

    def _solve(self, right: np.ndarray) -> np.ndarray:
        """N^-1 B, (n, m), for B (n, m), or zeros."""
        inverse = self.prior.shifted_solve(self.floor_variance, right)
        width = self.factor.shape[1]
        if not width:
            return inverse
        if self.woodbury is None:
            pushed = self.prior.shifted_solve(self.floor_variance, self.factor)
            self.woodbury = pushed, np.eye(width) + self.factor.T @ pushed
        pushed, core = self.woodbury
        if not (np.all(np.isfinite(core)) and np.all(np.isfinite(inverse))):
            return np.zeros_like(right)
        return inverse - pushed @ np.linalg.lstsq(core, self.factor.T @ inverse, rcond=None)[0]
