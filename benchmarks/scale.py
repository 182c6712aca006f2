"""Long traces and large batches: time and memory against the number of points, traces a second against the batch.

`python -m benchmarks scale` designs one secret on traces of 10² to 10⁶ points, Matérn-5/2 at irregular times and RBF at
regular ones, each size in a process of its own, beside the same design from dense matrices; and batches of up to 4,096
traces of 50 points beside the obvious alternatives. `--quick` stops at 10⁴ points and 256 traces. The loop of CVXPY is
measured at few points and extrapolated, and the table says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import (
    in_child,
    machine_line,
    markdown_table,
    seconds_text,
    slope,
    timed,
    write_results,
)


LENGTHS = (100, 1_000, 10_000, 100_000, 1_000_000)
BATCHES = (1, 16, 64, 256, 1_024, 4_096)
QUICK_LENGTHS, QUICK_BATCHES = LENGTHS[:3], BATCHES[:4]
DENSE_MOST = 3_000  # points of a design from dense matrices
POINTS = 50  # of each trace of a batch
SINGLE_MOST = 64  # traces that are designed one by one: the time of each does not depend on their number
CONVEX_POINTS = (12, 20, 30, 40)
RADIUS, SPENT = 50.0, 30.0  # metres; the error to spend, root mean square of a coordinate
LIMIT = 300.0


def prior_of(n: int, seed: int = 0, step: float = 1.0) -> Any:
    """A Matérn-5/2 prior at irregular times, about 20 points a length scale, nugget 1e-4 of the variance."""
    import jaxpriv as jp

    times = np.cumsum(np.random.default_rng(seed).uniform(0.5, 1.5, n)) * step
    return jp.ProcessPrior(jp.kernels.matern52(20.0 * step, 100.0), times, noise_sd=1.0)


def long_trace(n: int) -> dict[str, Any]:
    """One secret in the middle of n points: seconds of the first design with its certificate, of a later one (the
    difference is compilation), and of the exact release."""
    import jaxpriv as jp
    from jaxpriv.priors.quasiseparable import QuasiseparablePrior

    dense = prior_of(n)
    prior, secret = QuasiseparablePrior(dense.kernel, dense.times, noise_sd=1.0), jp.Secret((n // 2,), RADIUS)
    return _designed(prior, secret)


def long_grid(n: int) -> dict[str, Any]:
    """As `long_trace`, for an RBF prior at regular times."""
    import jaxpriv as jp
    from jaxpriv.priors.regular_grid import GridPrior

    return _designed(GridPrior(jp.kernels.rbf(20.0, 100.0), 1.0, n, noise_sd=1.0), jp.Secret((n // 2,), RADIUS))


def dense_trace(n: int) -> dict[str, Any]:
    """As `long_trace`, from the dense covariance."""
    import jaxpriv as jp

    return _designed(jp.GaussianPrior(prior_of(n).covariance), jp.Secret((n // 2,), RADIUS))


def _designed(prior: Any, secret: Any) -> dict[str, Any]:
    import jaxpriv as jp

    design, timing = timed(lambda: jp.design(prior, secret, epsilon=1.0), least=2, most=5)
    start = time.perf_counter()
    design.mechanism.release(np.zeros(prior.size))
    released = time.perf_counter() - start
    return {
        "first_seconds": timing.first,
        **timing.as_dict(),
        "release_seconds": released,
        "gap": float(design.gap),
        "epsilon": float(design.epsilon),
    }


def batch(count: int) -> dict[str, Any]:
    """`design_batch` for `count` traces of one prior each: seconds of the first and of a later call."""
    import jaxpriv as jp
    from jaxpriv.designs.batch.verb import design_batch

    priors = [prior_of(POINTS, seed) for seed in range(count)]
    secret = jp.Secret((POINTS // 2,), RADIUS)
    made, timing = timed(lambda: design_batch(priors, secret, budget=POINTS * SPENT**2), least=1, most=3)
    return {**timing.as_dict(), "worst_gap": float(np.max(made.gap)), "designed": int(np.sum(made.designed))}


def single(count: int) -> dict[str, Any]:
    """The loop of `design`, certificates included."""
    import jaxpriv as jp

    priors = [prior_of(POINTS, seed) for seed in range(count)]
    secret = jp.Secret((POINTS // 2,), RADIUS)
    jp.design(priors[0], secret, budget=POINTS * SPENT**2)
    start = time.perf_counter()
    for prior in priors:
        jp.design(prior, secret, budget=POINTS * SPENT**2)
    return {"seconds": time.perf_counter() - start}


def vmapped(count: int) -> dict[str, Any]:
    """`jax.vmap` of `least_loss_noise`, which certifies nothing and needs traces of one length."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    import jaxpriv as jp

    covariances = jnp.stack([jnp.asarray(prior_of(POINTS, seed).covariance) for seed in range(count)])
    secret = jp.Secret((POINTS // 2,), RADIUS)
    solve = jax.jit(jax.vmap(lambda c: jp.least_loss_noise(jp.GaussianPrior(c), secret, POINTS * SPENT**2)))
    _, timing = timed(lambda: solve(covariances), least=1, most=3)
    return timing.as_dict()


def convex(points: int) -> dict[str, Any]:
    """CVXPY with Clarabel: the least tr G with G ⪰ F(t), for the loss of an ε of 1 nat; seconds of one trace."""
    import cvxpy as cp

    covariance = np.asarray(prior_of(points).covariance, np.float64)
    middle, loss = points // 2, 1.0 / RADIUS**2
    share = covariance[:, middle] / covariance[middle, middle]
    floor = np.outer(share, share) / loss - (covariance - covariance[middle, middle] * np.outer(share, share))
    noise = cp.Variable((points, points), PSD=True)
    scale = float(np.trace(covariance))
    task = cp.Problem(cp.Minimize(cp.trace(noise)), [noise - floor / scale >> 0])
    start = time.perf_counter()
    task.solve(solver=cp.CLARABEL)
    spent = time.perf_counter() - start
    return {
        "seconds": spent,
        "cost": float(np.trace(np.asarray(noise.value))) * scale,
        "solver_status": str(task.status),
    }


def main(*, quick: bool = False) -> None:
    """Measure, print, and write results/scale.json and results/scale.md."""
    lengths, batches = (QUICK_LENGTHS, QUICK_BATCHES) if quick else (LENGTHS, BATCHES)
    runs = {n: in_child(long_trace, LIMIT, n=n) for n in lengths}
    first = _long_table(runs)
    print(first, flush=True)
    regular = {n: in_child(long_grid, LIMIT, n=n) for n in lengths}
    grids = _long_table(regular)
    print(grids, flush=True)
    dense = {n: in_child(dense_trace, LIMIT, n=n) for n in (*lengths[:2], DENSE_MOST)}
    matrices = _long_table(dense)
    print(matrices, flush=True)
    kinds: dict[str, Callable[..., dict[str, Any]]] = {"batch": batch, "single": single, "vmapped": vmapped}
    measured = {
        name: {
            count: in_child(case, LIMIT, count=count)
            for count in batches
            if name != "single" or count <= (16 if quick else SINGLE_MOST)
        }
        for name, case in kinds.items()
    }
    solved = {n: in_child(convex, LIMIT, points=n) for n in (CONVEX_POINTS[:3] if quick else CONVEX_POINTS)}
    second = _batch_table(batches, measured, solved)
    print(second, flush=True)
    print(machine_line())
    text = f"""# Long traces and large batches{" (quick run)" if quick else ""}

`python -m benchmarks scale{" --quick" if quick else ""}`; each figure from a process of its own.

## One secret on a long trace

Matérn-5/2 at irregular times, 20 points a length scale, nugget 1e-4 of the variance, ε = 1 nat; the prior is the
quasiseparable one for every length. A design includes its certificate.

{first}
RBF at regular times, with the same numbers of points a length scale and nugget; the prior is the one on a grid:

{grids}
For comparison, the first of these traces from dense matrices, which need time in the cube of the points and memory in
the square:

{matrices}
## Traces a second

Traces of {POINTS} points with a prior each and one secret, least loss for a given error. `design_batch` and the loop of
`design` certify each result; the other two certify nothing.

{second}"""
    document = {"quick": quick, "long": runs, "grid": regular, "dense": dense, "batches": measured, "convex": solved}
    write_results("scale", document, text)


def _long_table(runs: dict[int, dict[str, Any]]) -> str:
    rows = []
    for n, run in runs.items():
        if run["status"] != "ok":
            rows.append([f"{n:,}", run["status"], *["–"] * 5])
            continue
        times = [seconds_text(run[key]) for key in ("first_seconds", "compilation_seconds", "seconds")]
        memory = f"{run['peak_bytes'] / 2**20:.0f} MiB"
        rows.append([f"{n:,}", *times, seconds_text(run["release_seconds"]), memory, f"{run['gap']:.0e}"])
    columns = ("points", "first design", "of it compilation", "later design", "exact release", "peak memory", "gap")
    good = [n for n, run in runs.items() if run["status"] == "ok" and n >= 10_000]
    growth = slope(good, [runs[n]["seconds"] for n in good])
    said = f"\nA later design takes time that grows as n^{growth:.2f} from 10⁴ points on.\n" if len(good) > 1 else ""
    return markdown_table(columns, rows) + said


def _batch_table(
    batches: tuple[int, ...], measured: dict[str, dict[int, dict[str, Any]]], solved: dict[int, dict[str, Any]]
) -> str:
    names = {"batch": "`design_batch`", "single": "loop of `design`", "vmapped": "`vmap` of `least_loss_noise`"}
    rows = []
    for count in batches:
        cells = []
        for name in names:
            run = measured[name].get(count)
            good = run is not None and run["status"] == "ok"
            cells.append(f"{count / run['seconds']:.3g}" if good and run else "–" if run is None else run["status"])
        rows.append([f"{count:,}", *cells])
    table = markdown_table(("traces", *(f"{name}, traces/s" for name in names.values())), rows)
    good = [n for n, run in solved.items() if run["status"] == "ok"]
    if len(good) < 2:
        return table + "\nA loop of CVXPY was not measured.\n"
    seconds = [solved[n]["seconds"] for n in good]
    power = slope(good[-2:], seconds[-2:])  # at fewer points the modelling costs more than the solution
    guess = seconds[-1] * (POINTS / good[-1]) ** power
    listed = ", ".join(f"{n}: {seconds_text(s)}" for n, s in zip(good, seconds, strict=True))
    return table + (
        f"\nA loop of CVXPY (Clarabel), for a given ε, time of one trace by its points: {listed}. At "
        f"{POINTS} points, extrapolated with the power {power:.1f} of the last two and not measured: "
        f"{seconds_text(guess)} a trace, {1 / guess:.2g} traces/s.\n"
    )
