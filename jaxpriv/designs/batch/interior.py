"""A basic secret under several priors: the best noise in few directions, by a primal-dual interior-point method.

The noise is G = η I + Q X Qᵀ with Q (n, r) orthonormal and X positive semidefinite. With N_j = Σ_j + η I,
f_j = N_j⁻¹ Σ_j e = e − η N_j⁻¹ e, A_j = Qᵀ N_j⁻¹ Q, w_j = Qᵀ f_j and a_j = (I + A_j X)⁻¹ w_j, the posterior variance is

    P_j(X) = η − η² (N_j⁻¹)_ee + a_jᵀ X a_j + (X a_j)ᵀ A_j (X a_j),       dP_j = a_jᵀ dX a_j,

a sum of non-negative terms in which nothing of the size n is factorised. The range of the optimum is in the span of the
vectors f_j − N_j⁻¹ Q X a_j of the active priors, so that Q is renewed from dual vectors and few directions suffice.
(Derived here; proof in docs/batches.md.)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Int

from jaxpriv.designs.batch.closed_form import direction
from jaxpriv.designs.batch.interior_step import Model, State, inverse_roots, outlook, reach_of, step, symmetric
from jaxpriv.linalg.ordering import after


DIRECTIONS = 12  # r: columns of Q
STEPS = 20
_LEAST = 1e-12  # of the power, spread evenly, so that X has a Cholesky factor
_INWARD = 0.1  # of the noise that a round starts from is spread evenly, so that it may move; and of the weights
_GROWTHS = 8  # Newton steps for the power at which a target is met


def prepare(
    covariance: Float[Array, "p n n"],
    position: Int[Array, ""],
    mask: Bool[Array, " n"],
    floor: Float[Array, ""],
    power: Float[Array, ""],
) -> tuple[Array, ...]:
    """Cholesky factors (p, n, n) of N, and columns (n, p + r) that a first Q is made of.

    These are the best directions for each prior alone, followed by a factor of the noise to start from.
    """
    n = covariance.shape[-1]
    secret = jnp.zeros(n, covariance.dtype).at[position].set(1.0)
    alone = jax.vmap(direction, in_axes=(0, None, None), out_axes=1)(covariance, position, power + floor)
    factors = jnp.linalg.cholesky(after(covariance, alone) + floor * jnp.eye(n, dtype=covariance.dtype))
    rest = jnp.zeros((n, min(DIRECTIONS, n) - 1), covariance.dtype)
    columns = jnp.concatenate([alone, 1e-2 * secret[:, None], rest], axis=1)
    return factors, columns * mask[:, None]


def least_loss(
    covariance: Float[Array, "p n n"],
    position: Int[Array, ""],
    mask: Bool[Array, " n"],
    floor: Float[Array, ""],
    own: Float[Array, " p"],
    first: Bool[Array, ""],
    columns: Float[Array, "n q"],
    weights: Float[Array, " p"],
    power: Float[Array, ""],
) -> tuple[Float[Array, "n r"], Float[Array, " p"]]:
    """A factor of squared norm `power` whose largest loss is small, and how much each prior counts.

    `own` are the secret's variances; `columns` (n, p + r) what Q is made of, the last r a factor to start from (in a
    `first` round those of `prepare` instead); `weights` how much each prior counts there.
    """
    factors, columns = _prepared(covariance, position, mask, floor, power, first, columns)
    basis, model = _reduced(factors, position, floor, own, columns)
    noise, shares = _started(basis, columns, weights, power)
    a, posterior = outlook(model, noise)
    reach = reach_of(model, posterior)
    level = -0.9 * jnp.min(reach)
    price = jnp.sum(shares * jnp.einsum("pi,ij,pj->p", a, noise, a) * (reach / posterior) ** 2) / power
    noise, shares = _iterated(model, noise, shares, level + reach, level, price, power, False)
    noise = noise * (power / jnp.trace(noise))
    return _finished(basis, model, noise, shares)


def least_power(
    covariance: Float[Array, "p n n"],
    position: Int[Array, ""],
    mask: Bool[Array, " n"],
    floor: Float[Array, ""],
    own: Float[Array, " p"],
    first: Bool[Array, ""],
    columns: Float[Array, "n q"],
    weights: Float[Array, " p"],
    power: Float[Array, ""],
    goal: Float[Array, ""],
) -> tuple[Float[Array, "n r"], Float[Array, " p"]]:
    """`least_loss` with a largest loss of `goal` and as little power as possible; `power` is where it starts."""
    factors, columns = _prepared(covariance, position, mask, floor, power, first, columns)
    basis, model = _reduced(factors, position, floor, own, columns)
    noise, shares = _started(basis, columns, weights, power)
    noise = _grown(model, noise, goal)
    a, posterior = outlook(model, noise)
    reach = reach_of(model, posterior)
    gained = jnp.sum(shares * jnp.einsum("pi,ij,pj->p", a, noise, a) * (reach / posterior) ** 2)
    shares = shares * jnp.trace(noise) / gained
    level = -1.0 / goal
    slack = jnp.maximum(level + reach, -0.1 * level)
    noise, shares = _iterated(model, noise, shares, slack, level, jnp.ones_like(goal), jnp.trace(noise), True)
    return _finished(basis, model, _grown(model, noise, goal), shares)


def _prepared(covariance, position, mask, floor, power, first, columns) -> tuple[Array, Array]:
    """Both in one program, so that there is one for each length and number of priors, whatever the round."""
    factors, begun = prepare(covariance, position, mask, floor, power)
    return factors, after(jnp.where(first, begun, columns), factors)


def _reduced(factors, position, floor, own, columns) -> tuple[Array, Model]:
    """The leading directions of the columns, orthonormal, and the priors in them."""
    r = min(DIRECTIONS, columns.shape[0])
    _, vectors = jnp.linalg.eigh(columns.T @ columns)
    basis = jnp.linalg.qr(columns @ vectors[:, ::-1][:, :r])[0]
    secret = jnp.zeros(columns.shape[0], basis.dtype).at[position].set(1.0)
    right = jnp.concatenate([basis, secret[:, None]], axis=1)
    half = solve_triangular(factors, jnp.broadcast_to(right, (factors.shape[0], *right.shape)), lower=True)
    inner = symmetric(jnp.swapaxes(half, 1, 2) @ half)
    gram, along, seen = inner[:, :r, :r], inner[:, :r, r], inner[:, r, r]
    weight = basis[position] - floor * along
    roots = inverse_roots(gram)
    reduced = jnp.swapaxes(roots, 1, 2) @ roots
    offset = (reduced @ weight[..., None])[..., 0]
    return basis, Model(gram, reduced, weight, offset, floor - floor**2 * seen, 1.0 / own)


def _started(basis, columns, weights, power) -> tuple[Array, Array]:
    r, p = basis.shape[1], weights.shape[0]
    inside = basis.T @ columns[:, p:]
    noise = inside @ inside.T
    even = jnp.eye(r, dtype=noise.dtype) / r
    noise = noise + _LEAST * even
    noise = power * ((1.0 - _INWARD) * noise / jnp.trace(noise) + _INWARD * even)
    return noise, (1.0 - _INWARD) * weights + _INWARD / p


def _iterated(model, noise, shares, slack, level, price, power, fixed: bool) -> tuple[Array, Array]:
    mean = jnp.dot(slack, shares) / shares.shape[0]
    (root,) = inverse_roots(after(noise, slack)[None])
    state = State(noise, slack, level, shares, mean * (root.T @ root), price)
    state = jax.lax.fori_loop(0, STEPS, lambda _, one: step(one, model, power, fixed), state)
    r = noise.shape[0]
    even = jnp.eye(r, dtype=noise.dtype) / r
    found = state.noise
    return (found + _LEAST * jnp.trace(found) * even) / (1.0 + _LEAST), state.shares


def _finished(basis, model, noise, shares) -> tuple[Array, Array]:
    root = jnp.linalg.cholesky(noise)
    _, posterior = outlook(model, after(noise, root))
    # The shares are of the reaches 1 / M; those of the losses are in the ratio M².
    weights = shares * reach_of(model, posterior) ** -2
    return basis @ root, weights / jnp.sum(weights)


def _grown(model, noise, goal) -> Array:
    """The noise, multiplied by what makes its largest loss `goal`."""

    def newton(_, x):
        scaled = jnp.exp(x) * noise
        a, posterior = outlook(model, scaled)
        loss = 1.0 / reach_of(model, posterior)
        worst = jnp.argmax(loss)
        gained = jnp.sum(a * (a @ scaled), axis=1)
        slope = (-gained / (posterior**2 * loss))[worst]
        # The slope is between 0 and −1: a step that assumes −1 never goes too far.
        return x + jnp.clip(jnp.log(goal / loss[worst]) / jnp.minimum(slope, -1e-3), -3.0, 3.0)

    return jnp.exp(jax.lax.fori_loop(0, _GROWTHS, newton, jnp.zeros_like(goal))) * noise
