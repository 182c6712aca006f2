"""Leakage against differential privacy, information and conditional inferential privacy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import jaxpriv as jp
from jaxpriv import pml


def _prior(rng, n):
    root = rng.standard_normal((n, n))
    return root @ root.T + 0.1 * np.eye(n)


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1.0, 1.0), (0.5, 0.3), (2.0, 0.8), (8.0, 5.0)])
def test_delta_is_the_integral_of_the_hockey_stick(epsilon, sensitivity):
    def excess(x):
        return max(norm.pdf(x - sensitivity) - np.exp(epsilon) * norm.pdf(x), 0.0)

    start = sensitivity / 2 + epsilon / sensitivity
    integral = quad(excess, start, start + 40, epsabs=1e-13, epsrel=1e-11)[0]
    np.testing.assert_allclose(pml.analytic_gaussian_delta(epsilon, sensitivity), integral, rtol=1e-8)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 0.3), (0.0, 0.9999), (1.0, 1e-12), (50.0, 0.999), (500.0, 0.5), (1e4, 1e-10)]
)
def test_sensitivity_inverts_delta(epsilon, delta):
    sensitivity = pml.analytic_gaussian_sensitivity(epsilon, delta)
    np.testing.assert_allclose(pml.analytic_gaussian_delta(epsilon, sensitivity), delta, rtol=1e-8)


def test_both_directions_are_sound_and_conservative():
    """Random releases: neither bound is ever violated, and going there and back never gains."""
    rng = np.random.default_rng(11)
    for trial in range(40):
        n, m = 4, 1 + 2 * (trial % 2)
        prior, matrix = _prior(rng, n), rng.standard_normal((m, n))
        noise, radius, delta = _prior(rng, m), float(rng.uniform(0.3, 3)), 0.05
        information = pml.additive_information(matrix @ prior @ matrix.T, noise)
        level = pml.leakage_epsilon(information, delta, m)
        true = float(pml.mahalanobis_sensitivity(matrix, noise, radius))
        plain = float(pml.leakage_to_sensitivity(level, delta, m, prior, radius))
        better = float(pml.leakage_to_sensitivity(level, delta, m, prior, radius, matrix=matrix))
        assert true <= better * (1 + 1e-9) and better <= plain * (1 + 1e-9)
        back = float(pml.sensitivity_to_leakage(true, radius, prior, m, delta))
        assert back >= float(level) - 1e-9
        assert float(pml.sensitivity_to_leakage(plain, radius, prior, m, delta)) >= back - 1e-9
        # For one row the bound that knows C is an equality.
        if m == 1:
            np.testing.assert_allclose(better, true, rtol=1e-9)


def test_the_bound_for_the_matrix_inequality_is_smaller_and_sound():
    rng = np.random.default_rng(12)
    prior, matrix, epsilon, delta = _prior(rng, 4), rng.standard_normal((3, 4)), 6.0, 0.05
    share = float(pml.kappa(epsilon, delta, 3))
    noise = share / (1 - share) * matrix @ prior @ matrix.T
    true = float(pml.mahalanobis_sensitivity(matrix, noise, 1.0))
    bound = float(pml.leakage_to_sensitivity(epsilon, delta, 3, prior, 1.0, matrix=matrix, from_inequality=True))
    np.testing.assert_allclose(true, bound, rtol=1e-9)
    assert bound < float(pml.leakage_to_sensitivity(epsilon, delta, 3, prior, 1.0, matrix=matrix))


def test_sensitivity_bound_is_attained():
    """Noise aligned with the prior's axes reaches the leakage that the sensitivity allows."""
    prior, sensitivity, radius = np.diag([3.0, 1.0, 0.2]), 0.7, 1.3
    noise = (radius / sensitivity) ** 2 * np.eye(2)
    level = pml.leakage_epsilon(pml.additive_information(prior[:2, :2], noise), 0.1, 2)
    np.testing.assert_allclose(pml.sensitivity_to_leakage(sensitivity, radius, prior, 2, 0.1), level, rtol=1e-12)


def test_information_is_an_equivalence():
    level = pml.leakage_epsilon(1.3, 0.02, 4)
    np.testing.assert_allclose(pml.leakage_to_information(level, 0.02, 4), 1.3, rtol=1e-12)


def test_one_number_secrets_are_an_equivalence_with_inferential_privacy():
    rng = np.random.default_rng(13)
    prior, noise = jp.GaussianPrior(_prior(rng, 5)), _prior(rng, 5)
    secret = jp.Secret([2], 1.0)
    gain = float(jp.precision_gain(prior, secret, noise)[0, 0])
    own = np.asarray(prior.covariance)[2:3, 2:3]
    level = pml.leakage_epsilon(pml.secret_information(prior, secret, noise), 0.05, 1)
    np.testing.assert_allclose(pml.gain_to_leakage(gain, own, 0.05), level, rtol=1e-10)
    np.testing.assert_allclose(pml.leakage_to_gain(level, 0.05, own)[0, 0], gain, rtol=1e-9)


def test_compound_secrets_are_bounded_in_both_directions():
    rng = np.random.default_rng(14)
    for _ in range(20):
        prior, noise = jp.GaussianPrior(_prior(rng, 5)), _prior(rng, 5)
        secret = jp.Secret([1, 3], 1.0)
        gain = np.asarray(jp.precision_gain(prior, secret, noise))
        own = np.asarray(prior.covariance)[np.ix_([1, 3], [1, 3])]
        level = float(pml.leakage_epsilon(pml.secret_information(prior, secret, noise), 0.05, 2))
        assert float(pml.gain_to_leakage(np.linalg.eigvalsh(gain)[-1], own, 0.05)) >= level - 1e-9
        excess = np.asarray(pml.leakage_to_gain(level, 0.05, own)) - gain
        assert np.linalg.eigvalsh(excess)[0] >= -1e-9 * np.abs(excess).max()


def test_degenerate_cases_are_infinite_or_zero():
    assert pml.mahalanobis_sensitivity(np.eye(2), np.diag([1.0, 0.0]), 1.0) == np.inf
    assert pml.leakage_to_sensitivity(9.0, 0.05, 2, np.diag([1.0, 0.0]), 1.0) == np.inf
    assert pml.leakage_to_sensitivity(1.0, 0.05, 2, np.eye(2), 1.0) == 0.0
    assert pml.gain_to_leakage(np.inf, np.eye(1), 0.05) == np.inf
    assert np.isinf(pml.leakage_to_gain(9.0, 0.05, np.ones((2, 2)))).any()
    with pytest.raises(jp.InputError, match="rank is 3"):
        pml.sensitivity_to_leakage(1.0, 1.0, np.eye(2), 3, 0.05)
