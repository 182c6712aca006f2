"""The design for several secrets, several priors and other requirements: solve, certify, and shade until it holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from jaxpriv.certificates.arithmetic import square_bounds
from jaxpriv.certificates.cost import cost_upper
from jaxpriv.certificates.leakage import secret_leakage
from jaxpriv.certificates.loss import loss_bounds
from jaxpriv.certificates.verb import Certificate, certify
from jaxpriv.designs.convex_solver import ConvexSolver
from jaxpriv.designs.finish import SHADINGS, finished, floor_cost_upper, infeasible, within_budget
from jaxpriv.designs.floor_problem import FloorProblem
from jaxpriv.designs.gradient.solver import GradientSolver
from jaxpriv.designs.ladder import MajorantSolver
from jaxpriv.designs.request import Request
from jaxpriv.designs.result import Design
from jaxpriv.designs.solved import Solved, Solver
from jaxpriv.designs.structured.solver import StructuredSolver
from jaxpriv.designs.targets import met, target_losses
from jaxpriv.floors.requirements import Requirement, SecretLeakage
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret


_FINE = 1e-8  # relative room of a lower bound below which it is not looked for between powers of ten


def design_many(
    priors: Sequence[Prior], secrets: Sequence[AnySecret], requirements: Sequence[Requirement], request: Request
) -> Design:
    """See `jaxpriv.design`. Called in double precision."""
    targets = target_losses(priors, secrets, request)
    problem = FloorProblem.of(priors, secrets, targets, requirements, request)
    solver = solver_for(problem, request)

    def check(mechanism: GaussianMechanism) -> Certificate:
        return certify(list(priors), list(secrets), mechanism, order=request.order, bound=request.bound)

    if request.budget is None:
        return _for_target(problem, solver, check, targets, priors, requirements, request)
    return _for_budget(problem, solver, check, priors, secrets, requirements, request, request.budget)


def solver_for(problem: FloorProblem, request: Request) -> Solver:
    """The solver of the request's method, or the one that suits its structure."""
    if request.method == "gradient":
        return GradientSolver(problem, request)
    if request.method == "convex":
        return ConvexSolver(problem, request)
    return MajorantSolver(problem, request) if request.structure == "joint" else StructuredSolver(problem, request)


def _for_target(
    problem: FloorProblem,
    solver: Solver,
    check: Callable[[GaussianMechanism], Certificate],
    targets: np.ndarray,
    priors: Sequence[Prior],
    requirements: Sequence[Requirement],
    request: Request,
) -> Design:
    floor_sd = request.floor_for(0.0)
    if request.floor_sd is None:
        floor_sd = request.floor_for(solver.at_targets(1.0, 0.0, 0.0, tolerance=1e-3).cost)
    for shading in SHADINGS:
        solved = solver.at_targets(1.0, floor_sd, shading)
        mechanism = GaussianMechanism(solved.factor, floor_sd, request.resolution)
        certificate = check(mechanism)
        unmet = unmet_requirement(problem, mechanism) or unmet_leakage(priors, requirements, mechanism)
        reached = met(certificate, targets, request) and unmet is None
        if reached:
            break
    cost = cost_upper(mechanism.factor, square_bounds(floor_sd)[1], request.weights)
    lower = problem.cost_lower(solved.duals, 1.0, square_bounds(floor_sd)[0])
    stats = _stats(solver, problem, solved, shading=shading)
    return finished(mechanism, certificate, cost, cost, lower, request, reached, stats)


def _for_budget(
    problem: FloorProblem,
    solver: Solver,
    check: Callable[[GaussianMechanism], Certificate],
    priors: Sequence[Prior],
    secrets: Sequence[AnySecret],
    requirements: Sequence[Requirement],
    request: Request,
    budget: float,
) -> Design:
    floor_sd = request.floor_for(budget)
    floor_cost = floor_cost_upper(floor_sd, request)
    if not floor_cost < budget:
        return infeasible(list(priors), list(secrets), floor_sd, floor_cost, request)
    for shading in SHADINGS:
        # Part of the budget is kept back, so that scaling into it does not undo the fixed requirements.
        solved = solver.at_budget(floor_cost + (budget - floor_cost) * (1.0 - 0.1 * shading), floor_sd, shading)
        if not math.isfinite(solved.scale):
            needed = solver.at_targets(1e6, floor_sd, 0.0, tolerance=1e-3).cost
            return infeasible(list(priors), list(secrets), floor_sd, needed, request)
        factor = within_budget(solved.factor, floor_sd, budget, request)
        mechanism = GaussianMechanism(factor, floor_sd, request.resolution)
        unmet = unmet_requirement(problem, mechanism) or unmet_leakage(priors, requirements, mechanism)
        if unmet is None:
            break
    certificate = check(mechanism)
    cost = cost_upper(factor, square_bounds(floor_sd)[1], request.weights)
    lower = epsilon_lower(
        lambda scale: problem.cost_lower(solved.duals, scale, square_bounds(floor_sd)[0]), budget, solved
    )
    usable = math.isfinite(certificate.epsilon) and unmet is None
    stats = _stats(solver, problem, solved, budget=budget)
    return finished(mechanism, certificate, cost, certificate.epsilon, lower, request, usable, stats)


def epsilon_lower(cost_lower: Callable[[float], float], budget: float, solved: Solved) -> float:
    """The largest ε tried for which meeting it verifiably costs more than the budget: no noise within it does better.

    The targets at scale τ are those of ε = τ nats.
    """
    guess = solved.scale * (1.0 - max(solved.gap, 0.0))

    def proven(share: float) -> bool:
        epsilon = guess * (1.0 - share)
        return epsilon > 0.0 and cost_lower(epsilon) > budget

    shares = (0.0, *(10.0**power for power in range(-13, 0)), 0.5)
    for tighter, share in pairwise(shares):
        if not proven(share):
            continue
        if share > _FINE:
            for _ in range(4):
                middle = math.sqrt(tighter * share)
                tighter, share = (tighter, middle) if proven(middle) else (middle, share)
        return guess * (1.0 - share) * (1.0 - 2.0**-50)
    return 0.0


def unmet_leakage(
    priors: Sequence[Prior], requirements: Sequence[Requirement], mechanism: GaussianMechanism
) -> str | None:
    """Which leakage could not be verified to be within its ε under every prior; None if all were."""
    for i, requirement in enumerate(requirements):
        if isinstance(requirement, SecretLeakage):
            for prior in priors:
                (bound,) = secret_leakage(prior, [requirement.secret], mechanism)
                if not bound.epsilon(requirement.delta) <= requirement.epsilon:
                    return f"requirement {i}"
    return None


def unmet_requirement(problem: FloorProblem, mechanism: GaussianMechanism) -> str | None:
    """What of the fixed requirements could not be verified of the mechanism; None if all were."""
    factor, floor_sd = np.asarray(mechanism.factor), float(mechanism.floor_sd)
    below = square_bounds(floor_sd)[0]
    # With a prior of zero and Cov(T) = 2 μ² I the loss is λ/(2μ²(2μ² − λ)) for each eigenvalue λ of Eᵀ G⁻¹ E, so that
    # λ ≤ μ² exactly when it is at most 1/(2μ²).
    nothing = np.zeros((problem.size, problem.size))
    joints = [(shape, 2.0 * squared * np.eye(shape.shape[1])) for shape, squared in problem.fixed]
    bounds = loss_bounds(nothing, joints, factor, below) if joints else []
    for i, (bound, (_, squared)) in enumerate(zip(bounds, problem.fixed, strict=True)):
        if not bound.upper <= 0.5 / squared * (1.0 - 2.0**-50):
            return f"floor {i}"
    for i, floor in enumerate(problem.floors):
        if not floor.scales:
            joint = (floor.cross, floor.variance)
            (bound,) = loss_bounds(problem.covariances[floor.prior], [joint], factor, below)
            if not bound.upper <= floor.target:
                return f"side information {i}"
    return None


def _stats(solver: Solver, problem: FloorProblem, solved: Solved, **more: Any) -> dict[str, Any]:
    return {
        "method": solver.method,
        "reason": solver.reason,
        "floors": len(problem.floors) + len(problem.fixed),
        "steps": solved.steps,
        "solver_gap": float(solved.gap),
        **more,
    }
