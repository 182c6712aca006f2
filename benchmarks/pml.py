"""Exact noise for pointwise maximal leakage: the closed form against the determinant program, side by side.

The same problem for both: the least tr Θ with log det(I + Θ⁻¹K) ≤ τ for signals K of condition 100, ε = 0.75 q_n(δ),
δ = 0.05. The convex solver takes K as it is; its matrix is scaled up until it meets the constraint, and its cost read
from what results. `own noise` is the problem without a closed form: K and the release's own noise do not commute.
"""

from __future__ import annotations

from typing import Any

from benchmarks.measure import in_child, markdown_table, seconds_text, slope, timed, write_results


CONVEX_SIZES, CONVEX_LIMIT = (5, 10, 20, 50), 60.0
OUR_SIZES = (5, 10, 20, 50, 100, 200, 500, 1000, 2000)
OWN_SIZES = (5, 10, 20, 50)
DELTA = 0.05


def main(*, quick: bool = False) -> None:
    """Print and write the tables; `quick` leaves out the large sizes."""
    results: dict[str, Any] = {}
    for name, sizes in (("closed form", OUR_SIZES), ("own noise", OWN_SIZES)):
        case = closed_form if name == "closed form" else own_noise
        for size in sizes[:3] if quick else sizes:
            ours = in_child(case, 300.0, size=size)
            convex = None
            if size in CONVEX_SIZES:
                convex = in_child(determinant_program, CONVEX_LIMIT, size=size, own=name == "own noise")
            results.setdefault(name, []).append({"size": size, "ours": ours, "convex": convex})
            print(
                f"{name} n={size}: {_line(ours)}" + ("" if convex is None else f"; CLARABEL {_line(convex)}"),
                flush=True,
            )
    text = "\n".join(_table(name, rows) for name, rows in results.items())
    done = [row for row in results["closed form"] if row["size"] >= 200]
    if len(done) > 1:
        exponent = slope([row["size"] for row in done], [row["ours"]["seconds"] for row in done])
        text += f"\nTime of the closed form from n = 200 on grows as n^{exponent:.2f}: one eigendecomposition.\n"
    print("\n" + text)
    if not quick:
        write_results("pml", {"delta": DELTA, "cases": results}, text)


def problem(size: int, own: bool) -> tuple[Any, Any, float]:
    """K, the release's own noise N (zero where there is none) and τ."""
    import numpy as np
    from scipy.stats import chi2

    rng = np.random.default_rng(size)
    basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
    signal = (basis * np.geomspace(1.0, 0.01, size)) @ basis.T
    noise = np.zeros((size, size))
    if own:
        root = rng.normal(size=(size, size))
        noise = 0.05 * (root @ root.T / size + 0.1 * np.eye(size))
    return signal, noise, 0.5 * float(chi2.isf(DELTA, size))


def closed_form(size: int) -> dict[str, Any]:
    """The compiled water-filling, warm."""
    import jax
    import jax.numpy as jnp

    from jaxpriv.designs.leakage.water_filling import least_leakage_noise

    with jax.enable_x64(True):
        signal, _, budget = problem(size, False)
        signal, solve = jnp.asarray(signal), jax.jit(least_leakage_noise)
        found, timing = timed(lambda: solve(signal, budget))
        return {"cost": float(found.cost), **timing.as_dict()}


def own_noise(size: int) -> dict[str, Any]:
    """The search over shapes to a certified gap of 1e-7, warm."""
    from jaxpriv.designs.leakage.general import least_noise_above
    from jaxpriv.precision import double_precision

    with double_precision():
        signal, noise, budget = problem(size, True)
        found, timing = timed(lambda: least_noise_above(signal, noise, budget), least=1, most=3)
        return {"cost": found.cost, "gap": found.gap, "steps": found.steps, **timing.as_dict()}


def determinant_program(size: int, own: bool) -> dict[str, Any]:
    """CVXPY's max-det program with CLARABEL, at its own tolerances; the cost after its matrix is made feasible."""
    import time

    import cvxpy as cp
    import numpy as np

    signal, noise, budget = problem(size, own)
    added, posterior = cp.Variable((size, size), PSD=True), cp.Variable((size, size), symmetric=True)
    block = cp.bmat([[signal - posterior, signal], [signal, signal + noise + added]])
    program = cp.Problem(
        cp.Minimize(cp.trace(added)),
        [block >> 0, cp.log_det(posterior) >= float(np.linalg.slogdet(signal)[1]) - budget],
    )
    start = time.perf_counter()
    program.solve(solver="CLARABEL")
    seconds = time.perf_counter() - start
    values, vectors = np.linalg.eigh(added.value)
    matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T

    def spent(height: float) -> float:
        total = noise + height * matrix + 1e-300 * np.eye(size)
        return float(np.linalg.slogdet(total + signal)[1] - np.linalg.slogdet(total)[1])

    low, high = 1.0, 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if spent(middle) <= budget else (middle, high)
    return {"cost": high * float(np.trace(matrix)), "seconds": seconds, "solver_status": program.status}


def _line(answer: dict[str, Any]) -> str:
    return seconds_text(answer["seconds"]) if answer["status"] == "ok" else answer["status"]


def _table(name: str, rows: list[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        ours, convex = row["ours"], row["convex"]
        against = ["–", "–", "–"]
        if convex is not None and convex["status"] == "ok":
            ratio = convex["seconds"] / ours["seconds"]
            against = [seconds_text(convex["seconds"]), f"{ratio:,.0f} ×", f"{convex['cost'] / ours['cost'] - 1.0:.1e}"]
        elif convex is not None:
            against[0] = f"> {CONVEX_LIMIT:.0f} s" if convex["status"] == "time limit" else convex["status"]
        gap = [f"{ours['gap']:.1e}"] if "gap" in ours else []
        lines.append(
            [str(row["size"]), seconds_text(ours["seconds"]), seconds_text(ours["compilation_seconds"]), *gap, *against]
        )
    columns = [
        "n",
        "jaxpriv, warm",
        "compilation",
        *(["gap"] if "gap" in rows[0]["ours"] else []),
        "CLARABEL",
        "faster by",
    ]
    return f"### {name}\n\n" + markdown_table([*columns, "its cost above ours"], lines)
