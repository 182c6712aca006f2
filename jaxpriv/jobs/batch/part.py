"""One part of a batch: a few traces of about one length, designed together, released, and written once."""

from __future__ import annotations

import hashlib
import hmac
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jaxpriv.designs.batch.buckets import bucket_of
from jaxpriv.errors import JaxprivError
from jaxpriv.jobs.batch.designs import AxisDesign, Prepared, design_prepared
from jaxpriv.jobs.batch.files import json_text, write_anew, write_once
from jaxpriv.jobs.batch.input import InputTrace
from jaxpriv.jobs.batch.placing import Placed, place
from jaxpriv.jobs.batch.priors import find_part_priors
from jaxpriv.jobs.batch.programs import RESIDENT, make_room
from jaxpriv.jobs.batch.record import FORMAT, AxisRecord, TraceRecord, part_json, record_name, share_name
from jaxpriv.jobs.batch.shared import DECIMALS, SharedTrace, write_shared
from jaxpriv.jobs.noise import ReleasedPoints, draw_release, simulate_release
from jaxpriv.jobs.requests import PriorRequest, SecretRequest
from jaxpriv.jobs.target import Target
from jaxpriv.mechanisms.gaussian import GaussianMechanism


# The batched LAPACK kernels of jaxlib may wait for ever when two threads of a process call them at the same time.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class BatchOptions:
    """What is asked of every trace. An empty `secrets` means the middle fix; `seed` makes a simulation of it."""

    target: Target
    prior: PriorRequest
    secrets: SecretRequest = field(default_factory=SecretRequest)
    seed: int | None = None

    def describe(self) -> dict[str, Any]:
        """All that the outcome depends on but the traces, with the content of the prior's file in place of its name."""
        target, prior, secrets = self.target, self.prior, self.secrets
        file = None if prior.file is None else hashlib.sha256(prior.file.read_bytes()).hexdigest()
        return {
            "format": FORMAT,
            "target": {name: getattr(target, name) for name in target.__dataclass_fields__},
            "prior": {
                "given": None if prior.given is None else vars(prior.given),
                "file": file,
                "set": prior.which,
                "kernels": list(prior.kernels),
                "sd_m": prior.sd_m,
            },
            "secrets": {name: getattr(secrets, name) for name in secrets.__dataclass_fields__},
            "simulate": self.seed,
        }


@dataclass(frozen=True)
class Part:
    """Traces of one part, where it is written, and its name there; `memory` of the process in bytes.

    `name` is an HMAC-SHA256 of the traces, their numbers and all parameters under the key of the folder.
    """

    name: str
    out: Path
    options: BatchOptions
    memory: float
    traces: tuple[InputTrace, ...] = field(repr=False)

    @classmethod
    def of(
        cls, traces: list[InputTrace], out: Path, options: BatchOptions, about: bytes, key: bytes, memory: float
    ) -> Part:
        """Name a part; `about` is what all parts of the batch share."""
        digest = hmac.new(key, about, hashlib.sha256)
        for one in traces:
            digest.update(one.number.to_bytes(8, "big") + one.content())
        return cls(digest.hexdigest(), out, options, memory, tuple(traces))

    @property
    def share_file(self) -> Path:
        """What may be shared; the part is done when it is there."""
        return self.out / "share" / share_name(self.name)

    @property
    def private_file(self) -> Path:
        """What the designs were, whose they are, and why traces were refused."""
        return self.out / "private" / "parts" / record_name(self.name)

    @property
    def bucket(self) -> int:
        """The length that its longest trace is padded to."""
        return max(bucket_of(one.trace.n_points) for one in self.traces if one.trace is not None)

    @property
    def solver_memory(self) -> float:
        """What the arrays of the solver may take, in bytes: as much again is in use while they are made."""
        return 0.5 * (self.memory - RESIDENT)

    @property
    def done(self) -> bool:
        """Whether the part was written, by this run or an earlier one."""
        return self.share_file.exists()


def run_part(part: Part) -> str:
    """Design, certify, release and write a part, unless it was written already; its name."""
    if part.done:
        return part.name
    with _ONE_AT_A_TIME:
        make_room(part.bucket, part.options.prior, part.memory)
        released, record = _make(part)
    # The private record comes first: what is shared is never without it.
    write_anew(part.private_file, json_text(record))
    write_once(part.share_file, lambda path: write_shared(path, released))
    return part.name


def _make(part: Part) -> tuple[list[SharedTrace], dict[str, Any]]:
    options = part.options
    refused: dict[int, str] = {}
    placed: list[Placed] = []
    for one in part.traces:
        try:
            placed.append(place(one, options.target, options.secrets))
        except JaxprivError as error:
            refused[one.number] = str(error)
    prepared: list[Prepared] = []
    for one, source in zip(placed, find_part_priors(placed, options.prior, options.target), strict=True):
        if isinstance(source, str):
            refused[one.source.number] = source
        else:
            prepared.append(Prepared.of(one, source))
    designs = design_prepared(prepared, options.target, part.solver_memory)
    released: list[SharedTrace] = []
    records: list[TraceRecord] = []
    for one, axes in zip(prepared, designs, strict=True):
        number, plane = one.placed.source.number, one.placed.plane
        try:
            if isinstance(axes, str):
                refused[number] = axes
                continue
            points = _draw(one.placed, axes, options)
        except JaxprivError as error:
            refused[number] = str(error)
            continue
        latitude, longitude = (np.round(degrees, DECIMALS) for degrees in plane.to_degrees(points.metres))
        released.append(SharedTrace(number, one.placed.time_us, latitude, longitude))
        records.append(_record(one, axes, points))
    keys = {one.number: one.keys for one in part.traces}
    return released, part_json(
        records, [{"trace": n, "keys": keys[n], "reason": reason} for n, reason in sorted(refused.items())]
    )


def _draw(one: Placed, axes: tuple[AxisDesign, AxisDesign], options: BatchOptions) -> ReleasedPoints:
    resolution = options.target.resolution_m
    mechanisms = [GaussianMechanism(axis.factor, axis.floor_sd, resolution) for axis in axes]
    if options.seed is None:
        return draw_release(mechanisms, one.metres, resolution)
    # Of the seed and the trace alone: how traces are put into parts changes nothing.
    mixed = hashlib.sha256(options.seed.to_bytes(32, "big") + one.source.content()).digest()
    return simulate_release(mechanisms, one.metres, resolution, int.from_bytes(mixed[:4], "big") >> 1)


def _record(one: Prepared, axes: tuple[AxisDesign, AxisDesign], points: ReleasedPoints) -> TraceRecord:
    placed = one.placed
    east, north = (
        AxisRecord(axis.factor, axis.floor_sd, axis.epsilon, axis.cost, axis.lower_bound, axis.gap, source.choices)
        for axis, source in zip(axes, one.prior.axes, strict=True)
    )
    return TraceRecord(
        placed.source.number,
        placed.source.keys,
        one.points,
        tuple(placed.secrets),
        (east, north),
        (placed.plane.latitude, placed.plane.longitude),
        points.exponent,
        points.tau,
        rms_of([axis.cost for axis in axes], one.points, points.exponent),
        max(axis.epsilon for axis in axes),
        max(axis.gap for axis in axes),
        one.prior.source,
        one.prior.estimate,
        tuple(placed.trace.cleaning.sentences()),
    )


def rms_of(costs: Sequence[float], points: int, exponent: int) -> float:
    """How far points move, root mean square in metres, for the costs of both coordinates (m²) and the grid."""
    return math.sqrt((math.fsum(costs) + 2 * points * 4.0**exponent / 12) / points)
