"""Run every benchmark, or those named: `python -m benchmarks [first_use] [convex] [coverage]`."""

from __future__ import annotations

import sys

from benchmarks import convex, coverage, first_use


BENCHMARKS = {"first_use": first_use.main, "convex": convex.main, "coverage": coverage.main}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"unknown benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        print(f"\n## {name}\n", flush=True)
        BENCHMARKS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
