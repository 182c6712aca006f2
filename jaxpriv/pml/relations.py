"""Pointwise maximal leakage against differential privacy, mutual information and conditional inferential privacy.

The prior makes X random with covariance Σ for leakage; differential privacy takes x as given and compares x with any x′
at most `radius` away in Euclidean norm. Both speak of the release C x + V, V ~ N(0, Θ). The two implications are in the
spirit of Theorem 3.9 of Liu, Kawano and Cao (arXiv:2511.10771); the forms here are derived here, proof in
docs/leakage.md. ε, δ, rank l and τ = 2ε − q_l(δ) are those of leakage unless named otherwise.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.linalg.canonical import log_one_plus_trace
from jaxpriv.linalg.cholesky import cholesky, solve_lower
from jaxpriv.linalg.spectral import largest_eigenvalue, symmetric
from jaxpriv.losses.odds import check_probability, gaussian_delta
from jaxpriv.pml.chi2 import chi2_isf, require_double
from jaxpriv.pml.profile import information_budget
from jaxpriv.shapes import Scalar


Square = Float[Array | np.ndarray, "n n"]

_BISECTIONS = 100


def analytic_gaussian_delta(epsilon: Scalar, sensitivity: Scalar) -> Float[Array, ""]:
    """φ_ε(s) = Φ(s/2 − ε/s) − e^ε Φ(−s/2 − ε/s): the least δ of Gaussian noise at Mahalanobis sensitivity s.

    Exact (Balle and Wang, ICML 2018, theorem 8); strictly increasing in s, decreasing in ε.
    """
    return gaussian_delta(jnp.asarray(sensitivity) ** 2, epsilon)


def analytic_gaussian_sensitivity(epsilon: Scalar, delta: Scalar) -> Float[Array, ""]:
    """φ_ε⁻¹(δ): the largest Mahalanobis sensitivity s at which Gaussian noise is (ε, δ)-differentially private.

    Bisection, with the derivatives of the implicit function: ∂φ/∂s is the normal density at s/2 − ε/s and
    ∂φ/∂ε = −e^ε Φ(−s/2 − ε/s). For ε ≥ 0; digits are lost where ε and δ are both below about 1e-10.

    Raises:
        InputError: double precision is off, or a Python number δ outside (0, 1).
    """
    require_double("analytic_gaussian_sensitivity")
    check_probability(delta)
    epsilon, delta = jnp.asarray(epsilon, jnp.float64), jnp.asarray(delta, jnp.float64)
    fixed_epsilon, fixed_delta = jax.lax.stop_gradient((epsilon, delta))
    root = _largest_private(fixed_epsilon, fixed_delta)
    point = root / 2.0 - fixed_epsilon / root
    rise = jnp.exp(-0.5 * point**2) / jnp.sqrt(2.0 * jnp.pi)
    fall = -jnp.exp(fixed_epsilon + log_ndtr(-root / 2.0 - fixed_epsilon / root))
    moved = (delta - fixed_delta) - fall * (epsilon - fixed_epsilon)
    return root + moved / jnp.where(rise > 0.0, rise, 1.0)


@jax.jit
def _largest_private(epsilon: Float[Array, ""], delta: Float[Array, ""]) -> Float[Array, ""]:
    # With u = s/2 − ε/s ≥ 0: 1 − φ ≤ Φ(−u) + e^ε Φ(−s/2 − ε/s) ≤ e^(−u²/2), and u ≥ s/2 − √(2ε) for s ≥ √(2ε).
    high = 2.0 * (jnp.sqrt(-2.0 * jnp.log1p(-delta)) + jnp.sqrt(2.0 * epsilon)) + 1e-3

    def halve(_, bracket):
        low, high = bracket
        middle = 0.5 * (low + high)
        private = gaussian_delta(middle**2, epsilon) <= delta
        return jnp.where(private, middle, low), jnp.where(private, high, middle)

    root, _ = jax.lax.fori_loop(0, _BISECTIONS, halve, (jnp.zeros_like(high), high))
    return root


def mahalanobis_sensitivity(
    matrix: Float[Array | np.ndarray, "m n"], noise: Float[Array | np.ndarray, "m m"], radius: Scalar
) -> Float[Array, ""]:
    """s = r σ_max(Θ^(−1/2) C) of the release C x + N(0, Θ) for ‖x − x′‖ ≤ r.

    The release is exactly s-Gaussian differentially private: Rényi loss λ s²/2 at every order λ, zero-concentrated
    s²/2, and (ε, δ) exactly if s ≤ `analytic_gaussian_sensitivity(ε, δ)`. Infinite where Θ is singular to working
    precision: a direction in which C moves the output may then carry no noise. If none does, publish in the coordinates
    of the range of Θ.
    """
    matrix, noise = jnp.asarray(matrix), jnp.asarray(noise)
    if matrix.ndim != 2 or noise.shape != (matrix.shape[0], matrix.shape[0]):
        raise InputError(f"C and the noise have shapes {matrix.shape} and {noise.shape}; expected (m, n) and (m, m).")
    with jax.default_matmul_precision("highest"):
        factor, exists = cholesky(noise)
        whitened = solve_lower(factor, matrix)
        value = _root(largest_eigenvalue(whitened.T @ whitened))
        return jnp.where(exists, jnp.asarray(radius) * value, jnp.inf)


def leakage_to_sensitivity(
    epsilon: Scalar,
    delta: Scalar,
    rank: int,
    covariance: Square,
    radius: Scalar,
    *,
    matrix: Float[Array | np.ndarray, "m n"] | None = None,
    from_inequality: bool = False,
) -> Float[Array, ""]:
    """Upper bound of the Mahalanobis sensitivity of every (ε, δ)-leakage-private release C x + V with this prior.

    r √((e^τ − 1) λ_max(R)) with R = Σ⁻¹, or with R = Cᵀ(C Σ Cᵀ)⁻¹C where the released `matrix` C, of full row rank, is
    given, which is never larger. The release is then (ε′, δ′)-differentially private wherever
    `analytic_gaussian_delta(ε′, this)` is at most δ′.

    Args:
        radius: of the adjacency, in the unit of x.
        from_inequality: the noise satisfies the matrix inequality posterior ⪰ κ prior (Theorem 3.6 of the paper), which
            puts the smaller e^(τ/l) − 1 in place of e^τ − 1.

    Infinite where Σ, or C Σ Cᵀ, is singular to working precision; 0 where the request is infeasible (nothing is
    released then that meets it).
    """
    budget = information_budget(epsilon, delta, rank)
    gain = _positive(jnp.expm1(budget / rank if from_inequality else budget))
    covariance = jnp.asarray(covariance)
    directions = jnp.eye(covariance.shape[0], dtype=covariance.dtype) if matrix is None else jnp.asarray(matrix)
    if directions.ndim != 2 or covariance.shape != (directions.shape[1], directions.shape[1]):
        raise InputError(
            f"the prior has shape {covariance.shape} and C {directions.shape}; expected (n, n) and (m, n)."
        )
    with jax.default_matmul_precision("highest"):
        factor, exists = cholesky(directions @ covariance @ directions.T)
        whitened = solve_lower(factor, directions)
        value = _root(gain * largest_eigenvalue(whitened.T @ whitened))
        return jnp.where(exists, jnp.asarray(radius) * value, jnp.inf)


def sensitivity_to_leakage(
    sensitivity: Scalar, radius: Scalar, covariance: Square, rank: int, delta: Scalar
) -> Float[Array, ""]:
    """Upper bound of ε(δ) of every release of rank l whose Mahalanobis sensitivity is at most `sensitivity`.

    ε = ½ q_l(δ) + ½ Σ_{j ≤ l} log(1 + (s/r)² λ_j(Σ)) over the l largest eigenvalues; attained. For
    (ε′, δ′)-differential privacy pass s = `analytic_gaussian_sensitivity(ε′, δ′)`.
    """
    ratio = (jnp.asarray(sensitivity) / jnp.asarray(radius)) ** 2
    return 0.5 * chi2_isf(delta, rank) + _largest_logs(covariance, ratio, rank)


def leakage_to_information(epsilon: Scalar, delta: Scalar, rank: int) -> Float[Array, ""]:
    """The mutual information I ≤ ε − ½ q_l(δ) that (ε, δ)-leakage privacy allows: an equivalence for Gaussian releases.

    Theorem 3.11 of Liu, Kawano and Cao (arXiv:2511.10771). Negative where (ε, δ) is infeasible. The way back is
    `leakage_epsilon`.
    """
    return 0.5 * information_budget(epsilon, delta, rank)


def gain_to_leakage(gain: Scalar, variance: Float[Array | np.ndarray, "k k"], delta: Scalar) -> Float[Array, ""]:
    """Upper bound of ε(δ) about a secret T of k numbers whose precision gain is at most t: M ⪯ t I.

    ε = ½ q_k(δ) + ½ Σ log(1 + t λ_j), λ_j the eigenvalues of Cov(T), (k, k). Exact for k = 1: a release has loss t of
    conditional inferential privacy (in inverse squared units) exactly if it has this ε of leakage. Derived here; proof
    in docs/leakage.md.
    """
    variance = jnp.asarray(variance)
    return 0.5 * chi2_isf(delta, variance.shape[0]) + _largest_logs(variance, gain, variance.shape[0])


def leakage_to_gain(epsilon: Scalar, delta: Scalar, variance: Float[Array | np.ndarray, "k k"]) -> Float[Array, "k k"]:
    """The bound (e^τ − 1) Cov(T)⁻¹, (k, k), of the precision gain M about a secret T with (ε, δ)-leakage privacy.

    For k = 1 the two are equivalent. Zero where (ε, δ) is infeasible; infinite on the diagonal where Cov(T) is singular
    to working precision.
    """
    variance = jnp.asarray(variance)
    size = variance.shape[0]
    ceiling = _positive(jnp.expm1(information_budget(epsilon, delta, size)))
    with jax.default_matmul_precision("highest"):
        factor, exists = cholesky(variance)
        inverse = solve_lower(factor, jnp.eye(size, dtype=variance.dtype))
        infinite = jnp.diag(jnp.full(size, jnp.inf, variance.dtype))
        return jnp.where(exists, ceiling * symmetric(inverse.T @ inverse), infinite)


def _positive(value: Float[Array, ""]) -> Float[Array, ""]:
    return jnp.maximum(value, 0.0)


def _root(value: Float[Array, ""]) -> Float[Array, ""]:
    """The square root of a non-negative value, with derivative 0 at 0."""
    return jnp.where(value > 0.0, jnp.sqrt(jnp.where(value > 0.0, value, 1.0)), 0.0)


def _largest_logs(covariance: Square, factor: Scalar, count: int) -> Float[Array, ""]:
    """½ Σ log(1 + t λ_j) over the `count` largest eigenvalues."""
    covariance = symmetric(jnp.asarray(covariance))
    size = covariance.shape[0]
    if not 1 <= count <= size:
        raise InputError(f"rank is {count}; a prior of {size} dimensions has one from 1 to {size}.")
    factor = jnp.asarray(factor, covariance.dtype)
    finite = jnp.isfinite(factor)
    safe = jnp.where(finite, factor, 0.0)
    if count == size:
        value = 0.5 * log_one_plus_trace(safe * covariance)
    else:
        values = jnp.linalg.eigvalsh(covariance)[size - count :]
        value = 0.5 * jnp.sum(jnp.log1p(safe * _positive(values)))
    return jnp.where(finite, value, jnp.inf)
