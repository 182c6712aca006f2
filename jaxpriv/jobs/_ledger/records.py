"""What a ledger keeps of one release, and how the same content and the same request are recognised."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.jobs.grid_times import GridRequest
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.requests import PriorRequest
from jaxpriv.jobs.secret_sources import ChosenSecret, ChosenSecrets
from jaxpriv.jobs.target import Target
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.traces.trace import Trace


# reserved: counted, nothing can have been published. stored: the output is in the ledger and may have been published.
State = Literal["reserved", "stored", "published"]


@dataclass(frozen=True)
class LedgerSecret:
    """A secret of one release: the instants of its fixes in microseconds since 1970, or one instant `between` fixes.

    `radius_m` is the separation in metres of the plane, `alone` its certified ε for this release by itself, in nats:
    the largest over both coordinates and the priors of the release.
    """

    label: str
    time_us: tuple[int, ...]
    between: bool
    radius_m: float
    alone: float


@dataclass(frozen=True)
class LedgerRelease:
    """One release as the ledger keeps it, output apart; nothing in it depends on the recorded positions.

    `number` counts the releases of a person from 1 (0 before it is on record). `content` and `request` are digests of
    the cleaned rows and of what was asked. `time_us` (n,) are the instants of the fixes, `mechanisms` and `priors`
    those of east and north, in metres.
    """

    number: int
    draw: str
    state: State
    recorded: str
    content: bytes = field(repr=False)
    request: bytes = field(repr=False)
    time_us: np.ndarray = field(repr=False)
    mechanisms: tuple[GaussianMechanism, GaussianMechanism] = field(repr=False)
    priors: tuple[tuple[PriorChoice, ...], tuple[PriorChoice, ...]] = field(repr=False)
    secrets: tuple[LedgerSecret, ...] = field(repr=False)
    order: float = 2.0
    grid_exponent: int = 0
    resolution_m: float = 0.0

    @property
    def alone(self) -> float:
        """The largest ε of its own secrets, by itself."""
        return max(one.alone for one in self.secrets)


def content_digest(trace: Trace, key: bytes) -> bytes:
    """Digest of the cleaned rows (instants and positions), in whatever file, format and order, under a ledger's key.

    A slow one: whoever reads the ledger and wants to confirm a guess of the whole trace pays some 30 ms for each.
    """
    time_us = trace.time_us[trace.point_of_row]
    rows = sorted(set(zip(time_us.tolist(), trace.latitude.tolist(), trace.longitude.tolist(), strict=True)))
    packed = b"".join(struct.pack("<qdd", us, lat + 0.0, lon + 0.0) for us, lat, lon in rows)
    return hashlib.scrypt(hashlib.sha256(packed).digest(), salt=key, n=2**14, r=8, p=1, dklen=32)


def request_digest(
    time_us: np.ndarray,
    secrets: ChosenSecrets,
    target: Target,
    prior: PriorRequest,
    grid: GridRequest | None = None,
) -> bytes:
    """Digest of what was asked: secrets as they were found, goal, prior as it was named; not where the output goes.

    `time_us` (n,) are the instants of the trace. Raises `InputError` for a prior file that cannot be read.
    """
    given, file = prior.given, prior.file
    asked = {
        "secrets": [secret_times(one, time_us) for one in secrets.secrets],
        "every": secrets.every,
        "radius": target.radius_m,
        "goal": [target.epsilon, target.budget_m, target.uncertainty_m],
        "order": target.order,
        "delta": target.delta,
        "resolution": target.resolution_m,
        "effort": target.effort,
        "given": None if given is None else prior_numbers(given),
        "file": None if file is None else _file_digest(file),
        "which": prior.which or "default",
        "kernels": list(prior.kernels),
        "sd": prior.sd_m,
        "grid": None if grid is None else [grid.step_us, grid.start_us, grid.end_us],
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).digest()


def secret_times(secret: ChosenSecret, time_us: np.ndarray) -> tuple[tuple[int, ...], bool]:
    """Instants of the fixes of a chosen secret, or its own and True when it lies between two fixes."""
    if secret.positions:
        return tuple(int(time_us[position]) for position in secret.positions), False
    return (int(secret.times[0].time_us),), True


def prior_numbers(prior: PriorChoice) -> tuple[str, float, float, float, float | None]:
    """What makes two priors the same."""
    return prior.kernel, prior.lengthscale_s, prior.sd_m, prior.nugget_m, prior.period_s


def _file_digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as problem:
        raise InputError(f"{file.name}: cannot be read ({problem.strerror or 'unknown reason'})") from None
