"""The design for several secrets, several priors and other requirements: solve, certify, and shade until it holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxpriv.certificates.arithmetic import square_bounds
from jaxpriv.certificates.cost import cost_upper
from jaxpriv.certificates.loss import loss_bounds
from jaxpriv.certificates.verb import Certificate, certify
from jaxpriv.designs.finish import SHADINGS, finished, floor_cost_upper, infeasible, within_budget
from jaxpriv.designs.floor_problem import FloorProblem
from jaxpriv.designs.majorant.budget import clip_budget
from jaxpriv.designs.majorant.clip import clip_majorant
from jaxpriv.designs.majorant.stack import FloorStack
from jaxpriv.designs.majorant.sweep import prior_shaped_starts, sweep_majorant, usual_starts
from jaxpriv.designs.request import EFFORTS, Request
from jaxpriv.designs.result import Design
from jaxpriv.designs.targets import met, target_losses
from jaxpriv.errors import InputError
from jaxpriv.floors.requirements import Requirement
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret


# Beyond these sizes the ascent's eigendecompositions and products no longer fit in an interactive wait.
CLIP_FLOORS, CLIP_SIZE = 600, 2000


class Solved(NamedTuple):
    """A proposal of the compiled solver in the units of the trace: factor, dual columns, cost, reached gap, steps."""

    factor: np.ndarray
    columns: Any
    cost: float
    gap: float
    steps: int
    scale: float


def design_many(
    priors: Sequence[Prior], secrets: Sequence[AnySecret], requirements: Sequence[Requirement], request: Request
) -> Design:
    """See `jaxpriv.design`. Called in double precision."""
    if request.structure != "joint":
        raise InputError("several secrets or priors are for structure='joint' only.")
    targets = target_losses(priors, secrets, request)
    problem = FloorProblem.of(priors, secrets, targets, requirements, request.weights)
    solver = Solver(problem, request)
    check = lambda mechanism: certify(list(priors), list(secrets), mechanism, order=request.order)  # noqa: E731
    if request.budget is None:
        return _for_target(problem, solver, check, targets, secrets, request)
    return _for_budget(problem, solver, check, priors, secrets, request, request.budget)


class Solver:
    """The ladder: ascent on the low-rank dual, or for very many floors one lift of a rough start."""

    def __init__(self, problem: FloorProblem, request: Request):
        self.problem, self.request = problem, request
        self.small = len(problem.floors) + len(problem.fixed) <= CLIP_FLOORS and problem.size <= CLIP_SIZE
        self.method = "majorant" if self.small else "sweep"
        self.start: Any = None
        # Small problems take more steps in the same time; at 2,000 coordinates 1,000 steps are over a minute.
        size = problem.size
        self.steps = int(EFFORTS[request.effort] * (4.0 if size <= 500 else 1.0 if size <= 1000 else 0.25))

    def at_targets(self, scale: float, floor_sd: float, shading: float, tolerance: float | None = None) -> Solved:
        """The least noise at the targets times `scale`, each met with a margin of the relative `shading`."""
        problem, request = self.problem, self.request
        inner_floor = 0.0 if problem.weights is not None else floor_sd**2 / problem.unit
        stack = problem.stack(scale, floor_sd**2, shading)
        if self.small:
            found = clip_majorant(
                stack,
                noise_floor=inner_floor,
                tolerance=0.5 * request.tolerance if tolerance is None else tolerance,
                max_steps=self.steps,
                start=own_directions(stack) if self.start is None else self.start,
            )
            self.start = found.columns
        else:
            lowered = stack.above(inner_floor)
            every = len(problem.floors) >= problem.size
            starts = prior_shaped_starts(lowered) if every else usual_starts(lowered)
            found = sweep_majorant(stack, noise_floor=inner_floor, starts=starts)
        extra = 0.0 if problem.weights is None else floor_sd**2 * request.total_weight
        return Solved(
            problem.in_units(np.asarray(found.factor)),
            found.columns,
            float(found.value) * problem.unit + extra,
            float(found.gap),
            int(found.steps),
            scale,
        )

    def at_budget(self, budget: float, floor_sd: float, shading: float) -> Solved:
        """The least scale of the targets within a budget."""
        problem, request = self.problem, self.request
        if not self.small:
            return self._root(budget, floor_sd, shading)
        inner_floor = 0.0 if problem.weights is not None else floor_sd**2 / problem.unit
        extra = 0.0 if problem.weights is None else floor_sd**2 * request.total_weight
        stack = problem.stack(1.0, floor_sd**2, shading)
        found = clip_budget(
            stack,
            (budget - extra) / problem.unit,
            noise_floor=inner_floor,
            tolerance=0.5 * request.tolerance,
            max_steps=self.steps,
            start=own_directions(stack),
        )
        factor = problem.in_units(np.asarray(found.factor))
        return Solved(factor, found.columns, budget, float(found.gap), int(found.steps), float(found.scale))

    def _root(self, budget: float, floor_sd: float, shading: float, steps: int = 8) -> Solved:
        """The least scale by the secant method on log cost against log scale, which is nearly straight."""
        low, solved = 1.0, self.at_targets(1.0, floor_sd, shading)
        spent = floor_cost_upper(floor_sd, self.request)
        points = [(0.0, math.log(max(solved.cost - spent, 1e-300)))]
        goal = math.log(budget - spent)
        step = points[0][1] - goal
        best: Solved | None = None
        for _ in range(steps):
            x = points[-1][0] + min(max(step, -5.0), 5.0)
            low = math.exp(x)
            solved = self.at_targets(low, floor_sd, shading)
            if solved.cost <= budget and (best is None or low < best.scale):
                best = solved
            points.append((x, math.log(max(solved.cost - spent, 1e-300))))
            (x0, y0), (x1, y1) = points[-2:]
            slope = (y1 - y0) / (x1 - x0) if x1 != x0 else -1.0
            # Aim a little inside the budget, so that the last point can be used.
            step = (goal - 1e-4 - y1) / (slope if slope < -0.05 else -1.0)
            if best is not None and abs(step) < 1e-4:
                break
        return best if best is not None else solved


def own_directions(stack: FloorStack) -> Array:
    """Every floor's directions at unit length, (J, n, k): a start given as an array, so that one program serves all."""
    lengths = np.linalg.norm(stack.directions, axis=1, keepdims=True)
    return jnp.asarray(np.asarray(stack.directions) / np.where(lengths > 0.0, lengths, 1.0))


def _for_target(
    problem: FloorProblem,
    solver: Solver,
    check: Callable[[GaussianMechanism], Certificate],
    targets: np.ndarray,
    secrets: Sequence[AnySecret],
    request: Request,
) -> Design:
    floor_sd = request.floor_for(0.0)
    if request.floor_sd is None:
        floor_sd = request.floor_for(solver.at_targets(1.0, 0.0, 0.0, tolerance=1e-3).cost)
    for shading in SHADINGS:
        solved = solver.at_targets(1.0, floor_sd, shading)
        mechanism = GaussianMechanism(solved.factor, floor_sd, request.resolution)
        certificate = check(mechanism)
        reached = met(certificate, targets, request)
        if reached:
            break
    unmet = unmet_requirement(problem, mechanism)
    cost = cost_upper(mechanism.factor, square_bounds(floor_sd)[1], request.weights)
    lower = problem.cost_lower(solved.columns, 1.0, square_bounds(floor_sd)[0])
    stats = _stats(solver, solved, shading=shading)
    return finished(mechanism, certificate, cost, cost, lower, request, reached and unmet is None, stats)


def _for_budget(
    problem: FloorProblem,
    solver: Solver,
    check: Callable[[GaussianMechanism], Certificate],
    priors: Sequence[Prior],
    secrets: Sequence[AnySecret],
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
        unmet = unmet_requirement(problem, mechanism)
        if unmet is None:
            break
    certificate = check(mechanism)
    cost = cost_upper(factor, square_bounds(floor_sd)[1], request.weights)
    lower = epsilon_lower(
        lambda scale: problem.cost_lower(solved.columns, scale, square_bounds(floor_sd)[0]), budget, solved
    )
    usable = math.isfinite(certificate.epsilon) and unmet is None
    stats = _stats(solver, solved, budget=budget)
    return finished(mechanism, certificate, cost, certificate.epsilon, lower, request, usable, stats)


def epsilon_lower(cost_lower: Callable[[float], float], budget: float, solved: Solved) -> float:
    """The largest ε tried for which meeting it verifiably costs more than the budget: no noise within it does better.

    The targets at scale τ are those of ε = τ nats.
    """
    guess = solved.scale * (1.0 - max(solved.gap, 0.0))
    for share in (1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5):
        epsilon = guess * (1.0 - share)
        if epsilon > 0.0 and cost_lower(epsilon) > budget:
            return epsilon * (1.0 - 2.0**-50)
    return 0.0


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


def _stats(solver: Solver, solved: Solved, **more: Any) -> dict[str, Any]:
    reason = (
        "several floors have no closed form; ascent on the low-rank dual"
        if solver.small
        else f"more than {CLIP_FLOORS} floors or {CLIP_SIZE} coordinates: one lift of a rough start"
    )
    return {
        "method": solver.method,
        "reason": reason,
        "floors": len(solver.problem.floors) + len(solver.problem.fixed),
        "steps": solved.steps,
        "solver_gap": solved.gap,
        **more,
    }
