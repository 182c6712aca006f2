"""What a newcomer waits for: the first certified design after import, and the ones after it."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np


N = 50
_FIRST = """
import time
start = time.perf_counter()
import jaxpriv as jp
imported = time.perf_counter()
import numpy as np
i = np.arange({n})
prior = jp.GaussianPrior(np.exp(-(i[:, None] - i) ** 2 / (2 * 6.1**2)) + 1e-4 * np.eye({n}))
secret = jp.Secret([24], radius=1.0)
jp.design(prior, secret, {target})
print(imported - start, time.perf_counter() - imported)
"""


def main() -> None:
    """Print seconds for the first call in a new process and milliseconds for later ones."""
    import jaxpriv as jp

    print(f"one prior, one secret, n = {N}; first call in a new process, then the median of 50 calls with new values")
    for target in ("epsilon=0.5", "budget=1.0"):
        runs = [
            subprocess.run(
                [sys.executable, "-c", _FIRST.format(n=N, target=target)], capture_output=True, text=True, check=True
            ).stdout.split()
            for _ in range(3)
        ]
        imported, first = np.median(np.array(runs, dtype=float), axis=0)
        i = np.arange(N)
        name, value = target.split("=")
        durations = []
        for repeat in range(51):
            lengthscale = 6.1 * (1 + 0.01 * repeat)
            prior = jp.GaussianPrior(np.exp(-((i[:, None] - i) ** 2) / (2 * lengthscale**2)) + 1e-4 * np.eye(N))
            start = time.perf_counter()
            jp.design(prior, jp.Secret([24], radius=1.0), **{name: float(value)})
            durations.append(time.perf_counter() - start)
        later = 1e3 * np.median(durations[1:])
        print(f"{target:12s} import {imported:.2f} s   first {first:.2f} s   later {later:.2f} ms")
