"""A robust design keeps what it promises when the true prior is smoother than any it was designed for."""

from __future__ import annotations

import numpy as np
import pytest

import jaxpriv as jp


N, LENGTHSCALE, NUGGET, BUDGET, SECRET = 50, 6.1, 1e-6, 1.0, 24


def _rbf(lengthscale):
    i = np.arange(N)
    return np.exp(-((i[:, None] - i) ** 2) / (2 * lengthscale**2)) + NUGGET * np.eye(N)


def _width(mechanism):
    """Twice the posterior standard deviation of the secret if the true length scale is half as long again."""
    smoother = jp.GaussianPrior(_rbf(1.5 * LENGTHSCALE))
    return 2 * float(jp.posterior(smoother, mechanism).covariance[SECRET, SECRET]) ** 0.5


def _robust_width(seed):
    rng = np.random.default_rng(seed)
    values = np.linalg.cholesky(_rbf(LENGTHSCALE)) @ rng.standard_normal(N)
    priors = jp.prior_set(np.arange(N, dtype=float), values, which="default", units=("1", "s"), noise_floor=1e-3)
    d = jp.design(priors, jp.Secret([SECRET], 1.0), budget=BUDGET)
    return _width(d.mechanism)


def test_baselines_of_the_comparison():
    """Prior-shaped noise leaves 0.277 and independent noise 0.102 at equal error, whatever is fitted."""
    shaped = jp.baselines.prior_shaped(jp.GaussianPrior(_rbf(LENGTHSCALE)), BUDGET)
    assert _width(shaped) == pytest.approx(0.277, abs=1e-3)
    assert _width(jp.baselines.uniform(N, BUDGET)) == pytest.approx(0.102, abs=1e-3)


def test_the_optimum_for_one_prior_is_fragile():
    prior = jp.GaussianPrior(_rbf(LENGTHSCALE))
    single = jp.design(prior, jp.Secret([SECRET], 1.0), budget=BUDGET)
    promised = 2 * float(jp.posterior(prior, single.mechanism).covariance[SECRET, SECRET]) ** 0.5
    assert promised == pytest.approx(0.677, abs=2e-3)
    assert _width(single.mechanism) < 0.277


@pytest.mark.slow
def test_the_default_set_beats_prior_shaped_noise():
    """Twenty draws of a trace smoother than every member of the fitted set: the median width is at least 0.277."""
    widths = [_robust_width(seed) for seed in range(20)]
    print("median", np.median(widths), "smallest", np.min(widths))
    assert np.median(widths) >= 0.277
