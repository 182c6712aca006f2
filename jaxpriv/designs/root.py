"""A budget problem by a root search over target problems, for solvers that know targets only."""

from __future__ import annotations

import math

from jaxpriv.designs.finish import floor_cost_upper
from jaxpriv.designs.request import Request
from jaxpriv.designs.solved import Solved, Solver


def scale_for_budget(
    solver: Solver,
    budget: float,
    floor_sd: float,
    shading: float,
    request: Request,
    *,
    steps: int = 8,
    tolerance: float = 1e-4,
) -> Solved:
    """The least scale by the secant method on log cost against log scale, which is nearly straight."""
    solved = solver.at_targets(1.0, floor_sd, shading)
    spent = floor_cost_upper(floor_sd, request)
    points = [(0.0, math.log(max(solved.cost - spent, 1e-300)))]
    goal = math.log(budget - spent)
    step = points[0][1] - goal
    best: Solved | None = None
    for _ in range(steps):
        x = points[-1][0] + min(max(step, -5.0), 5.0)
        scale = math.exp(x)
        solved = solver.at_targets(scale, floor_sd, shading)
        if solved.cost <= budget and (best is None or scale < best.scale):
            best = solved
        points.append((x, math.log(max(solved.cost - spent, 1e-300))))
        (x0, y0), (x1, y1) = points[-2:]
        slope = (y1 - y0) / (x1 - x0) if x1 != x0 else -1.0
        # Aim a little inside the budget, so that the last point can be used.
        step = (goal - tolerance - y1) / (slope if slope < -0.05 else -1.0)
        if best is not None and abs(step) < tolerance:
            break
    return best if best is not None else solved
