"""A small data set of many traces, and what a batch wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jaxpriv.jobs.batch.part import BatchOptions
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.requests import PriorRequest
from jaxpriv.jobs.target import Target


PRIOR = PriorChoice("matern32", 60.0, 100.0, 3.0)
SIZES = (1, 10, 14, 28, 12)


def request(seed: int | None = None, **goal: Any) -> BatchOptions:
    return BatchOptions(Target(50.0, **(goal or {"budget_m": 30.0})), PriorRequest(given=PRIOR), seed=seed)


def make_table(path: Path, count: int, seed: int = 0) -> Path:
    """Traces of 1 to 28 fixes, one in five of a single fix, one in seven without any position."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list] = {"uid": [], "time": [], "lat": [], "lon": []}
    for k in range(count):
        n = SIZES[k % len(SIZES)]
        columns["uid"] += [f"person {k}"] * n
        columns["time"] += [int(t) for t in 1_600_000_000 + 1000 * k + np.cumsum(rng.integers(3, 7, n))]
        columns["lat"] += list(np.round(48 + np.cumsum(rng.normal(0, 1e-4, n)), 7) if k % 7 else np.full(n, np.nan))
        columns["lon"] += list(np.round(16 + np.cumsum(rng.normal(0, 1e-4, n)), 7))
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        rows = zip(*columns.values(), strict=True)
        path.write_text("\n".join(["uid,time,lat,lon", *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def released(out: Path) -> dict[int, list[tuple]]:
    """The released rows of each trace."""
    found: dict[int, list[tuple]] = {}
    for path in sorted((out / "share").iterdir()):
        for row in pq.read_table(path).to_pylist():
            found.setdefault(row["trace"], []).append((row["time"], row["lat"], row["lon"]))
    return found


def records(out: Path) -> dict[int, dict]:
    """What is certified of each trace that was released, from the private records."""
    every = [json.loads(path.read_text()) for path in (out / "private" / "parts").iterdir()]
    return {one["trace"]: one for record in every for one in record["traces"]}


def refused(out: Path) -> dict[int, str]:
    """The reason for each trace that was refused; each is listed once."""
    lines = [json.loads(line) for line in (out / "private" / "refused.jsonl").read_text().splitlines()]
    assert len({one["trace"] for one in lines}) == len(lines)
    return {one["trace"]: one["reason"] for one in lines}


def files(out: Path) -> dict[str, bytes]:
    """Every shared file and the summary, byte for byte."""
    return {path.name: path.read_bytes() for path in [*(out / "share").iterdir(), out / "summary.json"]}
