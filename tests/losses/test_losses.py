"""Losses against definitions, simulation-free oracles and the published statements."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import jaxpriv as jp


def _spd(rng, n):
    root = rng.standard_normal((n, n))
    return root @ root.T / n + 0.2 * np.eye(n)


# ---- Rényi ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [0.3, 0.9, 1.5, 2.0])
def test_gaussian_divergence_is_its_integral(order):
    mean, sd_1, sd_2 = 0.7, 1.1, 1.3

    def integrand(x):
        log_p, log_q = stats.norm.logpdf(x, mean, sd_1), stats.norm.logpdf(x, 0.0, sd_2)
        return np.exp(order * log_p + (1 - order) * log_q)

    expected = np.log(integrate.quad(integrand, -40, 40, epsabs=1e-14)[0]) / (order - 1)
    value = jp.renyi_gaussian(jnp.array([mean]), jnp.array([[sd_1**2]]), jnp.array([[sd_2**2]]), order)
    np.testing.assert_allclose(value, expected, rtol=1e-10)  # quadrature to 1e-14 absolute


def test_equal_covariances_are_the_quadratic_form(rng):
    covariance, shift = _spd(rng, 4), rng.standard_normal(4)
    expected = 1.5 * shift @ np.linalg.solve(covariance, shift)
    np.testing.assert_allclose(jp.renyi_equal_covariance(shift, covariance, 3.0), expected, rtol=1e-12)
    np.testing.assert_allclose(jp.renyi_gaussian(shift, covariance, covariance, 3.0), expected, rtol=1e-10)


def test_order_one_is_the_limit(rng):
    first, second, shift = _spd(rng, 3), _spd(rng, 3), rng.standard_normal(3)
    sides = [float(jp.renyi_gaussian(shift, first, second, 1.0 + h)) for h in (1e-4, -1e-4)]
    np.testing.assert_allclose(jp.kl_gaussian(shift, first, second), np.mean(sides), rtol=1e-6)


def test_large_orders_are_infinite_exactly_when_the_mixture_is_indefinite():
    first, second = jnp.array([[2.0]]), jnp.array([[1.0]])
    # λ + (1−λ) 2 > 0 ⇔ λ < 2.
    assert np.isfinite(jp.renyi_gaussian(jnp.zeros(1), first, second, 1.99))
    assert np.isinf(jp.renyi_gaussian(jnp.zeros(1), first, second, 2.01))
    assert np.isinf(jp.renyi_equal_covariance(jnp.ones(2), jnp.ones((2, 2)), 2.0))


def test_discrete_divergence_and_its_conventions_at_zero():
    p, q = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.2, 0.3, 0.4, 0.1])
    for order in (0.5, 2.0, 7.0):
        expected = np.log(np.sum(p[:3] ** order * q[:3] ** (1 - order))) / (order - 1)
        np.testing.assert_allclose(jp.renyi_discrete(p, q, order), expected, rtol=1e-13)
    assert np.isinf(jp.renyi_discrete(q, p, 2.0))
    expected = np.log(np.sum(q[:3] ** 0.5 * p[:3] ** 0.5)) / (0.5 - 1)
    np.testing.assert_allclose(jp.renyi_discrete(q, p, 0.5), expected, rtol=1e-13)
    assert np.isinf(jp.renyi_discrete(jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0]), 0.5))
    gradient = jax.grad(lambda p: jp.renyi_discrete(p, jnp.array([0.0, 1.0]), 0.5))(jnp.array([1.0, 0.0]))
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("order", [0.0, 1.0, -2.0, float("nan"), float("inf")])
def test_orders_that_are_none(order):
    with pytest.raises(jp.InputError, match="order"):
        jp.renyi_discrete(jnp.ones(2) / 2, jnp.ones(2) / 2, order)


# ---- precision gain -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_gain_is_the_divergence_between_the_two_releases(seed):
    rng = np.random.default_rng(seed)
    covariance, noise, inside = _spd(rng, 6), _spd(rng, 6), [1, 3]
    outside = [i for i in range(6) if i not in inside]
    gain = jp.precision_gain(jp.GaussianPrior(covariance), jp.Secret(inside, 1.0), noise)
    delta = rng.standard_normal(2)
    # The law of the release given the secret, from the joint Gaussian of trace and release.
    own = np.linalg.inv(covariance[np.ix_(inside, inside)])
    shift = covariance[:, inside] @ own @ delta
    law = covariance + noise - covariance[:, inside] @ own @ covariance[inside]
    assert outside
    np.testing.assert_allclose(delta @ gain @ delta, shift @ np.linalg.solve(law, shift), rtol=1e-9)
    left = np.asarray(jp.posterior(jp.GaussianPrior(covariance), noise).covariance)[np.ix_(inside, inside)]
    np.testing.assert_allclose(gain, np.linalg.inv(left) - own, rtol=1e-8, atol=1e-10)


def test_posterior_is_conditioning(rng):
    covariance, noise = _spd(rng, 5), _spd(rng, 5)
    result = jp.posterior(jp.GaussianPrior(covariance), jp.GaussianMechanism(np.linalg.cholesky(noise)))
    expected = np.linalg.inv(np.linalg.inv(covariance) + np.linalg.inv(noise))
    np.testing.assert_allclose(result.covariance, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(result.gain, expected @ np.linalg.inv(noise), rtol=1e-8, atol=1e-12)


def test_a_loss_is_infinite_not_nan_where_something_is_published_exactly():
    prior = jp.GaussianPrior(np.eye(3))
    noise = jnp.diag(jnp.array([0.0, 1.0, 1.0]))
    for loss in (jp.cip_loss(prior, jp.Secret([0], 1.0), noise), jp.mu_squared(prior, jp.Secret([0, 1], 1.0), noise)):
        assert np.isposinf(loss)
    gradient = jax.grad(lambda g: jp.cip_loss(prior, jp.Secret([0], 1.0), g))(noise)
    assert np.isfinite(gradient).all()
    assert np.isposinf(jp.cip_loss(jp.GaussianPrior(np.ones((3, 3))), jp.Secret([0, 1], 1.0), np.eye(3)))


def test_more_noise_never_loses_more(rng):
    """Corollary 7.2.2: G ⪰ G' implies no larger loss, whatever the structure."""
    prior, secret = jp.GaussianPrior(_spd(rng, 6)), jp.Secret([2, 3], 1.0)
    for _ in range(10):
        noise, more = _spd(rng, 6), rng.standard_normal((6, 2))
        assert jp.cip_loss(prior, secret, noise + more @ more.T) <= jp.cip_loss(prior, secret, noise) * (1 + 1e-12)


def test_invariances(rng):
    covariance, noise = _spd(rng, 6), _spd(rng, 6)
    base = jp.cip_loss(jp.GaussianPrior(covariance), jp.Secret([1, 4], 0.3), noise)
    order = rng.permutation(6)
    moved = jp.Secret([int(np.flatnonzero(order == i)[0]) for i in (1, 4)], 0.3)
    shuffled = jp.cip_loss(jp.GaussianPrior(covariance[np.ix_(order, order)]), moved, noise[np.ix_(order, order)])
    np.testing.assert_allclose(shuffled, base, rtol=1e-10)
    kilometres = jp.cip_loss(jp.GaussianPrior(covariance * 1e-6), jp.Secret([1, 4], 0.3e-3), noise * 1e-6)
    np.testing.assert_allclose(kilometres, base, rtol=1e-10)


# ---- compound bounds ------------------------------------------------------------------------------------------------


def _supremum(matrix, n_times, rng, tries=200):
    """The supremum over a product of balls by alternating maximisation from many starts: a lower bound."""
    dims = matrix.shape[0] // n_times
    best = 0.0
    for _ in range(tries):
        delta = rng.standard_normal((n_times, dims))
        for _ in range(100):
            step = (matrix @ delta.ravel()).reshape(n_times, dims)
            delta = step / np.linalg.norm(step, axis=1, keepdims=True)
        best = max(best, delta.ravel() @ matrix @ delta.ravel())
    return best


@pytest.mark.parametrize(
    ("n_times", "dims"),
    [(2, 1), (3, 2), (5, 1), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((2, 2), (3, 1)))],
)
def test_product_bound_lies_between_the_supremum_and_the_ball(n_times, dims, rng):
    for _ in range(5):
        matrix = _spd(rng, n_times * dims)
        ball = float(jp.mu_squared_of_gain(jnp.asarray(matrix), 1.0, n_times, "ball"))
        bound = float(jp.mu_squared_of_gain(jnp.asarray(matrix), 1.0, n_times, "product"))
        supremum = _supremum(matrix, n_times, rng, tries=30)
        assert supremum <= bound * (1 + 1e-9)
        assert bound <= min(ball * (1 + 1e-12), supremum * np.pi / 2)
        if n_times == 2:
            np.testing.assert_allclose(bound, supremum, rtol=1e-6)


def test_exact_is_the_best_sign_pattern(rng):
    matrix = _spd(rng, 5)
    expected = max(np.array(s) @ matrix @ np.array(s) for s in itertools.product((-1, 1), repeat=5))
    np.testing.assert_allclose(jp.mu_squared_of_gain(jnp.asarray(matrix), 2.0, 5, "exact"), 4 * expected, rtol=1e-12)


def test_three_times_where_product_and_exact_differ():
    matrix = jnp.asarray(1.5 * np.eye(3) - 0.5 * np.ones((3, 3)))
    np.testing.assert_allclose(jp.mu_squared_of_gain(matrix, 1.0, 3, "exact"), 4.0, rtol=1e-12)
    np.testing.assert_allclose(jp.mu_squared_of_gain(matrix, 1.0, 3, "product"), 4.5, rtol=1e-12)


def test_coordinates_of_a_compound_secret_share_one_bound():
    gains = [jnp.diag(jnp.array([1.0, 0.0])), jnp.diag(jnp.array([0.0, 1.0]))]
    np.testing.assert_allclose(jp.independent_dimensions(gains, 1.0, 2, "product"), 2.0, rtol=1e-9)
    assert max(float(jp.mu_squared_of_gain(g, 1.0, 2, "product")) for g in gains) == pytest.approx(1.0)
    np.testing.assert_allclose(jp.independent_dimensions(gains, 1.0, 2), 2.0)
    np.testing.assert_allclose(jp.dimension_sum(gains, 1.0, 2), 4.0)


# ---- what is published ----------------------------------------------------------------------------------------------


def test_printed_formula_holds_for_block_noise(rng):
    covariance, inside = _spd(rng, 6), [0, 3]
    outside = [1, 2, 4, 5]
    noise = np.zeros((6, 6))
    noise[np.ix_(inside, inside)] = 0.7 * np.eye(2)
    noise[np.ix_(outside, outside)] = _spd(rng, 4)
    prior, secret = jp.GaussianPrior(covariance), jp.Secret(inside, 1.0)
    terms = jp.direct_and_inferential(prior, secret, noise)
    np.testing.assert_allclose(terms.direct, 1 / 0.7, rtol=1e-12)
    np.testing.assert_allclose(terms.total, jp.mu_squared(prior, secret, noise) / 2, rtol=1e-9)


def test_printed_formula_is_refused_for_coupled_noise():
    """With A = 0 and Σ_{u|s} = c, G = v [[1, 1], [1, 1]] has loss 1/v + 1/c; the printed formula says 1/v."""
    c, v = 0.5, 2.0
    prior, secret = jp.GaussianPrior(np.diag([1.0, c])), jp.Secret([0], 1.0)
    noise = v * jnp.ones((2, 2))
    np.testing.assert_allclose(jp.precision_gain(prior, secret, noise), [[1 / v + 1 / c]], rtol=1e-12)
    with pytest.raises(RuntimeError, match="correlated"):
        jp.direct_and_inferential(prior, secret, noise)


def test_markov_and_exact_odds():
    """λ = 5, ε = 0.1: odds double with probability at most 9.3 % by Theorem 3.1; in truth 0.038 %."""
    order, epsilon = 5.0, 0.1
    delta = np.exp(-(order - 1) * (np.log(2) - epsilon))
    assert delta == pytest.approx(0.093, abs=5e-4)
    np.testing.assert_allclose(jp.odds_bound(epsilon, order, delta), np.log(2), rtol=1e-12)
    mu = np.sqrt(2 * epsilon / order)
    assert stats.norm.sf((np.log(2) - mu**2 / 2) / mu) == pytest.approx(0.00038, abs=5e-6)


@pytest.mark.parametrize("mu", [0.01, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("epsilon", [-0.5, 0.0, 0.3, 2.0])
def test_gaussian_curve_is_the_hockey_stick_integral(mu, epsilon):
    def integrand(x):
        return max(np.exp(stats.norm.logpdf(x, mu, 1)) - np.exp(epsilon + stats.norm.logpdf(x, 0, 1)), 0.0)

    kink = (epsilon + mu**2 / 2) / mu
    expected = integrate.quad(integrand, kink, max(kink, mu) + 12, epsabs=1e-13, limit=200)[0] if kink < 60 else 0.0
    np.testing.assert_allclose(jp.gaussian_delta(mu**2, epsilon), expected, atol=2e-10)


def test_gaussian_epsilon_inverts_the_curve_and_meets_the_accountant():
    from dp_accounting import dp_event
    from dp_accounting.pld import privacy_loss_distribution

    for mu in (0.3, 1.0, 2.5):
        for delta in (1e-2, 1e-6):
            value = float(jp.gaussian_epsilon(mu**2, delta))
            np.testing.assert_allclose(jp.gaussian_delta(mu**2, value), delta, rtol=1e-9)
            pld = privacy_loss_distribution.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4)
            # The accountant rounds losses up by its interval.
            assert value == pytest.approx(pld.get_epsilon_for_delta(delta), abs=2e-4)
    assert float(jp.gaussian_epsilon(1e-8, 0.01)) == 0.0
    assert np.isinf(jp.gaussian_epsilon(np.inf, 0.01))
    assert dp_event is not None


def test_misspecified_bound_covers_the_exact_loss(rng):
    covariance = np.exp(-np.abs(np.subtract.outer(np.arange(6), np.arange(6))) / 3.0)
    true = jp.GaussianPrior(covariance + 0.02 * np.eye(6))
    assumed, secret = jp.GaussianPrior(covariance), jp.Secret([2], 0.5)
    result = jp.misspecified_loss(assumed, true, secret, 0.5 * np.eye(6), order=2.0)
    assert np.isfinite(result.bound)
    np.testing.assert_allclose(result.exact, jp.cip_loss(true, secret, 0.5 * np.eye(6), 2.0), rtol=1e-12)
    assert result.exact <= result.bound
    same = jp.misspecified_loss(assumed, assumed, secret, 0.5 * np.eye(6), order=2.0)
    # Equal priors: both divergences vanish and the third term alone is left.
    np.testing.assert_allclose(same.bound, 2.5 / 2 * jp.cip_loss(assumed, secret, 0.5 * np.eye(6), 6.0), rtol=1e-9)


def test_several_traces_are_one_joint_release(rng):
    joint = _spd(rng, 6)
    noise = jp.several_traces([0.5 * np.eye(3), jp.GaussianMechanism(np.eye(3), 1.0)])
    np.testing.assert_allclose(noise, np.diag([0.5] * 3 + [2.0] * 3))
    alone = jp.cip_loss(jp.GaussianPrior(joint[:3, :3]), jp.Secret([1], 1.0), 0.5 * np.eye(3))
    together = jp.cip_loss(jp.GaussianPrior(joint), jp.Secret([1], 1.0), noise)
    assert together > alone
    apart = joint.copy()
    apart[:3, 3:] = apart[3:, :3] = 0.0
    np.testing.assert_allclose(jp.cip_loss(jp.GaussianPrior(apart), jp.Secret([1], 1.0), noise), alone, rtol=1e-10)


# ---- side information -----------------------------------------------------------------------------------------------


def test_a_known_fix_is_a_fix_published_without_noise(rng):
    covariance, noise = _spd(rng, 5), _spd(rng, 5)
    prior, secret = jp.GaussianPrior(covariance), jp.Secret([2], 1.0)
    value = float(jp.loss_given(prior, secret, noise, known=[0, 4]))
    # The trace and the known fixes together, as one observation of seven numbers.
    observe = np.vstack([np.eye(5), np.eye(5)[[0, 4]]])
    error = np.zeros((7, 7))
    error[:5, :5] = noise
    cross = observe @ covariance[:, [2]]
    left = covariance[2, 2] - cross.T @ np.linalg.solve(observe @ covariance @ observe.T + error, cross)
    alone = observe[5:] @ covariance[:, [2]]
    before = covariance[2, 2] - alone.T @ np.linalg.solve(covariance[np.ix_([0, 4], [0, 4])], alone)
    np.testing.assert_allclose(value, 1 / left - 1 / before, rtol=1e-8)
    # With every other fix known only the secret's own noise is left, given theirs.
    others = [0, 1, 3, 4]
    own = noise[2, 2] - noise[2, others] @ np.linalg.solve(noise[np.ix_(others, others)], noise[others, 2])
    np.testing.assert_allclose(jp.loss_given(prior, secret, noise, known=others), 1 / own, rtol=1e-9)


def test_side_information_that_is_none():
    prior, secret = jp.GaussianPrior(np.eye(3)), jp.Secret([1], 1.0)
    for known, words in (
        ([], "at least one"),
        ([1], "secret"),
        ([5], "outside"),
        ([0, 0], "twice"),
        ([0, 1, 2], "secret"),
    ):
        with pytest.raises(jp.InputError, match=words):
            jp.loss_given(prior, secret, np.eye(3), known=known)


def test_a_secret_of_perfectly_correlated_fixes_is_never_called_safe():
    """Equal times without a nugget: the secret's own covariance is singular, and every answer is infinite, not zero."""
    prior, secret = (
        jp.GaussianPrior(jnp.ones((4, 4)) + jnp.diag(jnp.array([0.0, 0.0, 1.0, 1.0]))),
        jp.Secret([0, 1], 1.0),
    )
    noise = jnp.eye(4)
    values = [
        jp.least_trace(prior, secret, 1.0),
        jp.least_loss(prior, secret, 1.0),
        jp.least_trace_block(prior, secret, 1.0),
        jp.least_loss_block(prior, secret, 1.0),
        jp.direct_and_inferential(prior, secret, noise).total,
        jp.misspecified_loss(jp.GaussianPrior(jnp.eye(4)), prior, secret, noise).bound,
        jnp.trace(jp.cip_floor(prior, secret, 1.0)),
        jnp.trace(jp.least_trace_noise(prior, secret, 1.0)),
    ]
    assert np.all(np.isposinf(values)), values
    with pytest.raises(jp.InputError, match="perfectly correlated"):
        jp.given(prior, [0, 1])
    assert np.isposinf(
        jax.jit(lambda c: jp.loss_given(jp.GaussianPrior(c), jp.Secret([2], 1.0), noise, [0, 1]))(prior.covariance)
    )
