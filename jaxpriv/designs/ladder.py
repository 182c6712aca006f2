"""Many floors for any noise covariance: ascent on the low-rank dual, or for very many one lift of a rough start."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxpriv.designs.floor_problem import FloorProblem
from jaxpriv.designs.floor_stack import duals_in_units, factor_in_units, floor_stack
from jaxpriv.designs.majorant.budget import clip_budget
from jaxpriv.designs.majorant.clip import clip_majorant
from jaxpriv.designs.majorant.stack import FloorStack
from jaxpriv.designs.majorant.sweep import prior_shaped_starts, sweep_majorant, usual_starts
from jaxpriv.designs.request import EFFORTS, Request
from jaxpriv.designs.root import scale_for_budget
from jaxpriv.designs.solved import Solved


# Beyond these sizes the ascent's eigendecompositions and products no longer fit in an interactive wait.
CLIP_FLOORS, CLIP_SIZE = 600, 2000
SWEEP_WORK = 1.5e11  # operations of the ascent before a lift, at normal effort: about a minute


class MajorantSolver:
    """The ascent while it fits in an interactive wait; it takes floors of several times under the product bound too."""

    def __init__(self, problem: FloorProblem, request: Request):
        self.problem, self.request = problem, request
        self.small = len(problem.floors) + len(problem.fixed) <= CLIP_FLOORS and problem.size <= CLIP_SIZE
        self.method = "majorant" if self.small else "sweep"
        self.reason = (
            "several floors have no closed form; ascent on the low-rank dual"
            if self.small
            else f"more than {CLIP_FLOORS} floors or {CLIP_SIZE} coordinates: one lift of a rough start"
        )
        if request.bound == "product":
            self.reason += ", the diagonal of each secret's product bound renewed at every step"
        self.start: Any = None
        # Small problems take more steps in the same time; at 2,000 coordinates 1,000 steps are over a minute.
        size = problem.size
        self.steps = int(EFFORTS[request.effort] * (4.0 if size <= 500 else 1.0 if size <= 1000 else 0.25))

    def at_targets(self, scale: float, floor_sd: float, shading: float, tolerance: float | None = None) -> Solved:
        """See `Solver`."""
        problem, request = self.problem, self.request
        inner_floor = 0.0 if problem.weights is not None else floor_sd**2 / problem.unit
        stack = floor_stack(problem, scale, floor_sd**2, shading)
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
            found = sweep_majorant(
                stack,
                noise_floor=inner_floor,
                starts=starts,
                dual_steps=self._sweep_steps(),
                tolerance=0.5 * request.tolerance if tolerance is None else tolerance,
            )
        extra = 0.0 if problem.weights is None else floor_sd**2 * request.total_weight
        return Solved(
            factor_in_units(problem, np.asarray(found.factor)),
            duals_in_units(problem, np.asarray(found.columns)),
            float(found.value) * problem.unit + extra,
            float(found.gap),
            int(found.steps),
            scale,
        )

    def _sweep_steps(self) -> int:
        """Steps of the rough ascent: as many as `SWEEP_WORK` pays for. Each is three products of all columns with an
        n × n matrix and one eigendecomposition; they are what the gap of a sweep depends on."""
        n = self.problem.size
        width = sum(floor.cross.shape[1] for floor in self.problem.floors)
        work = n**2 * (6.0 * width + 25.0 * n)
        share = EFFORTS[self.request.effort] / EFFORTS["normal"]
        # Few different numbers, so that few programs are compiled.
        return 100 * 2 ** int(np.clip(np.log2(share * SWEEP_WORK / (100.0 * work)), 0.0, 5.0))

    def at_budget(self, budget: float, floor_sd: float, shading: float) -> Solved:
        """See `Solver`."""
        problem, request = self.problem, self.request
        if not self.small:
            return scale_for_budget(self, budget, floor_sd, shading, request)
        inner_floor = 0.0 if problem.weights is not None else floor_sd**2 / problem.unit
        extra = 0.0 if problem.weights is None else floor_sd**2 * request.total_weight
        stack = floor_stack(problem, 1.0, floor_sd**2, shading)
        found = clip_budget(
            stack,
            (budget - extra) / problem.unit,
            noise_floor=inner_floor,
            tolerance=0.5 * request.tolerance,
            max_steps=self.steps,
            start=own_directions(stack),
        )
        factor = factor_in_units(problem, np.asarray(found.factor))
        duals = duals_in_units(problem, np.asarray(found.columns))
        return Solved(factor, duals, budget, float(found.gap), int(found.steps), float(found.scale))


def own_directions(stack: FloorStack) -> Array:
    """Every floor's directions at unit length, (J, n, k): a start given as an array, so that one program serves all."""
    lengths = np.linalg.norm(stack.directions, axis=1, keepdims=True)
    return jnp.asarray(np.asarray(stack.directions) / np.where(lengths > 0.0, lengths, 1.0))
