"""Pointwise maximal leakage of jointly Gaussian data: one output's leakage, and the mutual information behind its law.

ℓ(X→y) = log sup_x f(x | y)/f(x) is the largest factor, in nats, by which an output makes a value of the private data
more likely (Saeidian et al., arXiv:2205.04935). For jointly Gaussian X and Y it is I + ξ(y)/2, I their mutual
information and ξ(Y) ~ χ²_l with l the rank of their cross-covariance (Theorem 3.2 of Liu, Kawano and Cao,
arXiv:2511.10771). Means may be anything.

The rank is a structural upper bound and a static argument, by default the largest that the shapes allow. It is never
counted from the numbers: an arbitrarily small canonical correlation adds a whole degree of freedom, so that a
tolerance can only under-report. Everything is differentiable, in the dtype of the caller, and an estimate;
`certificates.leakage` gives numbers that may be published.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.linalg.canonical import log_one_plus_trace, row_projector
from jaxpriv.linalg.cholesky import cholesky, log_determinant, solve_lower
from jaxpriv.linalg.ordering import after
from jaxpriv.linalg.spectral import symmetric
from jaxpriv.losses.precision_gain import Noise, precision_gain
from jaxpriv.mechanisms.gaussian import noise_covariance
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret
from jaxpriv.secrets.conditional import conditional


Cross = Float[Array | np.ndarray, "n m"]
Private = Float[Array | np.ndarray, "n n"]
Released = Float[Array | np.ndarray, "m m"]
Output = Float[Array | np.ndarray, " m"]


_UNRESOLVED = 32.0


def mutual_information(covariance_x: Private, cross: Cross, covariance_y: Released) -> Float[Array, ""]:
    """I(X; Y) = −½ Σ log(1 − ρ_i²) over the canonical correlations, in nats.

    Args:
        covariance_x: Cov(X), (n, n), positive definite.
        cross: Cov(X, Y), (n, m).
        covariance_y: Cov(Y), (m, m), positive definite.

    Infinite where Y gives a linear function of X exactly, or a covariance is singular to working precision (restrict X
    or Y to the range of its covariance then). Correlations near 1 lose digits, and beyond what the precision resolves
    (about 15 nats a direction in float64) the value is infinite, too: for additive noise use `additive_information`.
    """
    whitened, _, _, exists = _whitened(covariance_x, cross, covariance_y)
    return _information(whitened, exists)


def canonical_correlations(covariance_x: Private, cross: Cross, covariance_y: Released) -> Float[Array, " k"]:
    """ρ_1 ≥ … ≥ ρ_k, k = min(n, m): the singular values of L_X⁻¹ Cov(X, Y) L_Y⁻ᵀ.

    A diagnostic: the number of those that look different from 0 is no rank to compute an ε with. Not a number where a
    covariance is singular would be a trap: all are 1 then, as for data that are published exactly.
    """
    whitened, _, _, exists = _whitened(covariance_x, cross, covariance_y)
    values = jnp.linalg.svd(whitened, compute_uv=False)
    return jnp.where(exists, values, jnp.ones_like(values))


def posterior_covariance(covariance_x: Private, cross: Cross, covariance_y: Released) -> Float[Array, "n n"]:
    """Γ = Cov(X | Y) = Σ − Σ_XY Σ_YY⁻¹ Σ_YX, (n, n); zero where Cov(Y) is singular to working precision."""
    covariance_x, cross, covariance_y = _checked(covariance_x, cross, covariance_y)
    with jax.default_matmul_precision("highest"):
        factor, exists = cholesky(covariance_y)
        whitened = solve_lower(factor, cross.T)
        return jnp.where(exists, symmetric(covariance_x - whitened.T @ whitened), 0.0)


def pointwise_leakage(
    y: Output,
    covariance_x: Private,
    cross: Cross,
    covariance_y: Released,
    *,
    rank: int | None = None,
    mean_y: Output | None = None,
) -> Float[Array, ""]:
    """ℓ(X→y) in nats of one output y, (m,): how much more likely it makes the value of X that it favours most.

    Args:
        y: the output; `mean_y`, (m,), is its prior mean, zero by default.
        covariance_x: as in `mutual_information`.
        cross: likewise.
        covariance_y: likewise.
        rank: of `cross`, by construction; an upper bound is safe and the default is min(n, m). With a rank below the
            true one the value would be too small. Derivatives in `cross` are for changes that keep the rank.

    Infinite where the information is. Canonical correlations are used and no pseudo-inverse of Σ − Γ, whose cut-off
    depends on the coordinates.

    Raises:
        InputError: shapes that do not fit, a rank that the shapes do not allow.
    """
    whitened, centred, factor, exists = _whitened(covariance_x, cross, covariance_y, y, mean_y)
    largest = min(whitened.shape)
    rank = largest if rank is None else rank
    if not 1 <= rank <= largest:
        raise InputError(f"rank is {rank}; a cross-covariance of shape {whitened.shape} has one from 1 to {largest}.")
    with jax.default_matmul_precision("highest"):
        score = solve_lower(factor, centred[:, None])[:, 0]
        if rank < whitened.shape[1]:
            score = row_projector(whitened, rank) @ score
        information = _information(after(whitened, score), exists)
        return jnp.where(jnp.isfinite(information), information + 0.5 * jnp.sum(score**2), jnp.inf)


def factored_leakage(
    y: Output,
    covariance_x: Private,
    left: Float[Array | np.ndarray, "n l"],
    right: Float[Array | np.ndarray, "l m"],
    covariance_y: Released,
    *,
    mean_y: Output | None = None,
) -> Float[Array, ""]:
    """ℓ(X→y) in nats for Cov(X, Y) = F E with F, (n, l), and E, (l, m), of full rank l by construction.

    With B = E Σ_YY⁻¹ Eᵀ and a = E Σ_YY⁻¹ (y − μ): ξ = aᵀ B⁻¹ a and I = −½ log det(I − Fᵀ Σ⁻¹ F B) (derived here). No
    singular value is computed, so that every derivative exists and keeps the rank. For a release of C X, F = Σ Cᵀ and
    E = I.

    Raises:
        InputError: shapes that do not fit, or l above n or m.
    """
    left, right = jnp.asarray(left), jnp.asarray(right)
    if (
        left.ndim != 2
        or right.ndim != 2
        or left.shape[1] != right.shape[0]
        or left.shape[1] > min(left.shape[0], right.shape[1])
    ):
        raise InputError(
            f"the factors have shapes {left.shape} and {right.shape}; expected (n, l) and (l, m), l at most n and m."
        )
    covariance_x, _, covariance_y = _checked(covariance_x, left @ right, covariance_y)
    y = _centred(y, mean_y, covariance_y.shape[0])
    with jax.default_matmul_precision("highest"):
        factor_y, exists_y = cholesky(covariance_y)
        factor_x, exists_x = cholesky(after(covariance_x, factor_y))
        rows = solve_lower(factor_y, right.T)
        inner, full = cholesky(after(rows.T @ rows, factor_x))
        score = solve_lower(inner, (rows.T @ solve_lower(factor_y, y[:, None])))[:, 0]
        correlations = solve_lower(factor_x, left) @ inner
        information = _information(correlations, exists_x & exists_y & full)
        return jnp.where(jnp.isfinite(information), information + 0.5 * jnp.sum(score**2), jnp.inf)


def additive_information(signal: Released, noise: Released) -> Float[Array, ""]:
    """I(X; Z + V) = ½ Σ log(1 + eig(Θ⁻¹K)) in nats for Z = C X, K = Cov(Z), and independent noise V of covariance Θ.

    Accurate for correlations near 1, where `mutual_information` loses everything. If Z has noise N of its own (not
    determined by X), pass K = Σ_ZX Σ⁻¹ Σ_XZ and Θ + N.

    Args:
        signal: K, (m, m), positive semidefinite; it may be singular.
        noise: Θ, (m, m). Infinite where it is singular to working precision: publish in the coordinates of its range
            if K lies in it.
    """
    signal, noise = jnp.asarray(signal), jnp.asarray(noise)
    if signal.ndim != 2 or signal.shape[0] != signal.shape[1] or signal.shape != noise.shape:
        raise InputError(f"signal and noise have shapes {signal.shape} and {noise.shape}; expected (m, m) twice.")
    with jax.default_matmul_precision("highest"):
        factor, exists = cholesky(noise)
        half = solve_lower(factor, symmetric(signal))
        ratio = solve_lower(factor, half.T)
        finite = exists & jnp.all(jnp.isfinite(ratio))
        value = 0.5 * log_one_plus_trace(jnp.where(finite, ratio, 0.0))
        return jnp.where(finite, value, jnp.inf)


def additive_leakage(y: Output, signal: Released, noise: Released, *, mean_y: Output | None = None) -> Float[Array, ""]:
    """ℓ(X→y) in nats of an output of Z + V as in `additive_information`, of rank m: I + ½ (y − μ)ᵀ (K + Θ)⁻¹ (y − μ).

    For Z = C X with C of full row rank; otherwise it is an upper bound, as a rank m too large is.
    """
    information = additive_information(signal, noise)
    signal, noise = jnp.asarray(signal), jnp.asarray(noise)
    with jax.default_matmul_precision("highest"):
        factor, exists = cholesky(after(signal + noise, information))
        score = solve_lower(factor, _centred(y, mean_y, signal.shape[0])[:, None])
        finite = exists & jnp.isfinite(information)
        return jnp.where(finite, jnp.where(finite, information, 0.0) + 0.5 * jnp.sum(score**2), jnp.inf)


def secret_information(prior: Prior, secret: AnySecret, noise: Noise) -> Float[Array, ""]:
    """I(T; X + V) = ½ log det(I + Cov(T) M) in nats, M the precision gain about the secret T (derived here).

    For one secret dimension this is an exact bridge to conditional inferential privacy, whose loss is M: see
    `relations.leakage_of_gain`. Infinite where M is.
    """
    gain = precision_gain(prior, secret, noise)
    variance = conditional(prior, secret).variance
    with jax.default_matmul_precision("highest"):
        factor, exists = cholesky(after(variance, gain))
        finite = exists & jnp.all(jnp.isfinite(gain))
        value = 0.5 * log_one_plus_trace(factor.T @ jnp.where(finite, gain, 0.0) @ factor)
        return jnp.where(finite, value, jnp.inf)


def trace_information(prior: Prior, noise: Noise) -> Float[Array, ""]:
    """I(X; X + V) in nats of a whole trace released with noise; the rank of its leakage is the size of the trace.

    The prior may be singular. Infinite where the noise is singular to working precision, which the noise of least
    variance for one secret is.
    """
    return additive_information(jnp.asarray(prior.covariance), jnp.asarray(noise_covariance(noise)))


def _checked(covariance_x, cross, covariance_y):
    covariance_x, cross, covariance_y = (jnp.asarray(one) for one in (covariance_x, cross, covariance_y))
    n, m = cross.shape if cross.ndim == 2 else (0, 0)
    if covariance_x.shape != (n, n) or covariance_y.shape != (m, m) or 0 in (n, m):
        raise InputError(
            f"the covariances have shapes {covariance_x.shape}, {cross.shape} and {covariance_y.shape}; expected "
            "(n, n), (n, m) and (m, m)."
        )
    return covariance_x, cross, covariance_y


def _centred(y, mean_y, size):
    y = jnp.asarray(y)
    if y.shape != (size,) or (mean_y is not None and jnp.shape(mean_y) != (size,)):
        raise InputError(f"the output has shape {y.shape}; it and its mean must have shape ({size},).")
    return y if mean_y is None else y - jnp.asarray(mean_y)


def _whitened(covariance_x, cross, covariance_y, y=None, mean_y=None):
    covariance_x, cross, covariance_y = _checked(covariance_x, cross, covariance_y)
    centred = jnp.zeros(cross.shape[1], cross.dtype) if y is None else _centred(y, mean_y, cross.shape[1])
    with jax.default_matmul_precision("highest"):
        factor_x, exists_x = cholesky(covariance_x)
        factor_y, exists_y = cholesky(after(covariance_y, factor_x))
        half = solve_lower(factor_x, cross)
        return solve_lower(factor_y, half.T).T, centred, factor_y, exists_x & exists_y


def _information(whitened: Float[Array, "n m"], exists) -> Float[Array, ""]:
    """−½ log det(I − W Wᵀ) on the smaller side; infinite where that is not positive definite."""
    with jax.default_matmul_precision("highest"):
        short = whitened if whitened.shape[0] <= whitened.shape[1] else whitened.T
        factor, proper = cholesky(jnp.eye(short.shape[0], dtype=short.dtype) - short @ short.T)
        # A pivot of the size of rounding says nothing of 1 − ρ²; an estimate should rather be infinite than too small.
        resolved = jnp.min(jnp.diagonal(factor) ** 2) > _UNRESOLVED * short.shape[0] * jnp.finfo(short.dtype).eps
        value = jnp.maximum(-0.5 * log_determinant(factor), 0.0)
        return jnp.where(exists & proper & resolved, value, jnp.inf)
