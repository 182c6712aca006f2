"""Posterior, attack, errors, losses and remap against loops over their definitions, solvers and finite differences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.exponential import exponential_channel
from jaxpriv.channels.inference import (
    conditional_error,
    expected_error,
    inference_attack,
    narrowed_error,
    optimal_remap,
    posterior,
    prior_error,
    published,
    quality_loss,
)
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.channels.rare_outputs import merge_rare_outputs
from jaxpriv.errors import InputError


@pytest.fixture
def case(random_map, rng):
    prior = random_map(6)
    return prior, Channel.from_matrix(rng.dirichlet(np.ones(6), size=6))


def _by_definition(prior, channel, guesses, members=None):
    """Conditional errors and the mean error by loops over the definitions."""
    f, pi = np.asarray(channel.matrix), np.asarray(prior.probabilities).copy()
    if members is not None:
        pi = pi * members
    errors, mean = [], 0.0
    for z in range(f.shape[1]):
        joint = pi * f[:, z]
        risks = [sum(joint[x] * np.hypot(*(guess - prior.locations[x])) for x in range(len(pi))) for guess in guesses]
        errors.append(min(risks) / joint.sum())
        mean += min(risks)
    return np.array(errors), mean


def test_errors_by_their_definitions(case, rng):
    prior, channel = case
    elsewhere = rng.uniform(size=(9, 2)) * 10.0
    members = np.array([1, 0, 1, 1, 0, 0], dtype=bool)
    for guesses, places in ((None, prior.locations), (elsewhere, elsewhere)):
        errors, mean = _by_definition(prior, channel, places)
        np.testing.assert_allclose(conditional_error(channel, prior, guesses), errors, rtol=1e-13)
        assert float(expected_error(channel, prior, guesses)) == pytest.approx(mean, rel=1e-13)
        narrowed, _ = _by_definition(prior, channel, places, members)
        np.testing.assert_allclose(narrowed_error(channel, prior, members, guesses), narrowed, rtol=1e-13)


def test_posterior_is_bayes_rule(case):
    prior, channel = case
    joint = prior.probabilities[:, None] * np.asarray(channel.matrix)
    np.testing.assert_allclose(posterior(channel, prior), joint / joint.sum(axis=0), rtol=1e-13)


def test_mean_error_is_below_quality_loss_and_prior_error_and_is_what_a_remap_leaves(case):
    prior, channel = case
    error = float(expected_error(channel, prior))
    assert 0.0 <= error <= min(float(quality_loss(channel, prior)), float(prior_error(prior))) + 1e-14
    remap = optimal_remap(channel, prior)
    np.testing.assert_array_equal(remap, inference_attack(channel, prior))
    remapped = channel.then(Channel.deterministic(np.asarray(remap), 6))
    assert float(quality_loss(remapped, prior)) == pytest.approx(error, rel=1e-13)
    # The same number as a linear program: max Σ t_z with t_z ≤ Σ_x π f d(g, x) for each guess g.
    f, d = np.asarray(channel.matrix), prior.distances
    risks = d @ (prior.probabilities[:, None] * f)
    rows = np.tile(np.eye(6), (6, 1))
    solved = optimize.linprog(-np.ones(6), A_ub=rows, b_ub=risks.ravel(), bounds=(None, None))
    assert -solved.fun == pytest.approx(error, rel=1e-9)


def test_outputs_that_are_never_published_have_no_nan():
    prior = DiscretePrior(np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 0.0]]), np.array([0.5, 0.5, 0.0]))
    # Output 2 only comes from the third place, which has no prior mass.
    channel = Channel.from_matrix(np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]))
    np.testing.assert_array_equal(published(channel, prior), [True, True, False])
    np.testing.assert_array_equal(conditional_error(channel, prior), [0.5, 0.5, np.inf])
    np.testing.assert_array_equal(np.asarray(posterior(channel, prior))[:, 2], 0.0)

    def total(logs, mass):
        errors = conditional_error(Channel.from_log_weights(logs), prior, None, mass)
        return jnp.sum(jnp.where(jnp.isinf(errors), 0.0, errors))

    gradients = jax.jit(jax.grad(total, argnums=(0, 1)))(channel.log_matrix, prior.probabilities)
    assert all(np.all(np.isfinite(g)) for g in gradients)


def test_posterior_survives_probabilities_below_the_range_of_floats(line):
    prior = line([0.0, 1.0, 3.0])
    logs = np.array([[0.0, -900.0], [0.0, -901.0], [0.0, -2000.0]])
    column = np.asarray(posterior(Channel.from_log_weights(logs), prior))[:, 1]
    np.testing.assert_allclose(column, np.array([1.0, np.exp(-1.0), 0.0]) / (1 + np.exp(-1.0)), rtol=1e-13)


def test_an_adversary_off_the_map():
    """The corners of a triangle certify more against guesses at the corners than against its centre."""
    corners = DiscretePrior(np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]]), np.full(3, 1 / 3))
    same = Channel.constant(np.full(3, 1 / 3), 3)
    assert float(jnp.min(conditional_error(same, corners))) == pytest.approx(2 / 3)
    centre = float(jnp.min(conditional_error(same, corners, "plane")))
    assert centre == pytest.approx(1 / np.sqrt(3), rel=1e-7)  # a lower bound, within 1e-8 of the distances
    assert float(jnp.min(conditional_error(same, corners, "half"))) == pytest.approx(1 / 3)


def test_plane_error_is_a_lower_bound_that_is_almost_attained(random_map):
    for _ in range(4):
        prior = random_map(8, 0.5)
        bound = float(prior_error(prior, "plane"))
        weights, places = np.asarray(prior.probabilities), np.asarray(prior.locations)
        found = min(
            optimize.minimize(
                lambda g, w=weights, p=places: w @ np.hypot(*(g - p).T), start, method="Nelder-Mead", tol=1e-12
            ).fun
            for start in places
        )
        assert bound <= found * (1 + 1e-12)
        # Newton's steps bring the slack of the bound to a few 1e-8 of the distances.
        assert bound >= found * (1 - 1e-6)


@pytest.mark.parametrize("guesses", [None, "half", "plane"])
def test_derivatives_are_those_of_finite_differences(case, guesses, rng):
    prior, _ = case
    start, direction = rng.normal(size=(6, 6)), rng.normal(size=(6, 6))

    @jax.jit
    def total(weights):
        channel = Channel.from_log_weights(weights)
        return expected_error(channel, prior, guesses) + jnp.min(conditional_error(channel, prior, guesses))

    slope = float(jnp.vdot(jax.jit(jax.grad(total))(jnp.asarray(start)), direction))
    step = 1e-6
    difference = float(total(start + step * direction) - total(start - step * direction)) / (2 * step)
    # The slack of the bound for "plane", some 1e-8, is taken as fixed.
    assert slope == pytest.approx(difference, rel=1e-6 if guesses != "plane" else 1e-3, abs=1e-7)


def test_slope_of_the_loss_in_epsilon(random_map, rng):
    """dQLoss/dε = −Σ π Var(d)/(2 D) for the exponential mechanism."""
    prior = random_map(7)
    d, diameters = prior.distances, 1.0 + rng.uniform(size=7)
    scale = 2 * jnp.asarray(diameters)
    slope = jax.jit(jax.grad(lambda e: quality_loss(exponential_channel(d, e / scale), prior)))(1.3)
    f = np.exp(-1.3 * d / (2 * diameters[:, None]))
    f /= f.sum(axis=1, keepdims=True)
    variance = (f * d**2).sum(axis=1) - (f * d).sum(axis=1) ** 2
    assert float(slope) == pytest.approx(-float(prior.probabilities @ (variance / (2 * diameters))), rel=1e-12)


def test_vmap_and_compilation_agree_with_loops(case, rng):
    prior, channel = case
    beliefs = rng.dirichlet(np.ones(6), size=3)
    mapped = jax.jit(jax.vmap(lambda belief: expected_error(channel, prior, None, belief)))(beliefs)
    looped = [float(expected_error(channel, prior, None, belief)) for belief in beliefs]
    np.testing.assert_allclose(mapped, looped, rtol=1e-13)
    members = np.array([[1, 1, 0, 0, 1, 0], [0, 0, 1, 1, 0, 1]], dtype=bool)
    narrowed = jax.vmap(lambda inside: narrowed_error(channel, prior, inside))(members)
    np.testing.assert_allclose(narrowed[1], narrowed_error(channel, prior, members[1]), rtol=1e-13)


def test_no_new_compilation_for_new_values(case):
    prior, _ = case
    traces = []

    @jax.jit
    def loss(rate):
        traces.append(None)
        return quality_loss(exponential_channel(prior.distances, rate), prior)

    assert float(loss(0.5)) != float(loss(0.7))
    assert len(traces) == 1


def test_a_sure_adversary_leaves_no_error(case):
    prior, channel = case
    assert float(expected_error(channel, prior, None, np.eye(6)[2])) == 0.0


def test_merging_rare_outputs_never_lowers_what_is_claimed(line):
    prior = line([0.0, 1.0, 3.0])
    matrix = np.array([[0.5, 0.5 - 1e-12, 1e-12], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    channel = Channel.from_matrix(matrix)
    assert float(jnp.min(conditional_error(channel, prior))) == 0.0
    merged, kept = merge_rare_outputs(channel, prior)
    np.testing.assert_array_equal(kept, [0, 1])
    np.testing.assert_allclose(merged.matrix, 0.5, rtol=1e-15)
    assert float(jnp.min(conditional_error(merged, prior))) == pytest.approx(1.0, abs=1e-11)
    with pytest.raises(InputError, match="no output"):
        merge_rare_outputs(channel, prior, 0.9)


def test_what_is_refused(case):
    prior, channel = case
    with pytest.raises(InputError, match="does not fit a map"):
        conditional_error(Channel.from_matrix(np.eye(5)), prior)
    with pytest.raises(InputError, match="outputs="):
        quality_loss(Channel.from_matrix(np.full((6, 2), 0.5)), prior)
    with pytest.raises(InputError, match="guesses is 'circle'"):
        expected_error(channel, prior, "circle")
    with pytest.raises(InputError, match="expected \\(g, 2\\)"):
        expected_error(channel, prior, np.zeros((3, 3)))
    with pytest.raises(InputError, match="sum to"):
        expected_error(channel, prior, None, np.full(6, 0.2))
    with pytest.raises(InputError, match="names no list"):
        inference_attack(channel, prior, "plane")
