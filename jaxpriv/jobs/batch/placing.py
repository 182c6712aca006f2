"""A trace of a batch as positions in metres, and which of its fixes are the secret."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.jobs.batch.input import InputTrace
from jaxpriv.jobs.requests import SecretRequest
from jaxpriv.jobs.target import Target
from jaxpriv.secrets.secret import EveryPoint, Secret
from jaxpriv.secrets.unsampled import UnsampledSecret
from jaxpriv.traces.projection import STRETCH, LocalPlane, public_origin
from jaxpriv.traces.trace import Trace


@dataclass(frozen=True)
class Placed:
    """A trace on its plane: positions (n, 2) in metres, and the secret or secrets of each coordinate."""

    source: InputTrace
    trace: Trace = field(repr=False)
    plane: LocalPlane
    metres: np.ndarray = field(repr=False)
    secret: Any

    @property
    def time_us(self) -> np.ndarray:
        """Distinct instants (n,), microseconds since 1970."""
        return self.trace.time_us

    @property
    def secrets(self) -> list[Secret | UnsampledSecret]:
        """Each secret that is protected by itself."""
        if isinstance(self.secret, EveryPoint):
            return [Secret((i,), self.secret.radius) for i in range(len(self.metres))]
        return self.secret if isinstance(self.secret, list) else [self.secret]


def place(one: InputTrace, target: Target, secrets: SecretRequest) -> Placed:
    """Bring a trace to metres and find its secret. Raises `InputError` for what cannot be used."""
    trace = one.trace
    if trace is None:
        raise InputError(one.reason)
    if trace.n_points < 2:
        raise InputError("the trace has 1 distinct time; at least 2 are needed")
    if trace.step_m > target.resolution_m * (1 + 1e-6):
        raise InputError(
            f"the positions are rounded to about {trace.step_m:.2g} m, coarser than the declared resolution of "
            f"{target.resolution_m:g} m; pass a larger --resolution"
        )
    plane = public_origin(trace.latitude, trace.longitude)
    rows = plane.to_metres(trace.latitude, trace.longitude)
    plane.check_extent(rows)
    metres = trace.mean_by_point(rows)
    secret: Any = middle_secret(trace.n_points, target)
    if secrets != SecretRequest():
        secret = secrets.on(trace).on_axis(plane_radius(target))
        if isinstance(secret, list) and len(secret) == 1:
            secret = secret[0]
    return Placed(one, trace, plane, metres, secret)


def plane_radius(target: Target) -> float:
    """The radius of a secret in metres of the local plane."""
    return target.radius_m * STRETCH


def middle_secret(points: int, target: Target) -> Secret:
    """The secret of a trace of so many fixes where none is named: the one in its middle."""
    return Secret((points // 2,), plane_radius(target))
