"""Matrices known up to a radius: sums and products in float64 with every rounding accounted for, on the host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxpriv.certificates.arithmetic import ROUNDED, SMALLEST, gamma
from jaxpriv.certificates.definiteness import is_semidefinite
from jaxpriv.certificates.logdet import log_determinant_bounds


@dataclass(frozen=True)
class Enclosure:
    """All matrices within `radius` of `centre` in Frobenius norm.

    The product of centres of inner dimension k errs by at most γ_k ‖A‖ ‖B‖ with γ_k = k u/(1 − k u) (Higham, 2002,
    section 3.5), whatever the order of summation.
    """

    centre: np.ndarray
    radius: float = 0.0

    @property
    def norm(self) -> float:
        """Upper bound of the Frobenius norm of every member."""
        return float(np.linalg.norm(self.centre)) * ROUNDED + self.radius

    @property
    def T(self) -> Enclosure:
        """The transposes."""
        return Enclosure(self.centre.T, self.radius)

    def __matmul__(self, other: Enclosure) -> Enclosure:
        centre = self.centre @ other.centre
        spread = self.radius * other.norm + self.norm * other.radius
        rounding = gamma(self.centre.shape[1] + 1) * self.norm * other.norm
        return Enclosure(centre, _raised(spread + rounding))

    def __add__(self, other: Enclosure) -> Enclosure:
        centre = self.centre + other.centre
        return Enclosure(centre, _raised(self.radius + other.radius + gamma(1) * (self.norm + other.norm)))

    def __sub__(self, other: Enclosure) -> Enclosure:
        return self + Enclosure(-other.centre, other.radius)

    def symmetric(self) -> Enclosure:
        """The same set with a symmetric centre, for members that are symmetric."""
        return Enclosure(0.5 * (self.centre + self.centre.T), _raised(self.radius + gamma(1) * self.norm))

    def sandwiched(self, outer: Enclosure) -> Enclosure:
        """B X Bᵀ for the symmetric members X and B = `outer`."""
        return (outer @ self @ outer.T).symmetric()

    def inverse_between(self, columns: Enclosure) -> Enclosure:
        """Bᵀ S⁻¹ B for the symmetric members S and B = `columns`; an infinite radius where S is not proven regular.

        With any W and W S Wᵀ = I + E, ‖E‖ ≤ η ≤ ½: within 2η ‖W B‖² of (W B)ᵀ(W B).
        """
        try:
            whitening = Enclosure(np.linalg.inv(np.linalg.cholesky(self.symmetric().centre)))
        except np.linalg.LinAlgError:
            return Enclosure(np.zeros((columns.centre.shape[1],) * 2), np.inf)
        defect = self.sandwiched(whitening) - Enclosure(np.eye(len(self.centre)))
        half = whitening @ columns
        square = (half.T @ half).symmetric()
        wandering = 2.0 * defect.norm * half.norm**2 if defect.norm <= 0.5 else np.inf
        return Enclosure(square.centre, _raised(square.radius + wandering))

    def is_semidefinite(self) -> bool:
        """Whether every symmetric member is proven positive semidefinite."""
        one = self.symmetric()
        usable = bool(np.all(np.isfinite(one.centre))) and np.isfinite(one.radius)
        return usable and is_semidefinite(one.centre, one.radius)

    def logdet(self) -> tuple[float, float]:
        """Bounds of log det of the symmetric members; (−∞, ∞) where they are not proven positive definite."""
        one = self.symmetric()
        if not (np.all(np.isfinite(one.centre)) and np.isfinite(one.radius)):
            return -np.inf, np.inf
        return log_determinant_bounds(one.centre, one.radius)


def _raised(value: float) -> float:
    return value * ROUNDED + SMALLEST
