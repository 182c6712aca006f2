"""Where the prior of a series comes from: given numbers, another series of the same sensor, or the series itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.fitting.checks import MIN_POINTS
from jaxpriv.fitting.families import NOISE
from jaxpriv.fitting.fit import Fit, fit
from jaxpriv.fitting.misfit import misfit
from jaxpriv.fitting.robust import FAMILIES_DEFAULT, prior_set
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.prior_from_file import FIT_KERNELS, hidden_cover, middle, window_width
from jaxpriv.jobs.prior_sources import AxisPriors
from jaxpriv.jobs.requests import PriorRequest
from jaxpriv.jobs.target import Target
from jaxpriv.report.rounding import significant
from jaxpriv.traces.contents import ReadOptions
from jaxpriv.traces.series import Series
from jaxpriv.traces.series_format import read_series


UNITS = ("", "s")
_ON_ITSELF = "fitted on the series itself: an estimate of what an attacker expects, not a guarantee"
_ELSEWHERE = "fitted on another series of the same column"
_LEAST_COVER = 0.80
Found = tuple[AxisPriors, str, bool, tuple[str, ...]]


def find_series_priors(
    series: Series,
    request: PriorRequest,
    target: Target,
    column: str,
    options: ReadOptions,
    progress: Callable[[str], None] = lambda step: None,
) -> Found:
    """The priors that a design for this series must withstand, their source, whether it is an estimate, and findings.

    With numbers: these alone. With a file: a table with the same column, from another time or another sensor of the
    kind, to which the kernels are fitted. With neither, they are fitted to the series itself. Around fits there is the
    set that `request.which` names ("default" unless said). Raises `InputError` for options that contradict each other,
    and for a series that is too short or too still to be fitted.
    """
    if request.given is not None:
        if request.which is not None or request.file is not None:
            raise InputError("give the numbers of one prior, or a file or a set of fitted priors: not both")
        choice = replace(request.given, source="given by the user, not fitted to this series")
        label = f"{choice.kernel}, as given"
        return (
            AxisPriors((choice,), (label,), (choice.nugget_m >= 2.0 * target.resolution_m,)),
            choice.source,
            False,
            (),
        )
    if request.sd_m is not None:
        raise InputError("a standard deviation alone is no prior; give all numbers of one, or leave --sd out")
    for kernel in request.kernels:
        if kernel not in FIT_KERNELS:
            raise InputError(f"kernel {kernel!r} cannot be fitted here; choose among {', '.join(FIT_KERNELS)}")
    kernels = request.kernels or FAMILIES_DEFAULT
    if request.file is not None:
        progress("Reading the other series")
        if request.file.suffix.lower() == ".json":
            raise InputError(
                "--prior: a file made by jaxpriv fit is about positions; for a series name a table with the same "
                "column, from another time or another sensor of the kind"
            )
        other = read_series(request.file, column, options)
        if np.intersect1d(other.time_us, series.time_us).size:
            raise InputError(
                "--prior: the other series has times in common with the one to be protected; fit to one that has none, "
                "or leave --prior out and call the result an estimate"
            )
        fits = _fits(other.seconds, other.values, kernels, other.step, target, "the other series", progress)
        findings = _surprises(fits, series.seconds, series.values)
        source, estimate = _ELSEWHERE, False
    else:
        fits = _fits(series.seconds, series.values, kernels, series.step, target, "the series", progress)
        progress("Checking the fits on hidden windows")
        findings = _misfits(fits, series.seconds, series.values)
        source, estimate = _ON_ITSELF, True
    return (
        _set(fits, series.seconds, request.which or "default", target.resolution_m, source),
        source,
        estimate,
        findings,
    )


def _fits(
    seconds: np.ndarray,
    values: np.ndarray,
    kernels: Sequence[str],
    step: float,
    target: Target,
    name: str,
    progress: Callable[[str], None],
) -> list[Fit]:
    problem = None
    if len(values) < MIN_POINTS:
        problem = f"has fewer than {MIN_POINTS} times"
    elif not np.std(values) > target.resolution_m:
        problem = "varies by no more than its resolution"
    if problem:
        raise InputError(
            f"{name} {problem}, so no prior can be fitted to it; give the numbers of one (--kernel, --lengthscale, "
            "--sd, --nugget), or another series by --prior FILE"
        )
    found = []
    for kernel in kernels:
        progress(f"Fitting {kernel} to {name}, {len(values)} times")
        one = fit(seconds, values, kernel=kernel, quantum=step, units=UNITS)
        assert isinstance(one, Fit)
        found.append(one)
    return found


def _set(fits: Sequence[Fit], seconds: np.ndarray, which: str, resolution: float, source: str) -> AxisPriors:
    choices, labels, lattice = [], [], []
    members = prior_set(seconds, fits=fits, which=which, resolution=resolution)
    assert not isinstance(members, list)
    for prior, label, claims in zip(members, members.labels, members.lattice, strict=True):
        (one,) = (one for one in fits if label.startswith(f"{one.family},"))
        # Of the kernel, a constant times one of unit variance, the set changes the length scale only.
        length = float(prior.kernel.kernel2.scale)  # pyright: ignore[reportAttributeAccessIssue]
        choices.append(PriorChoice(one.family, length, one.sd, float(prior.noise_sd), source=source))
        labels.append(label.replace(NOISE, "nugget").strip())
        lattice.append(claims)
    return AxisPriors(tuple(choices), tuple(labels), tuple(lattice))


def _misfits(fits: Sequence[Fit], seconds: np.ndarray, values: np.ndarray) -> tuple[str, ...]:
    best = max(fits, key=lambda one: one.loglik)
    times, seen = middle(seconds, values)
    try:
        flags = misfit(best, times, seen, alternatives=(), width=window_width(best, times)).flags
    except InputError:  # a gap where a window would be, or a burst that leaves nothing outside it
        flags = (*(f"{hit}." for hit in best.bound_hits), "it could not be checked on hidden windows.")
    return tuple(f"{best.family}: {flag}" for flag in flags)


def _surprises(fits: Sequence[Fit], seconds: np.ndarray, values: np.ndarray) -> tuple[str, ...]:
    """Where priors from elsewhere claim to know more of the series than they do; for the owner alone."""
    best = max(fits, key=lambda one: one.loglik)
    cover = hidden_cover(best, seconds, values)
    if cover is None or not math.isfinite(cover) or cover >= _LEAST_COVER:
        return ()
    return (
        f"{best.family}, fitted on the other series, is surprised by this one: of its 95 % intervals for hidden "
        f"windows only {significant(100 * cover, 2)} % hold. The promise is about an attacker who believes it.",
    )
