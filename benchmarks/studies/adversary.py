"""An attacker who knows everything but the secret, on held-out traces.

    python -m benchmarks.studies.adversary [--geolife FOLDER|TABLE] [--people 50] [--out FOLDER]

First on simulated series, where the prior is right: coverage of the attacker's 68 % interval, and how often the odds
move by more than Theorem 3.1 and the exact curve say. Then, with a folder of GeoLife traces
(PERSON/Trajectory/*.plt), on one window of 300 s a person, never seen when its prior was made: centred on other
people's fits (realistic), on the same person's other windows, or fitted to the window itself (optimistic). The
attacker uses whichever of six kernels fits the *clear* window best, with an unknown mean: an upper bound on a real
one. Total noise is 2 % of the variance a fix, the secret is the middle fix. All designs are converged (gap 1e-6).
Writes adversary.md; no fitted numbers, no positions.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import jaxpriv as jp
from benchmarks.studies._attack import Attack, attacked, left_to, summary
from benchmarks.studies._effective_lengths import EARTH, files_of, window_traces
from jaxpriv.fitting.population import Population


SHARE, DELTA = 0.02, 0.01
KERNELS = ("matern12", "matern32", "matern52", "rbf", "rq", "iou")
CENTRED = ("matern32", "matern52", "rbf")


def simulated(draws: int = 4000, n: int = 50, seed: int = 11) -> list[str]:
    """Series drawn from the prior, released, attacked: observed against promised, with binomial errors."""
    times = np.arange(float(n))
    prior = jp.ProcessPrior(jp.kernels.matern32(lengthscale=6.0), times, noise_sd=0.03)
    secret = jp.Secret([n // 2], radius=0.5)
    rng = np.random.default_rng(seed)
    covariance = np.asarray(prior.covariance)
    series = rng.normal(size=(draws, n)) @ np.linalg.cholesky(covariance).T
    lines = [
        "| noise | 68 % interval holds | 95 % | odds beyond the exact bound, of 1 % | beyond Theorem 3.1's, of 1 % |",
        "|---|---|---|---|---|",
    ]
    mechanisms = {
        "least noise": jp.design(prior, secret, budget=SHARE * n).mechanism,
        "independent": jp.baselines.uniform(n, SHARE * n),
        "like the prior": jp.design(prior, jp.EveryPoint(0.5), budget=SHARE * n).mechanism,
    }
    for name, mechanism in mechanisms.items():
        noise = np.asarray(mechanism.covariance)
        certificate = jp.certify(prior, secret, mechanism)
        weights = np.linalg.solve(covariance + noise, covariance[:, n // 2])
        left = math.sqrt(covariance[n // 2, n // 2] - covariance[n // 2] @ weights)
        values, vectors = np.linalg.eigh(noise)
        released = series + rng.normal(size=(draws, n)) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        error = released @ weights - series[:, n // 2]
        gain = 1 / left**2 - 1 / covariance[n // 2, n // 2]
        centre = (released @ weights) / (left**2 * gain) - series[:, n // 2]
        moved = gain * (0.5**2 / 2 - 0.5 * centre)
        cells = []
        for level in (0.68, 0.95):
            half = {0.68: 0.994458, 0.95: 1.959964}[level] * left
            cells.append(_share(np.abs(error) <= half))
        exact = _log_odds(certificate.epsilon)
        cells += [_share(np.abs(moved) > exact), _share(np.abs(moved) > certificate.odds(DELTA))]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def _share(events: np.ndarray) -> str:
    share = float(np.mean(events))
    return f"{share:.4f} ± {math.sqrt(share * (1 - share) / len(events)):.4f}"


def _log_odds(epsilon: float) -> float:
    """The size that a normal variable of mean μ²/2 and variance μ² (order 2: μ² = ε) exceeds with probability DELTA."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    mu = math.sqrt(epsilon)

    def excess(size: float) -> float:
        return norm.sf(size, mu**2 / 2, mu) + norm.cdf(-size, mu**2 / 2, mu) - DELTA

    return float(brentq(excess, 0.0, mu**2 + 20 * mu))


def held_out(source: Path, people: int, say: Callable[[str], None]) -> list[str]:
    """The table of real windows: one a person, several designs, three places for the prior to come from."""
    cases, others = _cases(source, people)
    say(f"{len(cases)} people; fitting")
    fits = {kernel: [jp.fit(times, values, kernel=kernel) for times, values in cases] for kernel in KERNELS}
    again = {
        kernel: [[jp.fit(times, values, kernel=kernel) for times, values in windows] for windows in others]
        for kernel in CENTRED[:2]
    }
    found: dict[str, tuple[list[Attack], list[float], list[float]]] = {}
    odds: dict[str, list[float]] = {}
    for i, (times, values) in enumerate(cases):
        say(f"window {i + 1} of {len(cases)}")
        n, sd = len(times), float(np.std(values))
        budget, secret = SHARE * n * sd**2, jp.Secret([n // 2], radius=sd)
        best = max((fits[kernel][i] for kernel in KERNELS), key=lambda one: one.loglik)
        believed = np.asarray(best.prior(times).covariance)
        centres = {k: _centre(fits[k][:i] + fits[k][i + 1 :], times, values) for k in CENTRED}
        pair = [centres["matern32"], centres["matern52"]]
        alone = [fits["matern32"][i], fits["matern52"][i]]
        sets: dict[str, list[Any]] = {
            "RBF alone": [centres["rbf"].prior(times)],
            "RBF, three lengths": _scaled(centres["rbf"], times),
            "Matérn-3/2 alone": [centres["matern32"].prior(times)],
            "Matérn-3/2, three lengths": _scaled(centres["matern32"], times),
            "default set, other people": list(jp.prior_set(times, fits=pair)),
            "wide set, other people": list(jp.prior_set(times, fits=pair, which="wide")),
            "default set, fitted to the window": list(jp.prior_set(times, fits=alone)),
        }
        if again["matern32"][i]:
            own = [_centre(again[k][i], times, values) for k in CENTRED[:2]]
            sets["default set, same person's other windows"] = list(jp.prior_set(times, fits=own))
        mechanisms = {
            "independent": (jp.baselines.uniform(n, budget), sets["Matérn-3/2 alone"]),
            "like the prior": (
                jp.design(sets["Matérn-3/2 alone"][0], jp.EveryPoint(sd), budget=budget).mechanism,
                sets["Matérn-3/2 alone"],
            ),
        }
        for name, members in sets.items():
            mechanisms[name] = (jp.design(members, secret, budget=budget).mechanism, members)
        for name, (mechanism, members) in mechanisms.items():
            noise = np.asarray(mechanism.covariance)
            reported = jp.certify(members, secret, mechanism).epsilon
            attack = attacked(values, believed, noise, n // 2)
            promised = min(left_to(member, noise, n // 2) for member in members) / sd
            attacks, promises, ratios = found.setdefault(name, ([], [], []))
            attacks.append(attack)
            promises.append(promised)
            # Order 2 and a radius of one deviation: ε is the precision gain in the window's unit.
            ratios.append(attack.gain / reported)
            odds.setdefault(name, []).append(attack.exceeded(1.0, _log_odds(reported)))
    lines = [
        "| noise | promised interval | left: mean [worst decile] | error, median | 68 % / 95 % interval holds | "
        "true loss / reported: median, 90 %, largest | at most 1, 1.5 | odds beyond the bound, of 1 % | windows |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (attacks, promises, ratios) in found.items():
        cells = [*summary(attacks, promises, ratios), f"{np.mean(odds[name]):.1%}", str(len(attacks))]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def _cases(source: Path, people: int) -> tuple[list[tuple[np.ndarray, np.ndarray]], list[list[Any]]]:
    """One window of each of so many people, and up to four others of the same person; east coordinate only."""
    cases, others = [], []
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


def _centre(fits: list[Any], times: np.ndarray, values: np.ndarray) -> Any:
    return Population(tuple(fits), tuple(map(str, range(len(fits)))), {}).centre(fits[0].family, times, values)


def _scaled(fit: Any, times: np.ndarray) -> list[Any]:
    return [
        fit.with_parameters({"lengthscale": fit.parameters["lengthscale"] * factor}).prior(times)
        for factor in (0.5, 1.0, 2.0)
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.adversary", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--geolife",
        type=Path,
        help="folder with PERSON/Trajectory/*.plt, or a table of windows: trace_id, user, utc_epoch_s, lat, lon",
    )
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder for adversary.md")
    options = parser.parse_args(arguments)
    lines = ["# An attacker who knows everything but the secret", "", "`python -m benchmarks.studies.adversary`", ""]
    lines += ["## Simulated series: the prior is right", "", *simulated(), ""]
    if options.geolife is not None:
        try:
            table = held_out(options.geolife, options.people, lambda text: print(text, file=sys.stderr, flush=True))
        except (OSError, ValueError) as problem:
            parser.error(str(problem))
        lines += ["## Windows of recorded traces, held out", "", *table, ""]
    text = "\n".join(lines)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "adversary.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
