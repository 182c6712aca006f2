"""A cluster's problem on smooth functions of time: solved small, lifted to the whole window.

For any orthonormal V the floors Vᵀ F V have a least majorant that costs no more than that of F, and its dual lifts to
V Z; only the noise V Ĝ Vᵀ may miss a floor by what the functions cannot follow, which one lift adds (proof in
docs/long_traces_approximations.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg
from scipy.interpolate import BSpline


_SIZES = ((4, 128), (16, 256))  # coordinates of the cluster's secrets, and functions for them
_GROWTH = 5.0  # knots are as far apart as a fifth of the distance to the nearest secret,
_WIDEST = 0.6  # and at most this part of the longest length scale
_SPANNED = 1e-7  # singular values of the functions below it, relative to the largest, add nothing
_PASSES = 3


def smooth_basis(times: np.ndarray, secret: np.ndarray, lengthscale: float) -> np.ndarray | None:
    """Orthonormal functions of time on a window, (w, r): cubic splines with knots close together near the secrets.

    `times` (w,) sorted, `secret` (k,) positions in them, whose unit vectors are in the span. r is one of few numbers,
    columns of zeros filling up. None where the window is not longer than that, or there are too many secrets.
    """
    sizes = [size for most, size in _SIZES if secret.size <= most]
    span = float(times[-1] - times[0])
    if not sizes or times.size <= sizes[0] or not span > 0.0:
        return None
    size, growth = sizes[0], _GROWTH
    centres = np.unique(times[secret])
    while True:
        # Coarser everywhere until there are few enough.
        widest = _WIDEST * lengthscale * _GROWTH / growth
        knots = _knots(times, centres, span / times.size * _GROWTH / growth, growth, widest)
        if knots.size + 2 + secret.size <= size:
            break
        growth /= 1.25
    ends = np.concatenate([np.repeat(knots[0], 3), knots, np.repeat(knots[-1], 3)])
    splines = BSpline.design_matrix(np.clip(times, knots[0], knots[-1]), ends, 3).toarray()
    units = np.zeros((times.size, secret.size))
    units[secret, np.arange(secret.size)] = 1.0
    splines = splines / np.maximum(np.linalg.norm(splines, axis=0), 1e-300)
    left, values, _ = np.linalg.svd(np.concatenate([units, splines], axis=1), full_matrices=False)
    basis = left[:, values > _SPANNED * values[0]]
    return np.concatenate([basis, np.zeros((times.size, size - basis.shape[1]))], axis=1)


def _knots(times: np.ndarray, centres: np.ndarray, closest: float, growth: float, widest: float) -> np.ndarray:
    first, last = float(times[0]), float(times[-1])
    knots = {first, last, *(float(c) for c in centres)}
    for centre in centres:
        for sign in (-1.0, 1.0):
            distance = closest
            while first < centre + sign * distance < last:
                place = centre + sign * distance
                if np.min(np.abs(centres - place)) >= 0.999 * distance:
                    knots.add(float(place))
                distance += min(max(distance / growth, closest), widest)
    found = np.array(sorted(knots))
    return found[np.concatenate([[True], np.diff(found) > 1e-9 * (last - first)])]


Solve = Callable[[np.ndarray], np.ndarray]


def lift(
    factor: np.ndarray, floor_variance: float, covariances: list[np.ndarray], roots: list[list[np.ndarray]]
) -> np.ndarray:
    """`lift_with` for priors whose covariances, (w, w), are at hand."""

    def solver(covariance: np.ndarray) -> Callable[[np.ndarray], Solve]:
        def given(current: np.ndarray) -> Solve:
            noisy = covariance + current @ current.T
            noisy[np.diag_indices_from(noisy)] += floor_variance
            root = scipy.linalg.cho_factor(noisy, lower=True, overwrite_a=True, check_finite=False)
            return lambda right: scipy.linalg.cho_solve(root, right, check_finite=False)

        return given

    return lift_with([solver(covariance) for covariance in covariances], factor, roots)


def lift_with(
    solvers: Sequence[Callable[[np.ndarray], Solve]], factor: np.ndarray, roots: list[list[np.ndarray]]
) -> np.ndarray:
    """What must be added to the noise `factor` factorᵀ + floor I to meet U Uᵀ − Σ for every U of `roots`, (w, q).

    Where a loss Uᵀ A⁻¹ U, A = Σ + noise, exceeds 1 the columns A⁻¹ U y are added, at the least cost to first order in
    the excess; after a few passes columns of U itself remove the rest exactly. `solvers`, one for each prior, give from
    a factor F the function B ↦ A⁻¹ B for the noise F Fᵀ + floor I; `roots` [prior][secret] (w, k).
    """
    added: list[np.ndarray] = []
    for solver, wanted in zip(solvers, roots, strict=True):
        solve = solver(np.concatenate([factor, *added], axis=1))
        plain = solve(np.concatenate(wanted, axis=1))
        ends = np.cumsum([0, *(one.shape[1] for one in wanted)])
        mine: list[np.ndarray] = []
        for turn in range(_PASSES + 1):
            solved = plain
            if mine:
                extra = np.concatenate(mine, axis=1)
                inner = solve(extra)
                small = np.eye(extra.shape[1]) + extra.T @ inner
                solved = plain - inner @ np.linalg.solve(small, extra.T @ plain)
            new = []
            for i, one in enumerate(wanted):
                part = solved[:, ends[i] : ends[i + 1]]
                gain = one.T @ part
                values, vectors = np.linalg.eigh((gain + gain.T) / 2)
                over = values > 1.0 + 1e-12
                if not np.any(over):
                    continue
                values, vectors = values[over], vectors[:, over]
                if turn < _PASSES:
                    turned = part @ vectors
                    new.append(turned * np.sqrt(values - 1.0) / np.sum(turned**2, axis=0))
                else:
                    # Uᵀ (A + U D Uᵀ)⁻¹ U = (M⁻¹ + D)⁻¹ is at most I.
                    new.append(one @ vectors * np.sqrt(1.0 - 1.0 / values))
            if not new:
                break
            mine += new
        added += mine
    return np.concatenate(added, axis=1) if added else np.zeros((factor.shape[0], 0))
