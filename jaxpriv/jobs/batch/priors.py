"""The priors of the traces of one part: fitted to all of them together where that can be done."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jaxpriv.errors import JaxprivError
from jaxpriv.fitting.batch import fit_batch
from jaxpriv.fitting.batch_likelihood import FAMILIES
from jaxpriv.fitting.checks import limits, noise_bound, refuse_unfit
from jaxpriv.fitting.fit import Fit
from jaxpriv.fitting.robust import FAMILIES_DEFAULT
from jaxpriv.jobs.batch.placing import Placed
from jaxpriv.jobs.prior_from_file import FIT_KERNELS
from jaxpriv.jobs.prior_sources import ON_ITSELF as ON_ITSELF, PriorSource, axis_of as axis_of, fits_of_trace
from jaxpriv.jobs.requests import PriorRequest
from jaxpriv.jobs.target import Target


# Coordinates that are fitted at once. Fewer are filled up with copies: the programs, and so the last digits of a fit,
# do not depend on what else is in its part.
TOGETHER = 64
UNITS = ("m", "s")
# Points of a trace; what is in memory for the derivatives of so many likelihoods grows with it.
_LONGEST = 1024


def find_part_priors(placed: Sequence[Placed], request: PriorRequest, target: Target) -> list[PriorSource | str]:
    """The priors of every trace, or the reason why there are none.

    What `PriorRequest.on` gives for each of them; where priors are fitted to the traces themselves, without the check
    on hidden windows, which changes none. Matérn kernels are fitted to all traces together by `fit_batch`; a trace for
    which that does not end at an optimum is fitted by itself. The priors of a trace depend on nothing else in the part,
    bit for bit, as long as all of them have about one length.
    """
    kernels = request.kernels or FAMILIES_DEFAULT
    which = request.which or "default"
    on_themselves = request == PriorRequest(which=request.which, kernels=request.kernels)
    if not (on_themselves and set(kernels) <= set(FIT_KERNELS) and len(set(kernels)) == len(kernels)):
        return [_or_reason(lambda one=one: request.on(one.trace, one.metres, target)) for one in placed]
    able = [i for i, one in enumerate(placed) if len(one.metres) <= _LONGEST and _fittable(one)]
    fitted = _fits(placed, able, kernels) if set(kernels) <= set(FAMILIES) else {}

    def source(i: int) -> PriorSource:
        one, seconds = placed[i], placed[i].trace.seconds
        fits = fitted.get(i) or fits_of_trace(seconds, one.metres, kernels, one.trace.step_m)
        east, north = (axis_of(own, seconds, which, target.resolution_m, ON_ITSELF) for own in fits)
        return PriorSource((east, north), ON_ITSELF, True, ())

    return [_or_reason(lambda i=i: source(i)) for i in range(len(placed))]


def _or_reason(find: Callable[[], PriorSource]) -> PriorSource | str:
    try:
        return find()
    except JaxprivError as error:
        return str(error)


def _fittable(one: Placed) -> bool:
    """Whether `fit_batch` refuses neither coordinate, so that the number of those that it fits is the one given."""
    floor, least = limits(UNITS, None, None)
    try:
        for values in one.metres.T:
            lowest = noise_bound(float(np.std(values)), floor, one.trace.step_m)
            refuse_unfit(values, "values", least, lowest, UNITS[0])
    except JaxprivError:
        return False
    return True


def _fits(
    placed: Sequence[Placed], able: Sequence[int], kernels: Sequence[str]
) -> dict[int, tuple[list[Fit], list[Fit]]]:
    """The fits of both coordinates of the traces where all of them ended at an optimum."""
    steps: dict[float, list[tuple[int, int]]] = {}
    for i in able:
        steps.setdefault(placed[i].trace.step_m, []).extend((i, axis) for axis in (0, 1))
    found: dict[tuple[int, int], list[Fit | Exception]] = {}
    for step, coordinates in steps.items():
        for first in range(0, len(coordinates), TOGETHER):
            few = coordinates[first : first + TOGETHER]
            filled = few + few[-1:] * (TOGETHER - len(few))
            times = [placed[i].trace.seconds for i, _ in filled]
            values = [placed[i].metres[:, axis] for i, axis in filled]
            for kernel in kernels:
                fits = fit_batch(times, values, kernel=kernel, units=UNITS, quantum=step)
                for one, fit in zip(few, fits, strict=False):
                    found.setdefault(one, []).append(fit)
    fitted = {}
    for i in able:
        own = [[fit for fit in found[i, axis] if isinstance(fit, Fit) and fit.converged] for axis in (0, 1)]
        if all(len(fits) == len(kernels) for fits in own):
            fitted[i] = (own[0], own[1])
    return fitted
