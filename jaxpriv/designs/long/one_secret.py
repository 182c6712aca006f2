"""The least-noise design for one secret on a trace of any length: roots, certificate, repair, bound."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from jaxpriv.certificates.arithmetic import fraction_down, square_bounds
from jaxpriv.certificates.steepness import steepest
from jaxpriv.certificates.structured import square_sum, structured_trial
from jaxpriv.certificates.verb import Certificate, certify
from jaxpriv.designs.finish import SHADINGS, finished, floor_cost_upper, infeasible, within_budget
from jaxpriv.designs.long.curves import Curves
from jaxpriv.designs.long.inducing import true_cost_lower
from jaxpriv.designs.long.roots import Roots, roots_for_budget, roots_for_loss
from jaxpriv.designs.request import Request
from jaxpriv.designs.result import Design
from jaxpriv.designs.targets import epsilon_of_each
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.priors.inducing import InducingPrior
from jaxpriv.priors.structured import StructuredPrior
from jaxpriv.secrets.secret import Secret


_OVERLAP = 1e-7  # of two directions above which they are told apart by the floor itself


@dataclass(frozen=True)
class LongProblem:
    """One secret under one structured prior, and its curves on the part of the trace, `kept`, that matters to it."""

    prior: StructuredPrior
    secret: Secret
    request: Request
    curves: Curves
    kept: np.ndarray | None

    @classmethod
    def of(cls, prior: StructuredPrior, secret: Secret, request: Request) -> LongProblem:
        near, window = getattr(prior, "near", None), getattr(prior, "window", None)
        kept = near(secret.indices) if near is not None else None
        if kept is None or window is None:
            return cls(prior, secret, request, Curves(prior, secret.indices), None)
        local = np.searchsorted(kept, secret.indices).tolist()
        return cls(prior, secret, request, Curves(window(kept), local), kept)

    @property
    def reach(self) -> float:
        """s r²: what turns a loss into twice an epsilon over the order."""
        return float(self.secret.n_times * np.asarray(self.secret.radius) ** 2)

    def mechanism(self, directions: np.ndarray, powers: np.ndarray, floor_sd: float) -> GaussianMechanism:
        """The least noise above the floor: the same directions, each with floor_sd² less power."""
        local = directions * np.sqrt(np.maximum(powers - floor_sd**2, 0.0))
        factor = local
        if self.kept is not None:
            factor = np.zeros((self.prior.size, local.shape[1]))
            factor[self.kept] = local
        if self.request.budget is not None:
            factor = within_budget(factor, floor_sd, self.request.budget, self.request)
        return GaussianMechanism(factor, floor_sd, self.request.resolution)

    def certificate(self, mechanism: GaussianMechanism) -> Certificate:
        return certify(self.prior, self.secret, mechanism, order=self.request.order, bound=self.request.bound)


def design_long_secret(prior: StructuredPrior, secret: Secret, request: Request) -> Design:
    """See `jaxpriv.design`. Called in double precision, with everything checked by the dispatcher."""
    problem = LongProblem.of(prior, secret, request)
    if request.epsilon is not None:
        return _for_target(problem, float(epsilon_of_each(request, 1)[0]))
    assert request.budget is not None
    return _for_budget(problem, request.budget)


def _for_target(problem: LongProblem, epsilon: float) -> Design:
    request, curves = problem.request, problem.curves
    target = 2.0 * epsilon / (request.order * problem.reach)
    shading, guess = SHADINGS[0], None
    while True:
        roots = roots_for_loss(curves, target * (1.0 - shading), guess)
        guess = roots.powers
        floor_sd = request.floor_for(float(np.sum(roots.powers)))
        directions, powers = separated(curves, roots)
        mechanism = problem.mechanism(directions, powers, floor_sd)
        certificate = problem.certificate(mechanism)
        if certificate.epsilon <= epsilon or shading >= SHADINGS[-1]:
            break
        # What was missing says how far to go: a little more than that, and no further than a thousandth.
        missing = 1.0 - epsilon / certificate.epsilon if np.isfinite(certificate.epsilon) else SHADINGS[-1]
        shading = min(max(shading + 1.5 * missing, 2.0 * shading), SHADINGS[-1])
    met = certificate.epsilon <= epsilon
    lower = 0.0
    if np.isfinite(certificate.epsilon):
        # Four roundings separate the target from what the exact formula would ask for.
        lower = _cost_lower(problem, directions, target * (1.0 + 2.0**-50), square_bounds(floor_sd)[0])
    stats = {**_named(problem), "shading": shading, "target_loss": target}
    return finished(mechanism, certificate, certificate.cost, certificate.cost, lower, request, met, stats)


def _for_budget(problem: LongProblem, budget: float) -> Design:
    request, curves = problem.request, problem.curves
    floor_sd = request.floor_for(budget)
    floor_cost = floor_cost_upper(floor_sd, request)
    if not floor_cost < budget:
        return infeasible(problem.prior, problem.secret, floor_sd, floor_cost, request)
    room = budget - (request.size - curves.width) * floor_sd**2
    roots = roots_for_budget(curves, room)
    directions, powers = separated(curves, roots)
    mechanism = problem.mechanism(directions, powers, floor_sd)
    certificate = problem.certificate(mechanism)
    met = bool(np.isfinite(certificate.epsilon))
    lower = 0.0
    if met:
        least = _loss_lower(problem, directions, budget, square_bounds(floor_sd)[0])
        lower = 0.5 * request.order * problem.reach * least * (1.0 - 2.0**-50)
    stats = {**_named(problem), "budget": budget}
    return finished(mechanism, certificate, certificate.cost, certificate.epsilon, lower, request, met, stats)


def separated(curves: Curves, roots: Roots) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal directions (n, k) and powers (k,): eigenvectors of nearly equal powers come out of the floor itself.

    Where the computed eigenvectors overlap, the floor F = H (V + I/t) Hᵀ − Σ is diagonalised in their span.
    """
    if curves.width == 1:
        return roots.directions, roots.powers
    left, singular, right = np.linalg.svd(roots.directions, full_matrices=False)
    basis = left @ right
    if float(np.max(np.abs(singular - 1.0))) < _OVERLAP:
        return basis, roots.powers
    through = np.linalg.solve(curves.variance, curves.cross.T @ basis)
    floor = through.T @ (curves.variance + np.eye(curves.width) / roots.loss) @ through
    floor = floor - basis.T @ curves.prior.product(basis)
    values, vectors = np.linalg.eigh((floor + floor.T) / 2)
    return basis @ vectors[:, ::-1], values[::-1]


def _trial(problem: LongProblem, directions: np.ndarray) -> tuple[Fraction, Fraction, Fraction] | None:
    """Trial vectors on the kept part alone, zero elsewhere: nothing outside it enters their quadratic forms."""
    curves = problem.curves
    if problem.prior.one_sided:
        return None
    through = np.linalg.solve(curves.variance, curves.cross.T @ directions)
    return structured_trial(curves.prior, curves.chosen, directions, through, np.linalg.solve(curves.variance, through))


def _cost_lower(problem: LongProblem, directions: np.ndarray, target: float, floor_variance: float) -> float:
    """No mechanism with that floor and a loss of at most `target` costs less.

    With the trial's sums, tr(K Q) ≥ linear²/(4 t length) − curvature − η tr Q for the noise K above the floor and Q the
    sum of the u uᵀ, the scale of the b against the u being free; and tr(K Q) ≤ λ_max(Q) tr K.
    """
    if isinstance(problem.prior, InducingPrior):
        return true_cost_lower(problem.prior, problem.curves.chosen, directions, target, floor_variance)
    floor = Fraction(floor_variance)
    spent = floor * problem.prior.size
    trial = _trial(problem, directions)
    steep = steepest(directions, "joint", None, None)
    if trial is None or not 0.0 < steep < np.inf or trial[0] <= 0 or trial[2] <= 0:
        return fraction_down(spent)
    linear, curvature, length = trial
    above = linear**2 / (4 * Fraction(target) * length) - curvature - floor * square_sum(directions)
    return fraction_down(spent + max(above / Fraction(steep), Fraction(0)))


def _loss_lower(problem: LongProblem, directions: np.ndarray, budget: float, floor_variance: float) -> float:
    """No mechanism with that floor and a cost of at most `budget` has a smaller loss (1 / squared unit)."""
    floor = Fraction(floor_variance)
    remaining = Fraction(budget) - floor * problem.prior.size
    trial = _trial(problem, directions)
    steep = steepest(directions, "joint", None, None)
    if trial is None or not 0.0 < steep < np.inf or trial[0] <= 0 or trial[2] <= 0 or remaining < 0:
        return 0.0
    linear, curvature, length = trial
    total = curvature + floor * square_sum(directions) + remaining * Fraction(steep)
    return fraction_down(linear**2 / (4 * total * length)) if total > 0 else 0.0


def _named(problem: LongProblem) -> dict[str, object]:
    reason = "one secret on a long trace: roots of k curves by structured solves"
    stats: dict[str, object] = {"method": "spectral", "reason": reason, "evaluations": problem.curves.evaluations}
    if problem.prior.one_sided and problem.request.budget is not None:
        stats["bound"] = "none: the prior's products are with a smaller covariance, so only the privacy is certified"
    return stats
