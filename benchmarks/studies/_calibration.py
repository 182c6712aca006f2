"""Attackers on simulated series, where what they know of the prior is right: coverages and odds against the promised.

Every series is drawn from a prior, released once, and read; shares come with their binomial errors.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import cast

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

import jaxpriv as jp
from benchmarks.studies._mixture import believed, draws_of


SHARE, DELTA = 0.02, 0.01


def simulated(draws: int = 4000, n: int = 50, seed: int = 11) -> list[str]:
    """Series drawn from the prior, released, attacked: observed against promised, with binomial errors."""
    times = np.arange(float(n))
    prior = jp.ProcessPrior(jp.kernels.matern32(lengthscale=6.0), times, noise_sd=0.03)
    secret = jp.Secret([n // 2], radius=0.5)
    rng = np.random.default_rng(seed)
    covariance = np.asarray(prior.covariance)
    series = rng.normal(size=(draws, n)) @ np.linalg.cholesky(covariance).T
    lines = [
        "| noise | 68 % interval holds | 95 % | odds beyond the exact bound, of 1 % | beyond Theorem 3.1's, of 1 % |",
        "|---|---|---|---|---|",
    ]
    mechanisms = {
        "least noise": jp.design(prior, secret, budget=SHARE * n).mechanism,
        "independent": jp.baselines.uniform(n, SHARE * n),
        "like the prior": jp.design(prior, jp.EveryPoint(0.5), budget=SHARE * n).mechanism,
    }
    for name, mechanism in mechanisms.items():
        noise = np.asarray(mechanism.covariance)
        certificate = jp.certify(prior, secret, mechanism)
        weights = np.linalg.solve(covariance + noise, covariance[:, n // 2])
        left = math.sqrt(covariance[n // 2, n // 2] - covariance[n // 2] @ weights)
        released = series + draws_of(noise, draws, rng)
        error = released @ weights - series[:, n // 2]
        gain = 1 / left**2 - 1 / covariance[n // 2, n // 2]
        centre = (released @ weights) / (left**2 * gain) - series[:, n // 2]
        moved = gain * (0.5**2 / 2 - 0.5 * centre)
        cells = []
        for level in (0.68, 0.95):
            half = {0.68: 0.994458, 0.95: 1.959964}[level] * left
            cells.append(_share(np.abs(error) <= half))
        exact = log_odds(certificate.epsilon)
        cells += [_share(np.abs(moved) > exact), _share(np.abs(moved) > certificate.odds(DELTA))]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def simulated_mixture(draws: int = 4000, n: int = 50, seed: int = 12) -> list[str]:
    """Series drawn from one of twelve priors, any of them equally often; the noise is designed for all of them.

    Read by an attacker who knows which prior it was, by one who weighs the twelve by the release, and by one who always
    believes in the first.
    """
    times = np.arange(float(n))
    priors = [
        jp.ProcessPrior(kernel(lengthscale, sd), times, noise_sd=0.03)
        for kernel in (jp.kernels.matern32, jp.kernels.matern52)
        for lengthscale in (6.0, 3.0, 12.0)
        for sd in (1.0, 2.0)
    ]
    members = [np.asarray(prior.covariance) for prior in priors]
    rng = np.random.default_rng(seed)
    which = np.arange(draws) % len(members)
    roots = np.stack([np.linalg.cholesky(one) for one in members])
    series = np.einsum("dij,dj->di", roots[which], rng.normal(size=(draws, n)))
    truth = series[:, n // 2]
    mechanisms = {
        "least noise": jp.design(priors, jp.Secret([n // 2], radius=0.5), budget=SHARE * n).mechanism,
        "independent": jp.baselines.uniform(n, SHARE * n),
    }
    lines = [
        "| noise | attacker | interval, mean | error, root mean square | 68 % interval holds | 95 % |",
        "|---" * 6 + "|",
    ]
    for name, mechanism in mechanisms.items():
        noise = np.asarray(mechanism.covariance)
        belief = believed(members, noise, n // 2, series + draws_of(noise, draws, rng))
        certain = np.eye(len(members))
        for who, weights in (
            ("knows the prior", certain[which]),
            ("weighs the twelve by the release", belief.weights),
            ("believes in the first", certain[np.zeros(draws, int)]),
        ):
            one = replace(belief, weights=weights)
            error = math.sqrt(float(np.mean((one.mean - truth) ** 2)))
            cells = [f"{np.mean(one.deviation):.3f}", f"{error:.3f}"]
            cells += [_share(one.covered(truth, level)) for level in (0.68, 0.95)]
            lines.append(f"| {name} | {who} | " + " | ".join(cells) + " |")
    return lines


def _share(events: np.ndarray) -> str:
    share = float(np.mean(events))
    return f"{share:.4f} ± {math.sqrt(share * (1 - share) / len(events)):.4f}"


def log_odds(epsilon: float) -> float:
    """The size that a normal variable of mean μ²/2 and variance μ² (order 2: μ² = ε) exceeds with probability DELTA."""
    mu = math.sqrt(epsilon)

    def excess(size: float) -> float:
        return float(norm.sf(size, mu**2 / 2, mu) + norm.cdf(-size, mu**2 / 2, mu)) - DELTA

    return cast(float, brentq(excess, 0.0, mu**2 + 20 * mu))
