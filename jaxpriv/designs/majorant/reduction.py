"""The smaller space in which floors can be solved exactly: a common invariant subspace of all priors."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from jaxpriv.designs.majorant.stack import FloorStack
from jaxpriv.errors import InputError


def invariant_basis(stack: FloorStack, tolerance: float = 1e-11) -> np.ndarray:
    """V (n, m) orthonormal, holding every floor's directions and invariant under every prior to about sqrt(tolerance).

    Each prior is its least eigenvalue times the identity plus a part of low rank; V spans those parts (eigenvectors
    whose excess is above `tolerance` times the largest eigenvalue) and the directions. The least trace over the floors
    V^T F_j V equals that over the F_j, and noise lifts by V G V^T: on the complement every floor is negative. For any
    orthonormal V the reduced value is a lower bound. Needs concrete arrays (m depends on them). m is small when priors
    are smooth with a uniform nugget, and n otherwise. Source: derived here; proof in docs/design.md.
    """
    directions = np.asarray(stack.directions)
    blocks = []
    for p in sorted(set(stack.prior_index)):
        values, vectors = np.linalg.eigh(np.asarray(stack.prior(p)))
        excess = (values - values[0]) / max(values[-1], 1e-300)
        keep = excess > tolerance
        blocks.append(vectors[:, keep] * np.sqrt(excess[keep]))
    wide = directions.transpose(1, 0, 2).reshape(stack.size, -1)
    lengths = np.linalg.norm(wide, axis=0)
    blocks.append(wide[:, lengths > 0] / lengths[lengths > 0])
    vectors, values, _ = np.linalg.svd(np.concatenate(blocks, axis=1), full_matrices=False)
    return vectors[:, values > np.sqrt(tolerance)]


def reduced(stack: FloorStack, basis: np.ndarray) -> FloorStack:
    """The floors V^T F_j V as a stack over m coordinates, V = `basis` (n, m) orthonormal."""
    if basis.ndim != 2 or basis.shape[0] != stack.size:
        raise InputError(f"the basis must have {stack.size} rows, got shape {basis.shape}")
    v = jnp.asarray(basis, stack.covariances.dtype)
    return FloorStack(
        covariances=v.T @ stack.covariances @ v,
        directions=v.T @ stack.directions,
        base=stack.base,
        slope=stack.slope,
        shift=stack.shift,
        prior_index=stack.prior_index,
        covariance_index=stack.covariance_index,
        fixed=stack.fixed,
    )


def padded(floors: np.ndarray, multiple: int = 8) -> np.ndarray:
    """Dense floors (J, m, m) with m rounded up to a multiple, so that few sizes are compiled.

    Extra coordinates get a negative multiple of the identity, where the least noise is zero.
    """
    count, m, _ = floors.shape
    size = -(-m // multiple) * multiple
    top = max(float(np.max(np.linalg.eigvalsh(floors)[:, -1])), 1e-300)
    out = np.zeros((count, size, size))
    out[:, :m, :m] = floors
    extra = np.arange(m, size)
    out[:, extra, extra] = -top
    return out
