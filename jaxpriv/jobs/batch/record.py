"""The private record of a part: whose each number is, what is promised, and all that is needed to check the promise."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.stored import check_names, number, whole
from jaxpriv.secrets.secret import Secret
from jaxpriv.secrets.unsampled import UnsampledSecret


FORMAT = 2
_PRIOR = ("kernel", "lengthscale_s", "sd_m", "nugget_m", "period_s")
_SOURCE = "stated in a record"


@dataclass(frozen=True)
class AxisRecord:
    """The mechanism of one coordinate in metres, its priors, and what is said of it (ε in nats, cost in m²)."""

    factor: np.ndarray = field(repr=False)
    floor_sd: float
    epsilon: float
    cost: float
    lower_bound: float
    gap: float
    priors: tuple[PriorChoice, ...]

    def to_json(self) -> dict[str, Any]:
        """As it is stored: the factor (n, q) row by row, little-endian float64 in base64."""
        factor = np.ascontiguousarray(self.factor, "<f8")
        return {
            "epsilon": self.epsilon,
            "cost_m2": self.cost,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "floor_sd_m": self.floor_sd,
            "priors": [{name: getattr(one, name) for name in _PRIOR} for one in self.priors],
            "columns": factor.shape[1],
            "factor": base64.b64encode(factor.tobytes()).decode(),
            "factor_sha256": hashlib.sha256(factor.tobytes()).hexdigest(),
        }

    @classmethod
    def from_json(cls, said: dict[str, Any], points: int) -> AxisRecord:
        """Read it for a trace of so many points. Raises `InputError`."""
        names = {"epsilon", "cost_m2", "lower_bound", "gap", "floor_sd_m", "priors", "columns", "factor"}
        check_names(_object(said), names | {"factor_sha256"}, "a coordinate")
        try:
            content = base64.b64decode(said["factor"], validate=True)
        except (TypeError, ValueError, binascii.Error):
            raise InputError("a noise factor is not base64") from None
        if hashlib.sha256(content).hexdigest() != said["factor_sha256"]:
            raise InputError("a noise factor is not the one that was stored: its digest differs")
        columns = whole(said["columns"], "columns")
        if columns < 0 or len(content) != 8 * points * columns:
            raise InputError("a noise factor has another size than its trace")
        factor = np.frombuffer(content, "<f8").reshape(points, columns).astype(np.float64)
        if not np.all(np.isfinite(factor)):
            raise InputError("a noise factor holds a number that is not finite")
        if not isinstance(said["priors"], list) or not said["priors"]:
            raise InputError("a coordinate has no prior")
        return cls(
            factor,
            number(said["floor_sd_m"], "floor_sd_m"),
            number(said["epsilon"], "epsilon"),
            number(said["cost_m2"], "cost_m2"),
            number(said["lower_bound"], "lower_bound"),
            number(said["gap"], "gap"),
            tuple(_prior(one) for one in said["priors"]),
        )


@dataclass(frozen=True)
class TraceRecord:
    """What is private of one released trace: `number` from 0, its keys in the input, and the noise that it got.

    `secrets` are those of each coordinate, each protected by itself; `origin` (latitude, longitude in degrees) is that
    of the plane, and 2^`exponent` metres the step of its grid. `prior` says in words where the priors come from.
    """

    number: int
    keys: tuple[str, ...]
    points: int
    secrets: tuple[Secret | UnsampledSecret, ...]
    axes: tuple[AxisRecord, AxisRecord]
    origin: tuple[float, float]
    exponent: int
    tau: float | None
    rms_m: float
    epsilon: float
    gap: float
    prior: str
    estimate: bool
    cleaning: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "trace": self.number,
            "keys": self.keys,
            "points": self.points,
            "epsilon": self.epsilon,
            "estimate": self.estimate,
            "prior": self.prior,
            "rms_m": self.rms_m,
            "gap": self.gap,
            "tau": self.tau,
            "cleaning": self.cleaning,
            "origin": self.origin,
            "grid_exponent": self.exponent,
            "secrets": [_secret_json(one) for one in self.secrets],
            "axes": [axis.to_json() for axis in self.axes],
        }

    @classmethod
    def from_json(cls, said: dict[str, Any], radius: float) -> TraceRecord:
        """Read it; `radius` is that of all secrets, in metres of the plane. Raises `InputError`."""
        about = f"trace {_object(said).get('trace')}"
        try:
            names = {"trace", "keys", "points", "epsilon", "estimate", "prior", "rms_m", "gap", "tau", "cleaning"}
            check_names(said, names | {"origin", "grid_exponent", "secrets", "axes"}, "it")
            points = whole(said["points"], "points")
            if not (isinstance(said["axes"], list) and len(said["axes"]) == 2 and points >= 2):
                raise InputError("it needs two coordinates and at least two points")
            east, north = (AxisRecord.from_json(one, points) for one in said["axes"])
            latitude, longitude = (number(one, "origin") for one in said["origin"])
            secrets = tuple(_secret(one, points, radius) for one in said["secrets"])
            if not secrets:
                raise InputError("it has no secret")
            return cls(
                whole(said["trace"], "trace"),
                tuple(str(one) for one in said["keys"]),
                points,
                secrets,
                (east, north),
                (latitude, longitude),
                whole(said["grid_exponent"], "grid_exponent"),
                None if said["tau"] is None else number(said["tau"], "tau"),
                number(said["rms_m"], "rms_m"),
                number(said["epsilon"], "epsilon"),
                number(said["gap"], "gap"),
                str(said["prior"]),
                bool(said["estimate"]),
                tuple(str(one) for one in said["cleaning"]),
            )
        except InputError as problem:
            raise InputError(f"{about}: {problem}") from None
        except (TypeError, ValueError):
            raise InputError(f"{about}: it is not stored as jaxpriv does") from None


def part_json(traces: list[TraceRecord], refused: list[dict[str, Any]]) -> dict[str, Any]:
    """The record of a part: `refused` has the number, keys and reason of each trace without a release."""
    return {"format": FORMAT, "traces": [one.to_json() for one in traces], "refused": refused}


def share_name(part: str) -> str:
    """The name in `share` of the file of a part."""
    return f"part-{part}.parquet"


def record_name(part: str) -> str:
    """The name in `private/parts` of the record of a part."""
    return f"{part}.json"


def read_part(path: Path) -> dict[str, Any]:
    """The record of a part as plain JSON with `traces` and `refused`. Raises `InputError` where it cannot be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} is missing; restore it") from None
    except (OSError, ValueError, RecursionError):
        raise InputError(f"{path} is damaged; restore it") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path} is of another version; use the jaxpriv that wrote it")
    lists = (content.get("traces"), content.get("refused"))
    if not all(isinstance(one, list) and all(isinstance(entry, dict) for entry in one) for one in lists):
        raise InputError(f"{path} is damaged; restore it")
    return content


def _object(said: Any) -> dict[str, Any]:
    if not isinstance(said, dict):
        raise InputError("an entry is not an object")
    return said


def _prior(said: Any) -> PriorChoice:
    check_names(_object(said), set(_PRIOR), "a prior")
    values = {name: number(said[name], name) for name in _PRIOR[1:4]}
    period = None if said["period_s"] is None else number(said["period_s"], "period_s")
    return PriorChoice(str(said["kernel"]), **values, period_s=period, source=_SOURCE)


def _secret_json(secret: Secret | UnsampledSecret) -> dict[str, Any]:
    if isinstance(secret, UnsampledSecret):
        return {"seconds": float(secret.time)}
    return {"fixes": list(secret.indices)}


def _secret(said: Any, points: int, radius: float) -> Secret | UnsampledSecret:
    if set(_object(said)) == {"seconds"}:
        return UnsampledSecret(number(said["seconds"], "seconds"), radius)
    check_names(said, {"fixes"}, "a secret")
    fixes = [whole(one, "fixes") for one in said["fixes"]]
    if not fixes or max(fixes) >= points:
        raise InputError("a secret lies outside of the trace")
    return Secret(fixes, radius)
