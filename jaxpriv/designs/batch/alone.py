"""The few problems of a chunk that its solver left open: designed one by one, and the better of both kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxpriv.designs.batch.certifying import Certified
from jaxpriv.designs.batch.problems import Problem
from jaxpriv.designs.batch.request import BatchRequest
from jaxpriv.designs.design import design
from jaxpriv.designs.result import Design
from jaxpriv.errors import JaxprivError


def designed_alone(problems: Sequence[Problem], floor_sd: np.ndarray, request: BatchRequest) -> list[Design | None]:
    """`design` with high effort and the floors (m,) of the batch; None where it refuses."""
    made: list[Design | None] = []
    for problem, floor in zip(problems, floor_sd, strict=True):
        try:
            made.append(
                design(
                    list(problem.priors),
                    problem.secret,
                    epsilon=problem.goal if request.kind == "epsilon" else None,
                    budget=problem.goal if request.kind == "budget" else None,
                    order=request.order,
                    floor_sd=float(floor),
                    resolution=request.resolution,
                    tolerance=request.tolerance,
                    effort="high",
                    throw=False,
                )
            )
        except JaxprivError:
            made.append(None)
    return made


def better_of(certified: Certified, i: int, one: Design, request: BatchRequest, goal: float) -> bool:
    """Take the better lower bound of problem i; and say whether the noise of `one` is the better one."""
    if np.isfinite(one.lower_bound):
        certified.lower[i] = np.fmax(certified.lower[i], one.lower_bound)
    if request.kind == "budget":
        return bool(one.cost <= goal and not certified.epsilon[i] <= one.epsilon)
    return bool(one.epsilon <= goal and not (certified.epsilon[i] <= goal and certified.cost[i] <= one.cost))
