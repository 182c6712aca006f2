"""`design_leakage`: the least Gaussian noise for (ε, δ)-pointwise maximal leakage, with what is certified about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxpriv.certificates.arithmetic import float64_array, symmetric_array
from jaxpriv.certificates.cost import check_weights
from jaxpriv.certificates.definiteness import smallest_eigenvalue_lower
from jaxpriv.certificates.release_leakage import release_leakage
from jaxpriv.designs.leakage.general import LeastNoise, least_noise_above
from jaxpriv.designs.leakage.lmi import leakage_lmi_noise
from jaxpriv.designs.leakage.water_filling import least_leakage_noise
from jaxpriv.errors import CertificateError, InputError
from jaxpriv.floors.leakage import BUDGET_SHADING, information_allowed
from jaxpriv.precision import double_precision


@dataclass(frozen=True)
class LeakageDesign:
    """Noise for the release of Z and what it leaks about X.

    Attributes:
        noise: Θ, (m, m), to be added to Z.
        factor: B, (m, q), with B Bᵀ = Θ: sample this, not a root of Θ, whose rounding would be other noise.
        epsilon: certified leakage in nats at `delta`; at most what was asked for.
        information: certified upper bound of the mutual information between X and the release, nats.
        rank: l, whose χ² quantile `epsilon` contains; leakages of different ranks must not be compared.
        cost, lower_bound, gap: tr(W Θ), what no noise of this criterion goes below, and the relative distance.
        method, reason: how it was found and why that way.
    """

    noise: np.ndarray
    factor: np.ndarray
    epsilon: float
    delta: float
    information: float
    rank: int
    cost: float
    lower_bound: float
    criterion: str
    method: str
    reason: str

    @property
    def gap(self) -> float:
        """(cost − lower_bound)/cost."""
        return (self.cost - self.lower_bound) / self.cost if self.cost > 0.0 else 0.0

    def __str__(self) -> str:
        return (
            f"leakage ≤ {self.epsilon:.6g} nats at δ = {self.delta:g} over {self.rank} dimensions (information "
            f"{self.information:.6g}); noise power {self.cost:.6g}; gap {self.gap:.1e}; {self.method}: {self.reason}"
        )


def design_leakage(
    secret: Any,
    release: Any,
    *,
    epsilon: float,
    delta: float,
    own: Any = None,
    criterion: Literal["exact", "lmi"] = "exact",
    weights: Any = None,
    floor_variance: float = 0.0,
    tolerance: float = 1e-6,
) -> LeakageDesign:
    """The least noise Θ such that Z + N(0, Θ), Z = C X + (noise of its own), leaks at most ε about X, except with
    probability δ over the output.

    Args:
        secret: Σ, (n, n) positive definite, the prior covariance of X.
        release: C, (m, n), of full row rank m ≤ n, so that l = m.
        own: N, (m, m) positive semidefinite, the covariance of Z's own noise; none by default.
        criterion: "exact", the condition I ≤ ε − q_l(δ)/2 of Theorem 3.3 of Liu, Kawano and Cao (arXiv:2511.10771),
            necessary and sufficient; "lmi", the sufficient matrix inequality of their Theorem 3.6, whose noise is a
            floor that combines with those of other notions.
        weights: W of the cost tr(W Θ): (m,) positive, or (m, m) positive definite.
        floor_variance: variance of the independent noise that every coordinate gets at least.
        tolerance: relative gap at which the numerical solution stops; the closed forms need none.

    δ is an average over the prior, not a promise to a person: see docs/leakage.md.

    Raises:
        InputError: a shape or value is wrong, C is rank-deficient, W is not positive definite.
        InfeasibleError: 2ε ≤ q_l(δ); `smallest_feasible` is what ε must exceed.
        CertificateError: the leakage of the noise found could not be verified.
    """
    prior, matrix, own_noise, cost_matrix = _checked(secret, release, own, weights)
    if criterion not in ("exact", "lmi"):
        raise InputError(f"criterion is {criterion!r}; expected 'exact' or 'lmi'.")
    if not (np.isfinite(floor_variance) and floor_variance >= 0.0):
        raise InputError(f"floor_variance is {floor_variance}; expected a variance of at least 0.")
    rank = matrix.shape[0]
    budget = information_allowed(epsilon, delta, rank)
    # What the bounds below allow every noise: no less than the exact τ, whose quantile was rounded up.
    allowed = budget + 1e-13 * (budget + 2.0 * epsilon)
    signal = matrix @ prior @ matrix.T
    signal = 0.5 * (signal + signal.T)
    shading = BUDGET_SHADING
    while shading < 1e-5:
        with double_precision():
            target = _Target(budget * (1.0 - shading), allowed, float(floor_variance), cost_matrix, tolerance)
            if criterion == "lmi":
                found = _above_the_floor(prior, matrix, signal, own_noise, target)
            else:
                found = _exact(signal, own_noise, target)
        factor = _root(found.noise)
        certified = release_leakage(prior, matrix, factor, own_noise)
        reached = certified.epsilon(delta)
        if reached <= epsilon:
            break
        shading *= 10.0
    else:
        raise CertificateError(
            f"the leakage of the noise found could not be verified: {reached:.6g} nats against {epsilon:.6g}. "
            "Give a floor_variance, or a prior that is not singular to working precision."
        )
    return LeakageDesign(
        factor @ factor.T,
        factor,
        reached,
        float(delta),
        certified.information,
        rank,
        found.cost,
        found.lower_bound,
        criterion,
        found.method,
        found.reason,
    )


class _Target(NamedTuple):
    """The information budget to aim at, the one that the lower bound allows, and what noise costs."""

    budget: float
    allowed: float
    floor_variance: float
    weights: np.ndarray | None
    tolerance: float


def _above_the_floor(prior, matrix, signal, own, target: _Target) -> LeastNoise:
    size = len(signal)
    # With the floor c I inside Σ_ZZ the noise above it is what the inequality still asks for.
    released = jnp.asarray(signal + own + target.floor_variance * np.eye(size))
    cross = jnp.asarray(prior @ matrix.T)
    weights = None if target.weights is None else jnp.asarray(target.weights)

    def noise(budget: float) -> np.ndarray:
        above = leakage_lmi_noise(jnp.asarray(prior), cross, released, budget, rank=size, weights=weights)
        return np.asarray(above) + target.floor_variance * np.eye(size)

    def cost(noise: np.ndarray) -> float:
        return float(np.trace(noise) if target.weights is None else np.sum(target.weights * noise))

    found = noise(target.budget)
    lower = cost(noise(target.allowed)) * (1.0 - 1e-12)
    return LeastNoise(found, cost(found), lower, "closed form", "the inequality is a floor on the noise", 0)


def _exact(signal, own, target: _Target) -> LeastNoise:
    if np.any(own) or target.floor_variance > 0.0:
        return least_noise_above(
            signal,
            own,
            target.budget,
            allowed=target.allowed,
            floor_variance=target.floor_variance,
            weights=target.weights,
            tolerance=target.tolerance,
        )
    weights = None if target.weights is None else jnp.asarray(target.weights)
    filled = least_leakage_noise(jnp.asarray(signal), target.budget, weights=weights)
    cost = float(filled.cost)
    # The least cost is convex in τ, with slope −μ.
    lower = cost * (1.0 - 1e-12) - float(filled.multiplier) * (target.allowed - target.budget) * (1.0 + 1e-9)
    return LeastNoise(np.asarray(filled.noise), cost, lower, "closed form", "water-filling", 0)


def _checked(secret: Any, release: Any, own: Any, weights: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
    prior = symmetric_array(secret, "secret")
    if not smallest_eigenvalue_lower(prior) > 0.0:
        raise InputError(
            "secret is not positive definite to working precision: restrict X to the range of its covariance."
        )
    matrix = float64_array(release, "release")
    if matrix.ndim != 2 or matrix.shape[1] != prior.shape[0]:
        raise InputError(f"release has shape {matrix.shape}; expected (m, {prior.shape[0]}).")
    size = matrix.shape[0]
    values = np.linalg.svd(matrix, compute_uv=False)
    if size > matrix.shape[1] or not values[-1] > 64 * np.finfo(float).eps * max(matrix.shape) * values[0]:
        raise InputError(
            f"release, {size} rows of {matrix.shape[1]}, does not have full row rank: send only rows that the others "
            "do not determine."
        )
    noise = np.zeros((size, size)) if own is None else symmetric_array(own, "own", size)
    if own is not None and np.linalg.eigvalsh(noise)[0] < -64 * np.finfo(float).eps * size * np.max(np.abs(noise)):
        raise InputError("own is not positive semidefinite.")
    cost = check_weights(weights, size)
    if cost is not None and cost.ndim == 1:
        cost = np.diag(cost)
    if cost is not None and not smallest_eigenvalue_lower(cost) > 0.0:
        raise InputError("weights is not positive definite: a direction that costs nothing would get infinite noise.")
    return prior, matrix, noise, cost


def _root(noise: np.ndarray) -> np.ndarray:
    """B with B Bᵀ = Θ up to rounding, which the certificate then covers."""
    values, vectors = np.linalg.eigh(noise)
    return vectors * np.sqrt(np.maximum(values, 0.0))
