"""Where the prior of each coordinate comes from: given numbers, a file, or a fit to the trace itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.fitting.checks import MIN_POINTS
from jaxpriv.fitting.families import NOISE
from jaxpriv.fitting.fit import Fit, fit
from jaxpriv.fitting.misfit import misfit
from jaxpriv.fitting.robust import FAMILIES_DEFAULT, prior_set
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.prior_from_file import AXIS_NAMES, FIT_KERNELS, MIN_SD_M, fits_from_file, middle, window_width
from jaxpriv.priors.process import ProcessPrior


WhichSet = Literal["default", "wide", "exact"]
ON_ITSELF = "fitted on the trace itself: an estimate of what an attacker expects, not a guarantee"


@dataclass(frozen=True)
class AxisPriors:
    """The priors of one coordinate. `lattice` says of each whether its nugget allows the claim about rounding to a
    grid: as a standard deviation, at least twice the resolution."""

    choices: tuple[PriorChoice, ...]
    labels: tuple[str, ...]
    lattice: tuple[bool, ...]

    def priors(self, seconds: np.ndarray) -> list[ProcessPrior]:
        """Build the priors at times in seconds since the first fix, (n,)."""
        return [one.process_prior(seconds) for one in self.choices]


@dataclass(frozen=True)
class PriorSource:
    """The priors that a design must withstand, east and north, and what a reader must know about them.

    `source` completes "Prior: …", the first line of the report. `estimate` is True when anything of the trace itself
    went into the priors: ε is then an estimate, not a guarantee. `findings` are sentences about what does not fit.
    """

    axes: tuple[AxisPriors, AxisPriors]
    source: str
    estimate: bool
    findings: tuple[str, ...]

    @property
    def first_line(self) -> str:
        """The first line of the report."""
        return f"Prior: {self.source}."


def find_priors(
    seconds: np.ndarray,
    metres: np.ndarray,
    *,
    given: PriorChoice | None = None,
    file: Path | None = None,
    which: WhichSet | None = None,
    kernels: Sequence[str] = (),
    sd_m: float | None = None,
    resolution_m: float = 0.5,
    step_m: float = 0.0,
    progress: Callable[[str], None] = lambda step: None,
) -> PriorSource:
    """Answer which priors a design for this trace must withstand.

    `seconds` (n,) since the first fix, `metres` (n, 2) east and north, cleaned. With `given` numbers: these alone, for
    both coordinates, taken as they are. With a prior `file` of one person: the set (`which`, "default" unless said)
    around its fits; of a population: the set around the population's middle (`centres_of`). With neither: the set
    around fits of `kernels` (Matérn-3/2 and 5/2) to the trace itself. `kernels` restricts a file, too. `sd_m` fixes the
    standard deviation of a population's middle; `step_m` is the lattice on which the positions of the trace lie.

    Raises `InputError` for options that contradict each other, a file that cannot be used, and a trace that is too
    short or too still to be fitted.
    """
    _check_options(given, file, which, kernels, sd_m)
    if given is not None:
        axis = AxisPriors((given,), (f"{given.kernel}, as given",), (given.nugget_m >= 2.0 * resolution_m,))
        return PriorSource((axis, axis), given.source, False, ())
    chosen = which or "default"
    if file is not None:
        progress("Reading the prior")
        read = fits_from_file(file, seconds, metres, kernels, sd_m, one_family=chosen == "exact")
        axes, source, estimate, findings = read.axes, read.source, read.estimate, read.findings
    else:
        axes = fits_of_trace(seconds, metres, kernels or FAMILIES_DEFAULT, step_m, progress)
        progress("Checking the fits on hidden windows")
        findings = tuple(text for i in (0, 1) for text in _misfits(i, axes[i], seconds, metres[:, i]))
        source, estimate = ON_ITSELF, True
    east, north = (axis_of(fits, seconds, chosen, resolution_m, source) for fits in axes)
    return PriorSource((east, north), source, estimate, findings)


def fits_of_trace(
    seconds: np.ndarray,
    metres: np.ndarray,
    kernels: Sequence[str],
    step_m: float = 0.0,
    progress: Callable[[str], None] = lambda step: None,
) -> tuple[list[Fit], list[Fit]]:
    """Fit each kernel to each coordinate: the fits of east and those of north, in the order of `kernels`.

    `seconds` (n,), `metres` (n, 2), `step_m` the lattice of the positions. Raises `InputError` for fewer than 20 fixes
    and for a coordinate with a standard deviation of 0.5 m or less.
    """
    for i, name in enumerate(AXIS_NAMES):
        problem = unfittable(metres[:, i])
        if problem:
            raise InputError(
                f"the {name} coordinate has {problem}, so no prior can be fitted to it; "
                "pass --prior FILE with a prior that was fitted elsewhere (jaxpriv fit makes one)"
            )
    fits: tuple[list[Fit], list[Fit]] = ([], [])
    for i, name in enumerate(AXIS_NAMES):
        for kernel in kernels:
            progress(f"Fitting {kernel} to the {name} coordinate, {len(metres)} fixes")
            found = fit(seconds, metres[:, i], kernel=kernel, quantum=step_m)
            assert isinstance(found, Fit)
            fits[i].append(found)
    return fits


def unfittable(values: np.ndarray) -> str | None:
    """What keeps a prior from being fitted to one coordinate, (n,) in metres; None when nothing does."""
    if len(values) < MIN_POINTS:
        return f"fewer than {MIN_POINTS} fixes"
    if not np.std(values) > MIN_SD_M:
        return f"a standard deviation of {MIN_SD_M:g} m or less"
    return None


def _check_options(
    given: PriorChoice | None, file: Path | None, which: str | None, kernels: Sequence[str], sd_m: float | None
) -> None:
    if given is not None and (file is not None or kernels):
        raise InputError("give the numbers of one prior, or --prior FILE, or kernels to fit: not two of them")
    if given is not None and which is not None:
        raise InputError("--prior-set goes with fitted priors; numbers that are given are taken as they are")
    if which is not None and which not in get_args(WhichSet):
        raise InputError(f"there is no prior set {which!r}; choose one of {', '.join(get_args(WhichSet))}")
    for kernel in kernels:
        if kernel not in FIT_KERNELS:
            raise InputError(f"kernel {kernel!r} cannot be fitted here; choose among {', '.join(FIT_KERNELS)}")
    if len(set(kernels)) < len(kernels):
        raise InputError("a kernel is named twice")
    if sd_m is not None and file is None:
        raise InputError("a standard deviation alone is no prior; it goes with a population's (--prior FILE)")
    if sd_m is not None and not (sd_m > 0 and math.isfinite(sd_m)):
        raise InputError(f"the standard deviation is {sd_m}; it must be a positive, finite number")


def axis_of(fits: Sequence[Fit], seconds: np.ndarray, which: WhichSet, resolution_m: float, source: str) -> AxisPriors:
    if which == "exact":
        fits = [max(fits, key=lambda one: one.loglik)]
    choices, labels, lattice = [], [], []
    for one in fits:
        members = prior_set(seconds, fits=one, which=which, resolution=resolution_m)
        assert not isinstance(members, list)
        for prior, label, claims in zip(members, members.labels, members.lattice, strict=True):
            # Of the kernel, a constant times one of unit variance, the set changes the length scale only.
            length = float(prior.kernel.kernel2.scale)  # pyright: ignore[reportAttributeAccessIssue]
            choices.append(PriorChoice(one.family, length, one.sd, float(prior.noise_sd), source=source))
            labels.append(label.replace(NOISE, "nugget"))
            lattice.append(claims)
    return AxisPriors(tuple(choices), tuple(labels), tuple(lattice))


def _misfits(axis: int, fits: Sequence[Fit], seconds: np.ndarray, values: np.ndarray) -> list[str]:
    """What is wrong with the family that fits a coordinate best; the others are in the set besides it."""
    best = max(fits, key=lambda one: one.loglik)
    times, seen = middle(seconds, values)
    try:
        flags = misfit(best, times, seen, alternatives=(), width=window_width(best, times)).flags
    except InputError:  # a gap where a window would be, or a burst that leaves nothing outside it
        flags = (*(f"{hit}." for hit in best.bound_hits), "it could not be checked on hidden windows.")
    return [f"{AXIS_NAMES[axis]}, {best.family}: {flag}" for flag in flags]
