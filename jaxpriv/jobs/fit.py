"""Fitting priors to trace files: one person's, or one for each of many traces as a population."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.fitting.fit import Fit, fit
from jaxpriv.fitting.misfit import ALTERNATIVES, Misfit, misfit
from jaxpriv.fitting.population import Population
from jaxpriv.fitting.prior_file import write_prior
from jaxpriv.fitting.robust import FAMILIES_DEFAULT
from jaxpriv.jobs.prior_from_file import AXIS_NAMES, middle, window_width
from jaxpriv.jobs.prior_sources import fits_of_trace, unfittable
from jaxpriv.traces.contents import ReadOptions
from jaxpriv.traces.files import read_trace
from jaxpriv.traces.projection import public_origin
from jaxpriv.traces.trace import Trace


Progress = Callable[[str], None]
KERNELS = ("matern12", "matern32", "matern52", "rbf", "rq", "iou", "damped_iou")
PROVENANCE = "fitted elsewhere"  # a trace that its own prior protects is recognised when the file is used


@dataclass(frozen=True)
class AxisFit:
    """The fits of one coordinate and what is wrong with the one of the largest likelihood.

    `misfit` is None, and `unchecked` says why, where no window could be hidden.
    """

    name: str
    fits: tuple[Fit, ...]
    misfit: Misfit | None
    unchecked: str | None = None

    @property
    def best(self) -> Fit:
        """The fit with the largest likelihood."""
        return max(self.fits, key=lambda one: one.loglik)


@dataclass(frozen=True)
class PersonFit:
    """What was fitted to one trace. `step_m` is the lattice of its positions; `notes` say what cleaning did."""

    points: int
    duration_s: float
    step_m: float
    axes: tuple[AxisFit, AxisFit]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class SkippedFile:
    """A file without a fit, or with an `axis` that coordinate of it, and the reason."""

    name: str
    axis: str | None
    reason: str


@dataclass(frozen=True)
class PopulationFit:
    """What was fitted to many traces: the population, how many files went in, and what was left out."""

    population: Population
    files: int
    skipped: tuple[SkippedFile, ...]


def fit_person(
    path: Path,
    out: Path,
    *,
    kernels: Sequence[str] = (),
    reading: ReadOptions | None = None,
    force: bool = False,
    progress: Progress = lambda step: None,
) -> PersonFit:
    """Fit each kernel to each coordinate of one trace file, check the fits, and write the prior file `out`.

    Without `kernels`: Matérn-3/2 and Matérn-5/2. `reading` says how the file is read. Raises `InputError` for a file
    that cannot be read, a trace that is too short or too still, and an `out` that cannot be written; nothing is written
    then.
    """
    names = _checked_kernels(kernels)
    check_target(out, force)
    progress("Reading the trace")
    trace = read_trace(path, options=reading, progress=progress)
    metres = _metres(trace)
    fits = fits_of_trace(trace.seconds, metres, names, trace.step_m, progress)
    east, north = (_checked(i, fits[i], trace.seconds, metres[:, i], progress) for i in (0, 1))
    check_target(out, force)
    write_prior(out, fits, PROVENANCE)
    return PersonFit(
        trace.n_points, float(trace.seconds[-1]), trace.step_m, (east, north), tuple(trace.cleaning.sentences())
    )


def fit_people(
    paths: Sequence[Path],
    out: Path,
    *,
    kernels: Sequence[str] = (),
    reading: ReadOptions | None = None,
    force: bool = False,
    progress: Progress = lambda step: None,
) -> PopulationFit:
    """Fit each kernel to each coordinate of every trace file, and write them as a population to `out`.

    Each file counts once, so it is the caller who balances people: one window or trace of each. Files and coordinates
    that cannot be fitted are skipped and listed; bounds that were hit are no reason. Names of files are not stored.
    `reading` says how all of the files are read.
    Raises `InputError` for fewer than two files, the same file twice, and when nothing could be fitted.
    """
    names = _checked_kernels(kernels)
    if len(paths) < 2:
        raise InputError(
            "a population needs at least two traces; leave --population out to fit the prior of one person"
        )
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError("a file is named twice; each trace of a population counts once")
    check_target(out, force)
    fits: list[Fit] = []
    groups: list[str] = []
    skipped: list[SkippedFile] = []
    counts: Counter[str] = Counter()
    for number, path in enumerate(paths, 1):
        progress(f"Fitting trace {number} of {len(paths)}")
        try:
            trace = read_trace(path, options=reading)
            metres = _metres(trace)
        except InputError as problem:
            skipped.append(SkippedFile(path.name, None, str(problem)))
            counts["unreadable"] += 2
            continue
        reasons = []
        for i in range(len(AXIS_NAMES)):
            found, reason = _fits_or_reason(trace, metres[:, i], names)
            fits += found
            groups += [str(number)] * len(found)
            reasons.append(reason)
            counts.update([reason] if reason else [])
        if len(set(reasons)) == 1:
            skipped += [SkippedFile(path.name, None, reasons[0])] if reasons[0] else []
        else:
            skipped += [SkippedFile(path.name, axis, why) for axis, why in zip(AXIS_NAMES, reasons, strict=True) if why]
    if not fits:
        raise InputError(f"none of the {len(paths)} files could be fitted; the first: {skipped[0].reason}")
    population = Population(tuple(fits), tuple(groups), dict(counts))
    check_target(out, force)
    write_prior(out, population, PROVENANCE)
    return PopulationFit(population, len(paths), tuple(skipped))


def check_target(out: Path, force: bool) -> None:
    """Raise `InputError` when the prior file cannot be written."""
    if not out.parent.is_dir():
        raise InputError(f"the folder that should hold {out} does not exist; create it first")
    if out.is_dir():
        raise InputError(f"{out} is a folder; name a file, such as {out / 'prior.json'}")
    if out.exists() and not force:
        raise InputError(f"{out} exists already; choose another --out, or pass --force to replace it")


def _checked_kernels(kernels: Sequence[str]) -> tuple[str, ...]:
    for kernel in kernels:
        if kernel not in KERNELS:
            raise InputError(f"kernel {kernel!r} cannot be fitted to positions; choose among {', '.join(KERNELS)}")
    if len(set(kernels)) < len(kernels):
        raise InputError("a kernel is named twice")
    return tuple(kernels) or FAMILIES_DEFAULT


def _metres(trace: Trace) -> np.ndarray:
    plane = public_origin(trace.latitude, trace.longitude)
    rows = plane.to_metres(trace.latitude, trace.longitude)
    plane.check_extent(rows)
    return trace.mean_by_point(rows)


def _checked(axis: int, fits: Sequence[Fit], seconds: np.ndarray, values: np.ndarray, progress: Progress) -> AxisFit:
    """Hide windows from the best fit of a coordinate, and compare it with other kernels where all of it is seen."""
    name = AXIS_NAMES[axis]
    progress(f"Hiding windows of the {name} coordinate")
    best = max(fits, key=lambda one: one.loglik)
    times, seen = middle(seconds, values)
    others = ALTERNATIVES if len(times) == len(seconds) else ()
    try:
        found = misfit(best, times, seen, alternatives=others, width=window_width(best, times))
    except InputError as problem:  # a gap where a window would be, or a burst that leaves nothing outside it
        return AxisFit(name, tuple(fits), None, str(problem))
    return AxisFit(name, tuple(fits), found)


def _fits_or_reason(trace: Trace, values: np.ndarray, kernels: Sequence[str]) -> tuple[list[Fit], str | None]:
    """Fits of one coordinate (n,) with every kernel, or none and why: all families of a population see the same."""
    reason = unfittable(values)
    if reason is not None:
        return [], reason
    try:
        found = [fit(trace.seconds, values, kernel=kernel, quantum=trace.step_m, confidence=None) for kernel in kernels]
    except InputError:
        return [], "a likelihood that could not be computed"
    return [one for one in found if isinstance(one, Fit)], None
