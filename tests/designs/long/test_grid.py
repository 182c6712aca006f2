"""Stationary kernels on regular times, against the dense design."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.errors import InputError
from jaxpriv.priors import kernels
from jaxpriv.priors.regular_grid import GridPrior, on_regular_times


RBF, PERIODIC, MATERN = kernels.rbf(6.1), kernels.periodic(24.0, 1.1), kernels.matern32(9.0)
ONE, TWO = (500,), (500, 504)


@pytest.mark.parametrize(
    ("kernel", "indices"),
    [
        (RBF, ONE),
        (PERIODIC, TWO),
        (MATERN, ONE),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((RBF, TWO), (PERIODIC, ONE), (MATERN, TWO))),
    ],
    ids=["rbf, one", "periodic, two", "matern, one", "rbf, two", "periodic, one", "matern, two"],
)
def test_the_design_is_the_dense_one(kernel, indices):
    prior = GridPrior(kernel, 1.0, 1000, 0.01)
    secret = jp.Secret(indices, 1.0)
    found = jp.design(prior, secret, epsilon=1.0)
    dense = jp.design(jp.GaussianPrior(prior.covariance), secret, epsilon=1.0)
    assert found.epsilon <= 1.0
    # Both are shaded by 1e-9, and by more where a certificate asks for it.
    np.testing.assert_allclose(found.cost, dense.cost, rtol=1e-8)
    difference = np.asarray(found.mechanism.covariance) - np.asarray(dense.mechanism.covariance)
    assert np.max(np.abs(difference)) <= 1e-8 * np.max(np.abs(dense.mechanism.covariance))
    assert found.lower_bound <= dense.cost <= found.cost * (1.0 + 1e-8)
    checked = jp.certify(jp.GaussianPrior(prior.covariance), secret, found.mechanism)
    assert checked.epsilon_lower[0, 0] <= found.epsilon


def test_products_columns_and_the_nugget():
    prior = GridPrior(kernels.rbf(6.1), 0.5, 300, 0.01)
    sigma = prior.covariance
    vectors = np.random.default_rng(0).standard_normal((300, 3))
    image = prior.bounded_product(vectors)
    errors = np.linalg.norm(image.values - sigma @ vectors, axis=0)
    # The dense product has an error of its own, of about 1e-14.
    assert np.all(errors <= image.norms + 1e-13)
    np.testing.assert_array_equal(prior.columns([3, 200]), sigma[:, [3, 200]])
    assert 0.99e-4 < prior.nugget <= np.linalg.eigvalsh(sigma)[0] + 1e-14


def test_draws_have_the_covariance():
    for kernel in (kernels.matern32(3.0), kernels.periodic(7.0, 1.0)):
        prior = GridPrior(kernel, 1.0, 12, 0.3)
        draws = np.stack([np.asarray(prior.sample(jax.random.key(i))) for i in range(2000)])
        # Entries of a sample covariance of 2,000 draws have a standard deviation of at most 1.1 sqrt(2/2000) = 0.035.
        assert np.max(np.abs(draws.T @ draws / 2000 - prior.covariance)) < 5 * 0.035


@pytest.mark.parametrize(
    ("kernel", "formula"),
    [
        (kernels.rbf(3.0, 2.0), lambda d: 4 * np.exp(-(d**2) / 18)),
        (kernels.matern32(3.0, 2.0), lambda d: 4 * (1 + np.sqrt(3) * d / 3) * np.exp(-np.sqrt(3) * d / 3)),
        (kernels.periodic(1.7, 0.8, 2.0), lambda d: 4 * np.exp(-2 * np.sin(np.pi * d / 1.7) ** 2 / 0.64)),
    ],
)
def test_the_matrix_is_that_of_the_kernel(kernel, formula):
    d = 0.1 * np.abs(np.subtract.outer(np.arange(50), np.arange(50)))
    expected = formula(d) + 0.01 * np.eye(50)
    # A few units in the last place of exp and of its argument.
    np.testing.assert_allclose(GridPrior(kernel, 0.1, 50, 0.1).covariance, expected, rtol=1e-13)


def test_regular_times_are_recognised():
    prior = jp.ProcessPrior(kernels.rbf(3.0), 100.0 + 0.1 * np.arange(50), noise_sd=0.1)
    grid = on_regular_times(prior)
    np.testing.assert_allclose(grid.covariance, np.asarray(prior.covariance), atol=1e-12)
    with pytest.raises(InputError, match="not regular"):
        on_regular_times(jp.ProcessPrior(kernels.rbf(3.0), np.array([0.0, 1.0, 2.5])))


def test_bad_input_is_refused():
    wrong: list[tuple[Any, str]] = [
        ((kernels.rbf(3.0), 0.0, 10), "step"),
        ((kernels.rbf(3.0), 1.0, 0), "count"),
        ((kernels.rbf(3.0), 1.0, 10, -1.0), "noise_sd"),
        (("rbf", 1.0, 10), "kernel"),
    ]
    for arguments, text in wrong:
        with pytest.raises(InputError, match=text):
            GridPrior(*arguments)
    with pytest.raises(InputError, match="within the trace"):
        GridPrior(kernels.rbf(3.0), 1.0, 10, 0.1).columns([10])


@pytest.mark.parametrize(("period", "step"), [(1.0, 604_800.3), (3600.0, 86_400.37)])
def test_a_period_below_the_step_does_not_hide_the_rounding(period, step):
    """Far lags of a short period are rounded by more than neighbouring values show."""
    prior = GridPrior(jp.kernels.periodic(period, 1.0), step, 400, 1e-3)
    smallest = np.linalg.eigvalsh(prior.covariance)[0]
    # The eigenvalues are those of a matrix of norm 400, to a few hundred units in the last place.
    assert prior.nugget <= smallest + 1e-12
    loss = jp.certify(prior, jp.Secret([5], radius=1e-5), jp.GaussianMechanism(np.zeros((400, 0)), 1e-5)).epsilon
    assert loss == np.inf or smallest + 1e-10 > 0


def test_variances_outside_the_range_of_squares_are_refused():
    with pytest.raises(InputError, match="unit"):
        GridPrior(jp.kernels.rbf(2.0, 1e-60), 1.0, 10, 1e-61)
    prior = GridPrior(jp.kernels.rbf(2.0, 1e-49), 0.25, 1500, 2e-50)
    other = GridPrior(jp.kernels.rbf(2.0, 1.0), 0.25, 1500, 0.2)
    found, same = (
        jp.certify(one, jp.Secret([120], radius=sd), jp.GaussianMechanism(np.zeros((1500, 0)), sd)).epsilon
        for one, sd in ((prior, 1e-49), (other, 1.0))
    )
    # Only the unit differs; the sums are rounded in another order of magnitude.
    assert found == pytest.approx(same, rel=1e-9)
