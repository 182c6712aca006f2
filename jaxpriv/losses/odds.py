"""What a loss says about an adversary's odds, and the exact curve of Gaussian releases."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.losses.renyi import check_order
from jaxpriv.shapes import Scalar


_BISECTIONS = 80


def check_probability(delta: Scalar) -> None:
    """Refuse a probability outside (0, 1). Traced values pass unchecked."""
    if isinstance(delta, (int, float)) and not 0.0 < delta < 1.0:
        raise InputError(f"delta is {delta}; expected a probability between 0 and 1.")


def odds_bound(epsilon: Scalar, order: Scalar, delta: Scalar) -> Float[Array, ""]:
    """ε' = ε + log(1/δ)/(λ − 1): log-odds of a pair move by at most ε' except with probability δ.

    Theorem 3.1 of Meehan and Chaudhuri (AISTATS 2021), over releases drawn under either hypothesis. It is Markov's
    inequality and far from tight: for λ = 5, ε = 0.1 it allows odds to double with probability 9.3 %, where the
    Gaussian truth is 0.038 %. `gaussian_epsilon` is exact for Gaussian noise.
    """
    check_order(order, above=1.0)
    check_probability(delta)
    return jnp.asarray(epsilon) + jnp.log(1.0 / jnp.asarray(delta)) / (jnp.asarray(order) - 1.0)


def gaussian_delta(mu_squared: Scalar, epsilon: Scalar) -> Float[Array, ""]:
    """δ(ε') = Φ(μ/2 − ε'/μ) − e^ε' Φ(−μ/2 − ε'/μ), exact for a pair whose log-odds are N(±μ²/2, μ²).

    The (ε', δ) curve of μ-Gaussian differential privacy (Dong, Roth and Su, 2022, corollary 1), for ε' of either sign.
    """
    mu_squared = jnp.asarray(mu_squared, float)
    epsilon = jnp.asarray(epsilon, mu_squared.dtype)
    proper = (mu_squared > 0.0) & jnp.isfinite(mu_squared)
    mu = jnp.sqrt(jnp.where(proper, mu_squared, 1.0))
    upper = log_ndtr(0.5 * mu - epsilon / mu)
    lower = epsilon + log_ndtr(-0.5 * mu - epsilon / mu)
    value = -jnp.exp(upper) * jnp.expm1(jnp.minimum(lower - upper, 0.0))
    limit = jnp.where(jnp.isinf(mu_squared), 1.0, jnp.maximum(-jnp.expm1(epsilon), 0.0))
    return jnp.where(proper, value, limit)


def gaussian_epsilon(mu_squared: Scalar, delta: Scalar) -> Float[Array, ""]:
    """The least ε' ≥ 0 with δ(ε') ≤ δ: the exact counterpart of Theorem 3.1 for Gaussian noise, in nats.

    Bisection, with the derivative of the implicit function; infinite for an infinite loss.
    """
    check_probability(delta)
    mu_squared = jnp.asarray(mu_squared, float)
    delta = jnp.asarray(delta, mu_squared.dtype)
    proper = (mu_squared > 0.0) & jnp.isfinite(mu_squared)
    squared = jnp.where(proper, mu_squared, 1.0)
    mu = jnp.sqrt(jax.lax.stop_gradient(squared))
    fixed_squared, fixed_delta = jax.lax.stop_gradient((squared, delta))
    # δ(ε') ≤ Φ(μ/2 − ε'/μ) ≤ exp(−x²/2)/2 with x = ε'/μ − μ/2 ≥ 0.
    high = mu * (0.5 * mu + jnp.sqrt(2.0 * jnp.log(1.0 / fixed_delta)))

    def halve(_, bracket):
        low, high = bracket
        middle = 0.5 * (low + high)
        enough = gaussian_delta(fixed_squared, middle) <= fixed_delta
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    _, root = jax.lax.fori_loop(0, _BISECTIONS, halve, (jnp.zeros_like(high), high))
    slope = -jnp.exp(root + log_ndtr(-0.5 * mu - root / mu))
    excess = gaussian_delta(squared, root) - delta
    # A Newton step whose value is zero to rounding but whose derivative is that of the root.
    implicit = root - (excess - jax.lax.stop_gradient(excess)) / jnp.where(slope == 0.0, -1.0, slope)
    value = jnp.where(gaussian_delta(fixed_squared, jnp.zeros_like(root)) <= fixed_delta, 0.0, implicit)
    return jnp.where(proper, value, jnp.where(jnp.isinf(mu_squared), jnp.inf, 0.0))
