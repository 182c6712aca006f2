"""What the benchmarks share: clocks, child processes with a memory and time limit of their own, and result files.

A case is a module-level function of JSON-ready keyword arguments that returns a JSON-ready dictionary. `in_child` runs
it in a fresh process, so that its peak memory is its own and a solver that does not end can be ended.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np


RESULTS = Path(__file__).parent / "results"
_MARK = "benchmark result: "


@dataclass(frozen=True)
class Timing:
    """Seconds of the wall clock: the first call (compilation included) and the median and best of the later ones."""

    first: float
    median: float
    best: float
    repeats: int

    @property
    def compilation(self) -> float:
        """What the first call took longer than a later one, in seconds."""
        return max(self.first - self.median, 0.0)

    def as_dict(self) -> dict[str, float]:
        """For a result file: seconds warm (median), best, of compilation, and how many calls."""
        return {
            "seconds": self.median,
            "best_seconds": self.best,
            "compilation_seconds": self.compilation,
            "repeats": self.repeats,
        }


def timed(call: Callable[[], Any], *, least: int = 3, most: int = 50, seconds: float = 1.0) -> tuple[Any, Timing]:
    """Call repeatedly and wait for what it returns: the last result and the timing.

    After the first call at least `least` and at most `most` more, as many as fit into about `seconds`; one more where
    the first took over ten seconds.
    """
    start = time.perf_counter()
    result = _ready(call())
    first = time.perf_counter() - start
    durations: list[float] = []
    least = 1 if first > 10.0 else least
    while len(durations) < least or (len(durations) < most and sum(durations) < seconds):
        start = time.perf_counter()
        result = _ready(call())
        durations.append(time.perf_counter() - start)
    return result, Timing(first, float(np.median(durations)), min(durations), len(durations))


def _ready(result: Any) -> Any:
    if "jax" in sys.modules:
        sys.modules["jax"].block_until_ready(result)
    return result


def peak_memory() -> float:
    """Largest resident memory of this process so far, in bytes."""
    try:
        # The other count starts from that of the parent process.
        status = Path("/proc/self/status").read_text()
        return 1024.0 * float(status.split("VmHWM:")[1].split()[0])
    except (OSError, IndexError):
        pass
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def in_child(case: Callable[..., dict[str, Any]], limit: float, **arguments: Any) -> dict[str, Any]:
    """Run a case in a fresh process: what it returned, with `peak_bytes` and `status`.

    `status` is "ok"; "time limit" when it took longer than `limit` seconds, start of the process included; or what the
    child ended with. Only the first has the case's own entries.
    """
    order = json.dumps({"module": case.__module__, "name": case.__name__, "arguments": arguments})
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.measure", order],
            capture_output=True,
            text=True,
            timeout=limit,
            cwd=Path(__file__).parent.parent,
        )
    except subprocess.TimeoutExpired:
        return {"status": "time limit", "limit_seconds": limit}
    answers = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if done.returncode or not answers:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"status": f"failed: {last[:200]}" if done.returncode > 0 else f"ended by signal {-done.returncode}"}
    return json.loads(answers[-1][len(_MARK) :])


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Exponent p of the least-squares fit seconds ∝ size^p on log-log axes; NaN for fewer than two points."""
    if len(sizes) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def machine() -> dict[str, Any]:
    """What the figures depend on and nothing that names the machine: processor, cores, memory, threads, versions."""
    packages = (
        "jaxpriv",
        "jax",
        "jaxlib",
        "numpy",
        "scipy",
        "optax",
        "cvxpy",
        "clarabel",
        "scs",
        "cvxopt",
        "jax-privacy",
        "POT",
        "ott-jax",
    )
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "default"),
        "versions": {name: found for name in packages if (found := _version(name)) is not None},
    }


def machine_line() -> str:
    """`machine()` as one line of Markdown."""
    m = machine()
    versions = ", ".join(f"{name} {number}" for name, number in m["versions"].items())
    return (
        f"{m['processor']}, {m['cores']} cores, {m['memory_gib']} GiB, {m['system']}, Python {m['python']}, "
        f"BLAS threads {m['blas_threads']}; {versions}."
    )


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, the first column to the left and the others to the right."""
    lines = [columns, [":--"] + ["--:"] * (len(columns) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def write_results(name: str, results: Mapping[str, Any], markdown: str) -> None:
    """Write `results/NAME.json` (with the machine's description) and `results/NAME.md` (followed by it)."""
    RESULTS.mkdir(exist_ok=True)
    document = {"benchmark": name, "date": time.strftime("%Y-%m-%d"), "machine": machine(), **results}
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1, default=float) + "\n")
    (RESULTS / f"{name}.md").write_text(markdown.rstrip() + "\n\n" + machine_line() + "\n")


def seconds_text(value: float) -> str:
    """A duration with two digits that count and its unit."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (np.inf, 1.0, "s")):
        if value < limit:
            return f"{value * factor:.0f} {unit}" if value * factor >= 10 else f"{value * factor:.1f} {unit}"
    return "–"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    found = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return found[0] if found else platform.machine()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _child(order: str) -> None:
    asked = json.loads(order)
    result = getattr(import_module(asked["module"]), asked["name"])(**asked["arguments"])
    print(_MARK + json.dumps({"status": "ok", **result, "peak_bytes": peak_memory()}, default=float), flush=True)


if __name__ == "__main__":
    _child(sys.argv[1])
