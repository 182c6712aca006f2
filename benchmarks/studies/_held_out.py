"""One window of 300 s a person, from a folder of PLT files or from a table of windows."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.studies._effective_lengths import EARTH, files_of, window_traces


def cases_of(source: Path, people: int) -> tuple[list[tuple[np.ndarray, np.ndarray]], list[list[Any]]]:
    """One window of each of so many people, and up to four others of the same person; east coordinate only."""
    cases: list[Any] = []
    others: list[Any] = []
    for traces in windows_of(source):
        usable = []
        for trace in traces:
            times, first = np.unique(trace[:, 0], return_index=True)
            values = trace[first, 1]
            if len(times) < 30 or np.std(values) <= 1.0 or np.max(np.abs(np.diff(values)) / np.diff(times)) >= 100.0:
                continue
            usable.append((times - times[0], values - np.mean(values)))
            if len(usable) == 5:
                break
        if usable:
            cases.append(usable[0])
            others.append(usable[1:])
        if len(cases) == people:
            break
    if len(cases) < 3:
        raise ValueError("fewer than three people have a window of 300 s with 30 to 49 fixes")
    return cases, others


def windows_of(source: Path) -> Iterator[list[np.ndarray]]:
    """The windows of each person, (n, 3) seconds and metres: cut from PLT files, or as a table has them."""
    if source.is_dir():
        yield from (window_traces({"": files})[0] for files in files_of(source).values())
        return
    people: dict[str, dict[str, list[tuple[float, float, float]]]] = {}
    with (gzip.open if source.suffix == ".gz" else open)(source, "rt", newline="") as file:
        for row in csv.DictReader(file):
            fix = (float(row["utc_epoch_s"]), float(row["lat"]), float(row["lon"]))
            people.setdefault(row["user"], {}).setdefault(row["trace_id"], []).append(fix)
    for windows in people.values():
        found = []
        for fixes in map(np.array, windows.values()):
            north, east = np.deg2rad(fixes[:, 1]), np.deg2rad(fixes[:, 2])
            found.append(np.stack([fixes[:, 0], EARTH * np.cos(np.mean(north)) * east, EARTH * north], axis=1))
        yield found
