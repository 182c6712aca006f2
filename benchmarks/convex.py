"""This library beside convex solvers and plain gradient descent, on the same problems, in one run.

The question is always which noise of a given total power leaves the least loss: for one point, for two neighbouring
points together, for three points each, and for every point. Every method and size runs in a process of its own, one
BLAS thread each. A solver that meets its limit on a problem is not asked for a larger one. Accuracy is the loss of the
matrix a method returned, recomputed from the matrix and charged for any excess over the budget, relative to the best
lower bound known.
"""

from __future__ import annotations

import math
from typing import Any

from benchmarks import _convex_cases as cases
from benchmarks._drawing import draw_times
from benchmarks.measure import RESULTS, in_child, markdown_table, seconds_text, slope, write_results


OURS = ("compiled", "certified")
SOLVERS = ("CLARABEL", "SCS", "CVXOPT")
METHODS = (*OURS, *SOLVERS, "Adam")
SIZES = (20, 50, 100, 200, 500, 1000)
THEIR_SIZES = (20, 50, 100)
LIMIT = 30.0  # seconds that a solver may take
STARTING = 20.0  # and what its process may take besides
EQUAL = 1e-6  # relative excess over the best bound up to which methods count as equally accurate


def main(*, quick: bool = False) -> None:
    """Print, and unless `quick` write, the table, the ratios, the growth with n and the picture."""
    sizes, theirs, limit = ((20, 50), (20,), 20.0) if quick else (SIZES, THEIR_SIZES, LIMIT)
    rows: list[dict[str, Any]] = []
    for name in cases.PROBLEMS:
        late: set[str] = set()
        for n in sizes:
            for method in METHODS:
                if method not in OURS and n not in theirs:
                    continue
                if method in late:
                    outcome: dict[str, Any] = {"status": "not run: a smaller one met the limit"}
                else:
                    outcome = _run(method, name, n, limit)
                if outcome["status"] == "time limit":
                    late.add(method)
                rows.append({"problem": name, "n": n, "method": method, **outcome})
            _compare([row for row in rows if row["problem"] == name and row["n"] == n])
            for row in rows:
                if row["problem"] == name and row["n"] == n:
                    print(f"{name:14s} n={n:<5d} {row['method']:10s} {_line(row)}", flush=True)
    text = _report(rows, limit)
    print("\n" + text)
    if not quick:
        write_results("convex", {"limit_seconds": limit, "equal_accuracy": EQUAL, "rows": rows}, text)
        draw_times(rows, cases.PROBLEMS, METHODS, EQUAL, RESULTS / "convex.png")


def _run(method: str, name: str, n: int, limit: float) -> dict[str, Any]:
    if method == "compiled":
        return in_child(cases.ours_compiled, 300.0, name=name, n=n)
    if method == "certified":
        return in_child(cases.ours_certified, 300.0, name=name, n=n)
    if method == "Adam":
        return in_child(cases.adam, limit + STARTING, name=name, n=n)
    outcome = in_child(cases.solver, limit + STARTING, name=name, n=n, which=method, most=limit)
    return {"status": "time limit"} if "user_limit" in outcome["status"] else outcome


def _compare(rows: list[dict[str, Any]]) -> None:
    """Add the best lower bound and each method's relative excess over it; a loss below it would be an error here."""
    bounds = [row["lower"] for row in rows if "lower" in row]
    best = max(bounds, default=math.nan)
    for row in rows:
        if "loss" in row:
            row["bound"] = best
            row["excess"] = row["loss"] / best - 1.0


def _equal(row: dict[str, Any]) -> bool:
    return row.get("excess", math.inf) <= EQUAL


def _line(row: dict[str, Any]) -> str:
    if row["status"] != "ok":
        return row["status"]
    return (
        f"{seconds_text(row['seconds']):>8s}   excess {row['excess']:9.1e}   {row['peak_bytes'] / 2**20:6.0f} MiB   "
        f"compilation {seconds_text(row['compilation_seconds'])}"
    )


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    if row["status"] != "ok":
        return {"time limit": "limit", "not run: a smaller one met the limit": "–"}.get(row["status"], "failed")
    accuracy = "" if _equal(row) else f" ({row['excess']:.0e})"
    return seconds_text(row["seconds"]) + accuracy


def _report(rows: list[dict[str, Any]], limit: float) -> str:
    find = {(row["problem"], row["n"], row["method"]): row for row in rows}
    sizes = sorted({row["n"] for row in rows})
    text = (
        "# This library beside convex solvers\n\n"
        "Least largest loss for noise of total power 0.02 n; RBF prior of unit variance, length scale 6 points, nugget "
        "1e-4. Seconds of the wall clock, warm, without compilation; for the solvers, what the solver itself reports, "
        "without CVXPY's part. *compiled*: the JAX functions `least_loss_noise` (one point, two points together), "
        "`clip_budget` (three) and `prior_shaped_noise` (every point). *certified*: `jaxpriv.design` with its "
        "verified bounds. SCS was asked for 1e-8. In brackets: relative excess of the loss over the best lower bound "
        f"where it is above {EQUAL:.0e}. A solver had {limit:.0f} s.\n"
    )
    for name in cases.PROBLEMS:
        body = [[str(n), *(_cell(find.get((name, n, method))) for method in METHODS)] for n in sizes]
        text += f"\n## {name[0].upper() + name[1:]}\n\n" + markdown_table(["n", *METHODS], body)
    text += "\n## Ratios at equal accuracy\n\n" + _ratios(find, sizes)
    text += "\n## Growth with n\n\n" + _growth(find, sizes)
    text += "\n## Peak memory and compilation\n\n" + _memory(find, sizes)
    return text


def _ratios(find: dict[Any, dict[str, Any]], sizes: list[int]) -> str:
    body = []
    for name in cases.PROBLEMS:
        for n in sizes:
            equal = [find[name, n, m] for m in SOLVERS if (name, n, m) in find and _equal(find[name, n, m])]
            asked = [m for m in SOLVERS if (name, n, m) in find]
            if not asked:
                continue
            fastest = min(equal, key=lambda row: row["seconds"], default=None)
            cells = []
            for method in OURS:
                ours = find[name, n, method]
                if ours["status"] != "ok" or not _equal(ours):
                    cells.append("–")
                elif fastest is None:
                    # None was as accurate: the least time any of them can have taken.
                    late = [find[name, n, m]["status"] == "time limit" for m in asked]
                    cells.append(f"> {LIMIT / ours['seconds']:,.0f}" if all(late) else "none as accurate")
                else:
                    cells.append(f"{fastest['seconds'] / ours['seconds']:,.0f}")
            body.append([name, str(n), fastest["method"] if fastest else "–", *cells])
    return markdown_table(["problem", "n", "fastest as accurate", "its time / compiled", "its time / certified"], body)


def _growth(find: dict[Any, dict[str, Any]], sizes: list[int]) -> str:
    body = []
    for name in cases.PROBLEMS:
        cells = []
        for method in METHODS:
            done = [find[name, n, method] for n in sizes if find.get((name, n, method), {}).get("status") == "ok"]
            # Below a hundred points overheads hide the growth of what takes milliseconds.
            done = [row for row in done if method not in OURS or row["n"] >= 100]
            exponent = slope([row["n"] for row in done], [row["seconds"] for row in done])
            cells.append("–" if math.isnan(exponent) else f"{exponent:.1f}")
        body.append([name, *cells])
    return (
        markdown_table(["exponent of n", *METHODS], body)
        + "\nFitted to all sizes for the others and to n of 100 and more for this library. A factorisation grows as n³ "
        "once it is large; up to 1,000 points the exponent stays below because small matrices are worked on less "
        "efficiently. Where it is larger the number of steps grows with n as well.\n"
    )


def _memory(find: dict[Any, dict[str, Any]], sizes: list[int]) -> str:
    body = []
    for name in cases.PROBLEMS:
        for n in sizes:
            cells = []
            for method in METHODS:
                row = find.get((name, n, method), {})
                done = row.get("status") == "ok"
                compiled = seconds_text(row["compilation_seconds"]) if done else ""
                cells.append(f"{row['peak_bytes'] / 2**20:,.0f}, {compiled}" if done else "–")
            body.append([name, str(n), *cells])
    return (
        markdown_table(["problem", "n", *METHODS], body)
        + "\nMiB of the whole process, imports included (JAX alone takes about 300 and CVXPY 130), then what the first "
        "call took longer: compilation, or CVXPY's own part.\n"
    )
