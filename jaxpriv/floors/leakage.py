"""What a leakage requirement asks for, checked before any work."""

from __future__ import annotations

import math

from jaxpriv.certificates.scalars import chi_square_quantile
from jaxpriv.errors import InfeasibleError, InputError


# Designs aim this much inside the information budget, so that rounding does not take them out of it.
BUDGET_SHADING = 1e-9


def check_leakage_target(epsilon: float, delta: float) -> tuple[float, float]:
    """ε and δ as floats.

    Raises:
        InputError: ε is not a positive number of nats, or δ is not strictly between 0 and 1.
    """
    if not (isinstance(epsilon, (int, float)) and math.isfinite(epsilon) and epsilon > 0.0):
        raise InputError(f"epsilon is {epsilon!r}; expected a positive, finite leakage in nats.")
    if not (isinstance(delta, (int, float)) and 0.0 < delta < 1.0):
        raise InputError(f"delta is {delta!r}; expected a probability strictly between 0 and 1.")
    return float(epsilon), float(delta)


def information_allowed(epsilon: float, delta: float, rank: int) -> float:
    """τ = 2ε − q_l(δ), rounded down, where the noise can be chosen to meet it.

    Raises:
        InputError: as `check_leakage_target`.
        InfeasibleError: 2ε ≤ q_l(δ), Corollary 3.4 of Liu, Kawano and Cao (arXiv:2511.10771): no Gaussian noise is
            private enough, however large. `smallest_feasible` is q_l(δ)/2.
    """
    epsilon, delta = check_leakage_target(epsilon, delta)
    quantile = chi_square_quantile(rank, delta)
    budget = 2.0 * epsilon - quantile
    budget -= 4.0 * 2.0**-53 * (2.0 * epsilon + quantile)
    if not budget > 0.0:
        raise InfeasibleError(
            f"ε = {epsilon:.6g} at δ = {delta:.3g} is out of reach for {rank} dimension{'s' if rank > 1 else ''}: the "
            f"leakage tends to half the χ² quantile, {quantile / 2.0:.6g}, as the noise grows. Ask for ε above "
            f"{quantile / 2.0:.6g}, allow a larger δ, release fewer dimensions, or suppress outputs.",
            smallest_feasible=quantile / 2.0,
        )
    return budget
