"""Canonical directions of two Gaussian vectors: projections of known rank, and sums over canonical correlations."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxpriv.linalg.spectral import spectral_function


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def row_projector(matrix: Float[Array, "n m"], rank: int) -> Float[Array, "m m"]:
    """The orthogonal projector on the span of the `rank` leading right singular vectors of A, (m, m).

    The derivative is that of a matrix of constant rank, A⁺ dA (I − P) and its transpose (Golub and Pereyra, 1973):
    finite at repeated singular values, and right for changes of A that do not raise the rank above `rank`.
    """
    return _projector(matrix, rank)[0]


def _projector(matrix, rank):
    left, values, right = jnp.linalg.svd(matrix, full_matrices=False)
    left, values, right = left[:, :rank], values[:rank], right[:rank]
    inverse = jnp.where(values > 0.0, 1.0 / jnp.where(values > 0.0, values, 1.0), 0.0)
    return right.T @ right, (right.T * inverse) @ left.T


@row_projector.defjvp
def _row_projector_jvp(rank, primals, tangents):
    (matrix,), (tangent,) = primals, tangents
    projector, inverse = _projector(matrix, rank)
    half = inverse @ tangent @ (jnp.eye(matrix.shape[1], dtype=matrix.dtype) - projector)
    return projector, half + half.T


def _log_one_plus(values: Array) -> Array:
    return jnp.log1p(jnp.maximum(values, 0.0))


def _slope(values: Array) -> Array:
    return 1.0 / (1.0 + jnp.maximum(values, 0.0))


def log_one_plus_trace(matrix: Float[Array, "n n"]) -> Float[Array, ""]:
    """log det(I + A) = Σ log(1 + w) over the eigenvalues w ≥ 0, with the relative accuracy of the eigenvalues.

    A is positive semidefinite; an eigenvalue that rounding made negative counts as zero. The derivative is
    tr((I + A)⁻¹ dA), also at repeated eigenvalues.
    """
    return jnp.trace(spectral_function(_log_one_plus, _slope, matrix))
