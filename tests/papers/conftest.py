"""Losses in ball arithmetic: the kernel is evaluated exactly, so no prior is singular to working precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import flint
import numpy as np
import pytest


BITS = 600


@dataclass(frozen=True)
class Exact:
    """Loss lambda_max(H^T (C+G)^-1 H) and width 2 sqrt(lambda_min(P_SS)) of a secret of one or two coordinates."""

    loss: float
    width: float


def _lag(kernel: str, lengthscale_squared: float, period: int | None, lag: int) -> flint.arb:
    squared = flint.arb(lengthscale_squared)
    if kernel == "rbf":
        return (-(flint.arb(lag) ** 2) / (2 * squared)).exp()
    return (-2 * (flint.arb.pi() * lag / period).sin() ** 2 / squared).exp()


def _extreme(matrix: flint.arb_mat, sign: int) -> flint.arb:
    """The largest (sign 1) or smallest (sign -1) eigenvalue of a symmetric matrix of order one or two."""
    if matrix.nrows() == 1:
        return matrix[0, 0]
    middle, half = (matrix[0, 0] + matrix[1, 1]) / 2, (matrix[0, 0] - matrix[1, 1]) / 2
    return middle + sign * (half**2 + ((matrix[0, 1] + matrix[1, 0]) / 2) ** 2).sqrt()


@pytest.fixture(scope="session")
def exact() -> Callable[..., Exact]:
    """exact(case, factor, floor_variance): `case` has kernel, n, lengthscale_squared, period, secret."""

    def evaluate(case: dict, factor: np.ndarray, floor_variance: float) -> Exact:
        before, flint.ctx.prec = flint.ctx.prec, BITS
        try:
            n, secret = case["n"], case["secret"]
            lags = [_lag(case["kernel"], case["lengthscale_squared"], case["period"], lag) for lag in range(n)]
            prior = flint.arb_mat([[lags[abs(i - j)] for j in range(n)] for i in range(n)])
            columns = flint.arb_mat([[float(entry) for entry in row] for row in factor])
            noise = columns * columns.transpose() if factor.shape[1] else flint.arb_mat(n, n)
            floor = flint.arb_mat([[floor_variance if i == j else 0.0 for j in range(n)] for i in range(n)])
            cross = flint.arb_mat([[prior[i, s] for s in secret] for i in range(n)])
            own = flint.arb_mat([[prior[i, s] for s in secret] for i in secret])
            posterior = own - cross.transpose() * (prior + noise + floor).solve(cross)
            loss = _extreme(posterior.inv() - own.inv(), 1)
            width = 2 * _extreme(posterior, -1).sqrt()
            assert float(loss.rad()) < 1e-20 * float(loss.mid())
            return Exact(float(loss.mid()), float(width.mid()))
        finally:
            flint.ctx.prec = before

    return evaluate
