"""Divergences of finite distributions, in nats where they are logarithms: differentiable, and exact at zeros.

Conventions at zeros, for a pair p, q of probability vectors (m,): an outcome that neither has counts nothing; one that
only p has adds p·lim f(t)/t, which is infinite for KL and χ², ½ for total variation and Hellinger, and 0 for the
reverse KL; an outcome that only q has adds q·f(0), which is infinite for the reverse KL. Infinite values have a zero
derivative, never a NaN. Vectors are not normalised here; `check_distribution` does the checking on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.channels.channel import row_sum_tolerance
from jaxpriv.errors import InputError
from jaxpriv.losses.renyi import renyi_discrete
from jaxpriv.shapes import Scalar


Distribution = Float[Array, " m"]
Divergence = Callable[[Distribution, Distribution], Float[Array, ""]]
Name = Literal["kl", "reverse_kl", "total_variation", "chi_squared", "hellinger", "max"]


def kl(p: Distribution, q: Distribution) -> Float[Array, ""]:
    """Σ p log(p/q) in nats: the f-divergence of t log t."""
    return _sum(p, q, lambda p, q: p * (jnp.log(p) - jnp.log(q)), only_p=jnp.inf, only_q=0.0)


def reverse_kl(p: Distribution, q: Distribution) -> Float[Array, ""]:
    """Σ q log(q/p) in nats: the f-divergence of −log t."""
    return kl(q, p)


def total_variation(p: Distribution, q: Distribution) -> Float[Array, ""]:
    """½ Σ |p − q|, from 0 to 1: the f-divergence of ½|t − 1|."""
    p, q = jnp.asarray(p), jnp.asarray(q)
    return 0.5 * jnp.sum(jnp.abs(p - q))


def chi_squared(p: Distribution, q: Distribution) -> Float[Array, ""]:
    """Σ (p − q)²/q (Pearson): the f-divergence of (t − 1)²."""
    return _sum(p, q, lambda p, q: (p - q) ** 2 / q, only_p=jnp.inf, only_q=1.0)


def hellinger(p: Distribution, q: Distribution) -> Float[Array, ""]:
    """1 − Σ √(pq) = ½ Σ (√p − √q)², from 0 to 1: the f-divergence of ½(√t − 1)².

    The square of what some authors call the Hellinger distance, and half of what others do.
    """
    return _sum(p, q, lambda p, q: 0.5 * (jnp.sqrt(p) - jnp.sqrt(q)) ** 2, only_p=0.5, only_q=0.5)


def renyi(p: Distribution, q: Distribution, order: Scalar) -> Float[Array, ""]:
    """The Rényi divergence of order λ > 0, λ ≠ 1, in nats; between `kl` (λ → 1) and `max_divergence` (λ → ∞)."""
    return renyi_discrete(p, q, order)


def max_divergence(p: Distribution, q: Distribution) -> Float[Array, ""]:
    """The largest log(p/q) over the outcomes of p, in nats: the ε of pure differential privacy.

    Where several outcomes attain it the derivative is the mean of theirs.
    """
    p, q = jnp.asarray(p), jnp.asarray(q)
    both, only_p = (p > 0.0) & (q > 0.0), (p > 0.0) & (q <= 0.0)
    ratio = jnp.log(jnp.where(both, p, 1.0)) - jnp.log(jnp.where(both, q, 1.0))
    value = jnp.max(jnp.where(both, ratio, -jnp.inf))
    return jnp.where(jnp.any(only_p) | ~jnp.any(both), jnp.inf, value)


def approximate_max_divergence(p: Distribution, q: Distribution, delta: Scalar) -> Float[Array, ""]:
    """The least t with p[R] ≤ e^t q[R] + δ for every set R of outcomes: (ε, δ)-differential privacy with ε = t.

    max log((p[R] − δ)/q[R]) over the sets with p[R] ≥ δ; the best set consists of the outcomes of largest p/q, so one
    sort decides. Infinite where p puts more than δ on outcomes that q does not have. Not a divergence for δ > 0: it is
    below 0 where p = q, and −∞ where no set is left (p[R] > δ nowhere q-positive); report max(0, t).

    Raises:
        InputError: a δ, given as a number, outside [0, 1).
    """
    if isinstance(delta, (int, float)) and not 0.0 <= delta < 1.0:
        raise InputError(f"delta is {delta}; expected a probability from 0 to below 1.")
    p, q = jnp.asarray(p), jnp.asarray(q)
    safe = jnp.where(q > 0.0, q, 1.0)
    ratio = jnp.where(q > 0.0, p / safe, jnp.where(p > 0.0, jnp.inf, -jnp.inf))
    order = jnp.argsort(-jax.lax.stop_gradient(ratio), stable=True)
    mass, other = jnp.cumsum(p[order]) - delta, jnp.cumsum(q[order])
    usable = (mass > 0.0) & (other > 0.0)
    logs = jnp.log(jnp.where(usable, mass, 1.0)) - jnp.log(jnp.where(usable, other, 1.0))
    value = jnp.max(jnp.where(usable, logs, -jnp.inf))
    beyond = jnp.sum(jnp.where(q > 0.0, 0.0, p)) > delta
    return jnp.where(beyond, jnp.inf, value)


def hockey_stick(p: Distribution, q: Distribution, epsilon: Scalar) -> Float[Array, ""]:
    """Σ (p − e^ε q)₊: the least δ of (ε, δ)-differential privacy for this pair."""
    return jnp.sum(jnp.maximum(jnp.asarray(p) - jnp.exp(jnp.asarray(epsilon)) * jnp.asarray(q), 0.0))


def f_divergence(
    f: Callable[[Array], Array], *, at_infinity: float = np.inf, at_zero: float | None = None
) -> Divergence:
    """The divergence Σ q f(p/q) of a convex f on [0, ∞) with f(1) = 0.

    Args:
        f: acts elementwise on positive ratios.
        at_infinity: lim f(t)/t as t → ∞, the weight of what only p has.
        at_zero: f(0), the weight of what only q has; by default f is evaluated there.

    Raises:
        InputError: f(1) is not 0, or f is seen not to be convex at one of the ratios tried (a spot check, on a grid of
            ratios from 1e-6 to 1e6).
    """
    ratios = np.concatenate([np.geomspace(1e-6, 1e6, 241), 1.0 + np.array([-1e-2, -1e-3, 0.0, 1e-3, 1e-2])])
    ratios = np.unique(ratios)
    values = np.asarray(f(jnp.asarray(ratios)), dtype=np.float64)
    if values.shape != ratios.shape or not np.all(np.isfinite(values)):
        raise InputError("f must map an array of positive ratios to finite values of the same shape.")
    at_one = float(values[np.searchsorted(ratios, 1.0)])
    if abs(at_one) > 1e-6:
        raise InputError(f"f(1) is {at_one:g}; a divergence needs f(1) = 0.")
    step = np.diff(ratios)
    slopes = np.diff(values) / step
    slack = 64 * float(jnp.finfo(jnp.asarray(1.0).dtype).eps) * (np.abs(values[1:]) + np.abs(values[:-1]) + 1.0) / step
    falling = np.diff(slopes) < -(slack[1:] + slack[:-1])
    if np.any(falling):
        raise InputError(f"f is not convex near the ratio {ratios[1:-1][falling][0]:.3g}.")
    zero = float(np.asarray(f(jnp.zeros(1)))[0]) if at_zero is None else at_zero
    if np.isnan(zero):
        raise InputError("f(0) is not a number; give its limit as at_zero.")
    return lambda p, q: _sum(p, q, lambda p, q: q * f(p / q), only_p=at_infinity, only_q=zero)


def by_name(divergence: Name | Divergence) -> Divergence:
    """The divergence of that name, or the function itself. Raises InputError for a name that is not known."""
    known: dict[str, Divergence] = {
        "kl": kl,
        "reverse_kl": reverse_kl,
        "total_variation": total_variation,
        "chi_squared": chi_squared,
        "hellinger": hellinger,
        "max": max_divergence,
    }
    if callable(divergence):
        return divergence
    if divergence not in known:
        raise InputError(
            f"divergence is {divergence!r}; expected a function of two vectors or one of {', '.join(known)}."
        )
    return known[divergence]


def check_distribution(values: Any, name: str = "distribution", size: int | None = None) -> Float[np.ndarray, " m"]:
    """A probability vector as float64, unchanged.

    Raises:
        InputError: not a vector of that size, empty, negative or not finite, or its sum, taken in float64, is further
            from 1 than 1e-9 (64 rounding units for smaller formats). Nothing is rescaled.
    """
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0 or (size is not None and array.size != size):
        raise InputError(f"{name} has shape {array.shape}; expected ({'m' if size is None else size},).")
    if array.dtype.kind not in "fiu":
        raise InputError(f"{name} has dtype {array.dtype}; expected real numbers.")
    host = array.astype(np.float64)
    if not np.all(np.isfinite(host)) or np.any(host < 0.0):
        where = int(np.argmax(~np.isfinite(host) | (host < 0.0)))
        raise InputError(f"{name}[{where}] is {host[where]}; expected probabilities.")
    tolerance = row_sum_tolerance(array.dtype) if array.dtype.kind == "f" else 1e-9
    total = float(np.sum(host))
    if abs(total - 1.0) > tolerance:
        raise InputError(f"{name} sums to {total!r}, not to 1. Nothing is rescaled here; divide by the sum yourself.")
    return host


def _sum(p, q, terms, only_p: float, only_q: float) -> Float[Array, ""]:
    """Σ terms over shared outcomes, plus the weights of the outcomes that only one of the two has."""
    p, q = jnp.asarray(p), jnp.asarray(q)
    both, first, second = (p > 0.0) & (q > 0.0), (p > 0.0) & (q <= 0.0), (q > 0.0) & (p <= 0.0)
    shared = jnp.where(both, terms(jnp.where(both, p, 1.0), jnp.where(both, q, 1.0)), 0.0)
    total = jnp.sum(shared)
    for mask, mass, weight in ((first, p, only_p), (second, q, only_q)):
        if np.isinf(weight):
            total = jnp.where(jnp.any(mask), weight, total)
        else:
            total = total + weight * jnp.sum(jnp.where(mask, mass, 0.0))
    # Rounding may take the divergence of nearly equal laws below its least value.
    return jnp.maximum(total, 0.0)
