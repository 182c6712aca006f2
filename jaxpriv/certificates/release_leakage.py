"""Rigorous leakage of a linear release: C X plus noise of its own plus the noise that was designed."""

from __future__ import annotations

import math

import numpy as np

from jaxpriv.certificates.arithmetic import ROUNDED, SMALLEST, gamma, require_arithmetic
from jaxpriv.certificates.leakage import LeakageBound
from jaxpriv.certificates.noise import noise_matrix, uncertain_log_determinant


def release_leakage(secret: np.ndarray, matrix: np.ndarray, factor: np.ndarray, own: np.ndarray) -> LeakageBound:
    """Upper bounds of what C X + N(0, N) + N(0, B Bᵀ) leaks about X ~ N(·, Σ), of rank m.

    Args:
        secret: Σ, (n, n). matrix: C, (m, n). factor: B, (m, q). own: N, (m, m). float64 arrays, taken as exact.

    I = ½(log det(C Σ Cᵀ + N + B Bᵀ) − log det(N + B Bᵀ)). Infinite where that could not be verified.
    """
    require_arithmetic()
    with np.errstate(all="ignore"):
        signal = matrix @ secret @ matrix.T
        signal = 0.5 * (signal + signal.T)
        size = np.abs(matrix) @ np.abs(secret) @ np.abs(matrix).T
        # Two products and a mean, and this bound's own rounding.
        wrong = (size + size.T) * (gamma(4 * secret.shape[0] + 8) * ROUNDED) + SMALLEST
        below = uncertain_log_determinant(*noise_matrix(factor, 0.0, own))[0]
        total, error = noise_matrix(factor, 0.0, own, signal)
        above = uncertain_log_determinant(total, error + wrong * ROUNDED)[1]
    if not (math.isfinite(below) and math.isfinite(above)):
        return LeakageBound(math.inf, matrix.shape[0])
    return LeakageBound(max(math.nextafter(0.5 * (above - below) * (1.0 + 2.0**-50), math.inf), 0.0), matrix.shape[0])
