"""Ball arithmetic (python-flint): kernels of Matérn processes at float64 times, and the true loss under them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import exact_loss as oracle
import flint
import numpy as np
from tinygp.kernels import Kernel

from jaxpriv.priors import kernels


@dataclass
class MarkovProblem:
    """A kernel given twice (for the library, and as factors of variances), times, nugget, secret and noise."""

    kernel: Kernel
    terms: list[tuple[float, list[tuple[int, float]]]]  # variance, then (order, length scale) of each factor
    times: np.ndarray
    noise_sd: float
    secret: list[int]


def exact_kernel(terms: list[tuple[float, list[tuple[int, float]]]], gap: flint.arb) -> flint.arb:
    total = flint.arb(0)
    for variance, factors in terms:
        value = flint.arb(variance)
        for order, scale in factors:
            x = flint.arb(2 * order + 1).sqrt() * gap / flint.arb(scale)
            value = value * (-x).exp() * [flint.arb(1), 1 + x, 1 + x + x * x / 3][order]
        total = total + value
    return total


def exact_covariance(problem: MarkovProblem) -> flint.arb_mat:
    times = [flint.arb(float(time)) for time in problem.times]
    nugget = flint.arb(problem.noise_sd) ** 2
    return flint.arb_mat(
        [
            [exact_kernel(problem.terms, abs(s - t)) + (nugget if i == j else 0) for j, t in enumerate(times)]
            for i, s in enumerate(times)
        ]
    )


def true_loss(covariance: flint.arb_mat, secret: list[int], factor: np.ndarray, floor: float) -> flint.arb:
    """The largest eigenvalue of P^-1 - V^-1; all of it finite, since the noise is positive definite."""
    size = covariance.nrows()
    total = covariance + oracle.noise(factor, floor)
    right = flint.arb_mat([[covariance[i, j] for j in secret] for i in range(size)])
    own = flint.arb_mat([[covariance[i, j] for j in secret] for i in secret])
    posterior = own - right.transpose() * total.solve(right)
    gain = posterior.inv() - own.inv()
    return oracle.largest_eigenvalue((gain + gain.transpose()) / 2)


def problems(count: int, size: int, seed: int = 7) -> Iterator[MarkovProblem]:
    """Every kernel in turn, spacings from 1/1000 to 1 length scale, irregular, unsorted, some times twice; nuggets
    from 1e-9 to 1e-3 of the variance; secrets of 1 to 3 coordinates, adjacent, at the ends or spread."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        scale, other = float(np.exp(rng.uniform(-1, 4))), float(np.exp(rng.uniform(-1, 4)))
        sd, small = float(np.exp(rng.uniform(-4, 4))), 0.5
        kernel, terms = [
            (kernels.matern12(scale, sd), [(sd**2, [(0, scale)])]),
            (kernels.matern32(scale, sd), [(sd**2, [(1, scale)])]),
            (kernels.matern52(scale, sd), [(sd**2, [(2, scale)])]),
            (
                kernels.matern52(scale, sd) + kernels.matern32(other, small),
                [(sd**2, [(2, scale)]), (small**2, [(1, other)])],
            ),
            (
                kernels.matern32(scale, sd) * kernels.matern12(other, small),
                [(sd**2 * small**2, [(1, scale), (0, other)])],
            ),
        ][number % 5]
        spacing = scale * float(np.exp(rng.uniform(np.log(1e-3), 0.0)))
        times = 1.7e9 * (number % 2) + np.cumsum(rng.exponential(spacing, size))
        if number % 3 == 0:
            times[size // 2] = times[size // 2 - 1]
        variance = sum(one for one, _ in terms)
        noise_sd = float(np.sqrt(variance * 10 ** rng.uniform(-9, -3)))
        width = 1 + number % 3
        start = [0, size // 2 - 1, size - width][int(rng.integers(3))]
        secret = list(range(start, start + width))
        if number % 4 == 3:
            secret = sorted(rng.choice(size, width, replace=False).tolist())
        order = rng.permutation(size)
        where = np.argsort(order)
        yield MarkovProblem(kernel, terms, times[order], noise_sd, [int(where[i]) for i in secret])
