"""What least noise gains, at equal error and at equal privacy.

    python -m benchmarks.studies.gains [--quick] [--out FOLDER]

Against the published mechanism (SDP_A for one secret, Algorithm 1 for several), independent noise, noise shaped like
the prior, and noise that makes every single fix geo-indistinguishable and ignores the others: over the reach of
correlation, the number of fixes, and the number of secrets. Matérn-3/2 and RBF priors of unit variance with a nugget
of 1e-4. Equal error: total power 0.02 a fix. Equal privacy: ε = 1 at order 2 for places half a prior standard
deviation apart. Losses of all mechanisms are certified. Writes gains.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq

import jaxpriv as jp
from jaxpriv.designs.majorant.primal_dual import solve_primal_dual


POWER, NUGGET, EPSILON, RADIUS = 0.02, 1e-4, 1.0, 0.5
OTHERS = ("published", "independent", "like the prior")


def prior_of(kernel: str, length: float, n: int) -> jp.GaussianPrior:
    """Unit variance plus the nugget, at unit steps."""
    make = {"matern32": jp.kernels.matern32, "rbf": jp.kernels.rbf}[kernel]
    process = jp.ProcessPrior(make(lengthscale=length), np.arange(float(n)), noise_sd=NUGGET**0.5)
    return jp.GaussianPrior(np.asarray(process.covariance), nugget=NUGGET)


def secrets_of(count: int, n: int) -> list[Any]:
    """One in the middle, several evenly spread, or every fix (0)."""
    positions = range(n) if count == 0 else np.round(np.linspace(0, n, count + 2)[1:-1]).astype(int)
    return [jp.Secret([int(i)], radius=RADIUS) for i in positions]


def published(prior: jp.GaussianPrior, secrets: Sequence[Any], budget: float) -> np.ndarray:
    """SDP_A in closed form; for several secrets the least matrix above all of them, scaled to the budget."""
    seeds = [jp.baselines.surrogate(prior, one, budget) for one in secrets]
    if len(seeds) == 1:
        return np.asarray(seeds[0].covariance)
    factors = [np.asarray(seed.factor) for seed in seeds]
    spanned, sizes, _ = np.linalg.svd(np.hstack(factors), full_matrices=False)
    basis = spanned[:, sizes > 1e-9 * sizes[0]]
    if basis.shape[1] > 60:
        raise ValueError("too many directions for the dense method")
    floors = np.stack([(basis.T @ factor) @ (basis.T @ factor).T for factor in factors])
    found = basis @ np.asarray(solve_primal_dual(floors, tolerance=1e-6).noise) @ basis.T
    return found * (budget / np.trace(found))


def worst_loss(prior: np.ndarray, noise: np.ndarray, positions: Sequence[int]) -> float:
    """The largest 1/P − 1/Σ over single fixes, for the search of a scale; what is reported is certified."""
    left = prior - prior @ np.linalg.solve(prior + noise, prior)
    return max(1 / max(left[i, i], 1e-300) - 1 / prior[i, i] for i in positions)


def scaled(prior: np.ndarray, noise: np.ndarray, positions: Sequence[int], loss: float) -> float:
    """The factor with which the noise has this loss; infinite where none up to 1e12 does."""

    def excess(log_scale: float) -> float:
        return float(np.log(worst_loss(prior, np.exp(log_scale) * noise, positions) / loss))

    low, high = -25.0, 28.0
    if excess(high) > 0:
        return float("inf")
    return float(np.exp(brentq(excess, low, high, xtol=1e-10)))


def row(kernel: str, length: float, n: int, count: int) -> dict[str, Any]:
    """One setting: ratios to the least noise."""
    prior = prior_of(kernel, length, n)
    matrix = np.asarray(prior.covariance)
    secrets = secrets_of(count, n)
    positions = [int(one.indices[0]) for one in secrets]
    budget = POWER * n
    target = float(jp.target_loss(EPSILON, secrets[0], order=2.0))
    wanted = jp.EveryPoint(RADIUS) if count == 0 else secrets
    least_error = jp.design(prior, wanted, epsilon=EPSILON)
    least_loss = jp.design(prior, wanted, budget=budget)
    floor = 1e-8 * POWER
    shapes = {
        "independent": np.eye(n) * POWER,
        "like the prior": matrix * (budget / np.trace(matrix)),
    }
    with suppress(ValueError):
        shapes["published"] = published(prior, secrets, budget)
    found: dict[str, Any] = {
        "kernel": kernel,
        "length": length,
        "n": n,
        "secrets": count or n,
        "epsilon": least_loss.epsilon,
        "rms": float(np.sqrt(least_error.cost / n)),
        "gap": max(least_error.gap, least_loss.gap),
    }
    for name, noise in shapes.items():
        values, vectors = np.linalg.eigh(noise)
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
        certified = jp.certify(prior, secrets, jp.GaussianMechanism(factor, float(np.sqrt(floor)))).epsilon
        scale = scaled(matrix, noise + floor * np.eye(n), positions, target)
        found[name] = (certified / least_loss.epsilon, scale * np.trace(noise) / least_error.cost)
    # A fix by itself: variance 1/t hides it from those who see no other.
    alone = jp.baselines.uniform(n, n / target)
    found["geo"] = (jp.certify(prior, secrets, alone).epsilon / EPSILON, (n / target) / least_error.cost)
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.gains", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few settings only")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder for gains.md")
    options = parser.parse_args(arguments)
    lengths = (6.0,) if options.quick else (2.0, 6.0, 12.0)
    sizes = (50,) if options.quick else (50, 200)
    lines = [
        "# What least noise gains",
        "",
        f"`{parser.prog}{' --quick' if options.quick else ''}`. Each cell: ε at equal error, and noise power at equal",
        "ε, as multiples of the least noise's. The last column is noise that would give ε = 1 if no other fix were",
        "published: the ε it really gives, and its power. Own ε: of the least noise at power 0.02 a fix; own rms: of",
        "the least noise for ε = 1, in prior standard deviations.",
        "",
        "| prior | l | n | secrets | own ε | own rms | published | independent | like the prior | each fix alone "
        "| gap |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for kernel in ("matern32", "rbf"):
        for length in lengths:
            for n in sizes:
                for count in (1, 3, 0):
                    found = row(kernel, length, n, count)
                    cells = [f"{found[name][0]:.3g}, {found[name][1]:.3g}" if name in found else "–" for name in OTHERS]
                    true, power = found["geo"]
                    lines.append(
                        f"| {kernel} | {length:g} | {n} | {found['secrets']} | {found['epsilon']:.3g} | "
                        f"{found['rms']:.3g} | {' | '.join(cells)} | ε = {true:.3g}, {power:.3g} | {found['gap']:.0e} |"
                    )
                    print(lines[-1], file=sys.stderr, flush=True)
    text = "\n".join(lines) + "\n"
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "gains.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
