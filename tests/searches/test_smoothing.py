"""Smoothed maxima: their bounds and derivatives, and searches that lead to the known optimum of several secrets."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

import jaxpriv as jp
from jaxpriv.searches.factors import LowRankFactor
from jaxpriv.searches.projections import TraceBudget
from jaxpriv.searches.result import SearchResult
from jaxpriv.searches.smoothing import Cooling, smooth_largest_eigenvalue, smooth_max, spectrum, worst_of
from jaxpriv.searches.verb import search
from jaxpriv.searches.whitened import Eigenbasis


N, FLOOR, BUDGET = 12, 1e-3, 3.0
LAGS = np.subtract.outer(np.arange(N), np.arange(N))
PRIOR = jp.GaussianPrior(np.exp(-(LAGS**2) / (2 * 2.0**2)) + 1e-2 * np.eye(N))
SECRETS = [jp.Secret([2], 1.0), jp.Secret([6], 1.0), jp.Secret([8], 1.0)]
START = np.random.default_rng(5).standard_normal((N, 4))


@pytest.mark.parametrize("temperature", [1e-3, 10.0])
def test_bounds_of_the_smoothed_maximum(temperature, rng):
    values = jnp.asarray(rng.standard_normal(7))
    smooth = float(smooth_max(values, temperature))
    assert np.max(values) <= smooth <= np.max(values) + temperature * np.log(7) * (1 + 1e-15)
    matrix = jnp.asarray(rng.standard_normal((5, 5)))
    top = np.linalg.eigvalsh(np.asarray(0.5 * (matrix + matrix.T)))[-1]
    bound = float(smooth_largest_eigenvalue(matrix, temperature))
    assert top - 1e-14 <= bound <= top + temperature * np.log(5) * (1 + 1e-14)


@pytest.mark.parametrize("values", [[2.0, 2.0, 1.0, -1.0]])
def test_spectral_derivatives(values, rng):
    basis = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    matrix = jnp.asarray((basis * np.asarray(values)) @ basis.T)
    direction = rng.standard_normal((4, 4))
    direction = jnp.asarray(direction + direction.T)
    slopes = jax.jit(jax.grad(smooth_largest_eigenvalue, (0, 1)))(matrix, 0.3)
    gradient = slopes[0]
    weights = np.exp(np.asarray(values) / 0.3)
    np.testing.assert_allclose(gradient, (basis * weights / weights.sum()) @ basis.T, atol=1e-13)
    step = 1e-5
    for by, moved in ((matrix, direction), (jnp.asarray(0.3), jnp.asarray(1.0))):
        at = [(matrix + s * direction, 0.3) if by is matrix else (matrix, 0.3 + s) for s in (step, -step)]
        ends = [t * logsumexp(np.linalg.eigvalsh(np.asarray(a)) / t) for a, t in at]
        difference = (ends[0] - ends[1]) / (2 * step)
        slope = slopes[0 if by is matrix else 1]
        # Central differences: error h² f'''/6, with derivatives of order τ^-2 = 10.
        np.testing.assert_allclose(jnp.sum(slope * moved), difference, rtol=1e-7, atol=1e-8)
    listed = worst_of(spectrum)
    np.testing.assert_allclose(
        jax.jit(jax.grad(lambda a: listed.smoothed(a, temperature=0.3)[0]))(matrix), gradient, atol=1e-13
    )


def test_worst_of():
    loss = worst_of(lambda x: x[0], lambda x, shift=0.0: x + shift)
    point = jnp.array([1.0, 3.0])
    np.testing.assert_array_equal(loss.values(point), [1.0, 1.0, 3.0])
    assert float(loss(point)) == 3.0
    smooth, exact = loss.smoothed(point, temperature=1e-3)
    assert float(exact) == 3.0 and 3.0 <= float(smooth) <= 3.0 + 1e-3 * np.log(3)
    np.testing.assert_array_equal(jax.grad(loss)(jnp.array([2.0, 2.0])).sum(), 1.0)
    with pytest.raises(jp.InputError, match="at least one loss"):
        worst_of()
    with pytest.raises(jp.InputError, match="positive start"):
        Cooling(factor=1.5)
    with pytest.raises(jp.InputError, match="smoothing needs a loss"):
        search(lambda x: jnp.sum(x**2), jnp.ones(2), smoothing=Cooling())


@eqx.filter_jit
def gains(noise):
    matrix = noise.covariance
    return jnp.stack([jp.precision_gain(PRIOR, secret, matrix)[0, 0] for secret in SECRETS])


@pytest.fixture(scope="module")
def known():
    """The certified optimum of the majorant method, which shares no code with the search."""
    return jp.design(PRIOR, SECRETS, budget=BUDGET, floor_sd=FLOOR**0.5)


@pytest.mark.slow
def test_several_secrets_with_a_certificate(known):
    # ε at order 2 and radius 1 is the gain itself.
    found = search(
        worst_of(gains),
        LowRankFactor(START, FLOOR),
        TraceBudget(BUDGET, equality=True),
        certificate=lambda noise: (float(jnp.max(gains(noise))), known.lower_bound),
    )
    assert found.result is SearchResult.certified, found
    assert known.lower_bound <= found.value <= known.lower_bound / (1 - 1e-6)


@pytest.mark.slow
def test_kinks_without_smoothing(known):
    start, budget = LowRankFactor(START, FLOOR), TraceBudget(BUDGET, equality=True)
    found = search(worst_of(gains), start, budget, smoothing=None, max_steps=1000)
    # No theory promises an optimum on kinks, but this line search is known to come close.
    assert known.lower_bound <= found.value <= known.lower_bound * (1.0 + 1e-3)


@pytest.mark.slow
def test_in_the_eigenbasis_of_the_prior(known):
    basis = Eigenbasis.of(PRIOR)
    rows = [basis.rows(secret) for secret in SECRETS]
    found = search(
        worst_of(*[lambda m, one=one: basis.gain(one, m.entries, m.floor_variance)[0, 0] for one in rows]),
        LowRankFactor(basis.into(jnp.asarray(START)), FLOOR),
        TraceBudget(BUDGET, equality=True),
    )
    value = float(jnp.max(gains(basis.out_of(found.mechanism))))
    # Within the coldest temperature, a tenth of the tolerance, and the rounding of the difference of precisions.
    assert known.lower_bound <= value <= known.lower_bound * (1 + 1e-6)
