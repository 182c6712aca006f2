"""Rigorous lower bounds for many problems at once: no other noise for a basic secret does better.

For any vectors u_j (one a prior) and noise G >= eta I, with H = B / s and C = Sigma - B B'/ s,

    z_j^2 M_j(G) >= 2 z_j u_j'H_j - u_j'C_j u_j - u_j'G u_j     for every number z_j,

and with Q = sum_j u_j u_j', tr(Q G) <= eta tr Q + (tr G - n eta) lambda_max(Q). The best z_j are proportional to
a_j = u_j'H_j. So where every loss is at most t, or the cost at most b,

    tr G - n eta >= (sum a_j^2 / t - sum u_j'C_j u_j - eta tr Q) / lambda_max(Q),
    max_j M_j    >= sum a_j^2 / (sum u_j'C_j u_j + eta tr Q + (b - n eta) lambda_max(Q)).

As C e = 0 for the secret's unit vector e, u_j'C_j u_j = v'C_j v <= v'Sigma_j v for every v that differs from u_j in the
secret's coordinate alone; at v'B_j = 0 they are equal, and nothing cancels. (The inequality behind `lower_bounds`, for
secrets inside the trace; derived here, proof in docs/batches.md.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxpriv.certificates.arithmetic import ROUNDED, SMALLEST, UNIT_ROUNDOFF, gamma, require_arithmetic
from jaxpriv.certificates.batched import norms, verified_definite
from jaxpriv.certificates.batched_products import applied, quadratic


@dataclass(frozen=True)
class BatchTrials:
    """Of m problems: `aligned` (m,) at most sum a_j^2, and at least sum u_j'C_j u_j, tr Q and lambda_max(Q)."""

    aligned: np.ndarray
    curvature: np.ndarray
    square: np.ndarray
    steepness: np.ndarray


def batch_trials(
    covariance: np.ndarray, position: np.ndarray, vectors: np.ndarray, relative_radius: float = 0.0
) -> BatchTrials:
    """The terms of the bounds for vectors u (m, p, n), which may be anything; arrays as for `basic_loss_bounds`."""
    require_arithmetic()
    m, p, n = vectors.shape
    rows = np.arange(m)
    with np.errstate(all="ignore"):
        vectors = np.where(np.isfinite(vectors), vectors, 0.0)
        own = covariance[rows, :, position, position]
        cross = covariance[rows, :, :, position]
        length, cross_norm = norms(vectors, 2), norms(cross, 2)
        along = np.abs(np.einsum("mpi,mpi->mp", vectors, cross))
        along_error = (gamma(n + 4) + relative_radius) * ROUNDED * length * cross_norm + SMALLEST
        least = np.maximum(along - along_error, 0.0)
        own_high = own * (1 + relative_radius) * (1 + 4 * UNIT_ROUNDOFF)
        # C e = 0, so u'Cu = v'Cv <= v'Sigma v for every v that differs from u in the secret's coordinate alone.
        v = vectors.copy()
        v[rows, :, position] = 0.0
        v[rows, :, position] = -np.einsum("mpi,mpi->mp", v, cross) / own
        part, part_error = quadratic(v, *applied(covariance, v))
        if relative_radius:
            reached = (np.abs(covariance) @ np.abs(v)[..., None])[..., 0]
            part_error += np.einsum("mpi,mpi->mp", np.abs(v), reached) * (relative_radius * ROUNDED)
        curvature = part + part_error + 4 * UNIT_ROUNDOFF * (np.abs(part) + part_error)
        curvature = np.sum(curvature, axis=1) + gamma(p + 4) * np.sum(np.abs(curvature), axis=1) * ROUNDED
        aligned = np.sum((least / own_high) ** 2, axis=1) * (1 - gamma(p + 12))
        square = np.sum(vectors * vectors, axis=(1, 2)) * (1 + gamma(p * n + 8)) + SMALLEST
        # Normalised: the rounding of the vectors and of their Gram matrix is a few units of 1.
        scaled = vectors / np.sqrt(square)[:, None, None]
        gram = scaled @ scaled.transpose(0, 2, 1)
        gram = np.where(np.isfinite(gram), 0.5 * (gram + gram.transpose(0, 2, 1)), 0.0)
        estimate = np.linalg.eigvalsh(gram)[:, -1] * (1 + 1e-12) + 1e-300
        rest = estimate[:, None, None] * np.eye(p) - gram
        largest = estimate - verified_definite(rest, np.zeros_like(estimate))
        steepness = (largest + gamma(n + 24) * (1 + 2.0**-20)) * square * (1 + 8 * UNIT_ROUNDOFF)
    return BatchTrials(aligned, curvature, square, steepness)


def batched_cost_lower(
    trials: BatchTrials, target: np.ndarray, floor_variance: np.ndarray, size: np.ndarray
) -> np.ndarray:
    """Lower bounds (m,) of the cost of every noise >= floor_variance I whose losses are all at most `target` (m,).

    `size` (m,) is the number of real coordinates. Never below the cost of the floor.
    """
    with np.errstate(all="ignore"):
        gained = trials.aligned / target * (1 - 4 * UNIT_ROUNDOFF)
        lost = trials.curvature + floor_variance * trials.square * (1 + 4 * UNIT_ROUNDOFF)
        above = gained - lost - 4 * UNIT_ROUNDOFF * (gained + np.abs(trials.curvature) + floor_variance * trials.square)
        above = np.maximum(above, 0.0) / trials.steepness * (1 - 8 * UNIT_ROUNDOFF)
    return (floor_variance * size + np.where(np.isfinite(above), above, 0.0)) * (1 - 4 * UNIT_ROUNDOFF)


def batched_loss_lower(
    trials: BatchTrials, budget: np.ndarray, floor_variance: np.ndarray, size: np.ndarray
) -> np.ndarray:
    """Lower bounds (m,) of the largest loss over the priors of every noise >= floor_variance I of cost <= budget (m,).

    0 where nothing could be verified.
    """
    with np.errstate(all="ignore"):
        room = budget - floor_variance * size
        room = np.maximum(room, 0.0) + 4 * UNIT_ROUNDOFF * (budget + floor_variance * size)
        terms = trials.curvature + floor_variance * trials.square + room * trials.steepness
        slack = np.abs(trials.curvature) + floor_variance * trials.square + room * trials.steepness
        total = terms + 16 * UNIT_ROUNDOFF * slack
        found = trials.aligned / total * (1 - 8 * UNIT_ROUNDOFF)
    return np.where(np.isfinite(found) & (total > 0), found, 0.0)
