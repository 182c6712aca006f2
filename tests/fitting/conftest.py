"""An independent likelihood and optimiser in NumPy and SciPy, sharing no code with the package."""

from __future__ import annotations

from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.stats import multivariate_normal


def covariance(kernel: str, p: dict[str, float], times: np.ndarray, period: float = 1.0) -> np.ndarray:
    """Kernel matrix without the nugget, from the formulas as they are printed in the literature."""
    d = np.abs(times[:, None] - times[None, :])
    if kernel == "matern12":
        return p["sd"] ** 2 * np.exp(-d / p["lengthscale"])
    if kernel == "matern32":
        a = np.sqrt(3) * d / p["lengthscale"]
        return p["sd"] ** 2 * (1 + a) * np.exp(-a)
    if kernel == "matern52":
        a = np.sqrt(5) * d / p["lengthscale"]
        return p["sd"] ** 2 * (1 + a + a**2 / 3) * np.exp(-a)
    if kernel == "rbf":
        return p["sd"] ** 2 * np.exp(-(d**2) / (2 * p["lengthscale"] ** 2))
    if kernel == "rq":
        return p["sd"] ** 2 * (1 + d**2 / (2 * p["alpha"] * p["lengthscale"] ** 2)) ** -p["alpha"]
    if kernel == "iou":
        t = times - times[0]
        tau, low = p["tau"], np.minimum(t[:, None], t[None, :])
        decayed = np.exp(-t[:, None] / tau) + np.exp(-t[None, :] / tau) - 1 - np.exp(-d / tau)
        return p["sd_velocity"] ** 2 * (2 * tau * low + tau**2 * decayed)
    if kernel == "damped_iou":
        a, b = 1 / p["slow"], 1 / p["fast"]
        return p["sd"] ** 2 * (b * np.exp(-a * d) - a * np.exp(-b * d)) / (b - a)
    cycle = np.exp(-2 * np.sin(np.pi * d / period) ** 2 / p["periodic_lengthscale"] ** 2)
    if kernel == "periodic":
        return p["sd"] ** 2 * cycle
    if kernel == "periodic_matern12":
        return p["sd"] ** 2 * cycle * np.exp(-d / p["decay"])
    decaying = p["sd"] ** 2 * cycle * np.exp(-(d**2) / (2 * p["decay"] ** 2))
    if kernel == "periodic_rbf":
        return decaying
    assert kernel == "periodic_rbf_matern32"
    a = np.sqrt(3) * d / p["matern_lengthscale"]
    return decaying + p["matern_sd"] ** 2 * (1 + a) * np.exp(-a)


def means(mean: str, times: np.ndarray) -> np.ndarray:
    """The mean functions as columns (n, p)."""
    return np.stack([np.ones_like(times), times], axis=1)[:, : {"zero": 0, "constant": 1, "linear": 2}[mean]]


@lru_cache
def contrasts_of(mean: str, times: tuple[float, ...]) -> np.ndarray:
    """An orthonormal basis (n, n − p) of what is orthogonal to the mean functions."""
    return null_space(means(mean, np.array(times)).T)


def loglik(full: np.ndarray, times: np.ndarray, values: np.ndarray, mean: str) -> float:
    """The restricted likelihood as what it is: the density of orthonormal contrasts that the mean does not reach.

    `full` includes the nugget.
    """
    if mean == "zero":
        return float(multivariate_normal.logpdf(values, np.zeros(times.size), full))
    contrasts = contrasts_of(mean, tuple(times))
    return float(
        multivariate_normal.logpdf(contrasts.T @ values, np.zeros(contrasts.shape[1]), contrasts.T @ full @ contrasts)
    )


def draw(kernel: str, p: dict[str, float], noise_sd: float, times: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One draw of the process with its nugget."""
    full = covariance(kernel, p, times) + noise_sd**2 * np.eye(times.size)
    return np.linalg.cholesky(full) @ rng.standard_normal(times.size)


@pytest.fixture(scope="session")
def oracle() -> SimpleNamespace:
    """The functions of this file."""
    return SimpleNamespace(covariance=covariance, loglik=loglik, draw=draw, means=means)
