"""The largest quadratic form over the hypotheses of a compound secret."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.linalg.spectral import largest_eigenvalue
from jaxpriv.shapes import Scalar


Bound = Literal["ball", "product", "exact"]
_EXACT_LIMIT = 16  # times: 2^15 sign patterns
_SWEEPS = 200


def mu_squared_of_gain(
    gain: Float[Array, "k k"], radius: Scalar, n_times: int, bound: Bound = "ball"
) -> Float[Array, ""]:
    """μ² = sup Δᵀ M Δ over differences Δ of at most `radius` at each of `n_times` times (dimensionless).

    * "ball": s r² λ_max(M), the enclosing ball of Theorem 3.4 of Meehan and Chaudhuri (AISTATS 2021); exact for one
      time.
    * "product": r² min Σ d_k over block-diagonal D = blkdiag(d_1 I, …, d_s I) ⪰ M. Never above "ball", exact for at
      most two times, at most π/2 above the supremum otherwise. Always an upper bound: an inexact D is repaired by
      adding λ_max(M − D)₊ I. Derived here; proof in docs/design.md.
    * "exact": the supremum itself, for one coordinate a time, by all sign patterns (at most 16 times).

    M has its k coordinates ordered by time, k / n_times of them at each. Infinite where M is.
    """
    k = gain.shape[0]
    if n_times < 1 or k % n_times:
        raise InputError(f"a gain of {k} coordinates does not divide into {n_times} times.")
    finite = jnp.all(jnp.isfinite(gain))
    matrix = jnp.where(finite, gain, 0.0)
    squared = jnp.asarray(radius, matrix.dtype) ** 2
    if bound == "ball" or (bound == "product" and n_times == 1):
        value = n_times * largest_eigenvalue(matrix)
    elif bound == "product":
        value = _product_bound(matrix, n_times)
    elif bound == "exact":
        value = largest_eigenvalue(matrix) if n_times == 1 else _sign_maximum(matrix, n_times)
    else:
        raise InputError(f"bound is {bound!r}; expected 'ball', 'product' or 'exact'.")
    return jnp.where(finite, squared * jnp.maximum(value, 0.0), jnp.inf)


def _sign_maximum(matrix: Float[Array, "s s"], n_times: int) -> Float[Array, ""]:
    if matrix.shape[0] != n_times:
        raise InputError("bound='exact' needs one coordinate a time; use 'product'.")
    if n_times > _EXACT_LIMIT:
        raise InputError(f"bound='exact' takes at most {_EXACT_LIMIT} times, not {n_times}; use 'product'.")
    signs = np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=n_times - 1)])
    patterns = jnp.asarray(signs, matrix.dtype)
    return jnp.max(jnp.einsum("pi,ij,pj->p", patterns, matrix, patterns, precision="highest"))


def _block_norms(rows: Float[Array, "k p"], n_times: int) -> Float[Array, " s"]:
    return jnp.sqrt(jnp.sum(rows.reshape(n_times, -1) ** 2, axis=1))


def _ascend(matrix: Float[Array, "k k"], n_times: int) -> Float[Array, "k p"]:
    """W with ‖W_k‖_F = 1 for each time, a stationary point of tr WᵀMW reached by the generalised power method.

    M is positive semidefinite, so every step raises the objective. As many columns as rows leave no spurious maximum.
    """
    k = matrix.shape[0]
    per_time = k // n_times

    def normalised(rows: Float[Array, "k p"]) -> Float[Array, "k p"]:
        norms = jnp.repeat(_block_norms(rows, n_times), per_time)[:, None]
        fallback = jnp.eye(k, dtype=rows.dtype) / jnp.sqrt(float(per_time))
        return jnp.where(norms > 0.0, rows / jnp.where(norms > 0.0, norms, 1.0), fallback)

    start = normalised(matrix + jnp.eye(k, dtype=matrix.dtype) * jnp.trace(matrix) / k)
    return jax.lax.fori_loop(0, _SWEEPS, lambda _, rows: normalised(matrix @ rows), start)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _product_bound(matrix: Float[Array, "k k"], n_times: int) -> Float[Array, ""]:
    return _product_value(matrix, n_times)[0]


def _product_value(matrix, n_times):
    with jax.default_matmul_precision("highest"):
        rows = _ascend(matrix, n_times)
        blocks = _block_norms(matrix @ rows, n_times)
        scale = jnp.repeat(blocks, matrix.shape[0] // n_times)
        excess = jnp.maximum(jnp.linalg.eigvalsh(matrix - jnp.diag(scale))[-1], 0.0)
        repaired = jnp.sum(blocks) + n_times * excess
        ball = n_times * jnp.linalg.eigvalsh(matrix)[-1]
        return jnp.minimum(repaired, ball), rows


@_product_bound.defjvp
def _product_bound_jvp(n_times, primals, tangents):
    # Envelope rule: the dual optimum Z = W Wᵀ is the derivative of the value.
    (matrix,), (tangent,) = primals, tangents
    value, rows = _product_value(matrix, n_times)
    return value, jnp.sum(rows * (tangent @ rows))
