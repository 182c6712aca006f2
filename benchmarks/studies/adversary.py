"""An attacker who knows everything but the secret, on held-out traces.

    python -m benchmarks.studies.adversary [--geolife FOLDER|TABLE] [--people 50] [--out FOLDER]

First on simulated series, where the prior is right: coverage of the attacker's 68 % interval, how often the odds move
by more than Theorem 3.1 and the exact curve say, and what an attacker makes of it who only knows several priors.
Then, with a folder of GeoLife traces (PERSON/Trajectory/*.plt), on one window of 300 s a person, never seen when its
prior was made: centred on other people's fits (realistic), on the same person's other windows, or fitted to the window
itself (optimistic). Three attackers, all with an unknown mean: one who knows the fit of the design's own family to the
*clear* window, one who uses whichever of six kernels fits the clear window best (both upper bounds on a real one), and
one who sees only the release and weighs up to 80 fits of other people's windows by its likelihood. Total noise is 2 %
of the variance a fix, the secret is the middle fix. All designs are converged (gap 1e-6). Writes adversary.md; no
fitted numbers, no positions.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import jaxpriv as jp
from benchmarks.studies._attack import VAGUE, Attack, Guess, attacked, guessed, left_to, summary
from benchmarks.studies._calibration import SHARE, log_odds, simulated, simulated_mixture
from benchmarks.studies._held_out import cases_of
from benchmarks.studies._mixture import Belief, believed, draws_of
from jaxpriv.fitting.fit import covariance_of
from jaxpriv.fitting.population import Population


KERNELS = ("matern12", "matern32", "matern52", "rbf", "rq", "iou")
CENTRED = ("matern32", "matern52", "rbf")
MEMBERS, DRAWS = 80, 200


def held_out(source: Path, people: int, say: Callable[[str], None]) -> list[str]:
    """The table of real windows: one a person, several designs, three places for the prior to come from."""
    cases, others = cases_of(source, people)
    say(f"{len(cases)} people; fitting")
    fits: dict[str, list[Any]] = {
        kernel: [jp.fit(times, values, kernel=kernel) for times, values in cases] for kernel in KERNELS
    }
    again: dict[str, list[list[Any]]] = {
        kernel: [[jp.fit(times, values, kernel=kernel) for times, values in windows] for windows in others]
        for kernel in CENTRED[:2]
    }
    found: dict[str, tuple[list[Attack], list[float], list[float]]] = {}
    odds: dict[str, list[float]] = {}
    guesses: dict[str, list[list[Guess]]] = {}
    rng = np.random.default_rng(17)
    for i, (times, values) in enumerate(cases):
        say(f"window {i + 1} of {len(cases)}")
        n, sd = len(times), float(np.std(values))
        budget, secret = SHARE * n * sd**2, jp.Secret([n // 2], radius=sd)
        best = max((fits[kernel][i] for kernel in KERNELS), key=lambda one: one.loglik)
        clear = {kernel: np.asarray(fits[kernel][i].prior(times).covariance) for kernel in (best.family, *CENTRED)}
        members_of = [one + VAGUE * sd**2 for one in _others(fits, i, times)]
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
            attack = attacked(values, clear[best.family], noise, n // 2)
            promised = min(left_to(member, noise, n // 2) for member in members) / sd
            attacks, promises, ratios = found.setdefault(name, ([], [], []))
            attacks.append(attack)
            promises.append(promised)
            # Order 2 and a radius of one deviation: ε is the precision gain in the window's unit.
            ratios.append(attack.gain / reported)
            odds.setdefault(name, []).append(attack.exceeded(1.0, log_odds(reported)))
            own = attacked(values, clear["rbf" if name.startswith("RBF") else "matern32"], noise, n // 2)
            released = values - np.mean(values) + draws_of(noise, DRAWS, rng)
            belief = believed(members_of, noise, n // 2, released)
            both = [guessed(own), guessed(attack), _guess(belief, values[n // 2] - np.mean(values), sd)]
            guesses.setdefault(name, []).append(both)
    lines = [
        "| noise | promised interval | left: mean [worst decile] | error, median | 68 % / 95 % interval holds | "
        "true loss / reported: median, 90 %, largest | at most 1, 1.5 | odds beyond the bound, of 1 % | windows |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (attacks, promises, ratios) in found.items():
        cells = [*summary(attacks, promises, ratios), f"{np.mean(odds[name]):.1%}", str(len(attacks))]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return [*lines, "", *_three_attackers(found, guesses)]


def _three_attackers(found: dict[str, Any], guesses: dict[str, list[list[Guess]]]) -> list[str]:
    """What the attackers are left with, their errors and how often their intervals hold, beside one another."""
    lines = [
        f"Attackers: *own* and *best* know the fit to the clear window, *mixture* sees only the release and has "
        f"up to {MEMBERS} fits of other people ({DRAWS} releases a window). Interval: posterior standard deviation of "
        "the secret over that of the window, mean over windows [worst decile]; error: root mean square over releases, "
        "median over windows.",
        "",
        "| noise | promised | own: interval | error | 68 / 95 % | best: interval | error | 68 / 95 % "
        "| mixture: interval | error | 68 / 95 % |",
        "|---" * 11 + "|",
    ]
    for name, rows in guesses.items():
        cells = [f"{np.mean(found[name][1]):.3f}"]
        for column in zip(*rows, strict=True):
            left = [one.deviation for one in column]
            cells.append(f"{np.mean(left):.3f} [{np.quantile(left, 0.1):.3f}]")
            cells.append(f"{np.median([one.rms for one in column]):.3f}")
            cells.append(" / ".join(f"{np.mean([one.covered[i] for one in column]):.2f}" for i in (0, 1)))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def _guess(belief: Belief, truth: float, sd: float) -> Guess:
    """The mixture's, averaged over releases."""
    covered = (float(np.mean(belief.covered(truth, 0.68))), float(np.mean(belief.covered(truth, 0.95))))
    rms = math.sqrt(float(np.mean((belief.mean - truth) ** 2)))
    return Guess(float(np.mean(belief.deviation)) / sd, rms / sd, covered)


def _others(fits: dict[str, list[Any]], left_out: int, times: np.ndarray) -> list[np.ndarray]:
    """Covariances at `times` of up to 80 fits of other people: the best kernel of each, then the second best, …"""
    ranked = [sorted((fits[kernel][i] for kernel in KERNELS), key=lambda one: -one.loglik)
              for i in range(len(fits[KERNELS[0]])) if i != left_out]  # fmt: skip
    chosen = [ladder[rank] for rank in range(len(KERNELS)) for ladder in ranked][:MEMBERS]
    return [covariance_of(one, times) for one in chosen]


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
    command = "python -m benchmarks.studies.adversary" + (" --geolife PATH" if options.geolife else "")
    lines = ["# An attacker who knows everything but the secret", "", f"`{command}`", ""]
    lines += ["## Simulated series: the prior is right", "", *simulated(), ""]
    lines += ["## Simulated series: twelve priors, one of them right", "", *simulated_mixture(), ""]
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
