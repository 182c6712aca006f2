"""The designs of the traces of one part, all of one shape whatever their number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxpriv.designs.batch.buckets import prior_bucket
from jaxpriv.designs.batch.verb import design_batch
from jaxpriv.errors import InfeasibleError, InputError
from jaxpriv.jobs.batch_input import InputTrace
from jaxpriv.jobs.noise import grid_exponent
from jaxpriv.jobs.requests import PriorRequest, SecretRequest
from jaxpriv.jobs.target import Target
from jaxpriv.secrets.secret import Secret
from jaxpriv.traces.projection import STRETCH, LocalPlane, public_origin


# Problems that are designed at once. Fewer are filled up with copies: the programs, and so the last digits of a design,
# do not depend on what else is in its part.
TOGETHER = 64
_FLOOR_SHARE = 1e-4  # of the noise's deviation, where the resolution does not ask for more


@dataclass(frozen=True)
class Prepared:
    """A trace as the design needs it: positions (n, 2) in metres, the priors of both coordinates, and the secret."""

    source: InputTrace
    plane: LocalPlane
    metres: np.ndarray = field(repr=False)
    priors: tuple[list[Any], list[Any]] = field(repr=False)
    secret: Any
    prior: str
    estimate: bool

    @property
    def time_us(self) -> np.ndarray:
        """Distinct instants (n,), microseconds since 1970."""
        assert self.source.trace is not None
        return self.source.trace.time_us


@dataclass(frozen=True)
class AxisDesign:
    """The noise of one coordinate, in metres, and what is certified of it."""

    factor: np.ndarray = field(repr=False)
    floor_sd: float
    epsilon: float
    cost: float
    lower_bound: float
    gap: float


def prepare(one: InputTrace, target: Target, prior: PriorRequest, secrets: SecretRequest) -> Prepared:
    """Bring a trace to metres, find its secret and its priors. Raises `InputError` for what cannot be used."""
    trace = one.trace
    if trace is None:
        raise InputError(one.reason)
    if trace.n_points < 2:
        raise InputError("the trace has 1 distinct time; at least 2 are needed")
    if trace.step_m > target.resolution_m * (1 + 1e-6):
        raise InputError(
            f"the positions are rounded to about {trace.step_m:.2g} m, coarser than the declared resolution of "
            f"{target.resolution_m:g} m; pass a larger --resolution"
        )
    plane = public_origin(trace.latitude, trace.longitude)
    rows = plane.to_metres(trace.latitude, trace.longitude)
    plane.check_extent(rows)
    metres = trace.mean_by_point(rows)
    secret: Any = Secret((trace.n_points // 2,), target.radius_m * STRETCH)
    if secrets != SecretRequest():
        secret = secrets.on(trace).on_axis(target.radius_m * STRETCH)
        if isinstance(secret, list) and len(secret) == 1:
            secret = secret[0]
    source = prior.on(trace, metres, target)
    axes = source.axes[0].priors(trace.seconds), source.axes[1].priors(trace.seconds)
    return Prepared(one, plane, metres, axes, secret, source.source, source.estimate)


def check_target(target: Target) -> None:
    """Raise `InfeasibleError` for a budget that the floor and the output grid alone use up."""
    _options(target)


def design_prepared(
    prepared: Sequence[Prepared], target: Target, memory_limit: float
) -> list[tuple[AxisDesign, AxisDesign] | str]:
    """The noise of east and north of every trace, or the reason why there is none.

    Each coordinate has a design of its own, and an error to spend is shared by both equally. Raises as `check_target`.
    """
    options, per_point = _options(target)
    problems = [(i, axis) for i in range(len(prepared)) for axis in (0, 1)]
    groups: dict[tuple[bool, int], list[tuple[int, int]]] = {}
    for i, axis in problems:
        together = isinstance(prepared[i].secret, Secret) and prepared[i].secret.size == 1
        groups.setdefault((together, prior_bucket(len(prepared[i].priors[axis]))), []).append((i, axis))
    made: dict[tuple[int, int], AxisDesign | str] = {}
    for (together, _), group in groups.items():
        for first in range(0, len(group), TOGETHER):
            few = group[first : first + TOGETHER]
            filled = few + few[-1:] * (TOGETHER - len(few)) if together else few
            goals: dict[str, Any] = (
                {"epsilon": target.epsilon}
                if per_point is None
                else {"budget": [per_point * len(prepared[i].time_us) for i, _ in filled]}
            )
            try:
                batch = design_batch(
                    [prepared[i].priors[axis] for i, axis in filled],
                    [prepared[i].secret for i, _ in filled],
                    order=target.order,
                    resolution=target.resolution_m,
                    memory_limit=memory_limit,
                    **options,
                    **goals,
                )
            except InputError as error:  # not even one of them fits into the memory
                made |= {one: str(error) for one in few}
                continue
            for k, one in enumerate(few):
                made[one] = _axis(batch, k, target)
    return [_pair(made[i, 0], made[i, 1]) for i in range(len(prepared))]


def _pair(east: AxisDesign | str, north: AxisDesign | str) -> tuple[AxisDesign, AxisDesign] | str:
    if isinstance(east, str):
        return east
    return north if isinstance(north, str) else (east, north)


def _axis(batch: Any, k: int, target: Target) -> AxisDesign | str:
    factor, epsilon = batch.factors[k], float(batch.epsilon[k])
    if factor is None:
        return str(batch.refusals.get(k, "no noise was found that meets the target"))
    if not math.isfinite(epsilon) or (target.epsilon is not None and epsilon > target.epsilon):
        return "the certified epsilon of the design is above the one asked for"
    numbers = (float(getattr(batch, name)[k]) for name in ("cost", "lower_bound", "gap"))
    return AxisDesign(np.asarray(factor, np.float64), float(batch.floor_sd[k]), epsilon, *numbers)


def _options(target: Target) -> tuple[dict[str, Any], float | None]:
    """What `design_batch` is told, and the power for each point and coordinate where an error is to be spent."""
    if target.budget_m is None:
        return {}, None
    floor_sd = max(2.0 * target.resolution_m, _FLOOR_SHARE * target.budget_m / math.sqrt(2.0))
    rounding = 4.0 ** grid_exponent(floor_sd) / 12
    smallest = math.sqrt(2.0 * (floor_sd**2 + rounding))
    if not target.budget_m > smallest:
        raise InfeasibleError(
            f"--budget {target.budget_m:g}m is not above the {smallest:.3g} m that the noise floor and the output grid "
            "alone cost; ask for more than that",
            smallest_feasible=smallest,
        )
    return {"floor_sd": floor_sd}, (target.budget_m**2 / 2 - rounding) * (1.0 - 1e-12)
