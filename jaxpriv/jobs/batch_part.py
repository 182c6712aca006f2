"""One part of a batch: a few traces of about one length, designed together, released, and written once."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jaxpriv.errors import JaxprivError
from jaxpriv.jobs.batch_designs import AxisDesign, Prepared, design_prepared, prepare
from jaxpriv.jobs.batch_files import json_text, write_anew, write_once
from jaxpriv.jobs.batch_input import InputTrace
from jaxpriv.jobs.noise import ReleasedPoints, draw_release, simulate_release
from jaxpriv.jobs.requests import PriorRequest, SecretRequest
from jaxpriv.jobs.target import Target
from jaxpriv.mechanisms.gaussian import GaussianMechanism


FORMAT = 1
_DECIMALS = 7
# The batched LAPACK kernels of jaxlib may wait for ever when two threads of a process call them at the same time.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class BatchRequest:
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
    """Traces of one part, where it is written, and its name there.

    `name` is an HMAC-SHA256 of the traces, their numbers and all parameters under the key of the folder.
    """

    name: str
    out: Path
    request: BatchRequest
    memory_limit: float
    traces: tuple[InputTrace, ...] = field(repr=False)

    @classmethod
    def of(
        cls, traces: list[InputTrace], out: Path, request: BatchRequest, about: bytes, key: bytes, memory_limit: float
    ) -> Part:
        """Name a part; `about` is what all parts of the batch share."""
        digest = hmac.new(key, about, hashlib.sha256)
        for one in traces:
            digest.update(one.number.to_bytes(8, "big") + one.content())
        return cls(digest.hexdigest(), out, request, memory_limit, tuple(traces))

    @property
    def share_file(self) -> Path:
        """What may be shared; the part is done when it is there."""
        return self.out / "share" / f"part-{self.name}.parquet"

    @property
    def private_file(self) -> Path:
        """What the designs were, whose they are, and why traces were refused."""
        return self.out / "private" / "parts" / f"{self.name}.json"

    @property
    def done(self) -> bool:
        """Whether the part was written, by this run or an earlier one."""
        return self.share_file.exists()


@dataclass(frozen=True)
class _Release:
    number: int
    time_us: np.ndarray
    latitude: np.ndarray
    longitude: np.ndarray


def run_part(part: Part) -> str:
    """Design, certify, release and write a part, unless it was written already; its name."""
    if part.done:
        return part.name
    with _ONE_AT_A_TIME:
        released, record = _make(part)
    # The private record comes first: what is shared is never without it.
    write_anew(part.private_file, json_text(record))
    write_once(part.share_file, lambda path: _write_table(path, released))
    return part.name


def read_record(part_file: Path) -> dict[str, Any]:
    """The private record of a part that was written."""
    return json.loads(part_file.read_text(encoding="utf-8"))


def _make(part: Part) -> tuple[list[_Release], dict[str, Any]]:
    prepared: list[Prepared] = []
    refused: dict[int, str] = {}
    for one in part.traces:
        try:
            prepared.append(prepare(one, part.request.target, part.request.prior, part.request.secrets))
        except JaxprivError as error:
            refused[one.number] = str(error)
    designs = design_prepared(prepared, part.request.target, part.memory_limit)
    released: list[_Release] = []
    records: list[dict[str, Any]] = []
    for one, axes in zip(prepared, designs, strict=True):
        number = one.source.number
        try:
            if isinstance(axes, str):
                refused[number] = axes
                continue
            points = _draw(one, axes, part.request)
        except JaxprivError as error:
            refused[number] = str(error)
            continue
        latitude, longitude = one.plane.to_degrees(points.metres)
        released.append(_Release(number, one.time_us, np.round(latitude, _DECIMALS), np.round(longitude, _DECIMALS)))
        records.append(_record(one, axes, points))
    keys = {one.number: one.keys for one in part.traces}
    return released, {
        "format": FORMAT,
        "traces": [{"trace": one["trace"], "keys": keys[one["trace"]], **one} for one in records],
        "refused": [{"trace": n, "keys": keys[n], "reason": reason} for n, reason in sorted(refused.items())],
    }


def _draw(one: Prepared, axes: tuple[AxisDesign, AxisDesign], request: BatchRequest) -> ReleasedPoints:
    resolution = request.target.resolution_m
    mechanisms = [GaussianMechanism(axis.factor, axis.floor_sd, resolution) for axis in axes]
    if request.seed is None:
        return draw_release(mechanisms, one.metres, resolution)
    # Of the seed and the trace alone: how traces are put into parts changes nothing.
    mixed = hashlib.sha256(request.seed.to_bytes(32, "big") + one.source.content()).digest()
    return simulate_release(mechanisms, one.metres, resolution, int.from_bytes(mixed[:4], "big") >> 1)


def _record(one: Prepared, axes: tuple[AxisDesign, AxisDesign], points: ReleasedPoints) -> dict[str, Any]:
    n = len(one.time_us)
    cost = math.fsum(axis.cost for axis in axes) + 2 * n * 4.0**points.exponent / 12
    return {
        "trace": one.source.number,
        "points": n,
        "epsilon": max(axis.epsilon for axis in axes),
        "estimate": one.estimate,
        "prior": one.prior,
        "rms_m": math.sqrt(cost / n),
        "gap": max(axis.gap for axis in axes),
        "tau": points.tau,
        "cleaning": [] if one.source.trace is None else one.source.trace.cleaning.sentences(),
        "axes": [
            {
                "epsilon": axis.epsilon,
                "cost_m2": axis.cost,
                "lower_bound": axis.lower_bound,
                "gap": axis.gap,
                "floor_sd_m": axis.floor_sd,
                "factor_sha256": hashlib.sha256(np.ascontiguousarray(axis.factor).tobytes()).hexdigest(),
            }
            for axis in axes
        ],
    }


def _write_table(path: Path, released: list[_Release]) -> None:
    """Only the trace's running number, the instant and the position; no statistics, and no compression, whose success
    would tell of what is compressed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def column(name: str, dtype: type) -> np.ndarray:
        return np.concatenate([np.asarray(getattr(one, name), dtype) for one in released] or [np.zeros(0, dtype)])

    numbers = np.concatenate(
        [np.full(len(one.time_us), one.number, np.int64) for one in released] or [np.zeros(0, np.int64)]
    )
    table = pa.table(
        {
            "trace": numbers,
            "time": pa.array(column("time_us", np.int64), pa.timestamp("us", tz="UTC")),
            "lat": column("latitude", np.float64),
            "lon": column("longitude", np.float64),
        }
    )
    pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)
