"""What a protected trace is still good for: speed, distance travelled and the route, against ε.

    python -m benchmarks.studies.utility [--windows TABLE] [--people 20] [--radius 100] [--out FOLDER]

The middle fix is protected under the default set of priors, fitted on the trace, with the least noise for each ε, and
beside it with independent noise of the same ε. TABLE has windows of traces (trace_id, user, utc_epoch_s, lat, lon),
one a person is used; without it, the made-up day of `jaxpriv demo`. Noise is simulated with a fixed key. Writes
utility.md.

Speed: median error of the speed between fixes, as a share of the median speed. Distance: length of the released path
over the true one. Route: mean distance of a released fix from the true path (which ignores times), and the discrete
Fréchet distance of the two paths, in metres. Away from the secret: the same for fixes whose noise is below a tenth of
its largest.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxpriv as jp
from benchmarks.studies._held_out import windows_of
from jaxpriv.jobs.demo_trace import ORIGIN, demo_day


LEVELS = (0.25, 1.0, 4.0)


def traces(source: Path | None, people: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Seconds (n,) and metres east and north (n, 2) of each trace."""
    if source is None:
        rows = [line.split(",") for line in demo_day(points=60).csv.splitlines()[1:]]
        times = np.array([np.datetime64(row[0].rstrip("Z")) for row in rows]).astype("datetime64[s]").astype(float)
        metres = ORIGIN.to_metres(*(np.array([float(row[i]) for row in rows]) for i in (1, 2)))
        return [(times - times[0], metres - metres.mean(axis=0))]
    found = []
    for windows in windows_of(source):
        for window in windows:
            times, first = np.unique(window[:, 0], return_index=True)
            metres = window[first, 1:] - window[first, 1:].mean(axis=0)
            steps = np.hypot(*np.diff(metres, axis=0).T) / np.diff(times)
            if len(times) >= 30 and np.min(np.std(metres, axis=0)) > 5.0 and np.max(steps) < 50.0:
                found.append((times - times[0], metres))
                break
        if len(found) == people:
            break
    if not found:
        raise ValueError("no window with 30 fixes that moves in both directions")
    return found


def measures(times: np.ndarray, true: np.ndarray, released: np.ndarray) -> np.ndarray:
    """Speed error, length ratio, mean distance from the true path, discrete Fréchet distance."""
    speeds = [np.hypot(*np.diff(path, axis=0).T) / np.diff(times) for path in (true, released)]
    typical = max(float(np.median(speeds[0])), 1e-9)
    lengths = [float(np.sum(np.hypot(*np.diff(path, axis=0).T))) for path in (true, released)]
    return np.array(
        [
            np.median(np.abs(speeds[1] - speeds[0])) / typical,
            lengths[1] / max(lengths[0], 1e-9),
            np.mean([_from_path(fix, true) for fix in released]),
            _frechet(true, released),
        ]
    )


def _from_path(fix: np.ndarray, path: np.ndarray) -> float:
    start, step = path[:-1], np.diff(path, axis=0)
    share = np.sum((fix - start) * step, axis=1) / np.maximum(np.sum(step**2, axis=1), 1e-12)
    nearest = start + np.clip(share, 0.0, 1.0)[:, None] * step
    return float(np.min(np.hypot(*(fix - nearest).T)))


def _frechet(first: np.ndarray, second: np.ndarray) -> float:
    apart = np.hypot(*np.moveaxis(first[:, None] - second, 2, 0))
    reach = np.empty_like(apart)
    for i, j in np.ndindex(*apart.shape):
        before = [reach[a, b] for a, b in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if a >= 0 and b >= 0]
        reach[i, j] = max(apart[i, j], min(before)) if before else apart[i, j]
    return float(reach[-1, -1])


def study(found: list[tuple[np.ndarray, np.ndarray]], radius: float) -> list[str]:
    """Medians over the traces, a row for each mechanism and level."""
    rows: dict[tuple[str, float], list[np.ndarray]] = {}
    for number, (times, metres) in enumerate(found):
        print(f"trace {number + 1} of {len(found)}", file=sys.stderr, flush=True)
        axes: Any = jp.prior_set(times, metres, resolution=0.5)
        sets: Any = [list(axis) for axis in axes]
        secret = jp.Secret([len(times) // 2], radius=radius)
        for level in LEVELS:
            least = jp.design_axes(sets, secret, epsilon=level, resolution=0.5)
            even = [jp.baselines.smallest_uniform(axis, secret, level) for axis in sets]
            for name, noises in (("least noise", [axis.mechanism for axis in least.axes]), ("independent", even)):
                keys = jax.random.split(jax.random.key(number))
                with jax.enable_x64(True):
                    noise = [
                        np.asarray(one.simulate(k, np.zeros(len(times))).values)
                        for one, k in zip(noises, keys, strict=True)
                    ]
                released = metres + np.stack(noise, axis=1)
                spread = np.sqrt(sum(np.diagonal(np.asarray(one.covariance)) for one in noises))
                calm = spread <= 0.1 * np.max(spread)
                rms = float(np.sqrt(np.mean(spread**2)))
                away = float(np.mean([_from_path(fix, metres) for fix in released[calm]])) if np.any(calm) else np.nan
                cells = [rms, *measures(times, metres, released), float(np.mean(calm)), away]
                rows.setdefault((name, level), []).append(np.array(cells))
    lines = [
        "| ε | noise | rms, m | speed error | distance, ratio | from the route, m | Fréchet, m "
        "| fixes away from the secret | their distance from the route, m |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, level), cells in sorted(rows.items(), key=lambda item: item[0][1]):
        rms, speed, ratio, route, frechet, calm, away = np.nanmedian(np.array(cells), axis=0)
        far = "–" if calm == 0 else f"{away:.1f}"
        shape = f"{speed:.0%} | {ratio:.2f} | {route:.1f} | {frechet:.0f}"
        lines.append(f"| {level:g} | {name} | {rms:.1f} | {shape} | {calm:.0%} | {far} |")
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.utility", description=__doc__.split("\n")[0])
    parser.add_argument("--windows", type=Path, help="table of windows: trace_id, user, utc_epoch_s, lat, lon")
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--radius", type=float, default=100.0, help="metres")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder for utility.md")
    options = parser.parse_args(arguments)
    try:
        found = traces(options.windows, options.people)
    except (OSError, ValueError, KeyError) as problem:
        parser.error(str(problem))
    what = (
        "the made-up day" if options.windows is None else f"medians over {len(found)} people, one window of 300 s each"
    )
    lines = [
        "# What a protected trace is still good for",
        "",
        f"`python -m benchmarks.studies.utility`: {what}; radius {options.radius:g} m, one protected fix.",
        "",
        *study(found, options.radius),
    ]
    text = "\n".join(lines) + "\n"
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "utility.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
