"""Differentiable designs for several secrets and priors: the least cost, the least loss and the noise that attains it.

Derivatives come from the optimality conditions, never through a solver's steps: values by the envelope theorem, the
noise by the implicit function theorem on the central path. First derivatives only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from jaxpriv.designs.majorant.derivatives import interior_scale, interior_trace, least_noise, least_scale, least_trace
from jaxpriv.designs.majorant.stack import FloorStack, inference_stack
from jaxpriv.designs.spectral import Weights, unweighted, weight_root
from jaxpriv.errors import InputError
from jaxpriv.floors.cip import infinite_unless
from jaxpriv.linalg.ordering import after
from jaxpriv.linalg.spectral import symmetric
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret, as_secrets
from jaxpriv.secrets.secret import EveryPoint
from jaxpriv.shapes import Scalar


INTERIOR_SIZE = 32  # coordinates up to which the dense interior-point method gives the duals of a value
NOISE_SIZE = 64  # and up to which its linear system, of order n(n + 1)/2, gives the derivative of the noise
_TOLERANCE = 1e-10  # relative gap of a value
_NOISE_TOLERANCE = 1e-12  # and of the noise, which is off by more than its trace; its derivative has its own

Priors = Prior | Sequence[Prior]
Secrets = AnySecret | EveryPoint | Sequence[AnySecret | EveryPoint]
Losses = Scalar | Float[ArrayLike, " j"] | Float[ArrayLike, "j p"]


def optimal_cost(
    prior: Priors,
    secret: Secrets,
    losses: Losses,
    *,
    floor_variance: Scalar = 0.0,
    weights: Weights = None,
) -> Float[Array, ""]:
    """The least tr(W G) over noise G ⪰ η I under which every secret's λ_max(M) is at most its loss, under every prior.

    In squared units of the trace. Differentiable (jit, vmap, forward and reverse mode) in the parameters of the priors,
    the losses, η = `floor_variance` and W = `weights`. By the envelope theorem the derivative is Σ_j tr(Y_j ∂F_j) over
    the floors F_j, Y_j their optimal multipliers; where these are not unique it is a subgradient. For one secret
    under one prior `least_trace` is the closed form.

    Args:
        prior: one or several, all of one size n.
        secret: one or several; each is protected by itself.
        losses: targets in inverse squared units (`target_loss` converts ε): one, one for each secret, or
            (secrets, priors).
        weights: W, (n,) positive or (n, n) positive definite; None weighs all alike.

    Returns:
        A scalar; infinite where a secret's own covariance is singular. Error about 1e-9 relative for n up to 32; above
        that an ascent is used, whose derivative is as good as the square root of its gap, about 1e-5.

    Raises:
        InputError: shapes that do not fit.
    """
    problem = _problem(prior, secret, losses, floor_variance, weights)
    value = _least_cost(problem.stack)
    return jnp.where(problem.exists, problem.floor_cost + value, jnp.inf)


def optimal_loss(
    prior: Priors,
    secret: Secrets,
    budget: Scalar,
    *,
    losses: Losses = 1.0,
    floor_variance: Scalar = 0.0,
    weights: Weights = None,
) -> Float[Array, ""]:
    """The least τ for which some noise G ⪰ η I of cost tr(W G) ≤ `budget` keeps every λ_max(M) at or below τ `losses`.

    With losses of 1 it is the largest loss itself, in inverse squared units; with those of ε = 1 (`target_loss`) it is
    ε in nats. Infinite where the budget does not exceed the floor's cost. Differentiable as `optimal_cost`, and in the
    budget; for one secret under one prior `least_loss` is the closed form.
    """
    problem = _problem(prior, secret, losses, floor_variance, weights)
    room = jnp.asarray(budget, problem.floor_cost.dtype) - problem.floor_cost
    scale = _least_scale(problem.stack, jnp.where(room > 0.0, room, 1.0))
    return jnp.where(problem.exists & (room > 0.0), scale, jnp.inf)


def optimal_noise(
    prior: Priors,
    secret: Secrets,
    *,
    losses: Losses = 1.0,
    budget: Scalar | None = None,
    floor_variance: Scalar = 0.0,
    weights: Weights = None,
) -> Float[Array, "n n"]:
    """The noise covariance that attains `optimal_cost`, or with a budget `optimal_loss`; (n, n), for n up to 64.

    Differentiable as those are. The derivative solves M[∂G] = Σ_j sym(Y_j ∂F_j S_j⁻¹), M[D] = Σ_j sym(Y_j D S_j⁻¹), at
    a centred point of the interior-point method, S_j = G − F_j (derived here; proof in docs/differentiable_designs.md).
    Its error is about 1e-6 relative where the optimum is strictly complementary; elsewhere the noise has only
    directional derivatives and what is returned is finite.

    Raises:
        InputError: more than 64 coordinates, or shapes that do not fit.
    """
    size = max((one.size for one in _listed(prior)), default=0)
    if size > NOISE_SIZE:
        raise InputError(
            f"the derivative of the noise is for at most {NOISE_SIZE} coordinates, not {size}: differentiate the "
            "optimal cost or loss instead, or use least_trace_noise for one secret."
        )
    problem = _problem(prior, secret, losses, floor_variance, weights)
    beta, feasible = jnp.ones((), problem.floor_cost.dtype), problem.exists
    if budget is not None:
        room = jnp.asarray(budget, problem.floor_cost.dtype) - problem.floor_cost
        beta = 1.0 / _least_scale(problem.stack, jnp.where(room > 0.0, room, 1.0))
        feasible = feasible & (room > 0.0)
    excess = least_noise(problem.stack.dense(beta), _NOISE_TOLERANCE)
    if weights is not None:
        half = unweighted(excess, weights)
        excess = symmetric(unweighted(half.T, weights))
    eye = jnp.eye(size, dtype=excess.dtype)
    return infinite_unless(feasible, excess + floor_variance * eye)


class _Problem(NamedTuple):
    """min tr G' s.t. G' ⪰ F_j, G' ⪰ 0 in the coordinates W^½ X and without the floor, whose cost comes on top."""

    stack: FloorStack
    floor_cost: Array
    exists: Array


def _problem(prior: Priors, secret: Secrets, losses: Losses, floor_variance: Scalar, weights: Weights) -> _Problem:
    priors = _listed(prior)
    if not priors:
        raise InputError("no prior was given.")
    if len({one.size for one in priors}) > 1:
        raise InputError(f"the priors have {sorted({one.size for one in priors})} coordinates; expected the same.")
    secrets = as_secrets(secret, priors[0])
    size, width = priors[0].size, max(one.size for one in secrets)
    targets = _targets(losses, len(secrets), len(priors))
    covariances = jnp.stack([jnp.asarray(one.covariance) for one in priors])
    crosses, variances, mask = [], [], np.zeros((len(priors) * len(secrets), width), bool)
    for p, one in enumerate(priors):
        for j, part in enumerate(secrets):
            cross, variance = (jnp.asarray(array) for array in part.joint(one))
            rest = width - part.size
            crosses.append(jnp.pad(cross, ((0, 0), (0, rest))))
            variances.append(jnp.pad(variance, ((0, rest), (0, rest))))
            mask[p * len(secrets) + j, : part.size] = True
    cross, variance = jnp.stack(crosses), jnp.stack(variances)
    eye = jnp.eye(size, dtype=covariances.dtype)
    covariances = covariances + floor_variance * eye
    floor_cost = size * jnp.asarray(floor_variance, covariances.dtype)
    if weights is not None:
        root = weight_root(weights)
        floor_cost = floor_variance * jnp.sum(root * root)
        with jax.default_matmul_precision("highest"):
            covariances, cross = _symmetric_each(root @ covariances @ root), root @ cross
        variance = after(variance, root)
    variance, exists = _definite(variance, mask)
    index = [p for p in range(len(priors)) for _ in secrets]
    stack = inference_stack(covariances, index, cross, variance, targets, mask=mask)
    return _Problem(stack, jnp.asarray(floor_cost), exists)


def _listed(prior: Priors) -> list[Prior]:
    return list(prior) if isinstance(prior, Sequence) else [prior]


def _symmetric_each(matrices: Float[Array, "p n n"]) -> Float[Array, "p n n"]:
    """The symmetric part of each."""
    return 0.5 * (matrices + jnp.swapaxes(matrices, 1, 2))


def _definite(variance: Float[Array, "j k k"], mask: np.ndarray) -> tuple[Float[Array, "j k k"], Array]:
    """The secrets' covariances, those that are singular replaced by the identity, and whether none is."""
    eye = jnp.eye(variance.shape[-1], dtype=variance.dtype)
    filled = jnp.where(jnp.asarray(mask[:, :, None] & mask[:, None, :]), variance, eye)
    factor = jnp.linalg.cholesky(jax.lax.stop_gradient(filled))
    usable = jnp.all(jnp.isfinite(factor), axis=(1, 2))
    return jnp.where(usable[:, None, None], variance, eye), jnp.all(usable)


def _targets(losses: Losses, secrets: int, priors: int) -> Float[Array, " j"]:
    """One target for each floor, prior-major."""
    array = jnp.asarray(losses)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim > 2 or array.shape not in ((), (1, 1), (secrets, 1), (secrets, priors)):
        raise InputError(f"losses has shape {array.shape}; expected one, ({secrets},) or ({secrets}, {priors}).")
    return jnp.broadcast_to(array, (secrets, priors)).T.reshape(-1)


@eqx.filter_jit
def _least_cost(stack: FloorStack) -> Array:
    if stack.size <= INTERIOR_SIZE:
        return interior_trace(stack.dense(), _TOLERANCE)
    return least_trace(stack, tolerance=_TOLERANCE, max_steps=20000)


@eqx.filter_jit
def _least_scale(stack: FloorStack, budget: Array) -> Array:
    if stack.size <= INTERIOR_SIZE:
        fixed = stack.dense(0.0)
        return interior_scale(fixed, stack.dense(1.0) - fixed, budget, _TOLERANCE)
    return least_scale(stack, budget, tolerance=_TOLERANCE, max_steps=20000)
