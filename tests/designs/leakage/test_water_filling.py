"""The exact least noise under a bound on the information."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxpriv.designs.leakage.general import least_noise_above
from jaxpriv.designs.leakage.lmi import (
    leakage_floor,
    leakage_lmi_noise,
    leakage_lmi_noise_linear,
    secret_leakage_floor,
)
from jaxpriv.designs.leakage.water_filling import least_leakage_noise
from jaxpriv.floors.cip import cip_floor
from jaxpriv.priors.gaussian import GaussianPrior
from jaxpriv.secrets.secret import Secret


SIGNAL = np.array([[4.1, -1.1], [-1.1, 2.1]])
BUDGET = 2.008535452892  # 2ε − q_2(δ) at ε = 4, δ = 0.05
PRIOR = np.array([[2.0, 0.5, 0.3], [0.5, 1.0, 0.2], [0.3, 0.2, 1.5]])
MATRIX = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]])
WEIGHTS = np.array([[2.0, 0.5], [0.5, 1.0]])
# Solved with 40 digits and reproduced by an interior-point solver; printed to 12 digits.
PRINTED = 3e-12


def information(signal, noise):
    return np.linalg.slogdet(signal + noise)[1] - np.linalg.slogdet(noise)[1]


def random_signal(seed, size, condition=None):
    rng = np.random.default_rng(seed)
    if condition is None:
        root = rng.normal(size=(size, size))
        return root @ root.T / size
    basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
    return (basis * np.geomspace(1.0, 1.0 / condition, size)) @ basis.T


def test_known_answers():
    filled = least_leakage_noise(jnp.asarray(SIGNAL), BUDGET)
    expected = np.array([[1.786336907914, -0.1704793344987], [-0.1704793344987, 1.476374481553]])
    np.testing.assert_allclose(filled.noise, expected, rtol=PRINTED)
    assert float(filled.multiplier) == pytest.approx(2.617456424992, rel=PRINTED)
    assert float(filled.cost) == pytest.approx(3.262711389468, rel=PRINTED)
    weighted = least_leakage_noise(jnp.asarray(SIGNAL), BUDGET, weights=jnp.asarray(WEIGHTS))
    expected = np.array([[1.505432131032, -0.6054839129943], [-0.6054839129943, 2.065478861662]])
    np.testing.assert_allclose(weighted.noise, expected, rtol=PRINTED)
    assert float(weighted.multiplier) == pytest.approx(3.641242370435, rel=PRINTED)
    assert float(weighted.cost) == pytest.approx(4.470859210731, rel=PRINTED)
    several = least_leakage_noise(jnp.diag(jnp.array([4.0, 1.0, 0.5, 0.1])), 2.0)
    levels = [2.410714419974, 1.528201277892, 1.162196945125, 0.573586435359]
    np.testing.assert_allclose(np.diagonal(several.noise), levels, rtol=PRINTED)
    assert float(several.cost) == pytest.approx(5.674699078350, rel=PRINTED)


def test_known_answers_of_the_matrix_inequality():
    np.testing.assert_allclose(
        leakage_lmi_noise_linear(jnp.asarray(SIGNAL), BUDGET),
        [[2.3700689176, -0.6358721486243], [-0.6358721486243, 1.213937738283]],
        rtol=1e-11,
    )
    cross = jnp.asarray(PRIOR @ MATRIX.T)
    for own, least in (([[0.4, 0.1], [0.1, 1.5]], 2.188866273341), ([[0.4, 0.1], [0.1, 0.2]], 2.984006655882)):
        noise = leakage_lmi_noise(jnp.asarray(PRIOR), cross, jnp.asarray(SIGNAL + own), BUDGET)
        assert float(jnp.trace(noise)) == pytest.approx(least, rel=1e-11)
    weighted = leakage_lmi_noise(jnp.asarray(PRIOR), cross, jnp.asarray(SIGNAL), BUDGET, weights=jnp.asarray(WEIGHTS))
    assert float(jnp.sum(weighted * WEIGHTS)) == pytest.approx(5.318203424857, rel=1e-11)


@pytest.mark.parametrize("condition", [None, 1.0, 1e4])
@pytest.mark.parametrize("budget", [1e-3, 1.0, 60.0])
def test_budget_is_spent_and_the_inequality_costs_more(condition, budget):
    signal = random_signal(3, 6, condition)
    filled = least_leakage_noise(jnp.asarray(signal), budget)
    spent = information(signal, np.asarray(filled.noise))
    # The determinants lose digits where noise and signal differ by many orders.
    assert spent == pytest.approx(budget, rel=1e-8)
    lmi = leakage_lmi_noise_linear(jnp.asarray(signal), budget)
    assert float(filled.cost) <= float(jnp.trace(lmi)) * (1 + 1e-12)
    if condition == 1.0:
        assert float(filled.cost) == pytest.approx(float(jnp.trace(lmi)), rel=1e-9)
    # Stationarity: the identity is μ(Θ⁻¹ − (Θ + K)⁻¹).
    noise = np.asarray(filled.noise)
    gradient = np.linalg.inv(noise) - np.linalg.inv(noise + signal)
    np.testing.assert_allclose(float(filled.multiplier) * gradient, np.eye(6), atol=1e-6)


def test_limits_of_the_gain_over_the_inequality():
    # Little budget: (mean √k)²/mean k; much: geometric over arithmetic mean. First-order corrections of 1e-3 relative.
    values = np.array([4.0, 1.0, 0.25, 0.01])
    ratio = lambda tau: float(  # noqa: E731
        least_leakage_noise(jnp.diag(values), tau).cost / jnp.trace(leakage_lmi_noise_linear(jnp.diag(values), tau))
    )
    assert ratio(1e-4) == pytest.approx(np.mean(np.sqrt(values)) ** 2 / np.mean(values), rel=1e-3)
    assert ratio(120.0) == pytest.approx(np.exp(np.mean(np.log(values))) / np.mean(values), rel=1e-3)


def test_a_tiny_direction_gets_the_noise_it_needs():
    noise = np.asarray(least_leakage_noise(jnp.diag(jnp.array([1.0, 1e-12])), 2.0).noise)
    assert noise[1, 1] == pytest.approx(4.2546e-7, rel=1e-4)


def test_known_rank_leaves_the_null_space_out():
    matrix = np.array([[1.0, 0.0, 1.0], [2.0, 0.0, 2.0], [0.0, 1.0, -1.0]])
    signal = jnp.asarray(matrix @ PRIOR @ matrix.T)
    filled = least_leakage_noise(signal, 2.0, rank=2)
    assert filled.factor.shape == (3, 2)
    np.testing.assert_allclose(filled.factor @ filled.factor.T, filled.noise, atol=1e-12)
    null = np.array([2.0, -1.0, 0.0]) / np.sqrt(5.0)
    np.testing.assert_allclose(filled.noise @ null, 0.0, atol=1e-12)


def numerical(function, at, direction, step=1e-5):
    return (function(at + step * direction) - function(at - step * direction)) / (2 * step)


@pytest.mark.parametrize("signal", [SIGNAL, np.eye(2), np.diag([3.0, 3.0 + 1e-13])])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_derivatives(signal, weights):
    # Central differences with step 1e-5 are good to about 1e-9 here.
    direction = np.array([[0.3, -0.7], [-0.7, 0.9]])
    mixed = np.array([[1.0, 2.0], [2.0, -3.0]])

    def value(matrix, tau, w):
        return jnp.sum(mixed * least_leakage_noise(matrix, tau, weights=w).noise)

    at = jnp.asarray(signal)
    w = None if weights is None else jnp.asarray(weights)
    value = jax.jit(value)
    slope, by_budget = jax.jit(jax.grad(value, argnums=(0, 1)))(at, BUDGET, w)
    assert np.sum(np.asarray(slope) * direction) == pytest.approx(
        numerical(lambda k: float(value(jnp.asarray(k), BUDGET, w)), signal, direction), rel=1e-6
    )
    assert float(by_budget) == pytest.approx(numerical(lambda t: float(value(at, t, w)), BUDGET, 1.0), rel=1e-6)


def test_derivatives_of_the_cost_are_those_of_the_envelope():
    cost = lambda k, tau, w: least_leakage_noise(k, tau, weights=w).cost  # noqa: E731
    at = jnp.asarray(SIGNAL), BUDGET, jnp.asarray(WEIGHTS)
    filled = least_leakage_noise(*at[:2], weights=at[2])
    by_signal, by_budget, by_weights = jax.grad(cost, argnums=(0, 1, 2))(*at)
    mu = float(filled.multiplier)
    np.testing.assert_allclose(by_signal, mu * np.linalg.inv(np.asarray(filled.noise) + SIGNAL), rtol=1e-10)
    assert float(by_budget) == pytest.approx(-mu, rel=1e-10)
    np.testing.assert_allclose(by_weights, filled.noise, rtol=1e-9)


def test_jit_vmap_and_infeasible_budgets():
    budgets = jnp.array([0.5, 2.0, -1.0, 8.0])
    function = jax.jit(lambda tau: least_leakage_noise(jnp.asarray(SIGNAL), tau).noise)
    batched = jax.jit(jax.vmap(function))(budgets)
    for budget, noise in zip(budgets, batched, strict=True):
        np.testing.assert_allclose(noise, function(budget), rtol=1e-12)
    assert np.all(np.isnan(batched[2]))
    # The gradient of the others is not poisoned by the infeasible one.
    total = jax.jit(jax.grad(lambda k: jnp.nansum(jax.vmap(lambda t: least_leakage_noise(k, t).cost)(budgets))))
    assert np.all(np.isfinite(total(jnp.asarray(SIGNAL))))


@pytest.mark.parametrize(
    ("own", "floor", "weights", "least"),
    [
        # Interior point on the max-det program, agreeing with sequential quadratic programming to the digits shown.
        ([[0.4, 0.1], [0.1, 1.5]], 0.0, None, 1.36715057),
        ([[0.4, 0.1], [0.1, 0.2]], 0.0, None, 2.662711389468),
        ([[0.0, 0.0], [0.0, 0.0]], 1.3, WEIGHTS, 4.548123),
        ([[0.0, 0.0], [0.0, 0.0]], 1.5, None, 3.2705588833),
        ([[0.0, 0.0], [0.0, 0.0]], 1.6, None, 3.2920583795),
    ],
)
def test_own_noise_and_floors(own, floor, weights, least):
    found = least_noise_above(SIGNAL, np.array(own), BUDGET, floor_variance=floor, weights=weights)
    digits = len(str(least).split(".")[1])
    assert found.cost == pytest.approx(least, abs=2 * 10.0**-digits)
    assert 0.0 <= found.gap <= 1e-7
    assert np.linalg.eigvalsh(found.noise)[0] >= floor - 1e-12
    assert information(SIGNAL, found.noise + np.array(own)) <= BUDGET * (1 + 1e-9)


@pytest.mark.slow
def test_commuting_own_noise_has_a_closed_form_that_the_search_confirms():
    signal, own = np.diag([4.0, 1.0, 0.5]), np.diag([0.1, 2.0, 0.05])
    closed = least_noise_above(signal, own, 1.5)
    assert closed.method == "closed form"
    # Weights that do not commute by a hair send the same problem to the search.
    weights = np.eye(3) + 1e-9 * np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    searched = least_noise_above(signal, own, 1.5, weights=weights)
    assert searched.method == "gradient"
    assert searched.cost == pytest.approx(closed.cost, rel=1e-6)


def test_one_number_is_the_floor_of_a_loss():
    rng = np.random.default_rng(5)
    root = rng.normal(size=(5, 5))
    prior, secret, tau = GaussianPrior(jnp.asarray(root @ root.T)), Secret([2], 1.0), 1.7
    variance = float(prior.covariance[2, 2])
    np.testing.assert_allclose(
        secret_leakage_floor(prior, secret, tau), cip_floor(prior, secret, np.expm1(tau) / variance), atol=1e-12
    )
    whole = secret_leakage_floor(prior, Secret([0, 1, 2, 3, 4], 1.0), tau)
    np.testing.assert_allclose(whole, prior.covariance / np.expm1(tau / 5), rtol=1e-9, atol=1e-12)


def test_floor_is_where_the_posterior_keeps_its_share():
    # Random noise on both sides of the floor against the definition Γ ⪰ κ Σ.
    rng = np.random.default_rng(11)
    tau = 1.2
    kappa = np.exp(-tau / 2)
    floor = np.asarray(leakage_floor(jnp.asarray(PRIOR), jnp.asarray(PRIOR @ MATRIX.T), jnp.asarray(SIGNAL), tau))
    agreeing = 0
    for _ in range(200):
        root = rng.normal(size=(2, 2))
        noise = root @ root.T * rng.uniform(2.0, 20.0)
        gain = PRIOR @ MATRIX.T
        posterior = PRIOR - gain @ np.linalg.solve(SIGNAL + noise, gain.T)
        inside = np.linalg.eigvalsh(posterior - kappa * PRIOR)[0] >= 0.0
        assert inside == (np.linalg.eigvalsh(noise - floor)[0] >= 0.0)
        agreeing += inside
    assert 20 < agreeing < 180
