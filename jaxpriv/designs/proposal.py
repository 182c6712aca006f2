"""The closed forms, compiled, on host arrays: proposals that the certificate then judges."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxpriv.designs.block import BlockNoise, block_for_budget, block_for_loss
from jaxpriv.designs.spectral import (
    absorbed,
    factor_of_parts,
    loss_of_parts,
    one_number_factor,
    one_number_power,
    trace_of_parts,
    unweighted,
)
from jaxpriv.precision import double_precision
from jaxpriv.secrets.conditional import from_joint


class Proposal(NamedTuple):
    """Noise L Lᵀ + η I from a closed form, in float64, unverified.

    factor: L, (n, q). loss: λ_max(M) that it is meant to have. trace: tr(W G) that it is meant to have.
    """

    factor: np.ndarray
    loss: float
    trace: float


def propose(
    covariance: np.ndarray,
    cross: np.ndarray,
    variance: np.ndarray,
    positions: np.ndarray | None,
    *,
    structure: str,
    floor_variance: float,
    weights: np.ndarray | None = None,
    loss: float | None = None,
    budget: float | None = None,
) -> Proposal:
    """The closed form for one secret, at a target `loss` or at a `budget` (tr(W G), floor included)."""
    with double_precision():
        if structure == "block":
            return _block(covariance, cross, variance, positions, floor_variance, loss, budget)
        arguments = (covariance, cross, variance, positions, weights)
        if loss is not None:
            factor, trace = _joint_for_loss(*arguments, loss, floor_variance)
            return Proposal(np.asarray(factor), float(loss), float(trace))
        if budget is None:
            raise TypeError("propose needs a loss or a budget.")
        factor, reached = _joint_for_budget(*arguments, budget, floor_variance)
        return Proposal(np.asarray(factor), float(reached), float(budget))


@jax.jit
def _joint_for_loss(covariance, cross, variance, positions, weights, loss, floor_variance):
    parts, total = absorbed(from_joint(covariance, cross, variance, positions), floor_variance, weights)
    if cross.shape[1] == 1:
        power = one_number_power(parts, loss)
        return unweighted(one_number_factor(parts, power), weights), power + total
    return unweighted(factor_of_parts(parts, loss), weights), trace_of_parts(parts, loss) + total


@jax.jit
def _joint_for_budget(covariance, cross, variance, positions, weights, budget, floor_variance):
    parts, total = absorbed(from_joint(covariance, cross, variance, positions), floor_variance, weights)
    room = budget - total
    loss = loss_of_parts(parts, room)
    factor = one_number_factor(parts, room) if cross.shape[1] == 1 else factor_of_parts(parts, loss)
    return unweighted(factor, weights), loss


def _block(covariance, cross, variance, positions, floor_variance, loss, budget) -> Proposal:
    # The secret goes first, so that the program does not depend on where it is.
    n, k = cross.shape
    order = np.concatenate([positions, np.setdiff1d(np.arange(n), positions)])
    arguments = (covariance[np.ix_(order, order)], cross[order], variance)
    if loss is not None:
        noise = _block_for_loss(*arguments, loss, floor_variance)
    else:
        noise = _block_for_budget(*arguments, budget, floor_variance)
    factor = np.zeros((n, k + noise.rest_factor.shape[1]))
    factor[order[:k], np.arange(k)] = np.sqrt(max(float(noise.own_variance) - floor_variance, 0.0))
    factor[order[k:], k:] = np.asarray(noise.rest_factor)
    return Proposal(factor, float(noise.loss), float(noise.trace))


@jax.jit
def _block_for_loss(covariance, cross, variance, loss, floor_variance) -> BlockNoise:
    k = cross.shape[1]
    parts = from_joint(covariance, cross, variance, tuple(range(k)))
    return block_for_loss(parts, tuple(range(k)), jnp.asarray(loss), floor_variance)


@jax.jit
def _block_for_budget(covariance, cross, variance, budget, floor_variance) -> BlockNoise:
    k = cross.shape[1]
    parts = from_joint(covariance, cross, variance, tuple(range(k)))
    return block_for_budget(parts, tuple(range(k)), jnp.asarray(budget), floor_variance)
