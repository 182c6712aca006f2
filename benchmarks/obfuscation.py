"""Obfuscation matrices: the first-order method beside the exact linear program, and a map of 1,000 cells.

`python -m benchmarks obfuscation` measures maps with a generated skewed prior. `python -m benchmarks.obfuscation PATH`
takes the most visited cells of a CSV (columns cell_lat_min, cell_lon_min, points) for the large map instead. `--quick`
leaves the large map out.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from benchmarks.measure import in_child, machine, machine_line, markdown_table, peak_memory, write_results


# (rows, columns, ε a cell, the linear program too)
MAPS = ((4, 5, 1.0, True), (5, 10, 1.0, True), (10, 10, 1.0, False), (16, 16, 1.0, False))
LARGE_CELLS = 1_000
LARGE_EPSILON = 1.0
LARGE_SECONDS = 900.0


def cells(rows: int, columns: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Places on a unit grid (n, 2), and weights (n,) that fall off from the middle and vary by magnitudes."""
    places = np.array([(i, j) for i in range(rows) for j in range(columns)], float)
    middle, spread = np.array([rows / 2, columns / 2]), np.array([rows / 4, columns / 4])
    hill = np.exp(-0.5 * np.sum(((places - middle) / spread) ** 2, axis=1))
    return places, hill * np.random.default_rng(seed).dirichlet(np.full(len(places), 0.7))


def visited_cells(path: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Centres in kilometres (n, 2) and visits (n,) of the most visited cells of a CSV of cells in degrees."""
    with open(path, encoding="utf-8") as file:
        header = file.readline().strip().split(",")
        table = np.array([[float(value) for value in line.split(",")] for line in file])
    lat, lon, visits = (table[:, header.index(name)] for name in ("cell_lat_min", "cell_lon_min", "points"))
    top = np.argsort(-visits, kind="stable")[:count]
    kilometres = 111.195 * np.stack([lon[top] * np.cos(np.radians(np.mean(lat))), lat[top]], axis=1)
    return kilometres - kilometres.mean(axis=0), visits[top]


def design(method: str, places: list, weights: list, epsilon: float, options: dict[str, Any]) -> dict[str, Any]:
    """One design in a process of its own: loss, bound, seconds, peak memory."""
    from jaxpriv.channels.gradient import gradient_channel
    from jaxpriv.channels.optimal import optimal_channel
    from jaxpriv.channels.prior import DiscretePrior

    prior = DiscretePrior.from_counts(np.array(places), np.array(weights))
    before = peak_memory()
    start = time.perf_counter()
    run = gradient_channel if method == "gradient" else optimal_channel
    found = run(prior, epsilon, **options)
    return {
        "method": method,
        "cells": prior.size,
        "pairs": len(found.limits.pairs),
        "dilation": found.limits.dilation,
        "rows_of_the_full_program": prior.size**2 * (prior.size - 1),
        "loss": found.quality_loss,
        "lower_bound": found.lower_bound,
        "gap": found.gap,
        "excess": found.excess,
        "published": found.published,
        "steps": found.steps,
        "ended_by": found.status,
        "seconds": time.perf_counter() - start,
        "peak_bytes_before": before,
    }


def main(*, quick: bool = False, path: str | None = None) -> None:
    """Print and store, for each map, loss, certified gap, seconds (compilation included) and peak memory."""
    results = []
    for rows, columns, epsilon, exact in MAPS[: 2 if quick else None]:
        places, weights = cells(rows, columns)
        data = {"places": places.tolist(), "weights": weights.tolist(), "epsilon": epsilon}
        results.append(in_child(design, 600.0, method="gradient", options={"tolerance": 0.01}, **data))
        if exact:
            results.append(in_child(design, 900.0, method="linear program", options={"force": True}, **data))
    if not quick:
        places, weights = visited_cells(path, LARGE_CELLS) if path else _grid_of(LARGE_CELLS)
        data = {"places": places.tolist(), "weights": weights.tolist(), "epsilon": LARGE_EPSILON}
        options = {"tolerance": 0.02, "max_seconds": LARGE_SECONDS}
        results.append(in_child(design, 2 * LARGE_SECONDS, method="gradient", options=options, **data))
    table = markdown_table(
        ["cells", "method", "pairs", "loss", "lower bound", "gap", "s", "steps", "peak MB"], [_row(r) for r in results]
    )
    print(f"{machine_line()}\n\nLoss in cells (or km); seconds include compilation.\n\n{table}")
    write_results("obfuscation", {"machine": machine(), "cases": results}, table)


def _grid_of(count: int) -> tuple[np.ndarray, np.ndarray]:
    places, weights = cells(32, 32)
    top = np.sort(np.argsort(-weights, kind="stable")[:count])
    return places[top], weights[top]


def _row(result: dict[str, Any]) -> list[str]:
    if "loss" not in result:
        return ["", str(result.get("status", result)), "", "", "", "", "", "", ""]
    return [
        f"{result['cells']:,}",
        result["method"],
        f"{result['pairs']:,}",
        f"{result['loss']:.5f}",
        f"{result['lower_bound']:.5f}",
        f"{result['gap']:.2%}",
        f"{result['seconds']:.1f}",
        str(result["steps"]),
        f"{result['peak_bytes'] / 1e6:,.0f}",
    ]


if __name__ == "__main__":
    main(path=sys.argv[1] if len(sys.argv) > 1 else None)
