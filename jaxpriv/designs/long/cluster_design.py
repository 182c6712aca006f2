"""The least noise for the secrets of one cluster under every prior, on the cluster's window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxpriv.designs.ladder import own_directions
from jaxpriv.designs.long.clusters import Cluster
from jaxpriv.designs.long.reduction import lift
from jaxpriv.designs.long.windows import Belief, beliefs
from jaxpriv.designs.majorant.clip import clip_majorant
from jaxpriv.designs.majorant.stack import FloorStack
from jaxpriv.errors import InfeasibleError
from jaxpriv.secrets.secret import Secret


_SAME = 1e-13  # relative difference of two covariances' off-diagonals that is rounding
_DROPPED = 1e-7  # of the cluster's power: columns below it are left out; the certificate decides whether that holds


@dataclass(frozen=True)
class ClusterNoise:
    """Noise on a window, unverified.

    Attributes:
        factor: (w, q), columns in falling order of power.
        duals: for each prior and secret of the cluster, (priors, secrets) lists of (w, k) columns of spectral norm at
            most 1 together.
        gap: relative, as the solver knows it; steps: taken.
    """

    factor: np.ndarray
    duals: list[list[np.ndarray]]
    gap: float
    steps: int


def window_beliefs(
    priors: Sequence[Any], secrets: Sequence[Secret], cluster: Cluster, edges: bool
) -> list[list[Belief]]:
    """[prior][secret of the cluster]; priors with the same kernel share the covariance of the process."""
    local = [np.array(secrets[i].indices) - cluster.start for i in cluster.secrets]
    return [beliefs(prior, cluster.start, cluster.stop, local, edges) for prior in priors]


def solve_cluster(
    known: list[list[Belief]],
    targets: np.ndarray,
    floor_variance: float,
    tolerance: float,
    steps: int,
    basis: np.ndarray | None = None,
) -> ClusterNoise:
    """Noise for the beliefs [prior][secret] with losses below `targets`, (secrets, priors), in 1/squared unit.

    `basis`, (w, r) orthonormal with columns of zeros allowed: functions to solve on first. The noise is then lifted to
    what they cannot follow, once.

    Raises:
        InfeasibleError: what an adversary may know at the window's edges is above a target already.
    """
    unit = 2.0 ** round(np.log2(float(np.mean(np.diagonal(known[0][0].covariance)))))
    whole, widths = _stack(known, targets, unit)
    stack = whole if basis is None else _on(basis, whole)
    found = clip_majorant(
        stack,
        noise_floor=floor_variance / unit,
        tolerance=tolerance,
        max_steps=steps,
        start=own_directions(stack),
    )
    factor, columns = np.asarray(found.factor), np.asarray(found.columns)
    count = padded(len(widths))
    if basis is not None:
        factor, columns = basis @ factor, np.matmul(basis, columns)
        factor = compressed(factor)
        roots = np.asarray(whole.factors())
        wanted = [[roots[p * count + j][:, :k] for j, k in enumerate(widths)] for p in range(len(known))]
        covariances = [row[0].covariance / unit for row in known]
        factor = np.concatenate([factor, lift(factor, floor_variance / unit, covariances, wanted)], axis=1)
    duals = [[columns[p * count + j][:, :k] for j, k in enumerate(widths)] for p in range(len(known))]
    return ClusterNoise(compressed(factor) * np.sqrt(unit), duals, float(found.gap), int(found.steps))


def compressed(factor: np.ndarray) -> np.ndarray:
    """Orthogonal columns in falling order of power, without those that hardly have any."""
    values, vectors = np.linalg.eigh(factor.T @ factor)
    kept = values > _DROPPED * max(float(np.sum(np.maximum(values, 0.0))), 0.0)
    return (factor @ vectors[:, kept])[:, ::-1]


def _on(basis: np.ndarray, stack: FloorStack) -> FloorStack:
    """The floors Vᵀ F V for V = `basis`; a zero column of it is a coordinate of no prior variance and no floor."""
    covariances = np.stack([basis.T @ (covariance @ basis) for covariance in np.asarray(stack.covariances)])
    directions = np.matmul(basis.T, np.asarray(stack.directions))
    return eqx.tree_at(
        lambda s: (s.covariances, s.directions), stack, (jnp.asarray(covariances), jnp.asarray(directions))
    )


def _stack(known: list[list[Belief]], targets: np.ndarray, unit: float) -> tuple[FloorStack, list[int]]:
    """Floors H (V + T⁻¹) Hᵀ − Σ, T = t I − what is known already, prior-major, in squared `unit`s."""
    shared, owner, shift = _shared([one[0].covariance / unit for one in known])
    widths = [belief.variance.shape[0] for belief in known[0]]
    # More secrets than there are, whose floors are zero and so harmless: few programs are compiled.
    k, w, count = max(widths), shared[0].shape[0], padded(len(widths))
    directions = np.zeros((len(known) * count, w, k))
    base, slope = np.zeros((2, len(known) * count, k, k))
    for p, row in enumerate(known):
        for j, belief in enumerate(row):
            i, size = p * count + j, widths[j]
            room = (targets[j, p] * np.eye(size) - belief.gained) * unit
            least = float(np.linalg.eigvalsh(room)[0]) / unit
            if not least > 0.0:
                raise InfeasibleError(
                    f"the edges of the window alone tell more about a secret than a loss of {targets[j, p]:.4g} "
                    f"allows (prior {p}); widen the window.",
                    smallest_feasible=float(targets[j, p] - least),
                )
            directions[i, :, :size] = np.linalg.solve(belief.variance, belief.cross.T).T
            base[i, :size, :size] = belief.variance / unit
            slope[i, :size, :size] = np.linalg.inv(room)
    return (
        FloorStack(
            covariances=jnp.asarray(np.stack(shared)),
            directions=jnp.asarray(directions),
            base=jnp.asarray(base),
            slope=jnp.asarray(slope),
            shift=jnp.asarray(shift),
            prior_index=tuple(p for p in range(len(known)) for _ in range(count)),
            covariance_index=tuple(owner),
            fixed=(),
        ),
        widths,
    )


def padded(count: int) -> int:
    """The next power of two, so that few programs are compiled."""
    return 1 << (count - 1).bit_length()


def _shared(covariances: list[np.ndarray]) -> tuple[list[np.ndarray], list[int], np.ndarray]:
    """Covariances that differ by a multiple of the identity only are multiplied once."""
    kept: list[np.ndarray] = []
    owner, shift = [], []
    for covariance in covariances:
        scale = float(np.max(np.diagonal(covariance)))
        for i, other in enumerate(kept):
            difference = covariance - other
            level = float(np.mean(np.diagonal(difference)))
            difference[np.diag_indices_from(difference)] -= level
            if level >= 0.0 and float(np.max(np.abs(difference))) <= _SAME * scale:
                owner.append(i)
                shift.append(level)
                break
        else:
            owner.append(len(kept))
            shift.append(0.0)
            kept.append(covariance)
    return kept, owner, np.array(shift)
