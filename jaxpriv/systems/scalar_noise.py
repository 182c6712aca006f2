"""The least noise for a scalar state, so that a listener who keeps outputs learns no more than was meant for one.

For x_{k+1} = a x_k + w_k, Var w = Q, |a| < 1, and outputs y = c x + v. Derived here; proofs in docs/linear_systems.md.
Closed forms, differentiable, for vmap over many states. The budget is τ = 2ε − q_1(δ) > 0, in nats.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxpriv.shapes import Scalar


def output_noise(a: Scalar, Q: Scalar, information: Scalar, c: Scalar = 1.0) -> Float[Array, ""]:
    """θ = c²Σ/(e^τ − 1): exactly (ε, δ) for one output, and for no series. ∞ where the request is infeasible."""
    a, Q, tau, usable = _usable(a, Q, information)
    return jnp.where(usable, jnp.asarray(c) ** 2 * _stationary(a, Q) / jnp.expm1(tau), jnp.inf)


def filter_noise(a: Scalar, Q: Scalar, information: Scalar, c: Scalar = 1.0) -> Float[Array, ""]:
    """The least noise variance that meets (ε, δ) about x_k for a listener who stops at time k.

    The filtered variance p = Σ e^−τ is prescribed; θ = c²/(1/p − 1/(a²p + Q)). Later outputs say more: see
    `smoother_noise`.
    """
    a, Q, tau, usable = _usable(a, Q, information)
    stationary = _stationary(a, Q)
    noise = _noise(a, Q, stationary * jnp.exp(-tau), -stationary * jnp.expm1(-tau))
    return jnp.where(usable, jnp.asarray(c) ** 2 * noise, jnp.inf)


def smoother_noise(a: Scalar, Q: Scalar, information: Scalar, c: Scalar = 1.0) -> Float[Array, ""]:
    """The least noise variance that meets (ε, δ) about x_k for a listener who also hears all later outputs.

    A scalar system is reversible, so that 1/P_s = 1/p + 1/(a²p + Q) − 1/Σ = e^τ/Σ, a quadratic equation for the
    filtered variance p.
    """
    a, Q, tau, usable = _usable(a, Q, information)
    stationary = _stationary(a, Q)
    # In units of Σ, with r = 1 − a² = Q/Σ and s = 1 + e^τ: s a² p² + b p − r = 0, b = s r − a² − 1.
    square = a * a
    share, rise = 1.0 - square, jnp.expm1(tau)
    slope = rise * share - 2.0 * square + share  # s r − a² − 1 = (e^τ − 1) r + 2 r − (1 + a²)
    curve = (2.0 + rise) * square
    root = jnp.sqrt(slope * slope + 4.0 * curve * share)
    # Each branch without cancellation; the other one is kept away from zero for the derivative.
    rising = slope >= 0.0
    direct = 2.0 * share / jnp.where(rising, slope + root, 1.0)
    other = (root - slope) / (2.0 * jnp.where(rising, 1.0, curve))
    p = stationary * jnp.where(rising, direct, other)
    return jnp.where(usable, jnp.asarray(c) ** 2 * _noise(a, Q, p, stationary - p), jnp.inf)


def _stationary(a, Q):
    return Q / (1.0 - a * a)


def _noise(a, Q, filtered, gained):
    """1/(1/p − 1/(a²p + Q)), whose difference is (1 − a²)(Σ − p) over the product."""
    return filtered * (a * a * filtered + Q) / ((1.0 - a * a) * gained)


def _usable(a, Q, information):
    """The arguments, replaced by harmless ones where no noise is enough, and whether some is.

    None is for a budget that is not positive, a state that is not stable, or one that never moves.
    """
    a, Q, tau = (jnp.asarray(one) for one in (a, Q, information))
    usable = (tau > 0.0) & (jnp.abs(a) < 1.0) & (Q > 0.0)
    return jnp.where(usable, a, 0.5), jnp.where(usable, Q, 1.0), jnp.where(usable, tau, 1.0), usable
