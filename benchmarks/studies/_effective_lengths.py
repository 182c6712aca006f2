"""How far correlation reaches in recorded data: effective length scales, l divided by the sampling period.

Two definitions for GeoLife traces. "published" follows the published code of Meehan and Chaudhuri (AISTATS 2021): the
first 320 s of each file, thinned to at most 50 fixes, at least 240 s, people with ten files or more, the first 50 of
each; Earth-centred coordinates R cos(lat) cos(lon) and R cos(lat) sin(lon). "windows" are all stretches of 300 s
without a gap above 30 s, of 4.5 minutes or more and 20 to 49 fixes, in a local east/north plane. Each coordinate is
standardised and fitted by itself: RBF, unit variance, noise variance 0.0025, l between 1 s and 40 s, by maximum
likelihood. A fit that ends on a bound is counted, because then the number is the bound and not the data's.

For temperatures: SML2010, ten windows of two days from row 800, hourly, standardised, periodic kernel with noise
variance 0.1, the period between 16 h and 34 h. The published figure used the outdoor column (5, its header is shifted
by two); the indoor one is 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from scipy.optimize import minimize, minimize_scalar


BOUNDS = (1.0, 40.0)
EARTH = 6_371_000.0


@dataclass(frozen=True)
class Lengths:
    """Effective length scales, and the share of fits that ended on the lower and on the upper bound."""

    name: str
    values: np.ndarray
    traces: int
    people: int
    on_lower: float = 0.0
    on_upper: float = 0.0

    @property
    def quartiles(self) -> np.ndarray:
        return np.percentile(self.values, (25, 50, 75))

    def __str__(self) -> str:
        low, middle, high = self.quartiles
        text = f"{self.name}: quartiles {low:.3f}, {middle:.3f}, {high:.3f} of {len(self.values)} fits"
        if self.people:
            text += f" ({self.traces} traces of {self.people} people)"
        if self.on_lower or self.on_upper:
            text += f"; {self.on_upper:.0%} ended on the upper bound, {self.on_lower:.0%} on the lower"
        return text


def read_fixes(path: Path) -> np.ndarray:
    """(n, 3) seconds, latitude, longitude of a PLT file, in file order."""
    with path.open(encoding="ascii", errors="replace") as file:
        cells = [line.split(",") for line in file.read().splitlines()[6:] if line.strip()]
    times = [datetime.fromisoformat(f"{cell[5]}T{cell[6].strip()}+00:00").timestamp() for cell in cells]
    return np.array([(when, float(cell[0]), float(cell[1])) for when, cell in zip(times, cells, strict=True)])


def files_of(folder: Path) -> dict[str, list[Path]]:
    """The PLT files of each person: folders PERSON/Trajectory/*.plt anywhere below."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("Trajectory/*.plt")):
        found.setdefault(path.parts[-3], []).append(path)
    if not found:
        raise ValueError(f"no file PERSON/Trajectory/*.plt below {folder}")
    return found


def published_traces(people: dict[str, list[Path]]) -> tuple[list[np.ndarray], int]:
    """(n, 3) seconds and two Earth-centred coordinates in metres, by the published rules; and how many people."""
    out, count = [], 0
    for files in people.values():
        kept = []
        for path in files:
            fixes = read_fixes(path)
            if len(fixes) == 0:
                continue
            fixes = fixes[fixes[:, 0] - fixes[0, 0] <= 320.0]
            if len(fixes) > 50:
                fixes = fixes[:: len(fixes) // 50][:50]
            if len(fixes) > 1 and fixes[-1, 0] - fixes[0, 0] >= 240.0:
                latitude, longitude = np.deg2rad(fixes[:, 1]), np.deg2rad(fixes[:, 2])
                ring = EARTH * np.cos(latitude)
                kept.append(np.stack([fixes[:, 0], ring * np.cos(longitude), ring * np.sin(longitude)], axis=1))
        if len(kept) >= 10:
            count += 1
            out += kept[:50]
    return out, count


def window_traces(people: dict[str, list[Path]]) -> tuple[list[np.ndarray], int]:
    """(n, 3) seconds, metres east and north, of every stretch of 300 s without a gap; and how many people."""
    out, count = [], 0
    for files in people.values():
        before = len(out)
        for path in files:
            fixes = read_fixes(path)
            if len(fixes) < 20:
                continue
            breaks = np.flatnonzero((np.diff(fixes[:, 0]) > 30.0) | (np.diff(fixes[:, 0]) < 0.0)) + 1
            for piece in np.split(fixes, breaks):
                number = np.floor((piece[:, 0] - piece[0, 0]) / 300.0)
                for window in np.split(piece, np.flatnonzero(np.diff(number)) + 1):
                    if 20 <= len(window) < 50 and window[-1, 0] - window[0, 0] >= 270.0:
                        latitude, longitude = np.deg2rad(window[:, 1]), np.deg2rad(window[:, 2])
                        east = EARTH * np.cos(np.mean(latitude)) * (longitude - np.mean(longitude))
                        out.append(np.stack([window[:, 0], east, EARTH * (latitude - np.mean(latitude))], axis=1))
        count += len(out) > before
    return out, count


def fitted_lengthscale(times: np.ndarray, values: np.ndarray, noise: float = 0.0025) -> float:
    """The l in `BOUNDS` of greatest likelihood, RBF of unit variance; nan for a coordinate that does not move."""
    spread = np.std(values)
    if not spread > 0.0:
        return np.nan
    z, squared = (values - np.mean(values)) / spread, np.subtract.outer(times, times) ** 2

    def cost(log_length: float) -> float:
        matrix = np.exp(-squared / (2 * np.exp(2 * log_length))) + noise * np.eye(len(z))
        factor = np.linalg.cholesky(matrix)
        white = np.linalg.solve(factor, z)
        return float(0.5 * white @ white + np.sum(np.log(np.diagonal(factor))))

    grid = np.linspace(*np.log(BOUNDS), 25)
    costs = [cost(one) for one in grid]
    best = int(np.argmin(costs))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-5})
    candidates = {float(found.x): float(found.fun), float(grid[best]): costs[best]}
    return float(np.exp(min(candidates, key=lambda one: candidates[one])))


def lengths(
    name: str, traces: list[np.ndarray], people: int, progress: Callable[[Iterable], Iterable] = iter
) -> Lengths:
    """Fit both coordinates of every trace and divide by its median step."""
    values, lower, upper = [], 0, 0
    for trace in progress(traces):
        period = float(np.median(np.diff(trace[:, 0])))
        for axis in (1, 2):
            found = fitted_lengthscale(trace[:, 0] - trace[0, 0], trace[:, axis])
            if np.isfinite(found) and period > 0.0:
                values.append(found / period)
                lower += found < BOUNDS[0] * 1.001
                upper += found > BOUNDS[1] * 0.999
    if not values:
        raise ValueError(f"{name}: no trace that the rules accept")
    return Lengths(name, np.array(values), len(traces), people, lower / len(values), upper / len(values))


def temperature_lengths(path: Path, column: int) -> Lengths:
    """The ten fits to SML2010's file, in periods' own unit (the periodic length scale has none)."""
    with path.open(encoding="utf-8-sig") as file:
        rows = [line.split() for line in file.read().splitlines()[1:] if line.strip()]
    series = np.array([float(row[column - 1]) for row in rows])
    hours = np.arange(48.0)
    lags = np.abs(np.subtract.outer(hours, hours))
    values = []
    for start in range(800, 800 + 10 * 192, 192):
        window = series[start : start + 192 : 4]
        if len(window) < 48:
            break
        z = (window - np.mean(window)) / np.std(window)

        def cost(logs: np.ndarray, z: np.ndarray = z) -> float:
            matrix = np.exp(-2 * np.sin(np.pi * lags / np.exp(logs[1])) ** 2 / np.exp(2 * logs[0])) + 0.1 * np.eye(48)
            factor = np.linalg.cholesky(matrix)
            white = np.linalg.solve(factor, z)
            return float(0.5 * white @ white + np.sum(np.log(np.diagonal(factor))))

        limits = [tuple(np.log((0.1, 10.0))), tuple(np.log((16.0, 34.0)))]
        starts = [np.log((length, period)) for length in (0.5, 1.0, 2.0) for period in (20.0, 24.0, 28.0)]
        fits = [minimize(cost, start, bounds=limits, method="L-BFGS-B") for start in starts]
        values.append(float(np.exp(min(fits, key=lambda fit: fit.fun).x[0])))
    return Lengths(f"column {column}", np.array(values), len(values), 0)
