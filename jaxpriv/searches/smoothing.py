"""The largest of several losses, made smooth at a temperature that falls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.linalg.spectral import symmetric
from jaxpriv.shapes import Scalar


def smooth_max(values: Float[Array, " m"], temperature: Scalar) -> Float[Array, ""]:
    """τ log Σ exp(v/τ): between max v and max v + τ log m, convex, with gradient softmax(v/τ)."""
    return jnp.asarray(temperature * jax.nn.logsumexp(values / temperature))


@partial(jax.custom_jvp)
def smooth_largest_eigenvalue(matrix: Float[Array, "n n"], temperature: Scalar) -> Float[Array, ""]:
    """τ log tr exp(A/τ): between λ_max and λ_max + τ log n, convex in A.

    Its gradient exp(A/τ)/tr exp(A/τ) does not depend on the basis of a repeated eigenvalue.
    """
    return smooth_max(jnp.linalg.eigvalsh(symmetric(matrix)), temperature)


@smooth_largest_eigenvalue.defjvp
def _smooth_largest_eigenvalue_jvp(primals, tangents):
    (matrix, temperature), (tangent, warming) = primals, tangents
    values, vectors = jnp.linalg.eigh(symmetric(matrix))
    value = smooth_max(values, temperature)
    weights = jax.nn.softmax(values / temperature)
    rates = jnp.einsum("ji,jk,ki->i", vectors, symmetric(tangent), vectors)
    by_temperature = (value - jnp.sum(weights * values)) / temperature
    return value, jnp.sum(weights * rates) + by_temperature * warming


def spectrum(matrix: Float[Array, "n n"]) -> Float[Array, " n"]:
    """The eigenvalues of a symmetric matrix, ascending: values for `worst_of`, whose largest is λ_max.

    Derivatives of single eigenvalues at a repeated one depend on the basis; those of the smoothed largest do not.
    """
    return jnp.linalg.eigvalsh(symmetric(matrix))


class WorstOf(eqx.Module):
    """The largest of several losses, as a loss of its own; see `worst_of`."""

    losses: tuple[Callable[..., Any], ...]

    def values(self, mechanism: Any, *args: Any) -> Float[Array, " m"]:
        """All values, one after the other."""
        return jnp.concatenate([jnp.ravel(jnp.asarray(loss(mechanism, *args))) for loss in self.losses])

    def __call__(self, mechanism: Any, *args: Any) -> Float[Array, ""]:
        """The largest value; where several are equal the derivative is the mean of theirs, a subgradient."""
        return jnp.max(self.values(mechanism, *args))

    def smoothed(self, mechanism: Any, *args: Any, temperature: Scalar) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The smoothed maximum and the maximum."""
        values = self.values(mechanism, *args)
        return smooth_max(values, temperature), jnp.max(values)


def worst_of(*losses: Callable[..., Any]) -> WorstOf:
    """The largest of several losses, smoothed by `search` at a falling temperature.

    A loss may return an array: every entry counts (one loss for each secret, a `spectrum`, …). Divide by its target
    what has one.
    """
    if not losses:
        raise InputError("worst_of needs at least one loss.")
    return WorstOf(tuple(losses))


class Cooling(eqx.Module):
    """The temperature of a smoothed maximum, relative to the loss: `start`, then times `factor` at every check.

    Attributes:
        start: relative temperature of the first block of steps.
        factor: by which it falls, in (0, 1).
        stop: the lowest; None takes a tenth of the search's tolerance.
    """

    start: float = eqx.field(static=True, default=0.1)
    factor: float = eqx.field(static=True, default=0.25)
    stop: float | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if not (self.start > 0.0 and 0.0 < self.factor < 1.0 and (self.stop is None or self.stop > 0.0)):
            raise InputError("cooling needs a positive start, a factor between 0 and 1 and a positive stop.")
