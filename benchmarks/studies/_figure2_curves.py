"""The curves of figure 2 of Meehan and Chaudhuri (AISTATS 2021), with the exact designs beside them.

Every mechanism of a panel has the same total noise power, 0.02 a point, except where all points are secrets: there it
is what the published algorithm ends up with. What is plotted is twice the posterior standard deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxpriv.baselines import concentrated, prior_shaped, surrogate, uniform
from jaxpriv.designs.certified import certify
from jaxpriv.designs.design import design
from jaxpriv.designs.majorant.primal_dual import solve_primal_dual
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.priors.gaussian import GaussianPrior
from jaxpriv.secrets.secret import EveryPoint, Secret


POWER = 0.02  # noise power a point, in prior variances; the published code's value, which the paper does not state
JITTER = 1e-6  # what the published code adds to the prior and, times the mean noise power, to the noise
LIFT = 1e-8  # times the mean noise power: what a design of ours has as its floor, given to the published noise too

PUBLISHED, UNIFORM, CONCENTRATED = "published", "independent, everywhere", "independent, on the secret"
BLOCK, JOINT, SHAPED = "least noise, independent on the secret", "least noise", "shaped like the prior"
ROBUST = "least noise for three length scales"


@dataclass(frozen=True)
class Panel:
    """One panel: `squared` are squared length scales, `secrets` positions, `stretch` of the attacker's length scale."""

    letter: str
    title: str
    kernel: str
    n: int
    secrets: tuple[tuple[int, ...], ...]
    squared: tuple[float, ...]
    stabiliser: float = 1.0
    stretch: tuple[float, ...] = (1.0,)
    period: float = 24.0


def panels(points: int = 20) -> list[Panel]:
    """The eight panels, with so many length scales each, at the published spacing (linear in the square)."""
    rbf, per = (tuple(np.linspace(*ends, points).tolist()) for ends in ((1.0, 100.0), (0.25, 2.25)))
    wrong = (0.5, 1.0, 1.5)
    return [
        Panel("a", "RBF: one fix", "rbf", 50, ((24,),), rbf),
        Panel("b", "RBF: two adjacent fixes", "rbf", 50, ((24, 25),), rbf, stabiliser=1000.0),
        Panel("c", "RBF: every fix", "rbf", 50, tuple((i,) for i in range(50)), rbf),
        Panel("d", "RBF: attacker with another prior", "rbf", 50, ((24,),), rbf, stretch=wrong),
        Panel("e", "periodic: one value", "periodic", 48, ((24,),), per),
        Panel("f", "periodic: two values, 16 apart", "periodic", 48, ((16, 32),), per, stabiliser=10.0),
        Panel("g", "periodic: every value", "periodic", 48, tuple((i,) for i in range(48)), per),
        Panel("h", "periodic: attacker with another prior", "periodic", 48, ((24,),), per, stretch=wrong),
    ]


def covariance(panel: Panel, squared: float) -> np.ndarray:
    """Unit variances, no nugget: exp(−d²/2l²), or exp(−2 sin²(πd/p)/l²)."""
    lags = np.abs(np.subtract.outer(np.arange(panel.n), np.arange(panel.n)))
    if panel.kernel == "rbf":
        return np.exp(-(lags**2) / (2 * squared))
    return np.exp(-2 * np.sin(np.pi * lags / panel.period) ** 2 / squared)


def published_pair(prior: np.ndarray, pair: tuple[int, int], budget: float, stabiliser: float) -> np.ndarray:
    """SDP_A as the published code solves it, for two fixes that a symmetry of the prior exchanges.

    With H⁺ the pseudo-inverse of the map from the secret to the trace, the program is max λ_min(H⁺(C + G)H⁺ᵀ) over
    G ⪰ 0 of trace `stabiliser · budget`. The symmetry splits it into the sum and the difference of the two: each gets
    power along its own row of H⁺ until both levels are equal. What the code does afterwards follows.
    """
    positions, rest = list(pair), [i for i in range(len(prior)) if i not in pair]
    gain = prior[:, positions] @ np.linalg.inv(prior[np.ix_(positions, positions)])
    left = prior - gain @ prior[positions]
    inverse = np.linalg.pinv(gain)
    modes = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2) @ inverse
    if abs(modes[0] @ modes[1]) > 1e-9 * np.linalg.norm(modes[0]) * np.linalg.norm(modes[1]):
        raise ValueError("no symmetry of the prior exchanges the two positions")
    size = np.sum(modes**2, axis=1)
    start = np.einsum("ij,jk,ik->i", modes, left, modes)
    total = stabiliser * budget
    level = (total + np.sum(start / size)) / np.sum(1 / size)
    if level < np.max(start):
        lowest = int(np.argmin(start))
        level = min(start[lowest] + total * size[lowest], np.max(start))
    power = np.maximum(level - start, 0.0) / size
    noise = (modes.T * (power / size)) @ modes / stabiliser
    noise[np.ix_(positions, rest)] = 0.0
    noise[np.ix_(rest, positions)] = 0.0
    noise[np.ix_(positions, positions)] = np.eye(2) * np.mean(np.diagonal(noise)[positions])
    return noise


def published(panel: Panel, squared: float) -> tuple[np.ndarray, float]:
    """The published mechanism's covariance and, for every point a secret, the gap of its least matrix above all."""
    prior, budget = covariance(panel, squared), POWER * panel.n
    seeds = []
    for secret in panel.secrets:
        if len(secret) == 2:
            seeds.append(published_pair(prior, (secret[0], secret[1]), budget, panel.stabiliser))
        else:
            seeds.append(np.asarray(surrogate(GaussianPrior(prior), Secret(list(secret), 1.0), budget).covariance))
    if len(seeds) == 1:
        return seeds[0], 0.0
    found = solve_primal_dual(np.stack(seeds), tolerance=1e-7)
    return np.asarray(found.noise), float(found.gap)


def mechanisms(panel: Panel, squared: float) -> dict[str, tuple[GaussianMechanism, float]]:
    """Every mechanism of a panel at one length scale, with the certified gap of those that are optima (else nan)."""
    prior = GaussianPrior(covariance(panel, squared))
    noise, gap = published(panel, squared)
    found = {PUBLISHED: (_factored(noise, LIFT * POWER), gap if len(panel.secrets) > 1 else np.nan)}
    budget = float(np.trace(noise)) if len(panel.secrets) > 1 else POWER * panel.n
    found[UNIFORM] = (uniform(panel.n, budget), np.nan)
    if len(panel.secrets) > 1:
        ours = design(prior, EveryPoint(1.0), budget=budget)
        found[SHAPED] = (ours.mechanism, ours.gap)
        return found
    secret = Secret(list(panel.secrets[0]), 1.0)
    found[CONCENTRATED] = (concentrated(panel.n, secret, budget), np.nan)
    if panel.stretch == (1.0,):
        block = design(prior, secret, budget=budget, structure="block")
        found[BLOCK] = (block.mechanism, block.gap)
    ours = design(prior, secret, budget=budget)
    found[JOINT] = (ours.mechanism, ours.gap)
    if panel.stretch != (1.0,):
        members = [GaussianPrior(covariance(panel, squared * stretch**2)) for stretch in panel.stretch]
        robust = design(members, secret, budget=budget)
        found[ROBUST] = (robust.mechanism, robust.gap)
        shaped = prior_shaped(prior, budget)
        found[SHAPED] = (GaussianMechanism(shaped.factor, float(np.sqrt(JITTER * POWER))), np.nan)
    return found


def rows(panel: Panel, squared: float) -> list[dict[str, Any]]:
    """One row for each mechanism and attacker: the width, certified losses, cost, gap.

    The published code's 1e-6 is added where a panel cannot do without it: on noise of the secret alone, and for
    attackers with another prior, whose answers hang on it.
    """
    out = []
    for name, (mechanism, gap) in mechanisms(panel, squared).items():
        for stretch in panel.stretch:
            prior = covariance(panel, squared * stretch**2)
            judged = mechanism
            if name == CONCENTRATED or panel.stretch != (1.0,):
                prior = prior + JITTER * np.eye(panel.n)
                lifted = float(np.sqrt(float(mechanism.floor_sd) ** 2 + JITTER * POWER))
                judged = GaussianMechanism(mechanism.factor, lifted)
            secrets = [Secret(list(secret), 1.0) for secret in panel.secrets]
            certificate = certify(GaussianPrior(prior), secrets, judged)
            out.append(
                {
                    "panel": panel.letter,
                    "length": float(np.sqrt(squared)),
                    "mechanism": name,
                    "attacker": stretch,
                    "width": width(prior, np.asarray(judged.covariance), panel.secrets),
                    "loss": float(np.max(certificate.losses)),
                    "least_loss": float(np.min(certificate.losses)),
                    "cost": float(np.trace(np.asarray(mechanism.covariance))),
                    "gap": gap,
                }
            )
    return out


def width(prior: np.ndarray, noise: np.ndarray, secrets: tuple[tuple[int, ...], ...]) -> float:
    """The published ordinate: 2 √λ_min(P_SS) of one secret, 2 √(mean of P_ii) of several."""
    left = prior - prior @ np.linalg.solve(prior + noise, prior)
    if len(secrets) > 1:
        return 2 * float(np.sqrt(np.mean([left[i, i] for (i,) in secrets])))
    positions = list(secrets[0])
    return 2 * float(np.sqrt(max(np.linalg.eigvalsh(left[np.ix_(positions, positions)])[0], 0.0)))


def _factored(noise: np.ndarray, floor_variance: float) -> GaussianMechanism:
    values, vectors = np.linalg.eigh((noise + noise.T) / 2)
    return GaussianMechanism(vectors * np.sqrt(np.maximum(values, 0.0)), float(np.sqrt(floor_variance)))
