"""Ball arithmetic (python-flint): the true loss of a problem given by exact float64 arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator

import flint
import numpy as np


BITS = 900


def ball_matrix(array: np.ndarray) -> flint.arb_mat:
    return flint.arb_mat([[flint.arb(float(x)) for x in row] for row in np.atleast_2d(array)])


def positive_definite(matrix: flint.arb_mat) -> bool | None:
    """Sign of the pivots of an exact symmetric elimination; None when a pivot's ball contains 0."""
    size = matrix.nrows()
    rows = [[matrix[i, j] for j in range(size)] for i in range(size)]
    for i in range(size):
        if rows[i][i] < 0:
            return False
        if not rows[i][i] > 0:
            return None
        for j in range(i + 1, size):
            ratio = rows[j][i] / rows[i][i]
            for k in range(i + 1, size):
                rows[j][k] = rows[j][k] - ratio * rows[i][k]
    return True


def largest_eigenvalue(matrix: flint.arb_mat) -> flint.arb:
    """Largest eigenvalue of a small symmetric matrix, as a ball verified by two definiteness tests."""
    size = matrix.nrows()
    if size == 1:
        return matrix[0, 0]
    eigenvalues = flint.acb_mat(matrix).eig(algorithm="approx")
    centre = max((value.real.mid() for value in eigenvalues), key=lambda value: value)
    unit = abs(centre) * flint.arb(2) ** -160
    identity = flint.arb_mat([[int(i == j) for j in range(size)] for i in range(size)])
    assert positive_definite((centre + unit) * identity - matrix) is True
    assert positive_definite((centre - unit) * identity - matrix) is False
    return centre + flint.arb(0, unit)


def noise(factor: np.ndarray, floor: float) -> flint.arb_mat:
    low_rank = ball_matrix(factor)
    identity = ball_matrix(np.eye(factor.shape[0]))
    return low_rank * low_rank.transpose() + flint.arb(float(floor)) * identity


def true_loss(
    covariance: np.ndarray, cross: np.ndarray, variance: np.ndarray, factor: np.ndarray, floor: float
) -> flint.arb | None:
    """The loss as a ball; None where it is infinite or not defined (something is not positive definite)."""
    previous, flint.ctx.prec = flint.ctx.prec, BITS
    try:
        total = ball_matrix(covariance) + noise(factor, floor)
        own = ball_matrix(variance)
        if positive_definite(total) is not True or positive_definite(own) is not True:
            return None
        right = ball_matrix(cross)
        quadratic = right.transpose() * total.solve(right)
        posterior = own - quadratic
        if positive_definite((posterior + posterior.transpose()) / 2) is not True:
            return None
        gain = posterior.inv() - own.inv()
        return largest_eigenvalue((gain + gain.transpose()) / 2)
    finally:
        flint.ctx.prec = previous


def below(bound: float, value: flint.arb) -> bool:
    """Whether the true value is certainly not less than `bound`."""
    return flint.arb(bound) <= value


def relative(bound: float, value: flint.arb) -> float:
    return float(((flint.arb(bound) - value) / value).mid())


def problems(count: int, seed: int = 20210413) -> Iterator[dict]:
    """Random problems from harmless to singular, each a dict of exact float64 arrays.

    Priors: squared-exponential, Matern-3/2, periodic, Wishart of random rank; variances 1e-6..1e6, nuggets 0..1e-2;
    noise: uniform, low-rank, shaped like the prior, and near the least-noise design; floors 0, 1e-13..1e-3 of the
    variance; secrets of 1, 2, 4 and 8 coordinates, adjacent or spread.
    """
    rng = np.random.default_rng(seed)
    for number in range(count):
        size = int(rng.integers(5, 61))
        times = np.arange(size, dtype=float)
        gap = np.abs(times[:, None] - times)
        scale = float(np.exp(rng.uniform(np.log(0.5), np.log(20))))
        kind = ["rbf", "matern", "periodic", "wishart"][number % 4]
        if kind == "rbf":
            prior = np.exp(-(gap**2) / (2 * scale**2))
        elif kind == "matern":
            prior = (1 + math.sqrt(3) * gap / scale) * np.exp(-math.sqrt(3) * gap / scale)
        elif kind == "periodic":
            prior = np.exp(-2 * np.sin(np.pi * gap / (size / 2)) ** 2 / min(scale, 3.0) ** 2)
        else:
            root = rng.standard_normal((size, int(rng.integers(1, size + 3))))
            prior = root @ root.T / root.shape[1]
        variance = float(10 ** rng.uniform(-6, 6))
        nugget = float(rng.choice([0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2]))
        prior = (prior + nugget * np.eye(size)) * variance
        prior = (prior + prior.T) / 2
        wanted = int([1, 1, 1, 2, 2, 2, 4, 8][int(rng.integers(0, 8))])
        width = min(wanted, size - 1)
        if rng.random() < 0.5:
            start = int(rng.integers(0, size - width + 1))
            secret = np.arange(start, start + width)
        else:
            secret = np.sort(rng.choice(size, width, replace=False))
        floor = float(rng.choice([0.0, 1e-13, 1e-10, 1e-8, 1e-6, 1e-4, 1e-3])) * variance
        power = float(10 ** rng.uniform(-4, 1)) * variance
        shape = int(rng.integers(0, 4))
        cross = prior[:, secret]
        if shape == 0:
            factor = math.sqrt(power) * np.eye(size)
        elif shape == 1:
            factor = math.sqrt(power) * rng.standard_normal((size, int(rng.integers(1, 4))))
        elif shape == 2:
            values, vectors = np.linalg.eigh(prior)
            factor = vectors * np.sqrt(np.maximum(values, 0) * power / variance)
        else:
            weights = np.linalg.solve(prior + (power * size + 1e-9 * variance) * np.eye(size), cross)
            factor = math.sqrt(power * size) * np.linalg.qr(weights)[0]
        yield {
            "covariance": prior,
            "cross": cross,
            "variance": prior[np.ix_(secret, secret)],
            "factor": factor,
            "floor": floor,
            "size": size,
            "secret": secret,
            "kind": kind,
            "benign": floor + nugget * variance >= 1e-10 * variance,
        }
