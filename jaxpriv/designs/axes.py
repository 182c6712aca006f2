"""Designs for a trace whose coordinates are independent: one problem for each axis, one promise for all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import equinox as eqx

from jaxpriv.designs.design import design
from jaxpriv.designs.request import GAP_TOLERANCE
from jaxpriv.designs.result import Design, DesignResult
from jaxpriv.errors import InfeasibleError, InputError
from jaxpriv.floors.requirements import Requirement
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret
from jaxpriv.secrets.secret import EveryPoint


_STEPS = 12


class AxesDesign(eqx.Module):
    """One design for each axis, with a common promise.

    Under the ball bound the loss of a secret whose coordinates are independent is the largest of its coordinates'
    losses, so ε is the largest over the axes and the noise has no correlation between axes.

    Attributes:
        axes: one `Design` for each axis.
        epsilon: certified, the largest over axes, secrets and priors, in nats.
        cost: verified total noise power over all axes, in squared units.
        lower_bound, gap: of the cost for a target and of epsilon for a budget, as in `Design`.
        result: the worst of the axes' results.
    """

    axes: tuple[Design, ...]
    epsilon: float
    cost: float
    lower_bound: float
    gap: float
    result: DesignResult = eqx.field(static=True)
    stats: dict[str, Any] = eqx.field(static=True)


def design_axes(
    priors: Sequence[Prior | Sequence[Prior]],
    secret: AnySecret | EveryPoint | Sequence[AnySecret | EveryPoint],
    *,
    epsilon: float | Sequence[float] | None = None,
    budget: float | None = None,
    uncertainty: float | None = None,
    order: float = 2.0,
    requirements: Sequence[Requirement] = (),
    floor_sd: float | None = None,
    resolution: float = 0.0,
    tolerance: float = GAP_TOLERANCE,
    effort: Literal["low", "normal", "high"] = "normal",
) -> AxesDesign:
    """`design` for independent axes: `priors` has one prior, or a list of priors, for each axis.

    The axes' priors are used side by side, not crossed: each axis must meet the promise under each of its own. The
    secrets are about the times, the same on every axis. `budget` is the total over all axes, shared so that all axes
    reach a common ε; the certified lower bound on ε is for the whole trace.

    Raises:
        InputError, InfeasibleError, CertificateError: as `design`.
    """
    axes = [list(axis) if isinstance(axis, Sequence) else [axis] for axis in priors]
    if not axes:
        raise InputError("no axis was given.")
    options = {
        "order": order,
        "requirements": requirements,
        "resolution": resolution,
        "tolerance": tolerance,
        "effort": effort,
    }
    if budget is None:
        designs = _each(axes, secret, epsilon=epsilon, uncertainty=uncertainty, floor_sd=floor_sd, **options)
        cost = sum(one.cost for one in designs) * (1.0 + 2.0**-50)
        return _together(designs, cost, cost, sum(one.lower_bound for one in designs) * (1.0 - 2.0**-50), {})
    if epsilon is not None or uncertainty is not None:
        raise InputError("give exactly one of epsilon, budget and uncertainty.")
    if not (math.isfinite(budget) and budget > 0.0):
        raise InputError(f"budget is {budget:g}; expected a positive total noise variance in squared units.")
    return _for_budget(axes, secret, budget, floor_sd, options)


def _each(axes: list[list[Prior]], secret: Any, **options: Any) -> tuple[Design, ...]:
    solved: list[tuple[list[Prior], Design]] = []
    for axis in axes:
        # Equal priors have equal designs.
        known = next((one for other, one in solved if _same(other, axis)), None)
        solved.append((axis, design(axis, secret, **options) if known is None else known))
    return tuple(one for _, one in solved)


def _same(first: list[Prior], second: list[Prior]) -> bool:
    return len(first) == len(second) and all(
        a is b or eqx.tree_equal(a, b) is True for a, b in zip(first, second, strict=True)
    )


def _for_budget(
    axes: list[list[Prior]], secret: Any, budget: float, floor_sd: float | None, options: dict[str, Any]
) -> AxesDesign:
    """The ε at which the axes' least costs add up to the budget, by the secant method in logarithms."""
    if floor_sd is None:
        # One floor for all axes, as if the budget were spread evenly.
        n = sum(axis[0].size for axis in axes)
        floor_sd = max(2.0 * float(options["resolution"]), math.sqrt(1e-8 * budget / n))
    spent = floor_sd**2 * sum(axis[0].size for axis in axes)
    if not spent < budget:
        raise InfeasibleError(
            f"the budget {budget:.6g} does not exceed the {spent:.6g} that a floor of {floor_sd:.4g} on every "
            "coordinate costs; raise the budget above that, or lower floor_sd or resolution.",
            smallest_feasible=spent,
        )

    def at(epsilon: float) -> tuple[float, tuple[Design, ...]]:
        designs = _each(axes, secret, epsilon=epsilon, floor_sd=floor_sd, **options)
        return sum(one.cost for one in designs) * (1.0 + 2.0**-50), designs

    goal = math.log(budget - spent)
    share = [design(axis, secret, budget=budget / len(axes), floor_sd=floor_sd, **options).epsilon for axis in axes]
    # With an even split some axis does better than another; the common ε lies between.
    x = math.log(math.sqrt(min(share) * max(share)))
    points: list[tuple[float, float]] = []
    best: tuple[float, float, tuple[Design, ...]] | None = None
    for _ in range(_STEPS):
        cost, designs = at(math.exp(x))
        if cost <= budget and (best is None or x < best[0]):
            best = (x, cost, designs)
        points.append((x, math.log(max(cost - spent, 1e-300))))
        slope = -1.0
        if len(points) > 1 and points[-1][0] != points[-2][0]:
            slope = min((points[-1][1] - points[-2][1]) / (points[-1][0] - points[-2][0]), -0.05)
        # Aim inside the budget by a tenth of the tolerance, so that the last point can be used.
        step = (goal - 0.1 * float(options["tolerance"]) - points[-1][1]) / slope
        if best is not None and best[0] == x and abs(step) <= float(options["tolerance"]):
            break
        x += min(max(step, -3.0), 3.0)
    if best is None:
        raise InfeasibleError(
            "no common ε within the budget was found in the allowed number of steps: the fixed requirements use it up.",
            smallest_feasible=cost,
        )
    _, cost, designs = best
    epsilon = max(one.epsilon for one in designs)
    lower = _epsilon_lower(axes, secret, budget, floor_sd, designs, epsilon, options)
    return _together(designs, cost, epsilon, lower, {"budget": budget})


def _epsilon_lower(axes, secret, budget, floor_sd, designs, epsilon, options) -> float:
    """An ε whose verified least costs on the axes add up to more than the budget: nothing within it does as well."""
    for share in (1e-6, 3e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1):
        tried = epsilon * (1.0 - share)
        below = _each(axes, secret, epsilon=tried, floor_sd=floor_sd, **options)
        if sum(one.lower_bound for one in below) * (1.0 - 2.0**-50) > budget:
            return tried
    return 0.0


def _together(
    designs: tuple[Design, ...], cost: float, achieved: float, lower: float, stats: dict[str, Any]
) -> AxesDesign:
    gap = (achieved - lower) / achieved if math.isfinite(achieved) and achieved > 0.0 else 1.0
    worst = max((one.result for one in designs), key=list(DesignResult).index)
    if worst is DesignResult.optimal and gap > 10 * GAP_TOLERANCE:
        worst = DesignResult.suboptimal
    stats = {**designs[0].stats, **stats}
    return AxesDesign(designs, max(one.epsilon for one in designs), cost, lower, gap, worst, stats)
