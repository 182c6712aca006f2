"""The privacy profile of a Gaussian release: what its mutual information and rank say about leakage.

The leakage of an output is ℓ = I + ξ/2 with ξ ~ χ²_l over the draw of the data and the noise (Theorem 3.2 of Liu,
Kawano and Cao, arXiv:2511.10771), so that the information I (nats) and the rank l determine everything here. The rank
is a structural upper bound: counting too many is safe, counting too few under-reports.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax.scipy.special import ndtr
from jaxtyping import Array, Float

from jaxpriv.errors import InfeasibleError, InputError
from jaxpriv.pml.chi2 import Rank, chi2_isf, chi2_log_sf, chi2_sf
from jaxpriv.shapes import Scalar


def leakage_epsilon(information: Scalar, delta: Scalar, rank: Rank) -> Float[Array, ""]:
    """ε(δ) = I + q_l(δ)/2: the leakage is at most this with probability 1 − δ, exactly (nats).

    Theorem 3.3 of Liu, Kawano and Cao (arXiv:2511.10771), rearranged. δ is an average over the prior, not a promise to
    a person (`conditional_failure`). Infinite for infinite information. For l = 0 nothing is leaked.
    """
    return jnp.asarray(information) + 0.5 * chi2_isf(delta, rank)


def leakage_delta(information: Scalar, epsilon: Scalar, rank: Rank) -> Float[Array, ""]:
    """δ(ε) = P(χ²_l > 2(ε − I)): the probability that the leakage exceeds ε; 1 where ε ≤ I."""
    return chi2_sf(_excess(information, epsilon), rank)


def leakage_log_delta(information: Scalar, epsilon: Scalar, rank: Rank) -> Float[Array, ""]:
    """log δ(ε) in nats, also where δ(ε) underflows."""
    return chi2_log_sf(_excess(information, epsilon), rank)


def expected_leakage(information: Scalar, rank: Rank) -> Float[Array, ""]:
    """E ℓ = I + l/2 in nats."""
    return jnp.asarray(information) + 0.5 * jnp.asarray(rank)


def smallest_epsilon(delta: Scalar, rank: Rank) -> Float[Array, ""]:
    """q_l(δ)/2: what every ε must exceed, however large the noise.

    Corollary 3.4 of Liu, Kawano and Cao (arXiv:2511.10771). A Gaussian prior is unbounded, so that some outputs leak.
    """
    return 0.5 * chi2_isf(delta, rank)


def information_budget(epsilon: Scalar, delta: Scalar, rank: Rank) -> Float[Array, ""]:
    """τ = 2ε − q_l(δ): a Gaussian release is (ε, δ)-private exactly if 2 I ≤ τ. Not positive: infeasible."""
    return 2.0 * jnp.asarray(epsilon) - chi2_isf(delta, rank)


def kappa(epsilon: Scalar, delta: Scalar, rank: Rank) -> Float[Array, ""]:
    """κ = exp((q_l(δ) − 2ε)/l), the share of the prior covariance that must remain (l ≥ 1).

    Theorem 3.6 of Liu, Kawano and Cao (arXiv:2511.10771): a posterior covariance of at least κ times the prior one is
    enough, and necessary where l = 1. At least 1 where (ε, δ) is infeasible.

    Raises:
        InputError: a Python number l below 1, or double precision is off.
    """
    if isinstance(rank, int) and rank < 1:
        raise InputError(f"rank is {rank}; κ needs at least one released dimension.")
    return jnp.exp(-information_budget(epsilon, delta, rank) / jnp.asarray(rank, float))


def require_feasible(epsilon: float, delta: float, rank: int) -> float:
    """The information budget τ > 0 of a request, on the host.

    Raises:
        InputError: a rank below 1, δ outside (0, 1), an ε that is not a number.
        InfeasibleError: 2ε ≤ q_l(δ); the message and `smallest_feasible` name q_l(δ)/2, which ε must exceed.
    """
    if rank < 1:
        raise InputError(f"rank is {rank}; expected at least 1 released dimension that depends on the private data.")
    if not float("-inf") < epsilon < float("inf"):
        raise InputError(f"epsilon is {epsilon}; expected a finite number of nats.")
    limit = float(smallest_epsilon(delta, rank))
    if not epsilon > limit:
        raise InfeasibleError(
            f"epsilon = {epsilon:g} cannot be met at delta = {delta:g} and rank {rank}, however large the noise: it "
            f"must exceed {limit:.6g} nats, half the chi-square quantile. Raise epsilon or delta, or release fewer "
            "dimensions.",
            smallest_feasible=limit,
        )
    return 2.0 * (epsilon - limit)


def conditional_failure(information: Scalar, epsilon: Scalar, deviation: Scalar) -> Float[Array, ""]:
    """P(ℓ > ε | X = x) of a release of rank 1, for a person `deviation` prior standard deviations from the mean.

    δ(ε) is the average of this over the prior; for unusual people it is far larger: with ε = 3 and δ = 0.05 it is 0.41
    at two standard deviations and 0.99 at three. The standardised output given x is N(ρ x/σ, 1 − ρ²) with
    ρ² = 1 − e^(−2I) (derived here; proof in docs/leakage.md).
    """
    information = jnp.asarray(information, float)
    usable = (information > 0.0) & jnp.isfinite(information)
    safe = jnp.where(usable, information, 1.0)
    spread, correlation = jnp.exp(-safe), jnp.sqrt(-jnp.expm1(-2.0 * safe))
    excess = 2.0 * (jnp.asarray(epsilon) - safe)
    edge = jnp.sqrt(jnp.where(excess > 0.0, excess, 1.0))
    centre = correlation * jnp.abs(jnp.asarray(deviation))
    both = ndtr((centre - edge) / spread) + ndtr((-centre - edge) / spread)
    # Without information there is no release of rank 1, and with all of it the leakage is infinite.
    return jnp.where(usable, jnp.where(excess > 0.0, both, 1.0), jnp.where(information > 0.0, 1.0, 0.0))


def _excess(information: Scalar, epsilon: Scalar) -> Float[Array, ""]:
    information, epsilon = jnp.asarray(information, float), jnp.asarray(epsilon, float)
    infinite = jnp.isinf(information)
    # An infinite leakage exceeds every level, also an infinite one.
    return jnp.where(infinite, -1.0, 2.0 * (epsilon - jnp.where(infinite, 0.0, information)))
