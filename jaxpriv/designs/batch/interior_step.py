"""One step of the primal-dual interior-point method for a noise in few directions, X ⪰ 0 (r, r).

In the reaches m_j(X) = 1 / M_j(X), which are concave (docs/batches.md), the problem is

    minimise  level   subject to  −m_j(X) + slack_j = level,  tr X = power,      or
    minimise  tr X    subject to  −m_j(X) + slack_j = −1 / goal.

Mehrotra's predictor and corrector with the HKM direction; the unknowns of the linear system are the r (r + 1) / 2
entries of X, the rest is eliminated. Whatever comes out is only a proposal: the certificate judges it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float


_CLOSEST = 0.97  # share of the longest step to the boundary that is taken
_SHORTER = (1.0, 0.5, 0.2)  # shares of a step that are tried: the reaches are not linear
_MISSED = 20.0  # the linear model may err by that many times what is left of the complementarity


class Model(NamedTuple):
    """The priors in r directions: A_j (p, r, r) and its inverse, w_j (p, r) and A_j⁻¹ w_j, the constant parts of the
    posterior variances (p,), and 1 / s_j (p,)."""

    gram: Float[Array, "p r r"]
    reduced: Float[Array, "p r r"]
    weight: Float[Array, "p r"]
    offset: Float[Array, "p r"]
    constant: Float[Array, " p"]
    inverse: Float[Array, " p"]


class State(NamedTuple):
    """X and its dual (r, r), the slacks and the priors' shares (p,), the level, and the price of power."""

    noise: Float[Array, "r r"]
    slack: Float[Array, " p"]
    level: Float[Array, ""]
    shares: Float[Array, " p"]
    dual: Float[Array, "r r"]
    price: Float[Array, ""]


def symmetric(matrix: Float[Array, "*m r r"]) -> Float[Array, "*m r r"]:
    """The symmetric part."""
    return 0.5 * (matrix + jnp.swapaxes(matrix, -1, -2))


def inverse_roots(matrices: Float[Array, "m r r"]) -> Float[Array, "m r r"]:
    """The inverse Cholesky factors L⁻¹ of M = L Lᵀ, so that M⁻¹ = L⁻ᵀ L⁻¹."""
    roots = jnp.linalg.cholesky(matrices)
    identity = jnp.broadcast_to(jnp.eye(matrices.shape[-1], dtype=matrices.dtype), matrices.shape)
    return solve_triangular(roots, identity, lower=True)


def outlook(model: Model, noise: Float[Array, "r r"]) -> tuple[Float[Array, "p r"], Float[Array, " p"]]:
    """a_j = (I + A_j X)⁻¹ w_j, with which dP_j = a_jᵀ dX a_j, and the posterior variances P_j."""
    roots = jnp.linalg.cholesky(model.reduced + noise)
    half = solve_triangular(roots, model.offset[..., None], lower=True)
    a = solve_triangular(roots, half, lower=True, trans=1)[..., 0]
    return a, _posterior(model, a, noise)


def _posterior(model: Model, a: Float[Array, "p r"], noise: Float[Array, "r r"]) -> Float[Array, " p"]:
    image = a @ noise
    return model.constant + jnp.sum(a * image, 1) + jnp.einsum("pi,pij,pj->p", image, model.gram, image)


def reach_of(model: Model, posterior: Float[Array, "*q p"]) -> Float[Array, "*q p"]:
    """1 / M_j = 1 / (1 / P_j − 1 / s_j)."""
    return 1.0 / (1.0 / posterior - model.inverse)


def packing(r: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and columns of the upper triangle, and the weight 1 or √2 of an entry, for symmetric matrices (r, r)."""
    i, j = np.triu_indices(r)
    return i, j, np.where(i == j, 1.0, np.sqrt(2.0))


def packed_map(left: Float[Array, "q r r"], right: Float[Array, "q r r"]) -> Float[Array, "d d"]:
    """The matrix of X ↦ Σ_q sym(left_q X right_q), both symmetric, on packed symmetric matrices."""
    count, r, _ = left.shape
    _, _, weight = packing(r)
    full = (left.reshape(count, r * r).T @ right.reshape(count, r * r)).reshape(r, r, r, r).transpose(0, 2, 1, 3)
    full = full + full.transpose(0, 1, 3, 2)
    full = (full + full.transpose(1, 0, 2, 3)).reshape(r, r, r * r)
    # Slices: a gather of the same entries takes longer than all the rest of a step.
    rows = jnp.concatenate([full[k, k:] for k in range(r)]).reshape(-1, r, r)
    total = jnp.concatenate([rows[:, k, k:] for k in range(r)], axis=1)
    return jnp.asarray(0.25 * weight[:, None] * weight[None, :]) * total


def _longest(both: Float[Array, "2 r r"], roots: Float[Array, "2 r r"]) -> tuple[Array, Array]:
    """The longest steps along both before a matrix with the inverse Cholesky factors `roots` becomes singular."""
    inner = roots @ both @ jnp.swapaxes(roots, 1, 2)
    least = jnp.linalg.eigvalsh(symmetric(inner))[:, 0]
    longest = 1.0 / jnp.maximum(-least, 1e-300)
    return jnp.minimum(longest[0], 1e10), jnp.minimum(longest[1], 1e10)


def _along(value: Array, change: Array) -> Array:
    return jnp.min(jnp.where(change < 0.0, -value / jnp.where(change < 0.0, change, -1.0), 1e10))


def curvature(
    model: Model, noise: Float[Array, "r r"], inner: Float[Array, "p r r"], shares: Float[Array, " p"]
) -> tuple[Array, Array, Array, Array]:
    """The reaches (p,), their gradients packed (p, d), and what the shares' mean of −m_j bends by, in two parts.

    That is Σ_k sym(L_k dX R_k) with L, R (p, r, r), less Σ_j c_j g_j g_jᵀ with c (p,) and the gradients g_j.
    `inner` is (A_j⁻¹ + X)⁻¹.
    """
    i, j, weight = packing(noise.shape[0])
    a = (inner @ model.offset[..., None])[..., 0]
    posterior = _posterior(model, a, noise)
    reach = reach_of(model, posterior)
    outer = a[:, :, None] * a[:, None, :] * (reach / posterior)[:, None, None] ** 2
    bent = 2.0 * shares[:, None, None] * outer
    return reach, outer[..., i, j] * jnp.asarray(weight), bent, 2.0 * shares * posterior * model.inverse / reach


def step(state: State, model: Model, power: Float[Array, ""], fixed: bool) -> State:
    """The state after one step; the state itself where the step is not finite. `fixed`: the level is, not tr X."""
    noise, slack, level, shares, dual, price = state
    r, p = noise.shape[0], shares.shape[0]
    i, j, weight = packing(r)

    def pack(matrix):
        return matrix[..., i, j] * jnp.asarray(weight)

    def unpack(vector):
        scaled = vector / jnp.asarray(weight)
        empty = jnp.zeros((r, r), vector.dtype).at[i, j].set(scaled)
        return empty.at[j, i].set(scaled)

    roots = inverse_roots(jnp.concatenate([model.reduced + noise, noise[None], dual[None]]))
    inverses = jnp.swapaxes(roots[: p + 1], 1, 2) @ roots[: p + 1]
    inner, own = inverses[:p], inverses[p]
    reach, packed, bent_by, bent_less = curvature(model, noise, inner, shares)
    ratio = shares / slack
    matrix = packed_map(jnp.concatenate([bent_by, own[None]]), jnp.concatenate([inner, dual[None]]))
    matrix = matrix + (packed * (ratio - bent_less)[:, None]).T @ packed
    scale = 1.0 / jnp.sqrt(jnp.diagonal(matrix))
    factor = jnp.linalg.cholesky(matrix * scale[:, None] * scale[None, :] + 1e-15 * jnp.eye(len(scale)))

    def solve(right):
        half = solve_triangular(factor, right * scale[:, None], lower=True)
        return solve_triangular(factor, half, lower=True, trans=1) * scale[:, None]

    off = slack - reach - level
    count = r + p
    mean = (jnp.sum(noise * dual) + jnp.dot(slack, shares)) / count
    border = jnp.stack([packed.T @ ratio, pack(jnp.eye(r, dtype=noise.dtype))], axis=1)

    def towards(target, corrector, bend):
        # `bend` corrects the products slack·share, `corrector` those of noise and dual.
        push = (target - bend) / slack + ratio * off
        right = pack(target * own - corrector) - price * border[:, 1] + packed.T @ push
        if fixed:
            change = solve(right[:, None])[:, 0]
            d_level, d_price = jnp.zeros_like(level), jnp.zeros_like(price)
        else:
            solved = solve(jnp.concatenate([right[:, None], border], axis=1))
            inside = border.T @ solved
            # dX = x0 − d_level x1 − d_price x2;  k·dX + (Σ ratio) d_level = Σ push − 1;  tr dX = power − tr X.
            top = jnp.sum(push) - 1.0 - inside[0, 0]
            bottom = power - jnp.trace(noise) - inside[1, 0]
            a11, a12, a21, a22 = jnp.sum(ratio) - inside[0, 1], -inside[0, 2], -inside[1, 1], -inside[1, 2]
            det = a11 * a22 - a12 * a21
            d_level, d_price = (top * a22 - a12 * bottom) / det, (a11 * bottom - a21 * top) / det
            change = solved[:, 0] - d_level * solved[:, 1] - d_price * solved[:, 2]
        d_noise = unpack(change)
        d_slack = d_level + packed @ change - off
        d_shares = (target - bend) / slack - shares - ratio * d_slack
        d_dual = target * own - corrector - dual - symmetric(dual @ d_noise @ own)
        primal, other = _longest(jnp.stack([d_noise, d_dual]), roots[p:])
        primal = jnp.minimum(primal, _along(slack, d_slack))
        other = jnp.minimum(other, _along(shares, d_shares))
        return d_noise, d_slack, d_level, d_shares, d_dual, d_price, primal, other

    d = towards(jnp.zeros_like(mean), jnp.zeros_like(noise), jnp.zeros_like(slack))
    primal, other = jnp.minimum(d[6], 1.0), jnp.minimum(d[7], 1.0)
    reached = jnp.sum((noise + primal * d[0]) * (dual + other * d[4]))
    reached = (reached + jnp.dot(slack + primal * d[1], shares + other * d[3])) / count
    target = mean * jnp.clip((reached / mean) ** 3, 1e-3, 1.0)
    # Second-order terms count as much as of the predictor could be taken: whole, they spoil short steps.
    trusted = primal * other
    d = towards(target, trusted * symmetric(d[4] @ d[0] @ own), trusted * d[1] * d[3])
    primal, other = jnp.minimum(1.0, _CLOSEST * d[6]), jnp.minimum(1.0, _CLOSEST * d[7])
    tries = primal * jnp.asarray(_SHORTER)
    noises = symmetric(noise + tries[:, None, None] * d[0])
    levels = level + tries * d[2]
    slacks = slack + tries[:, None] * d[1]
    # The last one is taken where no other is fine, so it need not be looked at.
    reaches = reach_of(model, jax.vmap(lambda one: outlook(model, one)[1])(noises[:-1]))
    missed = jnp.abs(slacks[:-1] - reaches - levels[:-1, None])
    fine = missed @ shares <= _MISSED * count * mean
    taken = jnp.where(jnp.any(fine), jnp.argmax(fine), len(_SHORTER) - 1)
    new = State(
        noises[taken],
        slacks[taken],
        levels[taken],
        shares + other * d[3],
        symmetric(dual + other * d[4]),
        price + other * d[5],
    )
    good = jnp.all(jnp.asarray([jnp.all(jnp.isfinite(one)) for one in new]))
    return jax.tree.map(lambda x, y: jnp.where(good, x, y), new, state)
