"""A cluster whose window is too wide for matrices: smooth functions of time, and products and solves in O(n).

As `cluster_design`, with Vᵀ Σ V from products with the structured prior, and A⁻¹ B for A = Σ + noise by Woodbury's
identity. Only the floors on the functions V, (r, r), are dense. The adversary knows nothing at the window's edges,
where correlations are below `clusters.FADED`: the certificate sees the whole neighbourhood, and noise is added where it
fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.linalg

from jaxpriv.certificates.arithmetic import UNIT_ROUNDOFF, down
from jaxpriv.designs.ladder import own_directions
from jaxpriv.designs.long.cluster_design import ClusterNoise, compressed, padded
from jaxpriv.designs.long.clusters import Cluster
from jaxpriv.designs.long.reduction import lift_with
from jaxpriv.designs.long.windows import restricted
from jaxpriv.designs.majorant.clip import clip_majorant
from jaxpriv.designs.majorant.stack import FloorStack
from jaxpriv.priors.quasiseparable import QuasiseparablePrior
from jaxpriv.secrets.secret import Secret


_KERNEL = 2.0**-44  # relative error of the secret's columns that the bound allows for


def solve_wide_cluster(
    priors: Sequence[QuasiseparablePrior],
    secrets: Sequence[Secret],
    cluster: Cluster,
    targets: np.ndarray,
    floor_variance: float,
    tolerance: float,
    steps: int,
    basis: np.ndarray,
) -> ClusterNoise:
    """Noise for the cluster's secrets with losses below `targets`, (secrets, priors), in 1/squared unit.

    `basis`, (w, r) orthonormal with columns of zeros allowed, spans the functions to solve on first.
    """
    parts = [restricted(prior, cluster.start, cluster.stop) for prior in priors]
    here = [np.array(secrets[i].indices) - cluster.start for i in cluster.secrets]
    unit = 2.0 ** round(np.log2(float(np.mean(parts[0].columns([here[0][0]])[here[0][0]]))))
    widths = [one.size for one in here]
    k, count = max(widths), padded(len(widths))
    covariances, owner, shift = _on_functions(parts, basis, unit)
    directions = np.zeros((len(parts) * count, basis.shape[1], k))
    base, slope = np.zeros((2, len(parts) * count, k, k))
    wanted: list[list[np.ndarray]] = []
    for p, part in enumerate(parts):
        columns = part.columns(np.concatenate(here))
        ends = np.cumsum([0, *widths])
        roots = []
        for j, chosen in enumerate(here):
            cross = columns[:, ends[j] : ends[j + 1]]
            variance = cross[chosen]
            along = np.linalg.solve(variance, cross.T).T
            added = np.eye(chosen.size) / (targets[j, p] * unit)
            i = p * count + j
            directions[i, :, : chosen.size] = basis.T @ along
            base[i, : chosen.size, : chosen.size] = variance / unit
            slope[i, : chosen.size, : chosen.size] = added
            roots.append(along @ np.linalg.cholesky(variance / unit + added))
        wanted.append(roots)
    stack = FloorStack(
        covariances=jnp.asarray(covariances),
        directions=jnp.asarray(directions),
        base=jnp.asarray(base),
        slope=jnp.asarray(slope),
        shift=jnp.asarray(shift),
        prior_index=tuple(p for p in range(len(parts)) for _ in range(count)),
        covariance_index=tuple(owner),
        fixed=(),
    )
    found = clip_majorant(
        stack,
        noise_floor=floor_variance / unit,
        tolerance=tolerance,
        max_steps=steps,
        start=own_directions(stack),
    )
    factor = compressed(basis @ np.asarray(found.factor))
    columns = np.matmul(basis, np.asarray(found.columns))
    solvers = [_solver(part, floor_variance / unit, unit) for part in parts]
    factor = np.concatenate([factor, lift_with(solvers, factor, wanted)], axis=1)
    duals = [[columns[p * count + j][:, :width] for j, width in enumerate(widths)] for p in range(len(parts))]
    return ClusterNoise(compressed(factor) * np.sqrt(unit), duals, float(found.gap), int(found.steps))


def wide_floor_value(part: QuasiseparablePrior, here: np.ndarray, target: float, columns: np.ndarray) -> float:
    """`cluster_bound.floor_value` for a window too wide for its matrix: Σ times the columns within proven bounds."""
    cross = np.asarray(part.columns(here))
    variance = cross[here]
    variance = (variance + variance.T) / 2
    w = np.linalg.solve(variance, cross.T @ columns)
    b = np.linalg.solve(variance, w) / target
    image = part.bounded_product(columns)
    if image.entries is None:
        return -np.inf
    reached, absolute = cross.T @ columns, np.abs(columns)
    linear = 2.0 * np.sum(b * reached) + 2.0 * np.sum(w * reached)
    quadratic = np.sum(columns * image.values) + np.sum(w * (variance @ w))
    quadratic += target * np.sum((variance @ b) ** 2)
    size = 2.0 * np.sum((np.abs(b) + np.abs(w)) * (np.abs(cross).T @ absolute))
    size += np.sum(absolute * np.abs(image.values)) + np.sum(np.abs(w) * (np.abs(variance) @ np.abs(w)))
    size += target * np.sum((np.abs(variance) @ np.abs(b)) ** 2)
    error = float(np.sum(absolute * image.entries)) * (1.0 + 2.0**-30)
    count = part.size + columns.size + 16
    return down(float(linear - quadratic) - error - float(size) * (_KERNEL + 8.0 * count * UNIT_ROUNDOFF))


def _on_functions(
    parts: Sequence[QuasiseparablePrior], basis: np.ndarray, unit: float
) -> tuple[np.ndarray, list[int], np.ndarray]:
    """Vᵀ K V for each process, (C, r, r) in squared `unit`s, which process each prior has, and its noise beyond it.

    A zero column of V is a coordinate without any variance.
    """
    kept: list[tuple[Any, float, np.ndarray]] = []
    owner, shift = [], []
    for part in parts:
        nugget = part.noise_sd**2 / unit
        for i, (terms, least, _) in enumerate(kept):
            if terms == part.terms and nugget >= least:
                owner.append(i)
                shift.append(nugget - least)
                break
        else:
            value = basis.T @ part.product(basis) / unit
            owner.append(len(kept))
            shift.append(0.0)
            kept.append((part.terms, nugget, (value + value.T) / 2))
    return np.stack([value for _, _, value in kept]), owner, np.array(shift)


def _solver(
    part: QuasiseparablePrior, floor_variance: float, unit: float
) -> Callable[[np.ndarray], Callable[[np.ndarray], np.ndarray]]:
    """From a factor F to B ↦ (Σ + F Fᵀ + floor I)⁻¹ B, all in squared `unit`s."""

    def given(factor: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        spread = unit * part.shifted_solve(floor_variance * unit, factor)
        inner = scipy.linalg.cho_factor(np.eye(factor.shape[1]) + factor.T @ spread, lower=True)

        def solve(right: np.ndarray) -> np.ndarray:
            plain = unit * part.shifted_solve(floor_variance * unit, right)
            return plain - spread @ scipy.linalg.cho_solve(inner, factor.T @ plain)

        return solve

    return given
