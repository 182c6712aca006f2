"""One chunk of problems of one length: solved on the devices, certified on the host, and put into a `BatchDesign`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxpriv.designs.batch.alone import better_of, designed_alone
from jaxpriv.designs.batch.certifying import Certified, certify_chunk, lower_bounds, meet, tighten
from jaxpriv.designs.batch.chunk import Chunk
from jaxpriv.designs.batch.closed_form import for_budget, for_target
from jaxpriv.designs.batch.devices import Devices, compilations
from jaxpriv.designs.batch.interior import DIRECTIONS
from jaxpriv.designs.batch.problems import Problem, Refusal
from jaxpriv.designs.batch.request import BatchRequest
from jaxpriv.designs.batch.result import BatchDesign
from jaxpriv.designs.batch.robust import gaps, robust_designs
from jaxpriv.designs.design import design
from jaxpriv.designs.finish import SHADINGS
from jaxpriv.designs.result import Design, DesignResult
from jaxpriv.errors import JaxprivError


_HARMLESS = 1e-2  # share of a gap that the width of a certificate may have
_LEFT_OPEN = 1e-2  # gap above which a problem of several priors is designed one by one as well


def designed_together(
    problems: Sequence[Problem], bucket: int, rows: int, request: BatchRequest, machine: Devices
) -> BatchDesign:
    """Design and certify problems of one bucket; `rows` is the compiled number of them, at least as many."""
    before = compilations()
    chunk = Chunk.of(problems, bucket, rows, request.order)
    if request.kind == "budget":
        floor_sd = request.floors(chunk.goal, chunk.sizes)
        # Kept back for the rounding of the check that the cost is within the budget.
        rounding = (DIRECTIONS * bucket + 64) * 2.0**-52
        room = chunk.goal * (1 - rounding) - chunk.sizes * floor_sd * floor_sd * (1 + rounding)
    else:
        power, columns = _least_powers(chunk, machine)
        floor_sd = request.floors(power / chunk.unit**2, chunk.sizes)
        room = np.maximum(power / chunk.unit**2 - floor_sd * floor_sd, 0.0)
    feasible = room > 0.0 if request.kind == "budget" else np.isfinite(room)
    room = np.where(feasible, room, 1.0 / chunk.unit**2) * chunk.unit**2
    counts = {"chunks": 1}
    if chunk.priors > 1:
        target = None if request.kind == "budget" else _targets(chunk) * (1 - SHADINGS[0])
        certified, again = robust_designs(chunk, machine, floor_sd, room, target, feasible)
        counts["designed again"] = again
    else:
        if request.kind == "budget":
            shifted = room + (floor_sd * chunk.unit) ** 2
            columns = _run(chunk, machine, for_budget, chunk.covariance[:, 0], chunk.position, shifted)[1]
        factor = columns[:, :, None] * np.sqrt(room)[:, None, None]
        factor = np.where(feasible[:, None, None] & np.isfinite(factor), factor, 0.0) * chunk.mask[:, :, None]
        certified = certify_chunk(chunk, factor, floor_sd)
        if request.kind == "epsilon":
            meet(chunk, certified)
        certified.lower = lower_bounds(chunk, certified, certified.bounds.trial, request.kind)
    if request.kind == "budget":
        # Where the gap is of the solver's making, a certificate that is wider than usual changes nothing.
        with np.errstate(all="ignore"):
            gap = 1.0 - certified.lower / certified.epsilon
        wide = np.any(certified.bounds.loose, axis=1) & ~(certified.bounds.width <= _HARMLESS * gap)
        tighten(chunk, certified, wide)
    alone: dict[int, Design] = {}
    if chunk.priors > 1:
        enough = gaps(chunk, certified, request.kind) <= max(_LEFT_OPEN, request.tolerance)
        open_ = np.flatnonzero(feasible & ~enough).tolist()
        made = designed_alone([problems[i] for i in open_], floor_sd[open_], request)
        counts["designed one by one"] = len(made)
        for i, one in zip(open_, made, strict=True):
            if one is not None and better_of(certified, i, one, request, float(chunk.goal[i])):
                alone[i] = one
    counts["compilations"] = compilations() - before
    return _assembled(problems, chunk, certified, alone, feasible, request, counts)


def _targets(chunk: Chunk) -> np.ndarray:
    return chunk.goal / chunk.scale / chunk.unit**2


def _least_powers(chunk: Chunk, machine: Devices) -> tuple[np.ndarray, np.ndarray]:
    """The least noise without a floor under the first prior alone, in the chunk's units: its power and direction."""
    asked = _targets(chunk) * (1.0 - SHADINGS[0])
    power, columns = _run(chunk, machine, for_target, chunk.covariance[:, 0], chunk.position, asked)
    return power, columns


def _run(chunk: Chunk, machine: Devices, program: Any, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.asarray(one)[: chunk.count] for one in machine(program, *map(chunk.padded, arrays)))


def _assembled(
    problems: Sequence[Problem],
    chunk: Chunk,
    certified: Certified,
    alone: dict[int, Design],
    feasible: np.ndarray,
    request: BatchRequest,
    counts: dict[str, int],
) -> BatchDesign:
    factors = [certified.factor[i, : problem.size] / chunk.unit[i] for i, problem in enumerate(problems)]
    counted = [len(one.priors) for one in problems]
    losses = [row[None, :p] for row, p in zip(certified.losses, counted, strict=True)]
    below = [row[None, :p] for row, p in zip(certified.losses_lower, counted, strict=True)]
    for i, one in alone.items():
        factors[i] = np.asarray(one.mechanism.factor)
        certified.epsilon[i], certified.cost[i] = one.epsilon, one.cost
        losses[i], below[i] = one.certificate.losses, one.certificate.losses_lower
    achieved = certified.cost if request.kind == "epsilon" else certified.epsilon
    met = np.isfinite(certified.epsilon)
    if request.kind == "epsilon":
        met &= certified.epsilon <= chunk.goal
    else:
        met &= certified.cost <= chunk.goal
    with np.errstate(all="ignore"):
        gap = np.where(np.isfinite(achieved) & (achieved > 0), (achieved - certified.lower) / achieved, 1.0)
    if np.any(met & feasible & (gap < 0)):
        raise AssertionError("a lower bound exceeds what was achieved: a bound is wrong.")
    gap = np.where(met, gap, np.clip(gap, 0.0, 1.0))
    results = [_result(bool(met[i]), bool(feasible[i]), float(gap[i]), request) for i in range(chunk.count)]
    counts = {**counts, "certified one by one": int(np.sum(certified.single))}
    return BatchDesign(
        np.array([problem.position for problem in problems]),
        chunk.sizes,
        tuple(factors),
        certified.floor_sd,
        certified.epsilon,
        certified.cost,
        np.where(feasible, certified.lower, 0.0),
        np.where(feasible, gap, 1.0),
        tuple(results),
        tuple(losses),
        tuple(below),
        request.order,
        request.resolution,
        {},
        counts,
        tuple(problems),
    )


def _result(met: bool, feasible: bool, gap: float, request: BatchRequest) -> DesignResult:
    if not feasible:
        return DesignResult.budget_infeasible if request.kind == "budget" else DesignResult.target_not_certified
    if not met:
        return DesignResult.not_certified if request.kind == "budget" else DesignResult.target_not_certified
    return DesignResult.optimal if gap <= request.tolerance else DesignResult.suboptimal


def designed_one_by_one(problems: Sequence[Problem], request: BatchRequest) -> BatchDesign:
    """`jaxpriv.design` for each problem; what it refuses is refused here with its words."""
    parts: list[Any] = []
    for problem in problems:
        priors = problem.priors[0] if len(problem.priors) == 1 else list(problem.priors)
        try:
            parts.append(
                design(
                    priors,
                    problem.secret,
                    epsilon=problem.goal if request.kind == "epsilon" else None,
                    budget=problem.goal if request.kind == "budget" else None,
                    order=request.order,
                    floor_sd=request.floor_sd,
                    resolution=request.resolution,
                    tolerance=request.tolerance,
                    throw=False,
                )
            )
        except JaxprivError as error:
            parts.append(Refusal(problem.position, str(error)))
    bad = [part for part in parts if isinstance(part, Refusal)]
    good = [None if isinstance(part, Refusal) else part for part in parts]

    def numbers(read: Any) -> np.ndarray:
        return np.array([np.nan if one is None else float(read(one)) for one in good])

    return BatchDesign(
        np.array([problem.position for problem in problems]),
        np.array([0 if one is None else one.mechanism.size for one in good]),
        tuple(None if one is None else np.asarray(one.mechanism.factor) for one in good),
        numbers(lambda one: one.mechanism.floor_sd),
        numbers(lambda one: one.epsilon),
        numbers(lambda one: one.cost),
        numbers(lambda one: one.lower_bound),
        numbers(lambda one: one.gap),
        tuple(None if one is None else one.result for one in good),
        tuple(None if one is None else one.certificate.losses for one in good),
        tuple(None if one is None else one.certificate.losses_lower for one in good),
        request.order,
        request.resolution,
        {one.position: one.reason for one in bad},
        {"designed one by one": len(problems) - len(bad)},
        tuple(problems),
    )


def refused(refusals: Sequence[Refusal], request: BatchRequest) -> BatchDesign:
    """A part that holds nothing but refusals."""
    m = len(refusals)
    nothing = np.full(m, np.nan)
    return BatchDesign(
        np.array([one.position for one in refusals]),
        np.zeros(m, int),
        (None,) * m,
        nothing.copy(),
        nothing.copy(),
        nothing.copy(),
        nothing.copy(),
        nothing.copy(),
        (None,) * m,
        (None,) * m,
        (None,) * m,
        request.order,
        request.resolution,
        {one.position: one.reason for one in refusals},
        {},
        (None,) * m,
    )
