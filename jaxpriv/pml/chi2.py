"""The chi-square distribution in JAX: quantiles and tails with their derivatives, in double precision only."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaincc, gammaln
from jaxtyping import Array, Float, Int

from jaxpriv.errors import InputError
from jaxpriv.losses.odds import check_probability
from jaxpriv.shapes import Scalar


Rank = int | Int[Array | np.ndarray, ""]
"""Degrees of freedom: a Python int, or an array without dimensions (traced or not)."""

_BISECTIONS = 80
_FAR = 1e-250  # a tail below this is computed in logarithms
_TERMS = 64


def chi2_isf(delta: Scalar, rank: Rank) -> Float[Array, ""]:
    """q with P(χ²_l > q) = δ, l = `rank` degrees of freedom.

    Relative error at most 2e-12 for l up to 1e6 and δ from 1e-300 to 0.99. Bisection within the bracket of Laurent and
    Massart (Annals of Statistics, 2000, lemma 1), q ≤ l + 2√(l log 1/δ) + 2 log 1/δ; the derivative −1/density is that
    of the implicit function, and there is none in l. 0 for l = 0 and for δ ≥ 1, infinite for δ ≤ 0. Works under jit,
    vmap and grad. An estimate: `certificates.chi_square_quantile` gives an upper bound.

    Raises:
        InputError: double precision is off, a negative rank, or a Python number δ outside (0, 1).
    """
    require_double("chi2_isf")
    check_probability(delta)
    return _isf(jnp.asarray(delta, jnp.float64), degrees_of_freedom(rank))


def chi2_sf(x: Scalar, rank: Rank) -> Float[Array, ""]:
    """P(χ²_l > x): 1 for x ≤ 0 (0 for l = 0 and x ≥ 0); the derivative is minus the density.

    Raises:
        InputError: double precision is off, or a negative rank.
    """
    require_double("chi2_sf")
    return _sf(jnp.asarray(x, jnp.float64), degrees_of_freedom(rank))


def chi2_log_sf(x: Scalar, rank: Rank) -> Float[Array, ""]:
    """log P(χ²_l > x) in nats, also where the probability underflows (x above about 1,500).

    Far tails by the continued fraction of the incomplete gamma function (DLMF 8.9.2). The derivative is the hazard rate
    with a minus sign.

    Raises:
        InputError: double precision is off, or a negative rank.
    """
    require_double("chi2_log_sf")
    return _log_sf(jnp.asarray(x, jnp.float64), degrees_of_freedom(rank))


def require_double(name: str) -> None:
    """Refuse to compute a χ² tail in single precision, where it is wrong in the fourth digit.

    Raises:
        InputError: double precision is off where the caller stands.
    """
    if not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        raise InputError(
            f"{name} needs double precision, which is off: call it inside `with jax.enable_x64(True):`, "
            'or set jax.config.update("jax_enable_x64", True) at the start of the program.'
        )


def degrees_of_freedom(rank: Rank) -> Float[Array, ""]:
    """`rank` as a float64 array without a derivative."""
    if isinstance(rank, (int, np.integer)) and rank < 0:
        raise InputError(f"rank is {rank}; expected a number of degrees of freedom, at least 0.")
    return jax.lax.stop_gradient(jnp.asarray(rank, jnp.float64))


def _tail(x: Float[Array, ""], rank: Float[Array, ""]) -> Float[Array, ""]:
    tail = gammaincc(0.5 * jnp.maximum(rank, 1.0), 0.5 * jnp.maximum(x, 0.0))
    return jnp.where(rank > 0.0, jnp.where(x > 0.0, tail, 1.0), jnp.where(x >= 0.0, 0.0, 1.0))


def _log_density(x: Float[Array, ""], rank: Float[Array, ""]) -> Float[Array, ""]:
    """Log of the density at x > 0 for l ≥ 1."""
    half = 0.5 * rank
    return (half - 1.0) * jnp.log(0.5 * x) - 0.5 * x - gammaln(half) - jnp.log(2.0)


@jax.custom_jvp
@jax.jit
def _isf(delta: Float[Array, ""], rank: Float[Array, ""]) -> Float[Array, ""]:
    inside = (delta > 0.0) & (delta < 1.0) & (rank > 0.0)
    fixed = jnp.where(inside, delta, 0.5)
    degrees = jnp.where(inside, rank, 1.0)
    nats = -jnp.log(fixed)
    high = degrees + 2.0 * jnp.sqrt(degrees * nats) + 2.0 * nats

    def halve(_, bracket):
        low, high = bracket
        middle = 0.5 * (low + high)
        enough = _tail(middle, degrees) <= fixed
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    _, root = jax.lax.fori_loop(0, _BISECTIONS, halve, (jnp.zeros_like(high), high))
    return jnp.where(inside, root, jnp.where((delta > 0.0) | (rank == 0.0), 0.0, jnp.inf))


@_isf.defjvp
def _isf_jvp(primals, tangents):
    delta, rank = primals
    root = _isf(delta, rank)
    inside = (root > 0.0) & jnp.isfinite(root)
    slope = -jnp.exp(-_log_density(jnp.where(inside, root, 1.0), jnp.maximum(rank, 1.0)))
    return root, jnp.where(inside, slope, 0.0) * tangents[0]


@jax.custom_jvp
@jax.jit
def _sf(x: Float[Array, ""], rank: Float[Array, ""]) -> Float[Array, ""]:
    return _tail(x, rank)


@_sf.defjvp
def _sf_jvp(primals, tangents):
    x, rank = primals
    inside = (x > 0.0) & jnp.isfinite(x) & (rank > 0.0)
    density = jnp.exp(_log_density(jnp.where(inside, x, 1.0), jnp.maximum(rank, 1.0)))
    return _sf(x, rank), jnp.where(inside, -density, 0.0) * tangents[0]


@jax.custom_jvp
@jax.jit
def _log_sf(x: Float[Array, ""], rank: Float[Array, ""]) -> Float[Array, ""]:
    tail = _tail(x, rank)
    near = (tail > _FAR) | (rank == 0.0) | ~jnp.isfinite(x)
    half = 0.5 * jnp.maximum(rank, 1.0)
    point = jnp.where(near, 2.0 * half + 2.0, 0.5 * x)

    # Γ(a, z) = z^a e^-z / (z + 1 − a + 1(a−1)/(z + 3 − a + 2(a−2)/(z + 5 − a + …))), from the end.
    def fold(step, value):
        j = _TERMS - step
        return point + 2.0 * j - 1.0 - half + j * (half - j) / value

    fraction = jax.lax.fori_loop(0, _TERMS, fold, point + 2.0 * _TERMS + 1.0 - half)
    far = half * jnp.log(point) - point - gammaln(half) - jnp.log(fraction)
    return jnp.where(near, jnp.log(jnp.where(near, tail, 1.0)), far)


@_log_sf.defjvp
def _log_sf_jvp(primals, tangents):
    x, rank = primals
    value = _log_sf(x, rank)
    inside = (x > 0.0) & jnp.isfinite(x) & (rank > 0.0)
    hazard = jnp.exp(_log_density(jnp.where(inside, x, 1.0), jnp.maximum(rank, 1.0)) - jnp.where(inside, value, 0.0))
    return value, jnp.where(inside, -hazard, 0.0) * tangents[0]
