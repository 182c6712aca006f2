"""Entropic couplings of two laws on a map of n cells, beside the exact linear program and other libraries.

`python -m benchmarks coupling` measures up to 2,000 cells of a generated map, each case in a process of its own;
`--quick` stops at 400. POT and OTT-JAX are measured where they are installed.
"""

from __future__ import annotations

import time
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.measure import (
    in_child,
    machine_line,
    markdown_table,
    peak_memory,
    seconds_text,
    slope,
    timed,
    write_results,
)


SIZES = (100, 200, 400, 1_000, 2_000)
SCALE = 1.0  # cells
EXACT_LIMIT = 120.0
TOLERANCE = 1e-9  # total variation between the output law and the target, for all entropic methods
MOST_STEPS = 20_000


def laws(cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distances (n, n) between cells of a unit grid, and two laws with their hills in different places."""
    side = int(np.ceil(np.sqrt(cells)))
    places = np.array([(i, j) for i in range(side) for j in range(side)][:cells], float)
    distance = np.linalg.norm(places[:, None] - places[None], axis=-1)
    rng = np.random.default_rng(1)

    def hill(x: float, y: float) -> np.ndarray:
        shape = np.exp(-0.5 * np.sum(((places / side - (x, y)) / 0.25) ** 2, axis=1))
        law = shape * rng.uniform(0.2, 1.0, size=cells) + 1e-6
        return law / law.sum()

    return distance, hill(0.35, 0.4), hill(0.65, 0.55)


def entropic(cells: int, gradient: bool = False) -> dict[str, Any]:
    """Ours: seconds warm and of the first call, steps, error; with `gradient` that of a loss by both laws and cost."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    from jaxpriv.distribution.sinkhorn import entropic_coupling

    before = peak_memory()
    distance, first, second = (jnp.asarray(one) for one in laws(cells))
    solve = jax.jit(lambda d, p, q: entropic_coupling(d, p, q, SCALE, tolerance=TOLERANCE, max_steps=MOST_STEPS))
    if gradient:
        loss = jax.jit(jax.grad(lambda d, p, q: solve(d, p, q).cost, argnums=(0, 1, 2)))
        _, timing = timed(lambda: loss(distance, first, second), least=1, most=3)
        return {"method": "jaxpriv, gradient", "cells": cells, **timing.as_dict(), "peak_bytes_before": before}
    found, timing = timed(lambda: solve(distance, first, second), least=1, most=5)
    return {
        "method": "jaxpriv, entropic",
        "cells": cells,
        "loss": float(found.cost),
        "error": float(found.error),
        "steps": int(found.steps),
        "peak_bytes_before": before,
        **timing.as_dict(),
    }


def exact(cells: int) -> dict[str, Any]:
    """The linear program by HiGHS."""
    from jaxpriv.distribution.transport import optimal_coupling

    distance, first, second = laws(cells)
    start = time.perf_counter()
    found = optimal_coupling(first, second, distance, method="linear program")
    return {
        "method": "linear program (HiGHS)",
        "cells": cells,
        "loss": found.cost,
        "seconds": time.perf_counter() - start,
    }


def pot(cells: int, method: str) -> dict[str, Any]:
    """POT: its network simplex, or its Sinkhorn in the log domain (the same scale and a margin error of 1e-9)."""
    ot: Any = import_module("ot")
    distance, first, second = laws(cells)
    start = time.perf_counter()
    if method == "exact":
        loss, error = float(ot.emd2(first, second, distance, numItermax=10_000_000)), None
    else:
        plan = ot.sinkhorn(
            first, second, distance, SCALE, method="sinkhorn_log", stopThr=TOLERANCE, numItermax=MOST_STEPS, warn=False
        )
        loss, error = float(np.sum(plan * distance)), 0.5 * float(np.sum(np.abs(plan.sum(axis=0) - second)))
    name = "POT, network simplex" if method == "exact" else "POT, sinkhorn_log"
    return {"method": name, "cells": cells, "loss": loss, "error": error, "seconds": time.perf_counter() - start}


def ott(cells: int) -> dict[str, Any]:
    """OTT-JAX: Sinkhorn in the log domain at the same scale."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    from ott.geometry import geometry  # pyright: ignore[reportMissingImports]
    from ott.problems.linear import linear_problem  # pyright: ignore[reportMissingImports]
    from ott.solvers.linear import sinkhorn  # pyright: ignore[reportMissingImports]

    distance, first, second = (jnp.asarray(one) for one in laws(cells))

    @jax.jit
    def solve(d, p, q):
        problem = linear_problem.LinearProblem(geometry.Geometry(cost_matrix=d, epsilon=SCALE), a=p, b=q)
        plan = sinkhorn.Sinkhorn(threshold=TOLERANCE, max_iterations=MOST_STEPS)(problem).matrix
        return jnp.sum(plan * d), 0.5 * jnp.sum(jnp.abs(jnp.sum(plan, axis=0) - q))

    (loss, error), timing = timed(lambda: solve(distance, first, second), least=1, most=5)
    return {"method": "OTT-JAX", "cells": cells, "loss": float(loss), "error": float(error), **timing.as_dict()}


def main(*, quick: bool = False) -> None:
    """Print and store seconds, peak memory and loss of each method, and how seconds grow with the number of cells."""
    sizes = SIZES[:3] if quick else SIZES
    results: list[dict[str, Any]] = []
    running = {"linear program (HiGHS)": True, "POT, sinkhorn_log": True}
    for cells in sizes:
        results.append(in_child(entropic, 1_800.0, cells=cells))
        results.append(in_child(entropic, 1_800.0, cells=cells, gradient=True))
        if running["linear program (HiGHS)"]:
            found = in_child(exact, EXACT_LIMIT, cells=cells)
            running["linear program (HiGHS)"] = found["status"] == "ok"
            results.append({"method": "linear program (HiGHS)", "cells": cells} | found)
        if find_spec("ot") is not None:
            results.append(in_child(pot, 1_800.0, cells=cells, method="exact"))
            if running["POT, sinkhorn_log"]:
                found = in_child(pot, EXACT_LIMIT, cells=cells, method="sinkhorn")
                running["POT, sinkhorn_log"] = found["status"] == "ok"
                results.append({"method": "POT, sinkhorn_log", "cells": cells} | found)
        if find_spec("ott") is not None:
            results.append(in_child(ott, 1_800.0, cells=cells))
    table = markdown_table(
        ["method", "cells", "seconds", "first call", "steps", "loss, cells", "error of the law", "peak MB"],
        [_row(one) for one in results],
    )
    ours = [one for one in results if one.get("method") == "jaxpriv, entropic" and one["status"] == "ok"]
    power = slope([one["cells"] for one in ours], [one["seconds"] for one in ours])
    peers = [f"{name} {version(name)}" for name, found in (("POT", "ot"), ("ott-jax", "ott")) if find_spec(found)]
    notes = (
        f"Two laws on a grid, scale {SCALE:g} cell. Entropic methods stop at a total variation of {TOLERANCE:g}; the "
        f"linear program and POT's Sinkhorn are given {EXACT_LIMIT:.0f} s. Seconds are warm where a first call is "
        f"shown. {', '.join(peers)}\n\nEntropic couplings here take seconds ∝ cells^{power:.2f} over these sizes.\n"
    )
    print(f"{machine_line()}\n\n{notes}\n{table}", flush=True)
    write_results(
        "coupling", {"scale": SCALE, "tolerance": TOLERANCE, "power": power, "cases": results}, notes + "\n" + table
    )


def _row(result: dict[str, Any]) -> list[str]:
    cells = [result.get("method", "?"), f"{result.get('cells', 0):,}"]
    if result["status"] != "ok":
        return [*cells, result["status"], "", "", "", "", ""]
    first = result["seconds"] + result["compilation_seconds"] if "compilation_seconds" in result else None
    return [
        *cells,
        seconds_text(result["seconds"]),
        "" if first is None else seconds_text(first),
        str(result.get("steps", "")),
        f"{result['loss']:.6f}" if "loss" in result else "",
        f"{result['error']:.1e}" if result.get("error") is not None else "",
        f"{result['peak_bytes'] / 1e6:,.0f}",
    ]
