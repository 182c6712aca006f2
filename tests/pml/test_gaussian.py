"""The leakage of Gaussian outputs against its definition, its law and its invariances."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2, kstest

import jaxpriv as jp
from jaxpriv import pml


def _system(seed, n=4, m=3, rank=None):
    """A joint covariance with a cross-covariance of the given rank: Y = E Z + noise, Z of `rank` coordinates of X."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((n, n))
    prior = root @ root.T + 0.2 * np.eye(n)
    rank = min(n, m) if rank is None else rank
    matrix = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    noise = rng.standard_normal((m, m))
    noise = noise @ noise.T + 0.3 * np.eye(m)
    return prior, prior @ matrix.T, matrix @ prior @ matrix.T + noise, matrix, noise


@pytest.mark.parametrize(("n", "m", "rank"), [(2, 3, 2), (4, 3, 2)])
def test_it_is_the_supremum_of_the_information_density(n, m, rank):
    prior, cross, seen, matrix, noise = _system(n + 10 * m, n, m, rank)
    y = np.random.default_rng(1).standard_normal(m)
    log_output = -0.5 * (y @ np.linalg.solve(seen, y) + np.linalg.slogdet(seen)[1])

    def density(x):
        gap = y - matrix @ x
        return -0.5 * (gap @ np.linalg.solve(noise, gap) + np.linalg.slogdet(noise)[1]) - log_output

    top = -minimize(lambda x: -density(x), np.zeros(n), method="BFGS", options={"gtol": 1e-10}).fun
    # BFGS reaches the maximum of a quadratic to the square of its gradient tolerance, rounding aside.
    np.testing.assert_allclose(pml.pointwise_leakage(y, prior, cross, seen, rank=rank), top, rtol=1e-10)
    assert density(np.random.default_rng(2).standard_normal(n)) <= top


@pytest.mark.parametrize("seed", range(6))
def test_invariance_positivity_and_two_other_formulas(seed):
    n, m, rank = 4, 3, 2 + seed % 2
    prior, cross, seen, matrix, noise = _system(seed, n, m, rank)
    rng = np.random.default_rng(seed + 100)
    y = rng.standard_normal(m)
    leakage, information = (
        pml.pointwise_leakage(y, prior, cross, seen, rank=rank),
        pml.mutual_information(prior, cross, seen),
    )
    assert leakage >= information >= 0
    turn, shear = rng.standard_normal((m, m)), rng.standard_normal((n, n))
    moved = pml.pointwise_leakage(
        turn @ y, shear @ prior @ shear.T, shear @ cross @ turn.T, turn @ seen @ turn.T, rank=rank
    )
    np.testing.assert_allclose(moved, leakage, rtol=1e-8)
    posterior = np.asarray(pml.posterior_covariance(prior, cross, seen))
    determinants = 0.5 * (np.linalg.slogdet(prior)[1] - np.linalg.slogdet(posterior)[1])
    np.testing.assert_allclose(information, determinants, rtol=1e-10)
    given = seen - cross.T @ np.linalg.solve(prior, cross)
    root = np.linalg.cholesky(given)
    design = np.linalg.solve(root, cross.T @ np.linalg.inv(prior))
    target = np.linalg.solve(root, y)
    residual = target - design @ np.linalg.lstsq(design, target, rcond=1e-9)[0]
    statistic = y @ np.linalg.solve(seen, y) - residual @ residual
    np.testing.assert_allclose(leakage - information, 0.5 * statistic, rtol=1e-8)
    np.testing.assert_allclose(pml.additive_information(matrix @ prior @ matrix.T, noise), information, rtol=1e-10)


def test_its_law_is_shifted_chi_square():
    prior, cross, seen, _, _ = _system(3, 4, 3, 2)
    draws = np.linalg.cholesky(seen) @ np.random.default_rng(4).standard_normal((3, 20_000))
    found = jax.jit(jax.vmap(lambda y: pml.pointwise_leakage(y, prior, cross, seen, rank=2)))(jnp.asarray(draws.T))
    information = float(pml.mutual_information(prior, cross, seen))
    assert kstest(2 * (np.asarray(found) - information), chi2(2).cdf).pvalue > 1e-3
    # The mean of 20,000 draws of a variance of 1 errs by 0.007.
    np.testing.assert_allclose(np.mean(found), pml.expected_leakage(information, 2), atol=0.03)


def test_the_level_is_exceeded_with_the_stated_probability():
    """A million draws of a whole release, the leakage of each from its definition for additive noise."""
    prior, _, _, matrix, noise = _system(5, 4, 3)
    rng, count, delta = np.random.default_rng(6), 1_000_000, 0.05
    signal = matrix @ prior @ matrix.T
    epsilon = float(pml.leakage_epsilon(pml.additive_information(signal, noise), delta, 3))
    outputs = rng.standard_normal((count, 4)) @ np.linalg.cholesky(prior).T @ matrix.T
    outputs += rng.standard_normal((count, 3)) @ np.linalg.cholesky(noise).T
    # sup over x of the log-likelihood is 0 up to its constant, since C has full row rank.
    constant = 0.5 * (np.linalg.slogdet(signal + noise)[1] - np.linalg.slogdet(noise)[1])
    leakage = constant + 0.5 * np.einsum("ij,jk,ik->i", outputs, np.linalg.inv(signal + noise), outputs, optimize=True)
    failures = np.mean(leakage > epsilon)
    # Four standard errors of a binomial frequency.
    assert abs(failures - delta) < 4 * math.sqrt(delta * (1 - delta) / count)


def test_the_rank_is_never_counted_from_the_numbers():
    """A direction released almost without content still counts: dropping it would report δ = 0.05 where 0.147 fail."""
    matrix = np.diag([1.0, 1e-11])
    information = pml.additive_information(matrix @ matrix.T, np.eye(2))
    careless = pml.leakage_epsilon(information, 0.05, 1)
    np.testing.assert_allclose(careless, 2.26730, atol=5e-6)
    np.testing.assert_allclose(pml.leakage_epsilon(information, 0.05, 2), 3.34231, atol=5e-6)
    np.testing.assert_allclose(pml.leakage_delta(information, careless, 2), 0.1465, atol=5e-5)
    y = np.array([0.3, 2.0])
    full = pml.pointwise_leakage(y, np.eye(2), matrix, matrix @ matrix.T + np.eye(2))
    # Both coordinates of the standardised output count, the second one by 2²/2.
    np.testing.assert_allclose(full, float(information) + 0.5 * (0.3**2 / 2 + 4.0), rtol=1e-9)


@pytest.mark.parametrize(("noise", "expected"), [(1e-12, 13.8155106), (1e-15, 17.2694), (1e-17, 19.5720)])
def test_additive_information_keeps_its_digits_near_certainty(noise, expected):
    found = pml.additive_information(np.eye(1), np.full((1, 1), noise))
    np.testing.assert_allclose(found, 0.5 * math.log1p(1 / noise), rtol=1e-14)
    np.testing.assert_allclose(found, expected, rtol=5e-6)


def test_what_is_published_exactly_leaks_without_limit():
    assert pml.additive_information(np.eye(2), np.diag([1.0, 0.0])) == jnp.inf
    assert pml.mutual_information(np.eye(1), np.eye(1), np.eye(1)) == jnp.inf
    assert pml.pointwise_leakage(np.ones(1), np.eye(1), np.eye(1), np.eye(1)) == jnp.inf
    assert pml.leakage_epsilon(jnp.inf, 0.1, 2) == jnp.inf
    assert pml.leakage_delta(jnp.inf, 5.0, 2) == 1.0 and pml.leakage_delta(jnp.inf, jnp.inf, 2) == 1.0
    assert pml.leakage_delta(2.0, 1.9, 2) == 1.0
    assert pml.leakage_epsilon(0.0, 0.1, 0) == 0.0


def test_secret_information_is_that_of_the_joint_law():
    covariance = _system(8, 5, 3)[0]
    prior, noise = jp.GaussianPrior(covariance), _system(9, 5, 5)[2]
    for secret in (jp.Secret([0, 3], 1.0), jp.LinearSecret(np.ones((2, 5)) + np.eye(2, 5), 1.0)):
        cross, own = secret.joint(prior)
        cross, seen = np.asarray(cross), covariance + noise
        left = np.linalg.slogdet(own - cross.T @ np.linalg.solve(seen, cross))[1]
        expected = 0.5 * (np.linalg.slogdet(own)[1] - left)
        np.testing.assert_allclose(pml.secret_information(prior, secret, noise), expected, rtol=1e-9)
    whole = 0.5 * (np.linalg.slogdet(covariance + noise)[1] - np.linalg.slogdet(noise)[1])
    np.testing.assert_allclose(pml.trace_information(prior, noise), whole, rtol=1e-9)


def test_bad_shapes_are_refused():
    with pytest.raises(jp.InputError, match="shapes"):
        pml.mutual_information(np.eye(2), np.ones((3, 2)), np.eye(2))
    with pytest.raises(jp.InputError, match="rank is 3"):
        pml.pointwise_leakage(np.ones(2), np.eye(2), np.eye(2), 2 * np.eye(2), rank=3)
    with pytest.raises(jp.InputError, match="output"):
        pml.pointwise_leakage(np.ones(3), np.eye(2), np.eye(2), 2 * np.eye(2))
    with pytest.raises(jp.InputError, match="factors"):
        pml.factored_leakage(np.ones(2), np.eye(2), np.ones((2, 3)), np.ones((3, 2)), np.eye(2))
    with pytest.raises(jp.InputError, match="rank is 0"):
        pml.kappa(3.0, 0.05, 0)
    with pytest.raises(jp.InputError, match="signal"):
        pml.additive_information(np.eye(2), np.eye(3))


def test_infeasible_requests_name_the_smallest_feasible_level():
    with pytest.raises(jp.InfeasibleError, match=r"1\.92073") as caught:
        pml.require_feasible(1.9, 0.05, 1)
    np.testing.assert_allclose(caught.value.smallest_feasible, 0.5 * chi2.isf(0.05, 1), rtol=1e-12)
    np.testing.assert_allclose(pml.require_feasible(3.0, 0.05, 1), 6 - chi2.isf(0.05, 1), rtol=1e-12)
    with pytest.raises(jp.InputError, match="rank"):
        pml.require_feasible(1.9, 0.05, 0)


def test_kappa_is_monotone():
    ranks = [float(pml.kappa(30.0, 0.05, rank)) for rank in (1, 2, 5, 10, 40)]
    assert ranks == sorted(ranks)
    levels = [float(pml.kappa(level, 0.05, 3)) for level in (4.0, 5.0, 8.0)]
    assert levels == sorted(levels, reverse=True)
    deltas = [float(pml.kappa(9.0, delta, 3)) for delta in (0.001, 0.01, 0.1)]
    assert deltas == sorted(deltas, reverse=True)


@pytest.mark.parametrize("seed", range(4))
def test_more_noise_never_raises_the_level(seed):
    prior, cross, seen, _, _ = _system(seed, 4, 3)
    extra = np.random.default_rng(seed).standard_normal((3, 1))
    less = pml.mutual_information(prior, cross, seen + extra @ extra.T)
    assert less <= pml.mutual_information(prior, cross, seen) + 1e-12
