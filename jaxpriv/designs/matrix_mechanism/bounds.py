"""Verified bounds of the total error: what a factorisation reaches, and what no factorisation can beat."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from jaxpriv.certificates.arithmetic import SMALLEST, UNIT_ROUNDOFF, gamma, norm_up, require_arithmetic
from jaxpriv.certificates.definiteness import largest_eigenvalue_upper


def total_error_upper(left: Float[np.ndarray, "m k"], right: Float[np.ndarray, "k q"]) -> float:
    """Upper bound of ‖A L‖²_F, the total variance of the queries A under noise L ξ."""
    require_arithmetic()
    product = left @ right
    radius = gamma(left.shape[1] + 2) * norm_up(left) * norm_up(right) + SMALLEST
    return (norm_up(product) + radius) ** 2 * (1.0 + 8.0 * UNIT_ROUNDOFF)


def lower_bound(
    workload: Float[np.ndarray, "m n"],
    trial: Float[np.ndarray, "m K"],
    changes: Float[np.ndarray, "n K"] | None,
    mu: float,
) -> float:
    """A total error below which no noise goes that makes every change (column u) of the data μ-GDP.

    Σ_i (z_iᵀ A u_i)²/(μ² ‖Z‖²) for any matrix Z with columns z_i; tight at the polar factor of A U D(v)^½ with the
    optimal weights v. Derived here; proof in docs/matrix_mechanism.md.
    """
    require_arithmetic()
    queries, columns = trial.shape
    moved = workload if changes is None else workload @ changes
    products = np.sum(trial * moved, axis=0)
    magnitude = np.abs(workload) if changes is None else np.abs(workload) @ np.abs(changes)
    radius = 2.0 * gamma(queries + workload.shape[1] + 4) * np.sum(np.abs(trial) * magnitude, axis=0) + SMALLEST
    total = float(np.sum(np.maximum(np.abs(products) - radius, 0.0) ** 2)) * (1.0 - 2.0 * gamma(columns + 4))
    gram = trial @ trial.T if queries <= columns else trial.T @ trial
    spread = 2.0 * gamma(max(queries, columns) + 2) * norm_up(trial) ** 2
    # Near the identity, where orthonormal rows or columns leave it, the largest row sum is as good as an eigenvalue.
    norm = float(np.max(np.sum(np.abs(gram), axis=1))) * (1.0 + 2.0 * gamma(len(gram)))
    if norm > 1.0 + 1e-9:
        norm = largest_eigenvalue_upper(0.5 * (gram + gram.T))
    norm += spread
    return _below(total, norm, mu)


def structured_lower_bound(
    workload: Float[np.ndarray, "m n"],
    trial: Float[np.ndarray, "n m"],
    free: Bool[np.ndarray, "n n"],
    square: float,
) -> float:
    """A total error below which no noise goes whose inverse covariance X is zero where `free` is False and whose
    diagonal X_ii is at most `square`.

    t²/(square Σ |V_ij| over the free entries) with V = F Fᵀ and t = tr(A F), for any F; tight at F = G Aᵀ with the
    optimal G. Derived here; proof in docs/matrix_mechanism.md.
    """
    require_arithmetic()
    queries = workload.shape[0]
    terms = workload * trial.T
    total = float(np.sum(terms)) - 2.0 * gamma(terms.size) * float(np.sum(np.abs(terms)))
    dual = np.abs(trial @ trial.T) + 2.0 * gamma(queries + 2) * (np.abs(trial) @ np.abs(trial).T)
    mass = float(np.sum(dual, where=free)) * (1.0 + 2.0 * gamma(free.size))
    return 0.0 if total <= 0.0 else _below(total**2 * (1.0 - 2.0**-50), mass * square, 1.0)


def _below(numerator: float, norm: float, mu: float) -> float:
    return float(numerator / norm / mu / mu) * (1.0 - 8.0 * UNIT_ROUNDOFF) if np.isfinite(norm) and norm > 0.0 else 0.0
