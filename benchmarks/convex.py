"""The closed forms beside the exact semidefinite programs, at equal answers."""

from __future__ import annotations

import time

import numpy as np


SIZES = (10, 20, 30)


def main() -> None:
    """Print seconds and the relative difference of the objectives, by size."""
    import jaxpriv as jp
    from jaxpriv.convex.joint import joint_budget

    print("least loss for a trace of 0.02 n, RBF prior of length scale 3, secret of two adjacent fixes")
    print("   n   closed form, certified       semidefinite program     relative difference")
    for n in SIZES:
        i = np.arange(n)
        covariance = np.exp(-((i[:, None] - i) ** 2) / (2 * 3.0**2)) + 1e-3 * np.eye(n)
        prior, secret = jp.GaussianPrior(covariance), jp.Secret([n // 2, n // 2 + 1], radius=1.0)
        jp.design(prior, secret, budget=0.02 * n, floor_sd=0.0)
        start = time.perf_counter()
        ours = jp.design(prior, secret, budget=0.02 * n, floor_sd=0.0)
        middle = time.perf_counter()
        theirs = joint_budget(covariance, secret.indices, 0.02 * n)
        end = time.perf_counter()
        loss = ours.epsilon / (0.5 * 2.0 * 2)
        print(
            f"{n:4d}   {loss:12.8f} {middle - start:8.4f} s   {theirs.loss:12.8f} {end - middle:8.2f} s"
            f"   {abs(theirs.loss / loss - 1):.1e}"
        )
