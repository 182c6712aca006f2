"""The noise for a trace, made from its times, secrets and priors, without its positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxpriv.designs.axes import AxesDesign, design_axes
from jaxpriv.designs.long.dispatch import without_matrix
from jaxpriv.errors import CertificateError, InfeasibleError, InputError
from jaxpriv.jobs.axis import Axis
from jaxpriv.jobs.independent import Comparison, compare
from jaxpriv.jobs.noise import grid_exponent
from jaxpriv.jobs.prior_sources import PriorSource
from jaxpriv.jobs.secret_sources import ChosenSecrets
from jaxpriv.jobs.target import Target
from jaxpriv.priors.process import ProcessPrior
from jaxpriv.priors.protocol import Prior
from jaxpriv.report.rounding import given, significant
from jaxpriv.secrets.collection import as_secrets
from jaxpriv.secrets.secret import EveryPoint, Secret
from jaxpriv.secrets.unsampled import UnsampledSecret
from jaxpriv.traces.projection import STRETCH


Wanted = list[Secret | UnsampledSecret] | EveryPoint
_FLOOR_SHARE = 1e-4  # of the noise's deviation, where the resolution does not ask for more


@dataclass(frozen=True)
class Noise:
    """The designs of both coordinates and the comparison with independent noise. Equal coordinates are one object.

    `lower_bound` and `gap` are of what was minimised: the total variance in m², or for a budget ε.
    """

    east: Axis
    north: Axis
    cost: float
    lower_bound: float
    gap: float
    comparison: Comparison

    @property
    def grid_exponent(self) -> int:
        """Exponent of the step of the output grid in metres."""
        return grid_exponent(min(float(one.design.mechanism.floor_sd) for one in (self.east, self.north)))

    @property
    def rms_m(self) -> float:
        """Displacement of a point, root mean square over the trace, in metres; both coordinates and the grid count."""
        return math.sqrt(self.cost / self.east.size + 4.0**self.grid_exponent / 6)


def design_noise(seconds: np.ndarray, secrets: ChosenSecrets, target: Target, source: PriorSource) -> Noise:
    """Design the least noise for a goal, or the least loss for a budget, and compare it with independent noise.

    `seconds` (n,) since the first fix. Coordinates are independent under the prior, and the reported ε is the larger
    one (Theorem 3.4 of Meehan and Chaudhuri, AISTATS 2021). Raises as `design_axes` does; the smallest feasible value
    is said in metres.
    """
    east = source.axes[0].priors(seconds)
    north = east if source.axes[1].choices == source.axes[0].choices else source.axes[1].priors(seconds)
    wanted = secrets.on_axis(target.radius_m * STRETCH)
    listed = as_secrets(wanted, east[0])
    made = design_for([east, north], wanted, listed, target)
    first = Axis.of(made.axes[0], east, listed)
    second = first if north is east else Axis.of(made.axes[1], north, listed)
    nothing = Comparison(None, None, ())
    noise = Noise(first, second, made.cost, made.lower_bound, made.gap, nothing)
    compared = [east] if north is east else [east, north]
    comparison = compare(compared, listed, made.epsilon, noise.rms_m**2 / 2, target.order)
    return Noise(first, second, made.cost, made.lower_bound, made.gap, comparison)


def design_for(axes: list[list[ProcessPrior]], wanted: Wanted, listed: Sequence[Any], target: Target) -> AxesDesign:
    """Design one mechanism for each axis, `wanted` being what `design` takes and `listed` the same one by one.

    Raises as `design_axes` does; the smallest feasible value is said in the target's unit.
    """
    made = _design(axes, wanted, listed, target)
    if not math.isfinite(made.epsilon) or (target.epsilon is not None and made.epsilon > target.epsilon):
        raise CertificateError("the certified epsilon of the design is above the one asked for; nothing was released")
    return made


def _design(axes: Sequence[Sequence[Prior]], wanted: Wanted, listed: Sequence[Any], target: Target) -> AxesDesign:
    n, dims = axes[0][0].size, len(axes)
    options = {"order": target.order, "resolution": target.resolution_m, "effort": target.effort}
    if target.effort != "high" and target.uncertainty_m is None:
        quick = [without_matrix(axis, wanted) for axis in axes]
        axes = [axis if found is None else found for axis, found in zip(axes, quick, strict=True)]
    if target.epsilon is not None:
        return design_axes(axes, wanted, epsilon=target.epsilon, **options)
    if target.uncertainty_m is not None:
        _check_uncertainty(axes, listed, target)
        return design_axes(axes, wanted, uncertainty=target.uncertainty_m, **options)
    assert target.budget_m is not None
    floor_sd = max(2.0 * target.resolution_m, _FLOOR_SHARE * target.budget_m / math.sqrt(dims))
    rounding = dims * 4.0 ** grid_exponent(floor_sd) / 12
    smallest = math.sqrt(dims * floor_sd**2 + rounding)
    if not target.budget_m > smallest:
        raise InfeasibleError(
            f"--budget {given(target.budget_m)}{target.unit} is not above the "
            f"{target.said(significant(smallest, 3, 'up'))} that the noise floor and the output grid alone cost (twice "
            f"the resolution of {target.said(given(target.resolution_m))} at every point); ask for more than that",
            smallest_feasible=smallest,
        )
    total = n * (target.budget_m**2 - rounding) * (1.0 - 1e-12)
    return design_axes(axes, wanted, budget=total, floor_sd=floor_sd, **options)


def _check_uncertainty(axes: Sequence[Sequence[Prior]], listed: Sequence[Any], target: Target) -> None:
    """What a prior knows without any release, no noise can hide."""
    assert target.uncertainty_m is not None
    if any(secret.size > 1 for secret in listed):
        raise InputError("--uncertainty is for fixes that are protected each by itself; leave --compound out")
    least = math.inf
    for prior in (prior for axis in axes for prior in axis):
        # Priors are stationary: one variance for all fixes, and one for all times between fixes.
        for secret in {type(one): one for one in listed}.values():
            least = min(least, math.sqrt(float(np.asarray(secret.joint(prior)[1])[0, 0])))
    if not target.uncertainty_m < least:
        raise InfeasibleError(
            f"--uncertainty {given(target.uncertainty_m)}{target.unit}: under a prior of the set an attacker knows the "
            f"{'place' if target.unit else 'value'} to ±{target.said(significant(least, 3, 'down'))} before any "
            "release, and noise cannot make that more; ask for less",
            smallest_feasible=least,
        )
