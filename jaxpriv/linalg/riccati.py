"""The discrete Riccati equation of a filter, by structured doubling, with implicit derivatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from jaxpriv.linalg.lyapunov import discrete_lyapunov, vanished
from jaxpriv.linalg.spectral import symmetric


_DOUBLINGS = 64


def _product(*factors):
    total = factors[0]
    for factor in factors[1:]:
        total = jnp.matmul(total, factor, precision="highest")
    return total


@jax.custom_jvp
def updated(covariance: Float[Array, "n n"], information: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """(P⁻¹ + G)⁻¹ for positive semidefinite P and G, either of which may be singular: P after information G.

    Computed as (I + P G)⁻¹ P. The derivative needs no factorisation: (I − M G) dP (I − M G)ᵀ − M dG M at M.
    """
    identity = jnp.eye(covariance.shape[0], dtype=covariance.dtype)
    return symmetric(jnp.linalg.solve(identity + _product(covariance, information), covariance))


@updated.defjvp
def _updated_jvp(primals, tangents):
    covariance, information = primals
    after = updated(covariance, information)
    left = jnp.eye(after.shape[0], dtype=after.dtype) - _product(after, information)
    change = _product(left, symmetric(tangents[0]), left.T) - _product(after, symmetric(tangents[1]), after)
    return after, symmetric(change)


@jax.jit
def discrete_riccati(
    transition: Float[Array | np.ndarray, "n n"],
    information: Float[Array | np.ndarray, "n n"],
    disturbance: Float[Array | np.ndarray, "n n"],
) -> Float[Array, "n n"]:
    """P with P = A (P⁻¹ + G)⁻¹ Aᵀ + Q: the covariance of x ← A x + w predicted from all earlier observations.

    G = Cᵀ Θ⁻¹ C is the information of one observation y = C x + v, Cov v = Θ. G and Q are positive semidefinite of any
    rank: nothing but A, G, Q and P enters, no inverse of any of them. The dual equation, `discrete_riccati(Aᵀ, Q, G)`,
    gives the information about a state in the observations from its own on.

    The structured doubling algorithm (Anderson, 1978; Chu, Fan, Lin and Wang, 2004) takes one linear solve for each
    doubling. Derivatives are implicit: dP solves the Lyapunov equation of the closed loop A (I + P G)⁻¹.

    Returns:
        P (n, n), symmetric; ∞ on the diagonal where the iteration finds no stabilising solution (never if A is stable).
    """
    return _riccati(transition, information, disturbance)


@jax.custom_jvp
def _riccati(transition, information, disturbance):
    n = transition.shape[0]
    identity = jnp.eye(n, dtype=transition.dtype)

    def step(state):
        power, gain, total, count = state
        solved = jnp.linalg.solve(identity + _product(gain, total), jnp.concatenate([power, gain], axis=1))
        moved, damped = solved[:, :n], solved[:, n:]
        return (
            _product(power, moved),
            symmetric(gain + _product(power, damped, power.T)),
            symmetric(total + _product(power.T, total, moved)),
            count + 1,
        )

    def going(state):
        power, _, total, count = state
        return (count < _DOUBLINGS) & ~vanished(power) & jnp.all(jnp.isfinite(total)) & jnp.all(jnp.isfinite(power))

    start = (transition.T, symmetric(information), symmetric(disturbance), 0)
    power, _, total, _ = lax.while_loop(going, step, start)
    exists = vanished(power) & jnp.all(jnp.isfinite(total))
    return jnp.where(exists, total, jnp.diag(jnp.full(n, jnp.inf, total.dtype)))


@_riccati.defjvp
def _riccati_jvp(primals, tangents):
    transition, information, disturbance = primals
    predicted = _riccati(transition, information, disturbance)
    exists = jnp.all(jnp.isfinite(predicted))
    finite = jnp.where(exists, predicted, 0.0)
    filtered = updated(finite, information)
    loop = transition - _product(transition, filtered, information)
    mixed = _product(tangents[0], filtered, transition.T)
    lost = _product(transition, filtered, symmetric(tangents[1]), filtered, transition.T)
    forcing = mixed + mixed.T - lost + symmetric(tangents[2])
    return predicted, discrete_lyapunov(jnp.where(exists, loop, 0.0), forcing)
