"""The gain in the prior's eigenbasis against the one that is reported, and what it costs."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.searches.factors import LowRankFactor
from jaxpriv.searches.whitened import Eigenbasis


N = 9
LAGS = np.subtract.outer(np.arange(N), np.arange(N))
PRIOR = jp.GaussianPrior(np.exp(-(LAGS**2) / 8.0) + 1e-3 * np.eye(N))
BASIS = Eigenbasis.of(PRIOR)
FACTOR = jnp.asarray(np.random.default_rng(2).standard_normal((N, 3)))


def reference(factor, floor, secret):
    """P_T⁻¹ − Σ_T⁻¹ by two inversions in NumPy."""
    prior = PRIOR.covariance
    rows = np.eye(N)[list(secret.indices)] if isinstance(secret, jp.Secret) else secret.weights
    noise = np.asarray(factor @ factor.T) + (floor + 1e-13) * np.eye(N)
    left = prior - prior @ np.linalg.solve(prior + noise, prior)
    return np.linalg.inv(rows @ left @ rows.T) - np.linalg.inv(rows @ prior @ rows.T)


@pytest.mark.parametrize(
    ("secret", "floor"), [(jp.Secret([1, 2, 7], 1.0), 0.0), (jp.LinearSecret(np.ones(N) / N, 1.0), 0.5)]
)
def test_it_is_the_precision_gain(secret, floor):
    coordinates, rows = BASIS.into(FACTOR), BASIS.rows(secret)
    exact = reference(FACTOR, floor, secret)
    value, slope = jax.jit(
        lambda x: (
            BASIS.gain(rows, x, floor),
            jax.grad(lambda y: jnp.sum(BASIS.gain(rows, y, floor)))(x),
        )
    )(coordinates)
    # The nugget is 1e-3 of the variance: some digits are lost in the inverse and in the difference of precisions.
    np.testing.assert_allclose(value, exact, rtol=1e-8, atol=1e-8 * np.max(exact))
    direction = np.random.default_rng(4).standard_normal(FACTOR.shape)
    ends = [np.sum(reference(FACTOR + step * direction, floor, secret)) for step in (1e-5, -1e-5)]
    np.testing.assert_allclose(
        np.sum(np.asarray(BASIS.vectors @ slope) * direction), (ends[0] - ends[1]) / 2e-5, rtol=1e-5
    )


@pytest.mark.slow
def test_the_reference_is_the_gain_that_is_reported():
    secret = jp.Secret([4], 1.0)
    noise = LowRankFactor(FACTOR, 0.1)
    np.testing.assert_allclose(
        reference(FACTOR, 0.1, secret), jp.precision_gain(PRIOR, secret, noise.covariance), rtol=1e-9
    )


def test_noise_goes_in_and_out():
    noise = BASIS.out_of(LowRankFactor(BASIS.into(FACTOR), 0.1))
    np.testing.assert_allclose(noise.factor, FACTOR, atol=1e-14 * 30)
    assert float(noise.floor_variance) == 0.1


def test_fewer_columns_than_numbers_without_a_floor_are_an_infinite_loss():
    gain = eqx.filter_jit(BASIS.gain)(BASIS.rows(jp.Secret([1, 4], 1.0)), BASIS.into(FACTOR[:, :1]))
    assert np.all(np.isinf(np.diag(gain)))


def test_batched():
    rows = BASIS.rows(jp.Secret([4], 1.0))
    batch = jax.jit(jax.vmap(lambda x: BASIS.gain(rows, x, 0.1)))(jnp.stack([FACTOR, BASIS.into(FACTOR)]))
    np.testing.assert_allclose(batch[1], reference(FACTOR, 0.1, jp.Secret([4], 1.0)), rtol=1e-9)


def _sizes_factorised(jaxpr):
    for equation in jaxpr.eqns:
        if equation.primitive.name in ("cholesky", "eigh", "lu", "qr", "svd", "triangular_solve"):
            yield equation.invars[0].aval.shape[-1]
        for value in equation.params.values():
            if hasattr(value, "jaxpr"):
                yield from _sizes_factorised(value.jaxpr)


def test_nothing_of_size_n_is_factorised():
    rows, coordinates = BASIS.rows(jp.Secret([4], 1.0)), BASIS.into(FACTOR)
    sizes = list(
        _sizes_factorised(jax.make_jaxpr(jax.grad(lambda x: BASIS.gain(rows, x, 0.1)[0, 0]))(coordinates).jaxpr)
    )
    assert sizes and max(sizes) == 3
    full = jax.make_jaxpr(lambda x: jp.precision_gain(PRIOR, jp.Secret([4], 1.0), x @ x.T + jnp.eye(N)))(FACTOR)
    assert max(_sizes_factorised(full.jaxpr)) == N


def test_wrong_secrets():
    with pytest.raises(jp.InputError, match="outside the trace"):
        BASIS.rows(jp.Secret([N], 1.0))
    with pytest.raises(jp.InputError, match="not a linear function"):
        BASIS.rows(jp.EveryPoint(1.0))
