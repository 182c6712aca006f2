"""From a time that somebody names to a secret of the trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.report.record import SecretRecord
from jaxpriv.traces.instants import format_instant


class Timed(Protocol):
    """What has distinct instants: a trace of positions, or a series of values.

    `time_us` (n,) in microseconds since 1970, increasing; `seconds` (n,) since the first of them.
    """

    @property
    def time_us(self) -> np.ndarray: ...

    @property
    def n_points(self) -> int: ...

    @property
    def seconds(self) -> np.ndarray: ...

    @property
    def median_step_s(self) -> float: ...


@dataclass(frozen=True)
class SecretTime:
    """A protected time of a trace: the position of its fix, or None for the place between two fixes."""

    time_us: int
    position: int | None
    seconds: float
    record: SecretRecord


def locate_secret(trace: Timed, time_us: int) -> SecretTime:
    """Take the nearest fix within one median step of the time, else the time itself, between fixes.

    Raises `InputError` for a time before the first fix or after the last.
    """
    times = trace.time_us
    asked = format_instant(time_us)
    if not times[0] <= time_us <= times[-1]:
        side = "before the trace begins" if time_us < times[0] else "after the trace ends"
        raise InputError(f"the secret time {asked} is {side}; check the date and the offset from UTC")
    seconds = (time_us - int(times[0])) / 1e6
    nearest = int(np.argmin(np.abs(times - time_us)))
    offset = (int(times[nearest]) - time_us) / 1e6
    if abs(offset) <= trace.median_step_s:
        return SecretTime(time_us, nearest, seconds, SecretRecord(asked, format_instant(times[nearest]), offset))
    return SecretTime(time_us, None, seconds, SecretRecord(asked, None, None))
