"""Functions of the eigenvalues of a symmetric matrix, with derivatives that stay finite at repeated eigenvalues."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


_CLUSTER = 64.0  # eigenvalues closer than this many rounding units of the largest one count as equal


def symmetric(matrix: Float[Array, "*batch n n"]) -> Float[Array, "*batch n n"]:
    """(A + Aᵀ)/2."""
    return 0.5 * (matrix + jnp.swapaxes(matrix, -1, -2))


def _divided_differences(
    values: Float[Array, " n"], mapped: Float[Array, " n"], slopes: Float[Array, " n"]
) -> Float[Array, "n n"]:
    gap = values[:, None] - values[None, :]
    close = jnp.abs(gap) <= _CLUSTER * jnp.finfo(values.dtype).eps * jnp.max(jnp.abs(values))
    difference = mapped[:, None] - mapped[None, :]
    mean_slope = 0.5 * (slopes[:, None] + slopes[None, :])
    return jnp.where(close, mean_slope, difference / jnp.where(close, 1.0, gap))


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def spectral_function(
    function: Callable[[Array], Array], slope: Callable[[Array], Array], matrix: Float[Array, "n n"]
) -> Float[Array, "n n"]:
    """V f(w) Vᵀ for A = V w Vᵀ, `function` and its derivative `slope` acting on the vector of eigenvalues.

    The derivative is the Daleckii–Krein formula with divided differences, finite at repeated eigenvalues.
    """
    values, vectors = jnp.linalg.eigh(symmetric(matrix))
    return (vectors * function(values)) @ vectors.T


@spectral_function.defjvp
def _spectral_function_jvp(function, slope, primals, tangents):
    (matrix,), (tangent,) = primals, tangents
    values, vectors = jnp.linalg.eigh(symmetric(matrix))
    mapped = function(values)
    weights = _divided_differences(values, mapped, slope(values))
    rotated = vectors.T @ symmetric(tangent) @ vectors
    return (vectors * mapped) @ vectors.T, vectors @ (weights * rotated) @ vectors.T


def _positive(values: Array) -> Array:
    return jnp.maximum(values, 0.0)


def _positive_slope(values: Array) -> Array:
    return jnp.where(values > 0.0, 1.0, jnp.where(values < 0.0, 0.0, 0.5)).astype(values.dtype)


def positive_part(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """A with its negative eigenvalues set to zero: the nearest positive semidefinite matrix in Frobenius norm."""
    return spectral_function(_positive, _positive_slope, matrix)


def _root(values: Array) -> Array:
    return jnp.sqrt(jnp.maximum(values, 0.0))


def _root_slope(values: Array) -> Array:
    positive = values > 0.0
    return jnp.where(positive, 0.5 / jnp.sqrt(jnp.where(positive, values, 1.0)), 0.0)


def psd_sqrt(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The symmetric square root of a positive semidefinite matrix (negative eigenvalues count as zero)."""
    return spectral_function(_root, _root_slope, matrix)


def _top_weights(values: Float[Array, " n"], count: int) -> Float[Array, " n"]:
    """Weights of ∂(sum of the `count` largest)/∂eigenvalue, shared evenly inside the cluster at the boundary."""
    boundary = values[values.shape[0] - count]
    tolerance = _CLUSTER * jnp.finfo(values.dtype).eps * jnp.max(jnp.abs(values))
    above = values > boundary + tolerance
    tied = jnp.abs(values - boundary) <= tolerance
    share = (count - jnp.sum(above)) / jnp.maximum(jnp.sum(tied), 1)
    return jnp.where(above, 1.0, jnp.where(tied, share, 0.0)).astype(values.dtype)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def top_eigenvalue_sum(matrix: Float[Array, "n n"], count: int) -> Float[Array, ""]:
    """Sum of the `count` largest eigenvalues: convex, with derivative tr(Π dA), Π the projector on their span.

    Where the boundary falls inside a repeated eigenvalue the cluster shares the weight evenly, which is a
    subgradient that does not depend on the basis the eigenvalue routine happened to choose.
    """
    return jnp.sum(jnp.linalg.eigvalsh(symmetric(matrix))[matrix.shape[0] - count :])


@top_eigenvalue_sum.defjvp
def _top_eigenvalue_sum_jvp(count, primals, tangents):
    (matrix,), (tangent,) = primals, tangents
    values, vectors = jnp.linalg.eigh(symmetric(matrix))
    rates = jnp.einsum("ji,jk,ki->i", vectors, symmetric(tangent), vectors)
    return jnp.sum(values[values.shape[0] - count :]), jnp.sum(_top_weights(values, count) * rates)


def largest_eigenvalue(matrix: Float[Array, "n n"]) -> Float[Array, ""]:
    """λ_max of a symmetric matrix; at a repeated eigenvalue the derivative is the mean over its eigenspace."""
    return top_eigenvalue_sum(matrix, 1)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def top_positive_sum(matrix: Float[Array, "n n"], count: int) -> Float[Array, ""]:
    """Sum of the positive ones among the `count` largest eigenvalues; derivative tr(Π dA), Π their projector.

    For a matrix that is known to have at most `count` positive eigenvalues this is the trace of its positive part,
    without the rounding noise of the others. An eigenvalue of exactly zero counts half in the derivative.
    """
    return jnp.sum(_positive(jnp.linalg.eigvalsh(symmetric(matrix))[matrix.shape[0] - count :]))


@top_positive_sum.defjvp
def _top_positive_sum_jvp(count, primals, tangents):
    (matrix,), (tangent,) = primals, tangents
    values, vectors = jnp.linalg.eigh(symmetric(matrix))
    values, vectors = values[matrix.shape[0] - count :], vectors[:, matrix.shape[0] - count :]
    rates = jnp.einsum("ji,jk,ki->i", vectors, symmetric(tangent), vectors)
    return jnp.sum(_positive(values)), jnp.sum(_positive_slope(values) * rates)
