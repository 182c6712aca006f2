"""Priors and secrets: values against formulas, and what is refused."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import jaxpriv as jp


TIMES = np.array([0.0, 7.0, 7.5, 30.0, 100.0])
LAG = np.abs(TIMES[:, None] - TIMES[None, :])

KERNELS = {
    "rbf": (jp.kernels.rbf(20.0, 3.0), 9.0 * np.exp(-(LAG**2) / (2 * 20.0**2))),
    "periodic": (jp.kernels.periodic(24.0, 0.7, 2.0), 4.0 * np.exp(-2 * np.sin(np.pi * LAG / 24.0) ** 2 / 0.7**2)),
    "matern12": (jp.kernels.matern12(20.0, 3.0), 9.0 * np.exp(-LAG / 20.0)),
    "matern32": (jp.kernels.matern32(20.0), (1 + np.sqrt(3) * LAG / 20) * np.exp(-np.sqrt(3) * LAG / 20)),
    "matern52": (
        jp.kernels.matern52(20.0),
        (1 + np.sqrt(5) * LAG / 20 + 5 * LAG**2 / (3 * 400)) * np.exp(-np.sqrt(5) * LAG / 20),
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_their_formulas(name):
    kernel, expected = KERNELS[name]
    prior = jp.ProcessPrior(kernel, TIMES, noise_sd=0.1)
    np.testing.assert_allclose(prior.covariance, expected + 0.01 * np.eye(5), rtol=1e-13, atol=1e-15)
    assert prior.covariance.dtype == jnp.float64
    assert float(prior.nugget) == pytest.approx(0.01)
    np.testing.assert_array_equal(prior.covariance, prior.covariance.T)


def test_sums_and_products_of_kernels():
    kernel = jp.kernels.periodic(24.0, 0.7) * jp.kernels.rbf(20.0, 3.0) + jp.kernels.matern32(20.0)
    expected = KERNELS["periodic"][1] / 4.0 * KERNELS["rbf"][1] + KERNELS["matern32"][1]
    np.testing.assert_allclose(jp.ProcessPrior(kernel, TIMES).covariance, expected, rtol=1e-13, atol=1e-15)


def _covariance(rng, n=6):
    root = rng.standard_normal((n, n))
    return root @ root.T + 0.1 * np.eye(n)


def test_conditional_of_fixes_is_the_textbook_formula(rng):
    covariance, inside, outside = _covariance(rng), [1, 4], [0, 2, 3, 5]
    parts = jp.conditional(jp.GaussianPrior(covariance), jp.Secret(inside, radius=1.0))
    own = np.linalg.inv(covariance[np.ix_(inside, inside)])
    np.testing.assert_array_equal(np.asarray(parts.regression)[inside], np.eye(2))
    np.testing.assert_allclose(
        np.asarray(parts.regression)[outside], covariance[np.ix_(outside, inside)] @ own, rtol=1e-9
    )
    left = (
        covariance[np.ix_(outside, outside)]
        - covariance[np.ix_(outside, inside)] @ own @ covariance[np.ix_(inside, outside)]
    )
    np.testing.assert_allclose(np.asarray(parts.residual)[np.ix_(outside, outside)], left, atol=1e-9)
    assert not np.any(np.asarray(parts.residual)[inside]) and not np.any(np.asarray(parts.residual)[:, inside])


def test_fixes_as_a_linear_secret_are_the_same_secret(rng):
    prior = jp.GaussianPrior(_covariance(rng))
    noise = _covariance(rng)
    fixes = jp.precision_gain(prior, jp.Secret([4, 1], radius=1.0), noise)
    linear = jp.precision_gain(prior, jp.LinearSecret(np.eye(6)[[4, 1]], radius=1.0), noise)
    np.testing.assert_allclose(fixes, linear, rtol=1e-8)


def test_an_unsampled_time_is_a_fix_that_is_not_published():
    kernel = jp.kernels.matern52(20.0, 3.0)
    all_times = np.array([0.0, 7.0, 13.0, 30.0, 100.0])
    published = [0, 1, 3, 4]
    joint = np.asarray(jp.ProcessPrior(kernel, all_times).covariance)
    noise = np.diag([0.5, 1.0, 0.7, 2.0])
    gain = jp.precision_gain(jp.ProcessPrior(kernel, all_times[published]), jp.UnsampledSecret(13.0, 1.0), noise)
    cross = joint[np.ix_(published, [2])]
    left = joint[2, 2] - cross.T @ np.linalg.solve(joint[np.ix_(published, published)] + noise, cross)
    np.testing.assert_allclose(gain, 1 / left - 1 / joint[2, 2], rtol=1e-9)


def test_times_unroll_with_coordinates_adjacent():
    secret = jp.Secret.at_times([3, 5], radius=2.0, dims=2)
    assert secret.indices == (6, 7, 10, 11)
    assert secret.n_times == 2 and secret.size == 4
    assert [s.indices for s in jp.EveryPoint(1.0, dims=2).secrets(jp.GaussianPrior(np.eye(4)))] == [(0, 1), (2, 3)]


def test_a_linear_query_sees_the_same_secret(rng):
    prior, secret, query = jp.GaussianPrior(_covariance(rng)), jp.Secret([2], 1.0), rng.standard_normal((3, 6))
    released, seen = jp.linear_query(prior, secret, query)
    covariance = np.asarray(prior.covariance)
    noise = np.diag([1.0, 0.3, 2.0])
    cross = query @ covariance[:, [2]]
    left = covariance[2, 2] - cross.T @ np.linalg.solve(query @ covariance @ query.T + noise, cross)
    np.testing.assert_allclose(jp.precision_gain(released, seen, noise), 1 / left - 1 / covariance[2, 2], rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: jp.GaussianPrior(np.eye(3)[:2]), "square"),
        (lambda: jp.GaussianPrior(np.array([[1.0, 0.5], [0.4, 1.0]])), "not symmetric"),
        (lambda: jp.GaussianPrior(np.array([[1.0, np.nan], [np.nan, 1.0]])), "not finite"),
        (lambda: jp.GaussianPrior(-np.eye(2)), "negative variance"),
        (lambda: jp.GaussianPrior(np.eye(2), nugget=2.0), "nugget"),
        (lambda: jp.GaussianPrior(np.zeros((0, 0))), "square"),
        (lambda: jp.ProcessPrior("matern32", TIMES), "kernel"),
        (lambda: jp.ProcessPrior(jp.kernels.rbf(1.0), [[0.0]]), "times"),
        (lambda: jp.ProcessPrior(jp.kernels.rbf(1.0), [0.0, np.inf]), "position 1"),
        (lambda: jp.ProcessPrior(jp.kernels.rbf(1.0), [0.0], noise_sd=-1.0), "noise_sd"),
        (lambda: jp.kernels.rbf(0.0), "lengthscale"),
        (lambda: jp.kernels.periodic(-1.0, 1.0), "period"),
        (lambda: jp.Secret([], 1.0), "at least one"),
        (lambda: jp.Secret([1, 1], 1.0), "twice"),
        (lambda: jp.Secret([-1], 1.0), "negative"),
        (lambda: jp.Secret([1.5], 1.0), "whole"),
        (lambda: jp.Secret([1], 0.0), "radius"),
        (lambda: jp.Secret([1], float("nan")), "radius"),
        (lambda: jp.Secret([1], 1.0, dims=0), "dims"),
        (lambda: jp.Secret([9], 1.0).joint(jp.GaussianPrior(np.eye(3))), "outside"),
        (lambda: jp.LinearSecret(np.eye(3), 1.0).joint(jp.GaussianPrior(np.eye(2))), "columns"),
        (lambda: jp.LinearSecret([[np.nan]], 1.0), "not finite"),
        (lambda: jp.UnsampledSecret(np.nan, 1.0), "time"),
        (lambda: jp.UnsampledSecret(1.0, 1.0).joint(jp.GaussianPrior(np.eye(2))), "ProcessPrior"),
        (lambda: jp.ExternalSecret(np.ones((3, 1)), np.ones((2, 2)), 1.0), "shapes"),
        (lambda: jp.linear_query(jp.GaussianPrior(np.eye(3)), jp.Secret([0], 1.0), np.eye(2)), "query"),
        (lambda: jp.GaussianMechanism(np.zeros(3)), "factor"),
        (lambda: jp.GaussianMechanism(np.zeros((3, 1)), floor_sd=-1.0), "floor_sd"),
        (lambda: jp.GaussianMechanism(np.full((3, 1), np.inf)), "not finite"),
        (lambda: jp.posterior(jp.GaussianPrior(np.eye(3)), np.eye(2)), "shape"),
        (lambda: jp.posterior(jp.GaussianPrior(np.ones((2, 2))), np.zeros((2, 2))), "singular"),
        (lambda: jp.EveryPoint(1.0, dims=2).secrets(jp.GaussianPrior(np.eye(3))), "divide"),
    ],
)
def test_bad_input_is_refused_in_words(make, words):
    with pytest.raises(jp.InputError, match=words):
        make()


def test_rounding_asymmetry_is_resolved_exactly(rng):
    covariance = _covariance(rng)
    covariance[0, 1] = np.nextafter(covariance[1, 0], np.inf)
    kept = jp.GaussianPrior(covariance).covariance
    np.testing.assert_array_equal(kept, kept.T)
    np.testing.assert_array_equal(np.tril(kept), np.tril(covariance))


def test_importing_changes_no_setting():
    import subprocess
    import sys

    code = "import jax; before = dict(jax.config.values); import jaxpriv; assert dict(jax.config.values) == before"
    subprocess.run([sys.executable, "-c", code], check=True)
