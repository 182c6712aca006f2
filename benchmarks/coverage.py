"""Does the reported loss hold? Held-out windows of recorded traces against their own best kernel.

Needs the folder of real traces in JAXPRIV_DATA (windows of 300 s, balanced: one a person). For each window the prior
set is centred on the fits of the other people, the noise costs 2 % of the variance a point, and the adversary uses
whichever kernel fits the clear trace best, with an unknown constant mean: an upper bound on a real adversary.
"""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

import numpy as np


PEOPLE = 50
SHARE = 0.02
ADVERSARIES = ("matern12", "matern32", "matern52", "rbf", "rq", "iou")


def windows(folder: Path, people: int) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """One window a person: (person, times in s, metres east), at least 30 points and 1 m of movement."""
    path = folder / "geolife" / "derived" / "traces_windows_gap30.csv.gz"
    with gzip.open(path, "rt") as file:
        rows = [line.rstrip("\n").split(",") for line in file.readlines()[1:]]
    traces: dict[str, list[list[str]]] = {}
    for row in rows:
        traces.setdefault(row[0], []).append(row)
    chosen: dict[str, tuple[str, np.ndarray, np.ndarray]] = {}
    for trace in traces.values():
        person = trace[0][1]
        times = np.array([float(row[4]) for row in trace])
        lat, lon = (np.array([float(row[i]) for row in trace]) for i in (5, 6))
        times, first = np.unique(times, return_index=True)
        east = 6371008.8 * np.cos(np.radians(np.mean(lat))) * np.radians(lon[first])
        east = east - np.mean(east)
        speed = np.max(np.abs(np.diff(east)) / np.diff(times)) if len(times) > 1 else np.inf
        if person not in chosen and len(times) >= 30 and np.std(east) > 1.0 and speed < 100.0:
            chosen[person] = (person, times - times[0], east)
    return list(chosen.values())[:people]


def main() -> None:
    """Print the share of windows whose loss under their best kernel is at most the reported one."""
    import jax

    import jaxpriv as jp

    folder = os.environ.get("JAXPRIV_DATA")
    if not folder:
        print("JAXPRIV_DATA is not set: no folder of real traces; nothing measured", file=sys.stderr)
        return
    cases = windows(Path(folder), PEOPLE)
    fits = {
        kernel: [jp.fit(times, east, kernel=kernel) for _, times, east in cases] for kernel in ("matern32", "matern52")
    }
    ratios: dict[str, list[float]] = {"default": [], "wide": []}
    for i, (_, times, east) in enumerate(cases):
        n, sd = len(times), float(np.std(east))
        best = max((jp.fit(times, east, kernel=kernel) for kernel in ADVERSARIES), key=lambda one: one.loglik)
        truth = jp.GaussianPrior(_covariance(best, times) + 1e2 * sd**2)
        secret = jp.Secret([n // 2], sd)
        for which, found in ratios.items():
            centres = [_centre(fits[kernel], i, times, east) for kernel in fits]
            d = jp.design(jp.prior_set(times, fits=centres, which=which), secret, budget=SHARE * n * sd**2)
            # An estimate: the constant mean of the adversary is too large beside the floor for a certificate.
            with jax.enable_x64(True):
                found.append(float(jp.cip_loss(truth, secret, d.mechanism)) / d.epsilon)
    print(f"{len(cases)} held-out windows, one a person; loss under the best kernel over the reported loss")
    for which, found in ratios.items():
        values = np.array(found)
        print(
            f"{which:8s} at most 1: {np.mean(values <= 1):.0%}   at most 1.5: {np.mean(values <= 1.5):.0%}   "
            f"median {np.median(values):.2f}   90 % {np.quantile(values, 0.9):.2f}   largest {np.max(values):.1f}"
        )


def _covariance(fit, times):
    import jax

    with jax.enable_x64(True):
        return np.asarray(fit.prior(times).covariance)


def _centre(fits, left_out: int, times, values):
    """Median length scale and noise ratio of the other people's fits, with the scale profiled on this trace."""
    from jaxpriv.fitting.population import Population

    others = [one for i, one in enumerate(fits) if i != left_out]
    return Population(tuple(others), tuple(map(str, range(len(others)))), {}).centre(others[0].family, times, values)
