"""prior.json: fitted priors in a file, of one person or of a population.

The file is a JSON object:

    format        "jaxpriv-prior"
    version       1
    provenance    "fitted on the same data", "fitted elsewhere" or "given"; what the file may be used to claim
    kind          "person" or "population"
    value_unit, time_unit, mean, period   shared by all fits; period is null unless the kernels are periodic
    noise_floor   the smallest nugget that was allowed (standard deviation), or null for 0.001 of the values' own
    coordinates   for "person": a list with one entry for each coordinate, a list of fits
    fits          for "population": a list of fits, each with a "group"
    skipped       for "population": how many coordinates were refused, by reason

and a fit is an object with kernel, parameters (by name, in the units above, noise_sd last), noise_sd_lower (or null),
loglik, start_logliks (null for a failed start), bound_hits, converged, n, duration and value_sd. Unknown keys, missing
keys, numbers that are not finite or not positive and other versions are refused when it is read.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxpriv.errors import InputError
from jaxpriv.fitting.checks import check_options
from jaxpriv.fitting.families import family_named
from jaxpriv.fitting.fit import Fit, Settings
from jaxpriv.fitting.population import Population


FORMAT, VERSION = "jaxpriv-prior", 1
PROVENANCES = ("fitted on the same data", "fitted elsewhere", "given")
_LARGEST = 50_000_000  # bytes
_SHARED = {"format", "version", "provenance", "kind", "value_unit", "time_unit", "mean", "period", "noise_floor"}
_FIT_KEYS = {
    "kernel", "parameters", "noise_sd_lower", "loglik", "start_logliks", "bound_hits", "converged", "n", "duration",
    "value_sd",
}  # fmt: skip


@dataclass(frozen=True)
class PriorFile:
    """What a prior file holds: `coordinates`, a tuple of fits for each coordinate of one person, or a `population`."""

    provenance: str
    coordinates: tuple[tuple[Fit, ...], ...] | None
    population: Population | None

    @property
    def units(self) -> tuple[str, str]:
        """The value unit and the time unit."""
        return self._any.settings.units

    @property
    def _any(self) -> Fit:
        if self.population is not None:
            return self.population.fits[0]
        assert self.coordinates is not None
        return self.coordinates[0][0]


def write_prior(path: str | Path, prior: Sequence[Sequence[Fit]] | Population, provenance: str) -> None:
    """Write fits, a sequence for each coordinate, or a population, to `path`, readable by the owner only.

    The file appears whole or not at all: it is written beside its place and renamed. `provenance` is one of "fitted on
    the same data", "fitted elsewhere" and "given". The fits say how a person moves, not where; that is still personal.
    Raises InputError if there is nothing to write or the fits do not share units, mean and period.
    """
    if provenance not in PROVENANCES:
        raise InputError(f"provenance {provenance!r} is not one of {', '.join(map(repr, PROVENANCES))}.")
    fits = list(prior.fits) if isinstance(prior, Population) else [one for axis in prior for one in axis]
    if not fits or (not isinstance(prior, Population) and not all(prior)):
        raise InputError("there is no fit to write for some coordinate.")
    shared = {(one.settings.units, one.settings.mean, one.settings.period, one.settings.noise_floor) for one in fits}
    if len(shared) > 1:
        raise InputError("the fits of one prior file must share their units, mean, period and noise floor.")
    (units, mean, period, floor) = shared.pop()
    content: dict[str, Any] = {
        "format": FORMAT, "version": VERSION, "provenance": provenance,
        "kind": "population" if isinstance(prior, Population) else "person",
        "value_unit": units[0], "time_unit": units[1], "mean": mean, "period": period, "noise_floor": floor,
    }  # fmt: skip
    if isinstance(prior, Population):
        content["fits"] = [
            {"group": group, **_fit_to_json(one)} for one, group in zip(prior.fits, prior.groups, strict=True)
        ]
        content["skipped"] = dict(prior.skipped)
    else:
        content["coordinates"] = [[_fit_to_json(one) for one in axis] for axis in prior]
    try:
        text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    except ValueError as error:
        raise InputError("a number in the fits is not finite; nothing was written.") from error
    _write_whole(Path(path), text)


def read_prior(path: str | Path) -> PriorFile:
    """Read and check a prior file. Raises InputError naming the file and the entry that is wrong."""
    path = Path(path)
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(f"{path.name}: larger than {_LARGEST:,} bytes, not a prior file.")
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        raise InputError(f"{path.name}: cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path.name}: not a JSON file ({error}).") from error
    try:
        return _from_json(content)
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from error


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _write_whole(path: Path, text: str) -> None:
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    except OSError as error:
        raise InputError(f"{path.name}: cannot be written to its folder ({error.strerror}).") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise InputError(f"{path.name}: cannot be written ({error.strerror}).") from error
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _fit_to_json(one: Fit) -> dict[str, Any]:
    return {
        "kernel": one.family,
        "parameters": dict(one.parameters),
        "noise_sd_lower": one.noise_sd_lower,
        "loglik": one.loglik,
        "start_logliks": [None if math.isnan(value) else value for value in one.start_logliks],
        "bound_hits": list(one.bound_hits),
        "converged": one.converged,
        "n": one.n,
        "duration": one.duration,
        "value_sd": one.value_sd,
    }


def _from_json(content: Any) -> PriorFile:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f'not a prior file: "format" is not {FORMAT!r}.')
    if content.get("version") != VERSION:
        raise InputError(f"version {content.get('version')!r}; this jaxpriv reads version {VERSION}.")
    kind = content.get("kind")
    if kind not in ("person", "population"):
        raise InputError(f'"kind" is {kind!r}; expected "person" or "population".')
    _keys(content, _SHARED | ({"coordinates"} if kind == "person" else {"fits", "skipped"}), "the file")
    if content["provenance"] not in PROVENANCES:
        raise InputError(f'"provenance" is {content["provenance"]!r}; expected one of {", ".join(PROVENANCES)}.')
    shared = {
        "units": (_text(content["value_unit"], "value_unit"), _text(content["time_unit"], "time_unit")),
        "mean": _text(content["mean"], "mean"),
        "period": None if content["period"] is None else _positive(content["period"], "period"),
        "noise_floor": None if content["noise_floor"] is None else _positive(content["noise_floor"], "noise_floor"),
    }
    if kind == "person":
        axes = _list(content["coordinates"], "coordinates")
        coordinates = tuple(
            tuple(
                _fit_from_json(one, shared, f"coordinates[{i}][{j}]")
                for j, one in enumerate(_list(axis, f"coordinates[{i}]"))
            )
            for i, axis in enumerate(axes)
        )
        return PriorFile(content["provenance"], coordinates, None)
    fits, groups = [], []
    for i, one in enumerate(_list(content["fits"], "fits")):
        where = f"fits[{i}]"
        if not isinstance(one, dict):
            raise InputError(f"{where} is not an object.")
        groups.append(_text(one.get("group"), f"{where}.group"))
        fits.append(_fit_from_json({key: value for key, value in one.items() if key != "group"}, shared, where))
    skipped = content["skipped"]
    if not isinstance(skipped, dict) or not all(isinstance(v, int) and v >= 0 for v in skipped.values()):
        raise InputError("skipped must map reasons to counts.")
    return PriorFile(content["provenance"], None, Population(tuple(fits), tuple(groups), skipped))


def _fit_from_json(one: Any, shared: Mapping[str, Any], where: str) -> Fit:
    if not isinstance(one, dict):
        raise InputError(f"{where} is not an object.")
    _keys(one, _FIT_KEYS, where)
    kernel = _text(one["kernel"], f"{where}.kernel")
    try:
        family = family_named(kernel)
        check_options(family, shared["mean"], shared["period"], 0)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    if not isinstance(one["parameters"], dict):
        raise InputError(f"{where}.parameters is not an object.")
    _keys(one["parameters"], set(family.all_parameters), f"{where}.parameters")
    parameters = {
        name: _positive(one["parameters"][name], f"{where}.parameters.{name}") for name in family.all_parameters
    }
    lower = one["noise_sd_lower"]
    hits = _list(one["bound_hits"], f"{where}.bound_hits", empty=True)
    if not isinstance(one["converged"], bool):
        raise InputError(f"{where}.converged must be true or false.")
    points = _positive(one["n"], f"{where}.n")
    return Fit(
        Settings(kernel=kernel, **shared),
        parameters,
        None if lower is None else _positive(lower, f"{where}.noise_sd_lower"),
        _number(one["loglik"], f"{where}.loglik"),
        tuple(
            float("nan") if value is None else _number(value, f"{where}.start_logliks")
            for value in _list(one["start_logliks"], f"{where}.start_logliks")
        ),
        tuple(_text(hit, f"{where}.bound_hits") for hit in hits),
        one["converged"],
        int(points),
        _positive(one["duration"], f"{where}.duration"),
        _positive(one["value_sd"], f"{where}.value_sd"),
    )


def _keys(content: Mapping[str, Any], expected: set[str], where: str) -> None:
    missing, extra = sorted(expected - set(content)), sorted(set(content) - expected)
    if missing:
        raise InputError(f"{where} lacks {', '.join(missing)}.")
    if extra:
        raise InputError(f"{where} has entries that are not known: {', '.join(extra)}.")


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InputError(f"{where} is {value!r}; expected a finite number.")
    return float(value)


def _positive(value: Any, where: str) -> float:
    number = _number(value, where)
    if not number > 0.0:
        raise InputError(f"{where} is {value!r}; expected a number above zero.")
    return number


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"{where} is {value!r}; expected a text.")
    return value


def _list(value: Any, where: str, empty: bool = False) -> list[Any]:
    if not isinstance(value, list) or not (value or empty):
        raise InputError(f"{where} must be a list{'' if empty else ' with at least one entry'}.")
    return value
