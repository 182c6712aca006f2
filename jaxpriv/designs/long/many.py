"""Many secrets on a long trace, under one prior or several: clusters of secrets, and the sum of their noises."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jaxpriv.certificates.arithmetic import SMALLEST, square_bounds
from jaxpriv.certificates.cost import cost_upper
from jaxpriv.certificates.structured import structured_loss_bounds
from jaxpriv.certificates.verb import Certificate
from jaxpriv.designs.finish import SHADINGS, finished, floor_cost_upper, infeasible
from jaxpriv.designs.long.cluster_bound import DualBlock, cost_lower, floor_value, joined, steepness
from jaxpriv.designs.long.cluster_design import ClusterNoise, solve_cluster, window_beliefs
from jaxpriv.designs.long.clusters import LARGEST_WINDOW, Cluster, by_products, clusters_of, fading_lag, overlapping
from jaxpriv.designs.long.reduction import smooth_basis
from jaxpriv.designs.long.wide_design import solve_wide_cluster, wide_floor_value
from jaxpriv.designs.long.window_certificate import certificate_lag, certificate_of, cluster_losses
from jaxpriv.designs.long.windows import restricted, window_covariance
from jaxpriv.designs.request import EFFORTS, Request
from jaxpriv.designs.result import Design
from jaxpriv.designs.targets import epsilon_of_each, target_losses
from jaxpriv.errors import InputError
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.secrets.secret import Secret


METHOD = "clusters"  # as `stats` calls it; certified from products with the kernel's exact values
LARGEST_FACTOR = 2**31  # bytes of the mechanism's dense factor
_TOLERANCE = 1e-4  # relative gap of one cluster's problem at normal effort, never below the request's
_SHADINGS = (1e-7, 2e-6)  # one prior, several: what the left-out columns and the windows' edges may cost
_REPAIRS = 8
_SECANTS = 6
_SHARES = (0.0, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)


@dataclass
class ManyProblem:
    """Secrets under structured priors on one trace, and what does not depend on the targets."""

    priors: list[Any]
    secrets: list[Secret]
    request: Request
    clusters: list[Cluster]
    targets: np.ndarray  # (secrets, priors), in 1 / squared unit; those of ε = 1 for a budget
    lag: float
    lengthscale: float  # the longest under any prior, in the unit of the times
    noises: list[ClusterNoise] = field(default_factory=list)

    @property
    def factors(self) -> list[np.ndarray]:
        """What each cluster adds on its window, (w, q)."""
        return [noise.factor for noise in self.noises]

    @property
    def power(self) -> float:
        """tr of all clusters' noise, without the floor."""
        return float(sum(np.sum(factor * factor) for factor in self.factors))

    def solve(self, scale: float, floor_variance: float, tolerance: float) -> None:
        """The noise of every cluster at the targets times `scale`."""
        request = self.request
        steps = EFFORTS[request.effort] // 2
        self.noises = []
        times = np.asarray(self.priors[0].times)
        for cluster in self.clusters:
            goals = self.targets[list(cluster.secrets)] * scale * (1.0 - _SHADINGS[len(self.priors) > 1])
            here = [index - cluster.start for i in cluster.secrets for index in self.secrets[i].indices]
            window = times[cluster.start : cluster.stop]
            basis = smooth_basis(window, np.array(here), self.lengthscale)
            # One floor has a closed form, which the ascent finds in a few steps on any window that has a matrix.
            alone = len(self.priors) * len(cluster.secrets) == 1 and cluster.size <= LARGEST_WINDOW
            # `clusters_of` sees to it that there is a basis wherever there can be no matrix.
            if by_products(self.priors, cluster.size) and basis is not None and not alone:
                self.noises.append(
                    solve_wide_cluster(
                        self.priors, self.secrets, cluster, goals, floor_variance, tolerance, steps, basis
                    )
                )
                continue
            known = window_beliefs(self.priors, self.secrets, cluster, edges=True)
            basis = None if alone else basis
            self.noises.append(solve_cluster(known, goals, floor_variance, tolerance, steps, basis))

    def scaled(self, which: Sequence[int], factor: float) -> None:
        """More noise of the same shape in some clusters."""
        for c in which:
            self.noises[c] = replace(self.noises[c], factor=self.noises[c].factor * factor)


def design_many_secrets(priors: Sequence[Any], secrets: Sequence[Secret], request: Request) -> Design:
    """The sum of the clusters' least noises, certified for every secret under every prior.

    Secrets whose correlation is above 1e-4 under some prior are designed together, on a window around them, against an
    adversary who knows the exact state of a Markov prior at both ends of it. The sum of the clusters' noises protects
    all (more noise never hurts), and the clusters' duals together bound what any noise must cost. Called in double
    precision.

    Raises:
        InputError: what the windows cannot do; see `clusters_of`.
    """
    priors, secrets = list(priors), list(secrets)
    if any(secret.n_times > 1 for secret in secrets) and request.bound != "ball":
        raise InputError("bound='product' with secrets of several times is not supported here: use bound='ball'.")
    clusters = clusters_of(priors, secrets)
    lag = certificate_lag(priors)
    longest = max(fading_lag(prior, math.exp(-0.5)) for prior in priors)
    problem = ManyProblem(priors, secrets, request, clusters, target_losses(priors, secrets, request), lag, longest)
    return _for_target(problem) if request.budget is None else _for_budget(problem, request.budget)


def _for_target(problem: ManyProblem) -> Design:
    request = problem.request
    fixed = request.floor_sd is not None or request.resolution > 0.0 or request.least_floor_sd > 0.0
    floor_sd = request.floor_for(0.0) if fixed else 0.0
    problem.solve(1.0, floor_sd**2, _tolerance(request))
    if not fixed:
        floor_sd = request.floor_for(problem.power)
    goals = epsilon_of_each(request, len(problem.secrets))
    certificate = _certified(problem, floor_sd, lambda found: found.epsilons <= goals[:, None], goals)
    met = bool(np.all(certificate.epsilons <= goals[:, None]))
    lower = _cost_lower(problem, 1.0 + 2.0**-50, square_bounds(floor_sd)[0])
    mechanism = GaussianMechanism(_dense(problem), floor_sd, request.resolution)
    return finished(mechanism, certificate, certificate.cost, certificate.cost, lower, request, met, _stats(problem))


def _for_budget(problem: ManyProblem, budget: float) -> Design:
    request = problem.request
    floor_sd = request.floor_for(budget)
    spent = floor_cost_upper(floor_sd, request)
    if not spent < budget:
        return infeasible(problem.priors, problem.secrets, floor_sd, spent, request)
    scale = _scale_for(problem, (budget - spent) * (1.0 - 1e-9), floor_sd**2)
    everything = range(len(problem.clusters))
    problem.scaled(everything, math.sqrt((budget - spent) * (1.0 - 1e-12) / problem.power))
    while _cost(problem, floor_sd) > budget:
        problem.scaled(everything, 1.0 - 2.0**-42)
    certificate = _certified(problem, floor_sd, lambda found: np.ones_like(found.epsilons, dtype=bool), None)
    lower = 0.0
    for share in _SHARES:
        tried = min(scale, certificate.epsilon) * (1.0 - share)
        if _cost_lower(problem, tried * (1.0 + 2.0**-50), square_bounds(floor_sd)[0]) > budget:
            lower = tried
            break
    mechanism = GaussianMechanism(_dense(problem), floor_sd, request.resolution)
    met = math.isfinite(certificate.epsilon)
    stats = {**_stats(problem), "budget": budget}
    return finished(mechanism, certificate, certificate.cost, certificate.epsilon, lower, request, met, stats)


def _scale_for(problem: ManyProblem, room: float, floor_variance: float) -> float:
    """The common scale of the targets at which the clusters' noise costs `room`, by secants in the logarithms."""
    scale, goal = 1.0, math.log(room)
    points: list[tuple[float, float]] = []
    for _ in range(_SECANTS):
        last = len(points) == _SECANTS - 1
        problem.solve(scale, floor_variance, _tolerance(problem.request) if last or points else 1e-2)
        points.append((math.log(scale), math.log(max(problem.power, 1e-300))))
        if len(points) > 1 and abs(points[-1][1] - goal) < 1e-4:
            break
        slope = -1.0
        if len(points) > 1 and points[-1][0] != points[-2][0]:
            slope = min((points[-1][1] - points[-2][1]) / (points[-1][0] - points[-2][0]), -0.05)
        step = (goal - points[-1][1]) / slope
        scale = math.exp(points[-1][0] + min(max(step, -5.0), 5.0))
    return math.exp(points[-1][0])


def _certified(
    problem: ManyProblem, floor_sd: float, holds: Callable[[Certificate], np.ndarray], goals: np.ndarray | None
) -> Certificate:
    """The certificate, after as much more noise in the clusters where it does not hold as that takes."""
    secrets, priors = len(problem.secrets), len(problem.priors)
    upper, lower = np.full((secrets, priors), np.inf), np.zeros((secrets, priors))
    floor_below, floor_above = square_bounds(floor_sd)
    todo = list(range(len(problem.clusters)))
    for turn in range(_REPAIRS):
        for c in todo:
            _verify(problem, c, floor_below, upper, lower)
        exact = floor_above == floor_below or floor_below <= SMALLEST
        cost = _cost(problem, floor_sd)
        certificate = certificate_of(problem.secrets, upper, lower, cost, exact, problem.request.order)
        ok = holds(certificate)
        failing = [c for c, cluster in enumerate(problem.clusters) if not np.all(ok[list(cluster.secrets)])]
        finite = bool(np.all(np.isfinite(certificate.epsilons)))
        if not failing or goals is None or not finite or turn == _REPAIRS - 1:
            break
        for c in failing:
            chosen = list(problem.clusters[c].secrets)
            excess = float(np.max(certificate.epsilons[chosen] / goals[chosen][:, None])) - 1.0
            problem.scaled([c], math.sqrt(1.0 + max(4.0 * excess, SHADINGS[0])))
        near = {d for c in failing for d in overlapping(problem.clusters, *_span(problem.clusters[c]))}
        todo = sorted(near)
    return certificate


def _verify(problem: ManyProblem, c: int, floor_variance: float, upper: np.ndarray, lower: np.ndarray) -> None:
    chosen = list(problem.clusters[c].secrets)
    for p, prior in enumerate(problem.priors):
        if prior.one_sided:
            positions = [problem.secrets[i].indices for i in chosen]
            near = overlapping(problem.clusters, *_span(problem.clusters[c]))
            # Fewer columns than there are: less noise, so that the bound holds for all of it.
            bounds = structured_loss_bounds(prior, positions, _dense(problem, near), floor_variance)
            lower_known = False
        else:
            bounds = cluster_losses(
                prior, problem.secrets, problem.clusters, problem.factors, c, floor_variance, problem.lag
            )
            lower_known = True
        for i, bound in zip(chosen, bounds, strict=True):
            upper[i, p] = bound.upper
            lower[i, p] = bound.lower if lower_known else 0.0


def _span(cluster: Cluster) -> tuple[int, int]:
    return cluster.start, cluster.stop


def _cost(problem: ManyProblem, floor_sd: float) -> float:
    """A verified upper bound of the trace."""
    parts = [cost_upper(factor, 0.0) for factor in problem.factors if factor.shape[1]]
    total = math.fsum(parts) * (1.0 + 2.0**-50) + floor_cost_upper(floor_sd, problem.request)
    return math.nextafter(total * (1.0 + 2.0**-52), math.inf)


def _cost_lower(problem: ManyProblem, scale: float, floor_variance: float) -> float:
    """No noise with that floor that meets the targets times `scale` costs less."""
    blocks = [
        DualBlock(c, p, i, noise.duals[p][j])
        for c, (cluster, noise) in enumerate(zip(problem.clusters, problem.noises, strict=True))
        for p in range(len(problem.priors))
        for j, i in enumerate(cluster.secrets)
    ]
    blocks = joined(blocks, problem.clusters)
    steep = steepness(blocks, problem.clusters)
    values = []
    known: tuple[int, int] | None = None
    covariance = np.zeros((0, 0))
    for block in sorted(blocks, key=lambda one: (one.cluster, one.prior)):
        cluster = problem.clusters[block.cluster]
        here = np.array(problem.secrets[block.secret].indices) - cluster.start
        target = float(problem.targets[block.secret, block.prior]) * scale
        if by_products(problem.priors, cluster.size):
            part = restricted(problem.priors[block.prior], cluster.start, cluster.stop)
            values.append(wide_floor_value(part, here, target, block.columns))
            continue
        if known != (block.cluster, block.prior):
            covariance = window_covariance(problem.priors[block.prior], cluster.start, cluster.stop)
            known = block.cluster, block.prior
        values.append(
            floor_value(covariance, covariance[:, here], covariance[np.ix_(here, here)], target, block.columns)
        )
    return cost_lower(values, blocks, steep, floor_variance, problem.request.size)


def _dense(problem: ManyProblem, which: Sequence[int] | None = None) -> np.ndarray:
    """The factor of the noise of all clusters, or some, (n, K).

    Raises:
        InputError: it would take more than 2 GiB.
    """
    chosen = range(len(problem.clusters)) if which is None else which
    width = sum(problem.factors[c].shape[1] for c in chosen)
    n = problem.request.size
    if 8 * n * width > LARGEST_FACTOR:
        raise InputError(
            f"the noise of {len(problem.secrets)} secrets has {width} columns of {n} fixes, "
            f"{8.0 * n * width / 2**30:.3g} GiB, and at most {LARGEST_FACTOR / 2**30:g} are held: release the trace in "
            "parts, each with the secrets in it."
        )
    factor = np.zeros((n, width))
    place = 0
    for c in chosen:
        part, cluster = problem.factors[c], problem.clusters[c]
        factor[cluster.start : cluster.stop, place : place + part.shape[1]] = part
        place += part.shape[1]
    return factor


def _tolerance(request: Request) -> float:
    if request.effort == "high":
        return max(0.5 * request.tolerance, 1e-6)
    return max(0.5 * request.tolerance, 1e-3 if request.effort == "low" else _TOLERANCE)


def _stats(problem: ManyProblem) -> dict[str, Any]:
    return {
        "method": METHOD,
        "reason": "several secrets on a long trace: a majorant for each cluster of near secrets, and their sum",
        "clusters": len(problem.clusters),
        "largest_window": max(cluster.size for cluster in problem.clusters),
        "columns": sum(factor.shape[1] for factor in problem.factors),
        "steps": sum(noise.steps for noise in problem.noises),
        "solver_gap": max(noise.gap for noise in problem.noises),
    }
