"""The dual bound of a convex loss within a budget: what no noise of the structure can go below."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxpriv.designs.gradient.loss import WorstGain
from jaxpriv.linalg.ordering import after
from jaxpriv.searches.factors import AbstractFactor


_ACTIVE = (
    0.3,
    1e-1,
    1e-2,
    1e-3,
    1e-4,
    1e-5,
    1e-6,
)  # relative distance from the largest loss that counts as reaching it


class DualBound(NamedTuple):
    """A lower bound of max_j loss_j/t_j in plain float64, and dual columns Z_j (n, k) of the noise that attains it."""

    achieved: float
    lower: float
    columns: list[np.ndarray]


@eqx.filter_jit
def _at(loss: WorstGain, covariance: jax.Array) -> tuple[list, list]:
    """The gains M_j and the responses (C_j + G)⁻¹H_j."""
    gains = loss.gains(covariance)
    responses = []
    for part in loss.parts:
        factor = jnp.linalg.cholesky(after(part.residual + covariance, gains[-1] if not responses else responses[-1]))
        responses.append(jax.scipy.linalg.cho_solve((factor, True), part.regression))
    return gains, responses


def dual_bound(
    loss: WorstGain,
    noise: AbstractFactor,
    budget: float,
    structure: str,
    bandwidth: int | None,
    weights: np.ndarray | None,
) -> DualBound:
    """The best bound over weights that make the noise as nearly stationary as they can.

    For weights W_j of total mass Σ t_j tr W_j = 1, V_j = (C_j + G)⁻¹H_j and Q = Σ V_jW_jV_jᵀ, every noise within the
    budget has a largest ratio of at least Σ tr(W_jM_j) + tr(QK) − b ρ(Q), K = L Lᵀ the noise above the floor and b what
    the budget leaves for it (docs/design.md, section 9). At the optimum Q L is a multiple of W L wherever L is free:
    the weights are the least-squares solution of that, on the directions in which a loss is within some distance of the
    largest, with their negative parts cut off. Any weights give a valid bound; the best of several distances is kept.
    """
    factor = np.asarray(noise.factor)
    gains, responses = jax.tree.map(np.asarray, _at(loss, noise.covariance))
    targets = np.asarray(loss.targets)
    achieved = max(float(np.linalg.eigvalsh(gain)[-1]) / t for gain, t in zip(gains, targets, strict=True))
    best = DualBound(achieved, -np.inf, [np.zeros_like(response) for response in responses])
    if not np.isfinite(achieved):
        return best
    wanted = factor if weights is None else weights @ factor if weights.ndim == 2 else weights[:, None] * factor
    right = _free(noise, wanted)
    for share in _ACTIVE:
        basis = _basis(gains, targets, (1.0 - share) * achieved)
        rows = [_free(noise, (responses[j] @ matrix) @ (responses[j].T @ factor)) for j, matrix in basis]
        solution = np.linalg.lstsq(np.stack(rows, axis=1), right, rcond=1e-12)[0]
        duals = [np.zeros_like(gain) for gain in gains]
        for (j, matrix), weight in zip(basis, solution, strict=True):
            duals[j] += weight * matrix
        roots = [_root(dual) for dual in duals]
        mass = sum(target * float(np.sum(root**2)) for target, root in zip(targets, roots, strict=True))
        if not mass > 0.0:
            continue
        roots = [root / np.sqrt(mass) for root in roots]
        columns = [response @ root for response, root in zip(responses, roots, strict=True)]
        wide = np.concatenate(columns, axis=1)
        linear = sum(float(np.sum(root * (gain @ root))) for root, gain in zip(roots, gains, strict=True))
        lower = linear + float(np.sum((factor.T @ wide) ** 2))
        lower -= budget * _steepness(wide, structure, bandwidth, weights)
        if lower > best.lower:
            best = DualBound(achieved, lower, columns)
    return best


def _basis(gains: list[np.ndarray], targets: np.ndarray, level: float) -> list[tuple[int, np.ndarray]]:
    """Symmetric (k, k) matrices that may carry weight, with their floors: those of directions that reach the level."""
    found: list[tuple[int, np.ndarray]] = []
    for j, (gain, target) in enumerate(zip(gains, targets, strict=True)):
        values, vectors = np.linalg.eigh(gain)
        active = vectors[:, values / target >= level]
        for a in range(active.shape[1]):
            for b in range(a + 1):
                outer = np.outer(active[:, a], active[:, b])
                found.append((j, (outer + outer.T) / 2))
    return found


def _free(noise: AbstractFactor, matrix: np.ndarray) -> np.ndarray:
    """The entries of an (n, q) matrix where the factor is free."""
    return np.ravel(np.asarray(noise.with_factor(matrix).entries))


def _root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _steepness(columns: np.ndarray, structure: str, bandwidth: int | None, weights: np.ndarray | None) -> float:
    """max tr(KQ)/tr(WK) over noise of the structure, Q = columns columnsᵀ."""
    n = columns.shape[0]
    width = {"joint": n, "diagonal": 1}.get(structure, (bandwidth or 0) + 1)
    full = np.eye(n) if weights is None else np.diag(weights) if weights.ndim == 1 else weights
    worst = 0.0
    for start in range(n - width + 1):
        window = slice(start, start + width)
        lower = np.linalg.cholesky(full[window, window])
        worst = max(worst, float(np.linalg.norm(np.linalg.solve(lower, columns[window]), 2)) ** 2)
    return worst
