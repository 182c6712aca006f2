"""Thousands of five-minute windows: fitted, designed and certified together, with one prior and with the default set.

    python -m benchmarks.studies.windows --geolife FILE.csv[.gz] [--count N] [--radius M] [--rms M]

FILE has the columns trace_id, utc_epoch_s, lat and lon, one row a fix. Each window gives two problems, east and north
in metres on a local plane, with the middle fix as the secret and noise of `rms` metres a coordinate to spend. Prints a
table of seconds, certified gaps and compilations, and why windows were refused. No parameter of any person is printed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import jaxpriv as jp
from jaxpriv.designs.batch.devices import compilations
from jaxpriv.designs.batch.result import BatchDesign
from jaxpriv.designs.batch.verb import design_batch
from jaxpriv.errors import InputError
from jaxpriv.fitting.batch import fit_batch
from jaxpriv.fitting.robust import prior_set
from jaxpriv.traces.projection import public_origin


RESOLUTION = 0.5  # metres: the step to which positions of six decimals are worth keeping


def read_windows(path: Path, count: int | None = None) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Times (n,) in seconds from each window's start, and positions (n, 2) in metres on its local plane."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as handle:
        rows = csv.reader(handle)
        header = next(rows)
        at = [header.index(name) for name in ("trace_id", "utc_epoch_s", "lat", "lon")]
        table = np.array([[float(row[k]) for k in at] for row in rows])
    starts = np.flatnonzero(np.diff(table[:, 0], prepend=np.nan) != 0)
    times, values = [], []
    for block in every_nth(np.split(table, starts[1:]), count):
        times.append(block[:, 1] - block[0, 1])
        values.append(public_origin(block[:, 2], block[:, 3]).to_metres(block[:, 2], block[:, 3]))
    return times, values


def every_nth(blocks: list[np.ndarray], count: int | None) -> list[np.ndarray]:
    """About `count` of the windows, spread over the file."""
    return blocks if count is None else blocks[:: max(1, len(blocks) // count)]


def clocked(name: str, call: Callable[[], Any]) -> Any:
    """Run, and print the seconds of the wall clock and of the processor."""
    wall, processor, before = time.perf_counter(), time.process_time(), compilations()
    result = call()
    spent = f"{time.perf_counter() - wall:8.1f} s wall {time.process_time() - processor:8.1f} s processor"
    print(f"{name:34s} {spent} {compilations() - before:4d} programs compiled", flush=True)
    return result


def summary(name: str, batch: BatchDesign) -> None:
    """Print how the certified gaps are spread, and how the designs ended."""
    gaps, shares = batch.gap[batch.designed], (50, 90, 99, 100)
    marks = ", ".join(f"{q:g} %: {value:.1e}" for q, value in zip(shares, np.percentile(gaps, shares), strict=True))
    ends = ", ".join(f"{count} {end}" for end, count in Counter(one.name for one in batch.results if one).items())
    print(f"{name}: certified gap {marks}; at most 1e-2: {np.mean(gaps <= 1e-2):.1%}; {ends}; {dict(batch.stats)}")


def main(arguments: list[str] | None = None) -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description="Design thousands of short windows together.")
    parser.add_argument("--geolife", type=Path, required=True)
    parser.add_argument("--count", type=int)
    parser.add_argument("--radius", type=float, default=50.0)
    parser.add_argument("--rms", type=float, default=25.0)
    parser.add_argument("--single-only", action="store_true")
    options = parser.parse_args(arguments)
    times, values = clocked("read and project", lambda: read_windows(options.geolife, options.count))
    print(f"{len(times)} windows, two axes each; {min(map(len, times))} to {max(map(len, times))} points")
    fits = {
        kernel: clocked(f"fit {kernel}", lambda kernel=kernel: fit_batch(times, values, kernel=kernel))
        for kernel in ("matern32", "matern52")
    }
    pairs = [(i, axis) for i in range(len(times)) for axis in (0, 1)]
    secrets = [jp.Secret([len(times[i]) // 2], options.radius) for i, _ in pairs]
    first = [one_of(fits["matern32"][i], axis) for i, axis in pairs]
    spent = [len(times[i]) * options.rms**2 for i, _ in pairs]

    def designs(priors: list[Any], most: int | None = None) -> BatchDesign:
        return design_batch(priors[:most], secrets[:most], budget=spent[:most], resolution=RESOLUTION)

    single = [
        one if isinstance(one, Exception) else one.prior(times[i]) for one, (i, _) in zip(first, pairs, strict=True)
    ]
    warm = min(600, len(single))
    clocked("one prior, a first few", lambda: designs(single, warm))
    summary("one prior", clocked("one prior", lambda: designs(single)))
    if options.single_only:
        return
    sets = clocked("default sets", lambda: [_set(fits, times, i, axis) for i, axis in pairs])
    clocked("default set, a first few", lambda: designs(sets, warm))
    robust = clocked("default set", lambda: designs(sets))
    summary("default set", robust)
    reasons = Counter("".join(" " if c.isdigit() else c for c in text) for text in robust.refusals.values())
    print(f"refused: {len(robust.refusals)}")
    for reason, count in reasons.most_common():
        print(f"  {count:5d} {' '.join(reason.split())[:100]}")


def one_of(fitted: Any, axis: int) -> Any:
    """The fit of one axis, or the reason why there is none."""
    return fitted if isinstance(fitted, Exception) else fitted[axis]


def _set(fits: dict[str, list[Any]], times: list[np.ndarray], i: int, axis: int) -> Any:
    members = [one_of(fits[kernel][i], axis) for kernel in fits]
    bad = next((one for one in members if isinstance(one, InputError)), None)
    return bad if bad is not None else prior_set(times[i], fits=members, resolution=RESOLUTION)


if __name__ == "__main__":
    main()
