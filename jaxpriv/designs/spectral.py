"""The least-noise mechanism for one secret: the positive part of its floor.

Everything here is in H, C coordinates: the floor at loss t is F(t) = H Hᵀ/t − C, and a noise floor η I is absorbed by
C + η I, since G ⪰ F(t) and G ⪰ η I exactly when G − η I ⪰ 0 and G − η I ⪰ H Hᵀ/t − (C + η I). Proofs in
docs/design.md. All functions are pure JAX: jit, vmap and grad them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.floors.cip import floor_of_parts, infinite_unless
from jaxpriv.linalg.cholesky import cholesky, cholesky_solve, solve_lower
from jaxpriv.linalg.spectral import largest_eigenvalue, positive_part, psd_sqrt, symmetric, top_positive_sum
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret
from jaxpriv.secrets.conditional import Conditional, conditional
from jaxpriv.shapes import Scalar


_NEWTON_STEPS = 60
Weights = Float[Array, " n"] | Float[Array, "n n"] | None


def least_trace(
    prior: Prior, secret: AnySecret, loss: Scalar, *, floor_variance: Scalar = 0.0, weights: Weights = None
) -> Float[Array, ""]:
    """The least tr(W G) over noise G ⪰ η I whose loss λ_max(M) is at most `loss`; W = I by default.

    Derived here; proof in docs/design.md. In squared units of the trace. Differentiable in the prior, the secret's
    radius (through `target_loss`), the target, the floor and the weights, and convex and increasing in 1/loss.
    """
    parts, total = _problem(prior, secret, floor_variance, weights)
    return jnp.where(parts.exists, total + trace_of_parts(parts, jnp.asarray(loss)), jnp.inf)


def least_trace_noise(
    prior: Prior, secret: AnySecret, loss: Scalar, *, floor_variance: Scalar = 0.0, weights: Weights = None
) -> Float[Array, "n n"]:
    """The unique noise covariance that attains `least_trace`: η I plus the positive part of the floor, (n, n)."""
    parts, _ = _problem(prior, secret, floor_variance, weights)
    noise = _assembled(positive_part(floor_of_parts(parts, jnp.asarray(loss))), floor_variance, weights)
    return infinite_unless(parts.exists, noise)


def least_loss(
    prior: Prior, secret: AnySecret, budget: Scalar, *, floor_variance: Scalar = 0.0, weights: Weights = None
) -> Float[Array, ""]:
    """The least λ_max(M) over noise G ⪰ η I with tr(W G) ≤ `budget`, in inverse squared units.

    Infinite where the budget does not exceed the floor's own cost. Differentiable, by the implicit function theorem.
    """
    parts, total = _problem(prior, secret, floor_variance, weights)
    room = jnp.asarray(budget) - total
    loss = loss_of_parts(parts, jnp.where(room > 0.0, room, 1.0))
    return jnp.where(room > 0.0, loss, jnp.inf)


def least_loss_noise(
    prior: Prior, secret: AnySecret, budget: Scalar, *, floor_variance: Scalar = 0.0, weights: Weights = None
) -> Float[Array, "n n"]:
    """The noise covariance that attains `least_loss`, (n, n)."""
    loss = least_loss(prior, secret, budget, floor_variance=floor_variance, weights=weights)
    return least_trace_noise(prior, secret, loss, floor_variance=floor_variance, weights=weights)


def weight_root(weights: Float[Array, " n"] | Float[Array, "n n"]) -> Float[Array, "n n"]:
    """W^½ for a vector of positive weights or a positive definite matrix."""
    weights = jnp.asarray(weights)
    if weights.ndim == 1:
        return jnp.diag(jnp.sqrt(weights))
    if weights.ndim == 2:
        return psd_sqrt(weights)
    raise InputError(f"weights has shape {weights.shape}; expected (n,) or (n, n).")


def _problem(prior, secret, floor_variance, weights) -> tuple[Conditional, Float[Array, ""]]:
    """H and C of the problem without floor and weights that is equivalent to the given one, and the floor's cost."""
    parts = conditional(prior, secret)
    return absorbed(parts, floor_variance, weights)


def absorbed(parts: Conditional, floor_variance: Scalar, weights: Weights) -> tuple[Conditional, Float[Array, ""]]:
    """The parts of the equivalent problem min tr G' s.t. G' ⪰ F'(t), G' ⪰ 0, and the cost η tr W of the floor."""
    size = parts.residual.shape[0]
    identity = jnp.eye(size, dtype=parts.residual.dtype)
    shifted = parts.residual + floor_variance * identity
    if weights is None:
        return Conditional(parts.regression, shifted, parts.variance, parts.exists), size * jnp.asarray(floor_variance)
    root = weight_root(weights)
    with jax.default_matmul_precision("highest"):
        # H and C are transformed, not recomputed: in these coordinates the secret is no set of fixes.
        return (
            Conditional(root @ parts.regression, symmetric(root @ shifted @ root), parts.variance, parts.exists),
            jnp.asarray(floor_variance * jnp.sum(root * root)),
        )


def _assembled(excess, floor_variance, weights):
    identity = jnp.eye(excess.shape[0], dtype=excess.dtype)
    if weights is None:
        return excess + floor_variance * identity
    half = unweighted(excess, weights)
    return symmetric(unweighted(half.T, weights)) + floor_variance * identity


def unweighted(columns: Float[Array, "n m"], weights: Weights) -> Float[Array, "n m"]:
    """W^−½ times the columns: from the coordinates of the weighted problem back to those of the trace."""
    if weights is None:
        return columns
    factor, _ = cholesky(weight_root(weights))
    with jax.default_matmul_precision("highest"):
        return cholesky_solve(factor, columns)


def trace_of_parts(parts: Conditional, loss: Float[Array, ""]) -> Float[Array, ""]:
    """tr F(t)₊, summed over the k eigenvalues that can be positive (rounding makes others look so)."""
    return top_positive_sum(floor_of_parts(parts, loss), parts.regression.shape[1])


def factor_of_parts(parts: Conditional, loss: Float[Array, ""]) -> Float[Array, "n k"]:
    """L with L Lᵀ = F(t)₊, one column for each of the k eigenvalues that can be positive. Not differentiable."""
    k = parts.regression.shape[1]
    values, vectors = jnp.linalg.eigh(floor_of_parts(parts, loss))
    return vectors[:, -k:] * jnp.sqrt(jnp.maximum(values[-k:], 0.0))


def loss_of_parts(parts: Conditional, budget: Float[Array, ""]) -> Float[Array, ""]:
    """The t at which tr F(t)₊ is `budget`; for one number t = hᵀ(C + b I)⁻¹h in closed form."""
    with jax.default_matmul_precision("highest"):
        factor, exists = cholesky(
            parts.residual + budget * jnp.eye(parts.residual.shape[0], dtype=parts.residual.dtype)
        )
        whitened = solve_lower(factor, parts.regression)
        gain = symmetric(whitened.T @ whitened)
    usable = exists & parts.exists
    least = largest_eigenvalue(gain)
    if parts.regression.shape[1] == 1:
        return jnp.where(usable, least, jnp.inf)
    return jnp.where(usable, _budget_root(parts, budget, jax.lax.stop_gradient(least)), jnp.inf)


def _budget_root(parts, budget, least):
    """Newton's method in x = 1/t, in which the trace is convex and increasing: from the right it is monotone."""
    fixed, fixed_budget = jax.lax.stop_gradient((parts, budget))
    value_and_slope = jax.value_and_grad(lambda x: trace_of_parts(fixed, 1.0 / x))

    def step(state):
        x, _, count = state
        value, slope = value_and_slope(x)
        lower = x - (value - fixed_budget) / jnp.where(slope > 0.0, slope, jnp.inf)
        return jnp.where(lower > 0.0, jnp.minimum(lower, x), 0.5 * x), x, count + 1

    def going(state):
        x, previous, count = state
        return (count < _NEWTON_STEPS) & (previous - x > 4.0 * jnp.finfo(x.dtype).eps * x)

    start = 1.0 / jnp.where(least > 0.0, least, 1.0)
    x, _, _ = jax.lax.while_loop(going, step, (start, jnp.inf, 0))
    x = jax.lax.stop_gradient(x)
    _, slope = value_and_slope(x)
    # One more step, differentiable: its value is the root and its derivative that of the implicit function.
    excess = trace_of_parts(parts, 1.0 / x) - budget
    return 1.0 / (x - excess / jnp.where(slope > 0.0, slope, jnp.inf))


def one_number_power(parts: Conditional, loss: Float[Array, ""]) -> Float[Array, ""]:
    """The power μ of the optimal noise for a secret that is one number: hᵀ(C + μ I)⁻¹h = t, or 0 if none is needed.

    The reciprocal of the left side is a weighted harmonic mean of the shifted eigenvalues of C, increasing and concave
    in μ: Newton's method from the left is monotone. It starts at the bound ‖h‖²/t − hᵀCh/‖h‖² of Jensen's inequality,
    and takes one factorisation a step where the positive part would take an eigendecomposition. Not differentiable.
    """
    regression, residual = parts.regression[:, 0], parts.residual
    identity = jnp.eye(residual.shape[0], dtype=residual.dtype)
    square = regression @ regression
    tiny = jnp.finfo(residual.dtype).eps * (square / loss + jnp.trace(residual))

    def excess(power):
        """1/(hᵀ(C + μ I)⁻¹h) − 1/t, and its derivative; −1/t where C + μ I cannot be factorised."""
        factor, exists = cholesky(residual + power * identity)
        solved = cholesky_solve(factor, regression[:, None])[:, 0]
        gain = regression @ solved
        return jnp.where(exists, 1.0 / gain, 0.0) - 1.0 / loss, (solved @ solved) / gain**2

    def step(state):
        power, _, count = state
        value, slope = excess(power)
        return jnp.maximum(power - value / slope, power), power, count + 1

    def going(state):
        power, previous, count = state
        return (count < _NEWTON_STEPS) & (power - previous > 4.0 * jnp.finfo(power.dtype).eps * power)

    start = jnp.maximum(square / loss - regression @ residual @ regression / square, tiny)
    power, _, _ = jax.lax.while_loop(going, step, (start, -jnp.ones_like(start), 0))
    return jnp.where((power <= tiny) & (excess(tiny)[0] >= 0.0), 0.0, power)


def one_number_factor(parts: Conditional, budget: Float[Array, ""]) -> Float[Array, "n 1"]:
    """sqrt(b) u with u ∝ (C + b I)⁻¹ h: the optimal rank-one noise of power b for a secret that is one number."""
    identity = jnp.eye(parts.residual.shape[0], dtype=parts.residual.dtype)
    factor, _ = cholesky(parts.residual + budget * identity)
    direction = cholesky_solve(factor, parts.regression)
    return jnp.sqrt(budget) * direction / jnp.linalg.norm(direction)
