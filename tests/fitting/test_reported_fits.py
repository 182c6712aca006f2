"""Gaussian processes that broke other programs: equal inputs, smooth kernels, zero spread, units, periods."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.errors import CertificateError, InputError
from jaxpriv.fitting.fit import Fit, fit
from jaxpriv.linalg.cholesky import cholesky


@pytest.mark.slow
def test_four_equal_inputs_are_one_point():
    # https://github.com/SheffieldML/GPy/issues/523: negative eigenvalues; the matrix has rank 1
    prior = jp.ProcessPrior(jp.kernels.rbf(0.07, sd=0.001**0.5), np.zeros(4), noise_sd=0.0)
    values = np.linalg.eigvalsh(np.asarray(prior.covariance))
    np.testing.assert_allclose(values, [0, 0, 0, 0.004], atol=1e-17)
    # Fitting refuses equal times; a release of such a prior needs a noise of its own.
    with pytest.raises(InputError, match="twice the same time"):
        fit(np.zeros(4), np.arange(4.0))
    # With an error of their own they are an ordinary prior.
    nugget = jp.GaussianPrior(np.asarray(prior.covariance) + 1e-4 * np.eye(4), nugget=1e-4)
    assert np.isfinite(float(jp.cip_loss(nugget, jp.Secret([0], 0.01), 1e-4 * np.eye(4))))


def test_samples_of_a_smooth_process_on_many_points():
    # https://github.com/JuliaGaussianProcesses/AbstractGPs.jl/issues/402: the Cholesky factorisation fails
    times = np.linspace(0.0, 5.0, 30)
    covariance = np.asarray(jp.ProcessPrior(jp.kernels.rbf(1.0), times).covariance)
    assert np.linalg.eigvalsh(covariance)[0] < 1e-14
    # No jitter is added in silence: noise is drawn from a factor that the design has, and a floor that is asked for.
    mechanism = jp.design(jp.ProcessPrior(jp.kernels.rbf(1.0), times, noise_sd=0.05), jp.Secret([15], 0.5), epsilon=0.5)
    noise = np.asarray(mechanism.mechanism.covariance)
    assert np.linalg.eigvalsh(noise)[0] > 0
    assert mechanism.certificate.epsilon <= 0.5


def test_a_matrix_without_a_factor_is_said_to_have_none():
    # https://github.com/jax-ml/jax/issues/775: garbage instead of an error; NaN since
    matrix = np.arange(9.0).reshape(3, 3)
    factor, exists = cholesky(jnp.asarray(matrix))
    assert not bool(exists) and np.array_equal(factor, np.eye(3))
    with pytest.raises(InputError, match="not symmetric"):
        jp.GaussianPrior(matrix)
    with pytest.raises(CertificateError, match="could be verified"):
        jp.design(jp.GaussianPrior(0.5 * (matrix + matrix.T)), jp.Secret([1], 1.0), epsilon=1.0)


@pytest.mark.parametrize(("times", "values"), [([0.0, 1.0], [0.0, 0.0]), (np.arange(25.0), np.full(25, 3.5))])
def test_a_zero_spread_is_refused_before_it_divides(times, values):
    # https://github.com/scikit-learn/scikit-learn/issues/18371: division by zero
    with pytest.raises(InputError, match=r"2 points; a prior needs|does not vary"):
        fit(np.asarray(times), np.asarray(values))


def test_a_free_period_is_never_fitted(rng):
    # https://github.com/SheffieldML/GPy/issues/112: the fit fails unless the period is fixed first
    with pytest.raises(InputError, match="needs a fixed period"):
        fit(np.arange(48.0), rng.standard_normal(48), kernel="periodic", units=("K", "h"))


@pytest.mark.parametrize(("unit", "factor"), [("km", 1e-3), ("m", 1e3)])
def test_scaling_values_and_noise_together_keeps_the_length_scale(unit, factor, rng):
    # https://github.com/meta-pytorch/botorch/issues/2392: it changed with the scaling
    times = 10.0 * np.arange(30)
    covariance = np.asarray(jp.ProcessPrior(jp.kernels.matern32(60.0, sd=80.0), times, noise_sd=2.0).covariance)
    values = 15_000.0 + np.linalg.cholesky(covariance) @ rng.standard_normal(30)
    options = {"kernel": "matern32", "confidence": None}
    plain = fit(times, values, noise_floor=0.5, **options)
    scaled = fit(times, factor * values, noise_floor=0.5 * factor, min_sd=0.0, units=(unit, "s"), **options)
    assert isinstance(plain, Fit) and isinstance(scaled, Fit)
    # The optimiser sees the same standardised numbers but for rounding.
    assert scaled.lengthscale == pytest.approx(plain.lengthscale, rel=1e-5)
    assert scaled.noise_sd == pytest.approx(factor * plain.noise_sd, rel=1e-5)
