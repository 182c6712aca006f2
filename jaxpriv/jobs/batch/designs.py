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
from jaxpriv.jobs.batch.placing import Placed
from jaxpriv.jobs.batch.priors import TOGETHER
from jaxpriv.jobs.noise import grid_exponent
from jaxpriv.jobs.prior_sources import PriorSource
from jaxpriv.jobs.target import Target
from jaxpriv.priors.process import ProcessPrior
from jaxpriv.secrets.secret import Secret


_FLOOR_SHARE = 1e-4  # of the noise's deviation, where the resolution does not ask for more


@dataclass(frozen=True)
class Prepared:
    """A trace as the design needs it: positions and secret, and the priors of both coordinates."""

    placed: Placed
    prior: PriorSource = field(repr=False)
    priors: tuple[list[ProcessPrior], list[ProcessPrior]] = field(repr=False)

    @classmethod
    def of(cls, placed: Placed, prior: PriorSource) -> Prepared:
        """Evaluate nothing yet: build the priors at the times of the trace."""
        seconds = placed.trace.seconds
        return cls(placed, prior, (prior.axes[0].priors(seconds), prior.axes[1].priors(seconds)))

    @property
    def points(self) -> int:
        """Number of distinct instants."""
        return len(self.placed.metres)


@dataclass(frozen=True)
class AxisDesign:
    """The noise of one coordinate, in metres, and what is certified of it."""

    factor: np.ndarray = field(repr=False)
    floor_sd: float
    epsilon: float
    cost: float
    lower_bound: float
    gap: float


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
        together = _is_basic(prepared[i].placed.secret)
        groups.setdefault((together, prior_bucket(len(prepared[i].priors[axis]))), []).append((i, axis))
    made: dict[tuple[int, int], AxisDesign | str] = {}
    for (together, _), group in groups.items():
        for first in range(0, len(group), TOGETHER):
            few = group[first : first + TOGETHER]
            filled = few + few[-1:] * (TOGETHER - len(few)) if together else few
            goals: dict[str, Any] = (
                {"epsilon": target.epsilon}
                if per_point is None
                else {"budget": [per_point * prepared[i].points for i, _ in filled]}
            )
            try:
                batch = design_batch(
                    [prepared[i].priors[axis] for i, axis in filled],
                    [prepared[i].placed.secret for i, _ in filled],
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


def _is_basic(secret: Any) -> bool:
    return isinstance(secret, Secret) and secret.size == 1


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
