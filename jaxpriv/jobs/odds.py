"""What an ε means for an attacker's odds, with numbers rounded to the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr, ndtr

from jaxpriv.report.record import OddsRecord


# Far above the rounding errors of the normal distribution function, far below what a report prints.
_OUTWARD = 1e-9


def odds_record(epsilon: float, order: float, delta: float) -> OddsRecord:
    """Translate an upper value of ε (nats) at an order λ into odds.

    For equal covariances the log-odds of two hypotheses are N(±μ²/2, μ²) with ε = λμ²/2 at every order (the Rényi
    divergence of Gaussians), so that the tail is exact and increasing in ε.
    """
    mu = math.sqrt(2 * epsilon / order) * (1 + _OUTWARD)
    exact, curve = tail_epsilon(mu, delta), curve_epsilon(mu, delta)
    theorem = (epsilon + math.log(1 / delta) / (order - 1)) * (1 + _OUTWARD)
    return OddsRecord(delta, exact, _factor(exact), theorem, _factor(theorem), curve)


def tail_epsilon(mu: float, delta: float) -> float:
    """Least ε' that |log-odds|, distributed as |N(μ²/2, μ²)|, exceeds with probability at most δ; rounded up.

    Either direction counts: odds that rise by e^ε' and odds that fall by it.
    """

    def tail(value: float) -> float:
        return float(ndtr(mu / 2 - value / mu) + ndtr(-mu / 2 - value / mu))

    return _root(tail, mu, delta)


def curve_epsilon(mu: float, delta: float) -> float:
    """Least ε' ≥ 0 with Φ(μ/2 − ε'/μ) − e^ε' Φ(−μ/2 − ε'/μ) ≤ δ, rounded up.

    The (ε, δ) curve of μ-Gaussian differential privacy (Dong, Roth and Su, 2022, corollary 1).
    """

    def curve(value: float) -> float:
        return float(ndtr(mu / 2 - value / mu) - np.exp(value + log_ndtr(-mu / 2 - value / mu)))

    return _root(curve, mu, delta) if curve(0.0) > delta else 0.0


def _root(decreasing: Callable[[float], float], mu: float, delta: float) -> float:
    # Both functions are at most 2 Φ(μ/2 − ε'/μ) ≤ exp(−x²/2) with x = ε'/μ − μ/2 ≥ 0.
    low, high = 0.0, mu * (mu / 2 + math.sqrt(2 * math.log(1 / delta)))
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if decreasing(middle) > delta else (low, middle)
    return high * (1 + _OUTWARD)


def _factor(log_factor: float) -> float | None:
    return math.exp(log_factor) * (1 + 1e-12) if log_factor < 690 else None
