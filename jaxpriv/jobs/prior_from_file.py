"""From a prior file to fits that suit a trace: one person's, or the middle of a population."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.fitting.checks import MIN_POINTS
from jaxpriv.fitting.diagnostics import hidden_window, pooled
from jaxpriv.fitting.families import NOISE
from jaxpriv.fitting.fit import Fit
from jaxpriv.fitting.population import Population
from jaxpriv.fitting.prior_file import PriorFile, read_prior
from jaxpriv.report.rounding import given


AXIS_NAMES = ("east", "north")
# Families with one standard deviation and one length scale: what a report states and `verify` builds again.
FIT_KERNELS = ("matern32", "matern52", "matern12", "rbf")
MIN_SD_M = 0.5
DIAGNOSED = 2000  # fixes; the diagnostics are dense, and of a longer trace its middle is looked at
_LEAST_COVER = 0.80


@dataclass(frozen=True)
class FileFits:
    """Fits for east and north, how the report names them, whether anything of the trace itself went into them, and
    where they claim to know more of the trace than they do."""

    axes: tuple[list[Fit], list[Fit]]
    source: str
    estimate: bool
    findings: tuple[str, ...]


def fits_from_file(
    path: Path,
    seconds: np.ndarray,
    metres: np.ndarray,
    kernels: Sequence[str] = (),
    sd_m: float | None = None,
    one_family: bool = False,
) -> FileFits:
    """Read a prior file and make its fits suit a trace: times (n,) in seconds, positions (n, 2) in metres.

    `kernels` restricts the families; `sd_m` is the standard deviation to give to a population's middle instead of the
    trace's own, and with `one_family` the population's first family is then taken alone. A fit of this very trace is
    recognised by its number of fixes, duration and spread. Raises `InputError` naming the file.
    """
    content = read_prior(path)
    if content.units != ("m", "s"):
        raise InputError(
            f"{path.name}: it is in {content.units[0]} and {content.units[1]}; a prior of positions must be in m and s"
        )
    if content.population is not None:
        found = _from_population(content.population, path.name, seconds, metres, kernels, sd_m, one_family)
    elif sd_m is not None:
        raise InputError(f"{path.name}: it is of one person and has its own standard deviations; leave --sd out")
    else:
        found = _from_person(content, path.name, seconds, metres, kernels)
    surprises = [text for i in (0, 1) for text in _surprises(i, found.axes[i], path.name, seconds, metres[:, i])]
    return replace(found, findings=found.findings + tuple(surprises))


def centres_of(
    population: Population,
    kernels: Sequence[str],
    seconds: np.ndarray,
    values: np.ndarray,
    sd_m: float | None = None,
) -> list[Fit]:
    """The middle of a population for one coordinate, values (n,) in metres: one fit for each kernel.

    Length scales and the nugget's share of the standard deviation are medians over the population. The standard
    deviation is the trace's own, or `sd_m`. A mixture of all members predicts a little better, but a design must hold
    for every prior by itself: standard deviations can differ a thousandfold between traces, and the slowest walker's
    would decide the noise of a car. The middle is what a set of length scales can be put around.
    """
    if sd_m is None:
        return [population.centre(kernel, seconds, values) for kernel in kernels]
    return [_with_sd(population, kernel, seconds, sd_m) for kernel in kernels]


def middle(seconds: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The part of a coordinate that diagnostics look at: all of it, or its middle when it is long."""
    first = max(0, (len(seconds) - DIAGNOSED) // 2)
    return seconds[first : first + DIAGNOSED], values[first : first + DIAGNOSED]


def window_width(one: Fit, seconds: np.ndarray) -> float:
    """How much time to hide when a prior is checked: what it correlates, at least five steps, at most a fifth."""
    steps = 5.0 * float(np.median(np.diff(seconds)))
    return min(0.2 * float(seconds[-1] - seconds[0]), max(one.lengthscale, steps))


def hidden_cover(one: Fit, seconds: np.ndarray, values: np.ndarray) -> float | None:
    """Share of three hidden windows of a coordinate, (n,), that 95 % intervals cover, with the parameters as they are.

    The windows are centred on fixes, so that none falls into a gap. None where too little would be left to predict
    from, or nothing varies.
    """
    if len(seconds) < MIN_POINTS or not np.std(values) > 0:
        return None
    times, seen = middle(seconds, values)
    width = window_width(one, times)
    centres = [float(times[k * len(times) // 4]) for k in (1, 2, 3)]
    try:
        windows = [hidden_window(one, times, seen, centre=at, width=width, refit=False) for at in centres]
    except InputError:
        return None
    return pooled(windows).cover(0.95)


def _with_sd(population: Population, kernel: str, seconds: np.ndarray, sd_m: float) -> Fit:
    """The middle with a given scale. Its shape does not depend on the values, so that any that vary will do."""
    shape = population.centre(kernel, seconds, np.arange(float(len(seconds))))
    share = np.median([math.log(one.noise_sd / one.sd) for one in population.of_family(kernel)])
    noise = max(sd_m * math.exp(share), shape.settings.noise_floor or 0.0)
    return replace(shape.with_parameters({"sd": sd_m, NOISE: noise}), value_sd=sd_m, loglik=0.0, start_logliks=())


def _usable(present: Sequence[str], kernels: Sequence[str], name: str) -> list[str]:
    missing = [kernel for kernel in kernels if kernel not in present]
    if missing:
        raise InputError(f"{name}: it has no fit of {missing[0]!r}; it has {', '.join(present)}")
    usable = list(kernels) or [kernel for kernel in present if kernel in FIT_KERNELS]
    if not usable:
        raise InputError(
            f"{name}: its kernels ({', '.join(present)}) cannot be used to protect a trace; "
            f"fit one of {', '.join(FIT_KERNELS)}"
        )
    return usable


def _from_person(
    content: PriorFile, name: str, seconds: np.ndarray, metres: np.ndarray, kernels: Sequence[str]
) -> FileFits:
    coordinates = content.coordinates or ()
    if len(coordinates) != 2:
        raise InputError(f"{name}: it holds {len(coordinates)} coordinate(s); a prior of positions has east and north")
    axes = []
    for fits in coordinates:
        usable = _usable([one.family for one in fits], kernels, name)
        axes.append([one for one in fits if one.family in usable])
    if any(_of_this_trace(one, seconds, metres[:, i]) for i in (0, 1) for one in axes[i]):
        source, estimate = "fitted to this very trace: an estimate of what an attacker expects, not a guarantee", True
    elif content.provenance == "fitted on the same data":
        source = "fitted, as it says, on the data to be protected: an estimate of what an attacker expects, not a "
        source, estimate = source + "guarantee", True
    elif content.provenance == "given":
        source, estimate = "given there, not fitted to this trace", False
    else:
        source, estimate = f"fitted elsewhere, to a trace of {axes[0][0].n} fixes", False
    return FileFits((axes[0], axes[1]), f"read from {name}, {source}", estimate, ())


def _from_population(
    population: Population,
    name: str,
    seconds: np.ndarray,
    metres: np.ndarray,
    kernels: Sequence[str],
    sd_m: float | None,
    one_family: bool,
) -> FileFits:
    if len(seconds) < 2:
        raise InputError("a population's prior needs at least two fixes; give the numbers of a prior instead")
    if sd_m is None and not np.min(np.std(metres, axis=0)) > MIN_SD_M:
        raise InputError(
            f"a coordinate of the trace hardly varies (standard deviation at most {MIN_SD_M:g} m), which says nothing "
            "about how far this person moves; pass --sd with the standard deviation to assume, such as --sd 300m"
        )
    usable = _usable(population.families, kernels, name)
    if one_family and sd_m is not None:
        usable = usable[:1]  # the likelihood of this trace must not choose
    traces = len(set(population.groups))
    whose = (
        "with this trace's own standard deviation: in that one number an estimate, not a guarantee"
        if sd_m is None
        else f"with the given standard deviation of {given(sd_m)} m"
    )
    inside = {
        group
        for one, group in zip(population.fits, population.groups, strict=True)
        if any(_of_this_trace(one, seconds, metres[:, i]) for i in (0, 1))
    }
    findings = (f"{len(inside)} of the {traces} traces behind {name} is this very trace; fit it without.",)
    return FileFits(
        (
            centres_of(population, usable, seconds, metres[:, 0], sd_m),
            centres_of(population, usable, seconds, metres[:, 1], sd_m),
        ),
        f"read from {name}, the middle of {traces} traces, {whose}",
        sd_m is None or bool(inside),
        findings if inside else (),
    )


def _of_this_trace(one: Fit, seconds: np.ndarray, values: np.ndarray) -> bool:
    """Whether a fit was made from this coordinate: as many fixes over as long, with the same spread.

    The spread depends on the origin of the plane, but by far less than a thousandth.
    """
    return (
        one.n == len(seconds)
        and math.isclose(one.duration, float(seconds[-1] - seconds[0]), rel_tol=1e-9)
        and math.isclose(one.value_sd, float(np.std(values)), rel_tol=1e-3)
    )


def _surprises(axis: int, fits: Sequence[Fit], name: str, seconds: np.ndarray, values: np.ndarray) -> list[str]:
    found = []
    for one in fits:
        cover = hidden_cover(one, seconds, values)
        if cover is not None and cover < _LEAST_COVER:
            found.append(
                f"{AXIS_NAMES[axis]}: the 95 % intervals of {one.family} from {name} cover {cover:.0%} of what was "
                "hidden of this trace: here it claims to know more than it does."
            )
    return found
