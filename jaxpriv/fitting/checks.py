"""What a trace must be before a prior is fitted to it; everything is checked before any work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.fitting.families import Family
from jaxpriv.fitting.likelihood import MEANS
from jaxpriv.precision import host_array


MIN_POINTS = 20
DENSE_LIMIT = 3000  # points; beyond it a family without an O(n) form is refused (a fit would take hours)
# (smallest noise sd, smallest usable sd) of positions; 0.03 m is what rounding coordinates to six decimals leaves.
_POSITION_LIMITS = {"m": (0.03, 0.5), "km": (0.03e-3, 0.5e-3)}
_RELATIVE_NOISE_FLOOR = 1e-3
_GIVE_PRIOR = "Give a prior that was fitted elsewhere instead (--prior FILE on the command line; read_prior in Python)."


def limits(units: tuple[str, str], noise_floor: float | None, min_sd: float | None) -> tuple[float | None, float]:
    """The nugget's lower bound (None: relative to the values' sd) and the smallest sd that is fitted."""
    known_floor, known_sd = _POSITION_LIMITS.get(units[0], (None, 0.0))
    floor = known_floor if noise_floor is None else noise_floor
    smallest = known_sd if min_sd is None else min_sd
    if floor is not None and not (np.isfinite(floor) and floor > 0.0):
        raise InputError(f"noise_floor must be a positive number in {units[0]}; got {floor}.")
    if not (np.isfinite(smallest) and smallest >= 0.0):
        raise InputError(f"min_sd must be a number >= 0 in {units[0]}; got {smallest}.")
    return floor, smallest


def noise_bound(sd: float, floor: float | None, quantum: float) -> float:
    """The nugget's lower bound: the floor, or the rounding error quantum/√12 of the values if that is larger."""
    if not (np.isfinite(quantum) and quantum >= 0.0):
        raise InputError(f"quantum must be a number >= 0; got {quantum}.")
    return max(_RELATIVE_NOISE_FLOOR * sd if floor is None else floor, quantum / float(np.sqrt(12.0)))


def checked_times(times: object) -> np.ndarray:
    """Times (n,), finite and strictly increasing."""
    array = host_array(times, "times", 1)
    steps = np.diff(array)
    bad = np.flatnonzero(steps <= 0.0)
    if bad.size:
        i = int(bad[0])
        what = "twice the same time" if steps[i] == 0.0 else "a time before its predecessor"
        raise InputError(
            f"times holds {what} at position {i + 1} ({bad.size} such step(s)); "
            "sort the trace and merge or drop duplicates first."
        )
    return array


def checked_trace(times: object, values: object) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,) and values (n,) or (n, d) of the same length."""
    checked = checked_times(times)
    array = host_array(values, "values", (1, 2))
    if array.shape[0] != checked.size:
        raise InputError(
            f"values has shape {array.shape} for {checked.size} times; "
            f"expected ({checked.size},) or ({checked.size}, d)."
        )
    return checked, array


def refuse_unfit(values: np.ndarray, name: str, min_sd: float, noise_floor: float, unit: str) -> None:
    """Raise InputError where the values (n,) are too few or too still to fit a prior to."""
    if values.size < MIN_POINTS:
        raise InputError(
            f"{name} has {values.size} points; a prior needs at least {MIN_POINTS} to be fitted. {_GIVE_PRIOR}"
        )
    sd = float(np.std(values))
    if sd <= 1e-12 * float(np.max(np.abs(values))):
        raise InputError(f"{name} does not vary (its standard deviation is {sd:.3g} {unit}). {_GIVE_PRIOR}")
    if sd <= min_sd:
        hint = " Positions must be in metres on a local plane, not degrees." if unit == "m" else ""
        raise InputError(
            f"{name} has standard deviation {sd:.3g} {unit}, not above {min_sd:g} {unit}: too still to fit a prior to."
            f"{hint} {_GIVE_PRIOR}"
        )
    if noise_floor >= sd:
        raise InputError(
            f"the smallest noise sd, {noise_floor:.3g} {unit}, is not below the standard deviation of {name}, "
            f"{sd:.3g} {unit}: nothing but noise could be fitted. {_GIVE_PRIOR}"
        )


def check_options(family: Family, mean: str, period: float | None, n: int) -> None:
    """Raise InputError where the options do not go together."""
    if mean not in MEANS:
        raise InputError(f"mean {mean!r} is not one of {', '.join(MEANS)}.")
    if family.periodic and not (period is not None and np.isfinite(period) and period > 0.0):
        raise InputError(
            f"kernel {family.name!r} needs a fixed period > 0 in the unit of the times (24 for hours of a day); "
            f"got {period}. A free period has a local optimum at every harmonic."
        )
    if not family.periodic and period is not None:
        raise InputError(f"kernel {family.name!r} has no period; leave period out.")
    if not family.stationary and mean == "zero":
        raise InputError(
            f"kernel {family.name!r} fixes the first position, so mean='zero' would claim that it is known exactly; "
            "use mean='constant'."
        )
    if family.structured is None and n > DENSE_LIMIT:
        raise InputError(
            f"kernel {family.name!r} has no O(n) likelihood and the trace has {n} points (limit {DENSE_LIMIT}); "
            "use matern32, matern52, iou or damped_iou, or thin the trace."
        )


def checked_bounds(family: Family, bounds: Mapping[str, tuple[float, float]] | None) -> dict[str, tuple[float, float]]:
    """The caller's bounds by parameter name, positive and ordered; equal ends fix a parameter."""
    result: dict[str, tuple[float, float]] = {}
    for name, pair in (bounds or {}).items():
        if name not in family.all_parameters:
            raise InputError(
                f"bounds names {name!r}; the parameters of {family.name!r} are {', '.join(family.all_parameters)}."
            )
        ends = host_array(pair, f"bounds[{name!r}]", 1)
        if ends.shape != (2,) or not 0.0 < ends[0] <= ends[1]:
            raise InputError(f"bounds[{name!r}] must be (low, high) with 0 < low <= high; got {tuple(ends)}.")
        result[name] = (float(ends[0]), float(ends[1]))
    return result


def checked_starts(family: Family, starts: Sequence[Mapping[str, float]] | None) -> list[dict[str, float]] | None:
    """The caller's starting points: positive numbers by parameter name (missing ones take their default)."""
    if starts is None:
        return None
    if not starts:
        raise InputError("starts is empty; leave it out to use the default starting points.")
    for i, start in enumerate(starts):
        for name, value in start.items():
            if name not in family.all_parameters:
                raise InputError(
                    f"starts[{i}] names {name!r}; the parameters of {family.name!r} are "
                    f"{', '.join(family.all_parameters)}."
                )
            if not (np.isfinite(value) and value > 0.0):
                raise InputError(f"starts[{i}][{name!r}] must be a positive number; got {value}.")
    return [{name: float(value) for name, value in start.items()} for start in starts]
