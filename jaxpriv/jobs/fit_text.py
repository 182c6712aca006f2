"""What `jaxpriv fit` says about its fits: as text for people, as JSON for programs."""

from __future__ import annotations

import json
import math
from typing import Any

from jaxpriv.fitting.families import NOISE, family_named, unit_text
from jaxpriv.fitting.fit import Fit
from jaxpriv.jobs.fit import AxisFit, PersonFit, PopulationFit
from jaxpriv.report.rounding import finite_or_none, significant


FORMAT, VERSION = "jaxpriv-fit", 1
_NAMES = {
    "sd": "standard deviation",
    "lengthscale": "length scale",
    NOISE: "nugget",
    "sd_velocity": "standard deviation of the velocity",
    "tau": "time over which velocities stay alike",
    "slow": "slow time scale",
    "fast": "fast time scale",
    "alpha": "alpha",
    "q": "q",
}
_UNITS_OF_Q = {"matern12": "m/√s", "matern52": "m/s^2.5"}  # the others drive the acceleration


def person_text(done: PersonFit) -> str:
    """Say what was fitted to one trace, and what a reader should know before using it."""
    step = f", positions in steps of {significant(done.step_m, 2)} m" if done.step_m else ""
    lines = [f"Fitted to {done.points} fixes over {duration(done.duration_s)}{step}."]
    for axis in done.axes:
        lines += ["", f"{axis.name.capitalize()} (standard deviation of the positions {_m(axis.fits[0].value_sd)})"]
        for one in axis.fits:
            lines += [f"  {one.family}: {_parameters(one)}", f"      {_quality(one)}"]
        if axis.misfit is None:
            lines.append(f"  Not checked on hidden windows: {axis.unchecked}")
        else:
            lines.append(f"  Hidden windows, {axis.best.family}: {_hidden(axis)}")
            gains = [(name, gain) for name, gain in axis.misfit.gain.items() if gain < 0]
            if gains:
                better = ", ".join(f"{name} by {significant(-gain, 2)} nats" for name, gain in gains)
                lines.append(f"  Kernels with a larger likelihood than {axis.best.family}: {better}")
        lines += [f"  Note: {flag}" for flag in _flags(axis)]
    return "\n".join(lines) + "\n"


def population_text(done: PopulationFit) -> str:
    """Say what was fitted to many traces: medians, spreads, bounds, and what was left out."""
    population = done.population
    lines = [f"Fitted to {len(set(population.groups))} of {done.files} traces, each coordinate by itself."]
    for kernel in population.families:
        fits = population.of_family(kernel)
        lines += ["", f"{kernel}, {len(fits)} coordinates: median (spread as a factor of one standard deviation)"]
        for name, spread in population.spread(kernel).items():
            unit = _unit_of_q(kernel) if name == "q" else unit_text(name, ("m", "s"))
            lines.append(
                f"  {_NAMES.get(name, name)}: {significant(spread.median)} {unit}".rstrip()
                + f" (×/÷ {significant(math.exp(spread.total), 2)})"
            )
        lines += [f"  {text}" for text in _bounds(fits)]
    if done.skipped:
        lines += ["", "Skipped:"]
        lines += [f"  {one.name}{f', {one.axis}' if one.axis else ''}: {one.reason}" for one in done.skipped]
    return "\n".join(lines) + "\n"


def person_json(done: PersonFit) -> str:
    """The same as JSON; a number that is not known is null."""
    axes = [
        {
            "name": axis.name,
            "sd_m": axis.fits[0].value_sd,
            "fits": [_fit_json(one) for one in axis.fits],
            "best": axis.best.family,
            "hidden_windows": None if axis.misfit is None else _hidden_json(axis),
            "gain_nats": {} if axis.misfit is None else dict(axis.misfit.gain),
            "flags": _flags(axis),
        }
        for axis in done.axes
    ]
    content = {"points": done.points, "duration_s": done.duration_s, "step_m": done.step_m, "axes": axes}
    return _dumped("person", content | {"cleaning": list(done.notes)})


def population_json(done: PopulationFit) -> str:
    """The same as JSON; a number that is not known is null."""
    population = done.population
    families = {
        kernel: {
            "coordinates": len(population.of_family(kernel)),
            "parameters": {
                name: {
                    "median": one.median,
                    "log_sd": one.total,
                    "log_sd_within_trace": one.within,
                    "log_sd_between_traces": one.between,
                }
                for name, one in population.spread(kernel).items()
            },
            "bound_hits": sum(bool(one.bound_hits) for one in population.of_family(kernel)),
        }
        for kernel in population.families
    }
    skipped = [{"file": one.name, "coordinate": one.axis, "reason": one.reason} for one in done.skipped]
    content = {"files": done.files, "traces": len(set(population.groups)), "families": families, "skipped": skipped}
    return _dumped("population", content)


def duration(seconds: float) -> str:
    """A time span in the unit that suits it."""
    for size, unit in ((86_400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{significant(seconds / size)} {unit}"
    return f"{significant(seconds)} s"


def _dumped(kind: str, content: dict[str, Any]) -> str:
    head = {"format": FORMAT, "format_version": VERSION, "kind": kind}
    return json.dumps(head | content, indent=2, allow_nan=False)


def _m(value: float) -> str:
    return f"{significant(value)} m"


def _unit_of_q(kernel: str) -> str:
    return _UNITS_OF_Q.get(kernel, "m/s^1.5")


def _at_lower_bound(one: Fit) -> bool:
    return any(hit.startswith(f"{NOISE} at its lower") for hit in one.bound_hits)


def _parameters(one: Fit) -> str:
    said = []
    for name in family_named(one.family).all_parameters:
        if name == NOISE and _at_lower_bound(one):
            said.append(f"nugget at most {_m(one.noise_sd)} (its lower bound)")
            continue
        said.append(f"{_NAMES[name]} {significant(one.parameters[name])} {unit_text(name, ('m', 's'))}".rstrip())
        if name == NOISE and one.noise_sd_lower is not None:
            said[-1] += f" (at least {significant(one.noise_sd_lower, 2, 'down')} m)"
    if one.q is not None:
        said.append(f"q {significant(one.q)} {_unit_of_q(one.family)}")
    return ", ".join(said)


def _quality(one: Fit) -> str:
    starts = len(one.start_logliks)
    agree = f"{starts - one.failed_starts} of {starts} starts, at most {significant(one.spread, 2)} nats apart"
    return f"log-likelihood {one.loglik:.2f} nats; {agree}{'' if one.converged else '; not converged'}"


def _hidden(axis: AxisFit) -> str:
    assert axis.misfit is not None
    hidden = axis.misfit.hidden
    longest = max(one.end - one.start for one in axis.misfit.windows)
    return (
        f"{hidden.cover(0.95):.0%} of {hidden.indices.size} points in {len(axis.misfit.windows)} windows of up to "
        f"{duration(longest)} within their 95 % intervals, {hidden.cover(0.68):.0%} within 68 %; "
        f"error {_m(hidden.rms)} (rms)"
    )


def _flags(axis: AxisFit) -> list[str]:
    """Of the best fit all that is wrong, of the others the bounds they ended on."""
    flags = list(axis.misfit.flags) if axis.misfit is not None else [f"{hit}." for hit in axis.best.bound_hits]
    others = [one for one in axis.fits if one is not axis.best]
    return flags + [f"{one.family}: {hit}." for one in others for hit in one.bound_hits]


def _bounds(fits: list[Fit]) -> list[str]:
    said = []
    low = sum(_at_lower_bound(one) for one in fits)
    if low:
        said.append(f"{low} of {len(fits)} nuggets are on their lower bound: read them as upper limits.")
    scales = family_named(fits[0].family).scales
    long = sum(any(one.parameters[name] > one.duration for name in scales) for one in fits)
    if long:
        said.append(f"{long} of {len(fits)} have a time scale longer than their trace: only q is identified there.")
    others = sum(any(not hit.startswith(NOISE) for hit in one.bound_hits) for one in fits)
    if others:
        said.append(f"{others} of {len(fits)} have another parameter on a bound.")
    return said


def _fit_json(one: Fit) -> dict[str, Any]:
    return {
        "kernel": one.family,
        "parameters": dict(one.parameters),
        "noise_sd_lower": one.noise_sd_lower,
        "q": one.q,
        "loglik": one.loglik,
        "start_logliks": [finite_or_none(value) for value in one.start_logliks],
        "bound_hits": list(one.bound_hits),
        "converged": one.converged,
    }


def _hidden_json(axis: AxisFit) -> dict[str, Any]:
    assert axis.misfit is not None
    hidden = axis.misfit.hidden
    return {
        "windows": [[one.start, one.end] for one in axis.misfit.windows],
        "points": int(hidden.indices.size),
        "cover_95": hidden.cover(0.95),
        "cover_68": hidden.cover(0.68),
        "rms_m": hidden.rms,
    }
