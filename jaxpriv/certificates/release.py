"""The covariance of what is released, scaled, verified positive definite once, and solved with for every secret."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxpriv.certificates.arithmetic import (
    ROUNDED,
    SMALLEST,
    UNIT_ROUNDOFF,
    gamma,
    norm_up,
    power_of_two,
    safely_positive,
)
from jaxpriv.certificates.definiteness import accurate_margin_of, margin, propose
from jaxpriv.certificates.doubledouble import accumulate, cholesky, two_product, two_sum
from jaxpriv.certificates.products import Sliced, left_factor, product, product_terms, right_factor
from jaxpriv.certificates.proposals import potrf, trtri


_REFINEMENTS = 4


@dataclass(frozen=True)
class Solution:
    """Approximate solution of `N Y = B`, as a sum of `parts`, with its verified residual.

    `B - N Y` lies within `error` of `residual_hi + residual_lo`, entry by entry, and `N >= definite I`.
    All are in scaled coordinates, shapes (n, k).
    """

    parts: list[np.ndarray]
    residual_hi: np.ndarray
    residual_lo: np.ndarray
    error: np.ndarray

    @property
    def magnitude(self) -> np.ndarray:
        """Upper bound of the absolute value of the solution, entry by entry."""
        return np.sum([np.abs(part) for part in self.parts], axis=0) * ROUNDED

    def residual_norms(self, spread: np.ndarray | float = 0.0) -> np.ndarray:
        """Upper bounds of the norms of the residual's columns, shape (k,); `spread` (n, k) enlarges each entry."""
        size = (np.abs(self.residual_hi) + np.abs(self.residual_lo) + self.error + spread) * ROUNDED
        return np.sqrt(np.sum(size * size, axis=0)) * ROUNDED + SMALLEST


class Release:
    """`N = D (Sigma + L L' + eta I) D` with D of powers of two; `definite` is a verified lower bound of its spectrum.

    `definite` is not positive when positive definiteness could not be verified. `radius_norm` bounds the spectral norm
    of an entrywise perturbation of Sigma, in scaled coordinates; `definite` already allows for it.
    """

    def __init__(
        self, covariance: np.ndarray, factor: np.ndarray, floor_variance: float, radius: np.ndarray | None = None
    ):
        self.definite = -np.inf
        diagonal = np.diagonal(covariance) + np.einsum("ij,ij->i", factor, factor) + floor_variance
        if not safely_positive(diagonal):
            return
        self.scaling = power_of_two(diagonal)
        both = np.outer(self.scaling, self.scaling)
        self.prior = covariance * both
        self.factor = factor * self.scaling[:, None]
        self.floor = floor_variance * self.scaling * self.scaling
        self.radius = None if radius is None else radius * both * ROUNDED + SMALLEST
        if not (np.all(np.isfinite(self.prior)) and np.all(np.isfinite(self.factor))):
            return
        wandering = 0.0 if self.radius is None else norm_up(self.radius)
        self._verify(factor.shape[1], wandering)
        if self.definite > 0:
            self._left = left_factor(np.concatenate([self.prior, self.factor], axis=1))
            self._transposed: Sliced = left_factor(self.factor.T)
            self._row_mass = np.sum(np.abs(self.factor), axis=1, keepdims=True) * ROUNDED

    def _verify(self, rank: int, wandering: float) -> None:
        matrix = self.prior + self.factor @ self.factor.T
        matrix.flat[:: matrix.shape[0] + 1] += self.floor
        mass = norm_up(self.prior) + norm_up(self.factor) ** 2 + norm_up(self.floor)
        spill = (gamma(rank + 4) * mass + wandering) * ROUNDED + SMALLEST
        factor, info = potrf(matrix, lower=0, clean=1)
        if info == 0 and self._invert(factor):
            estimate = 1 / norm_up(self.inverse) ** 2
            verified = margin(matrix, propose(matrix, 0.9 * estimate)) - spill
            if verified > 0:
                self.definite = verified * (1 - 4 * UNIT_ROUNDOFF)
                return
        self._verify_accurately(wandering)

    def _verify_accurately(self, wandering: float) -> None:
        hi, lo, error = self.prior, np.zeros_like(self.prior), np.zeros_like(self.prior)
        if self.factor.shape[1]:
            terms, left_out = product_terms(left_factor(self.factor), right_factor(self.factor.T))
            hi, lo, error = accumulate([self.prior, np.diag(self.floor), *terms])
            error = error + left_out
        else:
            hi, lo = two_sum(self.prior, np.diag(self.floor))
        factor = cholesky(hi, lo)
        if not np.all(np.isfinite(factor[0])) or not self._invert(factor[0]):
            return
        estimate = 1 / norm_up(self.inverse) ** 2
        for share in (0.9, 0.3, 0.03):
            moved_hi, moved_lo = two_sum(hi, -share * estimate * np.eye(hi.shape[0]))
            trial = cholesky(moved_hi, moved_lo + lo)
            if np.all(np.isfinite(trial[0])):
                verified = accurate_margin_of(hi, lo, error, trial) - wandering
                self.definite = verified * (1 - 4 * UNIT_ROUNDOFF) if verified > 0 else verified
                return

    def _invert(self, factor: np.ndarray) -> bool:
        self.inverse, info = trtri(factor)
        return info == 0 and bool(np.all(np.isfinite(self.inverse)))

    def solve(self, right: np.ndarray, negligible: np.ndarray) -> Solution:
        """Solve for the columns of `right` (n, k) until `|residual|^2 / definite` is below `negligible` (k,)."""
        step = self.propose_solution(right)
        solution = Solution([step], *self._residual(right, None, step))
        for _ in range(_REFINEMENTS):
            norms = solution.residual_norms()
            if np.all(norms * norms <= negligible * self.definite):
                break
            step = self.propose_solution(solution.residual_hi)
            hi, lo, error = self._residual(solution.residual_hi, solution.residual_lo, step)
            refined = Solution([*solution.parts, step], hi, lo, solution.error + error)
            if not np.all(np.isfinite(hi)) or np.max(refined.residual_norms() / norms) > 0.5:
                break
            solution = refined
        return solution

    def propose_solution(self, right: np.ndarray) -> np.ndarray:
        """Approximate `N^-1 right`, without any claim."""
        return self.inverse @ (self.inverse.T @ right)

    def _residual(
        self, hi: np.ndarray, lo: np.ndarray | None, step: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`hi + lo - N step` in double-double, with a bound of the error of each entry."""
        around = SMALLEST * (1 + np.max(np.abs(step), axis=0))
        if self.factor.shape[1]:
            inner_hi, inner_lo, inner_error = product(self._transposed, right_factor(step))
            around = around + self._row_mass * np.max(inner_error, axis=0)
            zeros = np.zeros_like(step)
            stacked = right_factor(np.concatenate([step, inner_hi]), np.concatenate([zeros, inner_lo]))
        else:
            stacked = right_factor(step)
        terms, left_out = product_terms(self._left, stacked)
        floor_hi, floor_lo = two_product(self.floor[:, None], step)
        first, *rest = [-term for term in terms]
        known = [hi, first, -floor_hi] + ([] if lo is None else [lo])
        out_hi, out_lo, error = accumulate([*known, *rest, -floor_lo])
        return out_hi, out_lo, (error + left_out + around) * ROUNDED
