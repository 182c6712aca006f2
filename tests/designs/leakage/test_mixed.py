"""Leakage of secrets as a requirement beside losses: one noise for both."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

import jaxpriv as jp
from jaxpriv.convex.majorant import least_majorant
from jaxpriv.designs.leakage.lmi import secret_leakage_floor


TIMES = np.arange(10.0)
PRIORS = [jp.ProcessPrior(jp.kernels.matern32(scale), TIMES, noise_sd=0.1) for scale in (2.0, 4.0)]
LOCATION, VISIT = jp.Secret([3], 1.0), jp.Secret([6, 7], 1.0)


def leaked(prior, secret, covariance, delta):
    """ε of a secret from determinants of the joint covariance, in NumPy."""
    cross, variance = (np.asarray(part) for part in secret.joint(prior))
    seen = np.asarray(prior.covariance) + covariance
    left = variance - cross.T @ np.linalg.solve(seen, cross)
    information = 0.5 * (np.linalg.slogdet(variance)[1] - np.linalg.slogdet(left)[1])
    return information + 0.5 * chi2.isf(delta, len(variance))


def test_both_notions_hold_under_every_prior_at_least_cost():
    asked = jp.SecretLeakage(VISIT, epsilon=5.0, delta=0.05)
    found = jp.design(PRIORS, LOCATION, epsilon=0.5, requirements=[asked], floor_sd=0.0)
    covariance = np.asarray(found.mechanism.covariance)
    worst = max(leaked(prior, VISIT, covariance, 0.05) for prior in PRIORS)
    # The inequality keeps more than the exact criterion asks; rounding of the determinants is 1e-12.
    assert worst <= 5.0 + 1e-12
    assert found.epsilon <= 0.5
    allowed = 2 * 5.0 - chi2.isf(0.05, 2)
    floors = [np.asarray(secret_leakage_floor(prior, VISIT, allowed)) for prior in PRIORS]
    floors += [np.asarray(jp.cip_floor(prior, LOCATION, jp.target_loss(0.5, LOCATION, 2.0))) for prior in PRIORS]
    # CLARABEL stops at 1e-8 of its own scale.
    assert found.cost == pytest.approx(least_majorant(floors).cost, rel=1e-6)
    assert found.lower_bound <= found.cost and found.gap < 1e-5
    without = jp.design(PRIORS, LOCATION, epsilon=0.5, floor_sd=0.0)
    assert found.cost > without.cost


def test_one_number_spends_its_leakage_exactly():
    asked = jp.SecretLeakage(jp.Secret([6], 1.0), epsilon=3.0, delta=0.05)
    found = jp.design(PRIORS[0], LOCATION, epsilon=0.5, requirements=[asked])
    assert leaked(PRIORS[0], jp.Secret([6], 1.0), np.asarray(found.mechanism.covariance), 0.05) == pytest.approx(
        3.0, abs=1e-6
    )
    assert leaked(PRIORS[0], jp.Secret([6], 1.0), np.asarray(found.mechanism.covariance), 0.05) <= 3.0 + 1e-12


def test_a_budget_goes_to_the_loss_after_the_leakage():
    asked = jp.SecretLeakage(jp.Secret([6], 1.0), epsilon=3.0, delta=0.05)
    found = jp.design(PRIORS[0], LOCATION, budget=8.0, requirements=[asked])
    covariance = np.asarray(found.mechanism.covariance)
    assert np.trace(covariance) <= 8.0
    assert leaked(PRIORS[0], jp.Secret([6], 1.0), covariance, 0.05) <= 3.0 + 1e-12
    assert float(jp.cip_loss(PRIORS[0], LOCATION, jnp.asarray(covariance))) <= found.epsilon


def test_the_whole_trace_needs_noise_everywhere():
    whole = jp.Secret(list(range(10)), 1.0)
    least = chi2.isf(0.05, 10) / 2
    found = jp.design(
        PRIORS[0], LOCATION, epsilon=0.5, requirements=[jp.SecretLeakage(whole, epsilon=1.3 * least, delta=0.05)]
    )
    assert np.linalg.eigvalsh(np.asarray(found.mechanism.covariance))[0] > 0.01
    assert leaked(PRIORS[0], whole, np.asarray(found.mechanism.covariance), 0.05) <= 1.3 * least + 1e-12
    with pytest.raises(jp.InfeasibleError, match="out of reach for 10 dimensions") as caught:
        jp.SecretLeakage(whole, epsilon=0.9 * least, delta=0.05)
    assert caught.value.smallest_feasible == pytest.approx(least, rel=1e-12)
