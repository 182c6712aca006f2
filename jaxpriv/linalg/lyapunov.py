"""The stationary covariance of a stable linear recursion, by doubling, with implicit derivatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from jaxpriv.linalg.spectral import symmetric


_DOUBLINGS = 64  # a spectral radius of 1 − 1e-15 needs 56


@jax.jit
def is_stable(transition: Float[Array | np.ndarray, "n n"]) -> Bool[Array, ""]:
    """Whether the powers of A vanish, that is whether all its eigenvalues are inside the unit circle.

    Decided by repeated squaring in working precision, under jit, vmap and on every device. False for NaN.
    """
    start = (jnp.asarray(transition), 0)
    power, _ = lax.while_loop(_growing, lambda state: (_product(state[0], state[0]), state[1] + 1), start)
    return vanished(power)


def vanished(power: Float[Array, "n n"]) -> Bool[Array, ""]:
    """Whether ‖A^k‖² is below rounding: what the series A^k X A^kᵀ still adds is at most that share of the sum."""
    return jnp.sum(power * power) <= jnp.finfo(power.dtype).eps


def _growing(state) -> Bool[Array, ""]:
    power, count = state
    return (count < _DOUBLINGS) & ~vanished(power) & jnp.all(jnp.isfinite(power))


def _product(first, second):
    return jnp.matmul(first, second, precision="highest")


def _sandwich(outer, inner):
    return _product(_product(outer, inner), outer.T)


@jax.jit
def discrete_lyapunov(
    transition: Float[Array | np.ndarray, "n n"], disturbance: Float[Array | np.ndarray, "n n"]
) -> Float[Array, "n n"]:
    """X with X = A X Aᵀ + Q, for A stable and Q symmetric of any rank: the stationary covariance of x ← A x + w.

    The doubling iteration X ← X + A^k X A^kᵀ, k = 1, 2, 4, … converges quadratically (Smith, 1968) and only adds
    positive semidefinite terms. Derivatives are implicit: X is the solution of a linear equation, whose tangent and
    adjoint are solved in the same way. No factorisation is used, so that batches are safe on every back end.

    Returns:
        X (n, n), symmetric; ∞ on the diagonal where A is not stable.
    """
    stable = is_stable(lax.stop_gradient(transition))
    safe = jnp.where(stable, transition, 0.0)
    solution = lax.custom_linear_solve(
        lambda x: x - _sandwich(safe, x),
        symmetric(jnp.asarray(disturbance)),
        solve=lambda _, right: _doubling(safe, right),
        transpose_solve=lambda _, right: _doubling(safe.T, right),
    )
    unbounded = jnp.diag(jnp.full(transition.shape[0], jnp.inf, solution.dtype))
    return jnp.where(stable, symmetric(solution), unbounded)


def _doubling(transition, right):
    def step(state):
        (power, count), total = state
        return (_product(power, power), count + 1), total + _sandwich(power, total)

    _, total = lax.while_loop(lambda state: _growing(state[0]), step, ((transition, 0), right))
    return total
