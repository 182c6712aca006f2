"""Channels within their limits for every parameter: levels by loops, gradients by differences, reach by descent."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from small_maps import EIGHT, eight_places, slow_excess

from jaxpriv.channels.feasible import enveloped_channel, lipschitz_channel
from jaxpriv.channels.limits import set_limits
from jaxpriv.channels.optimal import solve_program
from jaxpriv.channels.problem import channel_problem
from jaxpriv.errors import InputError


EPSILON = 1.0 / EIGHT["range"]


@pytest.fixture(scope="module")
def problem():
    return channel_problem(eight_places(), EPSILON)


@pytest.mark.parametrize("build", [lipschitz_channel, enveloped_channel])
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_within_the_limits_whatever_the_parameters(rng, problem, build, scale):
    for allowed in (problem.limits.allowed, set_limits(8, EIGHT["partition"], 1.0).allowed):
        matrix = np.asarray(build(scale * rng.normal(size=(8, 8)), allowed).matrix)
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-12)
        assert slow_excess(matrix, allowed) <= 1e-10


def test_a_channel_within_the_limits_is_its_own_envelope(problem):
    half = -0.5 * problem.limits.allowed
    expected = np.exp(half) / np.exp(half).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.asarray(enveloped_channel(half, problem.limits.allowed).matrix), expected, rtol=1e-12)


def test_the_envelope_reaches_the_optimum_that_the_lipschitz_form_cannot(problem):
    """At the optimal channel the full-budget form is the identity, half the budget bounds the other from above."""
    solution = solve_program(problem)
    log_matrix = np.log(np.maximum(solution.matrix, 1e-12))
    channel = enveloped_channel(log_matrix, problem.limits.allowed)
    # The floor of 1e-12 and the solver's residual of about 1e-9 cost this much.
    assert np.sum(problem.cost * np.asarray(channel.matrix)) == pytest.approx(EIGHT["optimum"], rel=1e-6)
    half = solve_program(channel_problem(eight_places(), 0.5 * EPSILON))
    assert half.value == pytest.approx(EIGHT["half_budget_optimum"], abs=1e-9)
    same = lipschitz_channel(np.log(np.maximum(half.matrix, 1e-12)), problem.limits.allowed)
    assert np.sum(problem.cost * np.asarray(same.matrix)) == pytest.approx(half.value, rel=1e-6)


@pytest.mark.parametrize(
    ("build", "limit"), [(lipschitz_channel, EIGHT["half_budget_optimum"]), (enveloped_channel, 3.2)]
)
def test_gradient_steps_lead_below_what_is_known_to_be_reachable(problem, build, limit):
    cost, allowed = jnp.asarray(problem.cost), jnp.asarray(problem.limits.allowed)

    def loss(scores):
        return jnp.sum(cost * build(scores, allowed).matrix)

    optimizer = optax.adam(optax.cosine_decay_schedule(0.1, 600))

    @jax.jit
    def search(scores):
        def step(state, _):
            scores, memory = state
            update, memory = optimizer.update(jax.grad(loss)(scores), memory)
            return (optax.apply_updates(scores, update), memory), None

        return jax.lax.scan(step, (scores, optimizer.init(scores)), None, length=600)[0][0]

    found = search(-0.5 * allowed)
    assert EIGHT["optimum"] <= float(loss(found)) <= limit
    assert slow_excess(np.asarray(build(found, allowed).matrix), np.asarray(allowed)) <= 1e-10


@pytest.mark.parametrize("build", [lipschitz_channel, enveloped_channel])
def test_gradients_against_differences(rng, problem, build):
    cost, allowed = jnp.asarray(problem.cost), jnp.asarray(problem.limits.allowed)
    scores, direction = rng.normal(size=(8, 8)), rng.normal(size=(8, 8))

    def loss(scores):
        return jnp.sum(cost * build(scores, allowed).matrix)

    slope = float(jnp.sum(jax.grad(loss)(jnp.asarray(scores)) * direction))
    h = 1e-6
    difference = float(loss(scores + h * direction) - loss(scores - h * direction)) / (2 * h)
    # Central differences in double precision: h² and rounding/h are both about 1e-10.
    assert slope == pytest.approx(difference, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("build", [lipschitz_channel, enveloped_channel])
def test_compile_once_and_map(rng, problem, build):
    allowed = jnp.asarray(problem.limits.allowed)
    traces = []

    @jax.jit
    def matrix(scores, allowed):
        traces.append(1)
        return build(scores, allowed).matrix

    batch = jnp.asarray(rng.normal(size=(3, 8, 8)))
    one_by_one = np.stack([np.asarray(matrix(scores, allowed)) for scores in batch])
    assert len(traces) == 1
    together = jax.vmap(lambda scores: build(scores, allowed).matrix)(batch)
    np.testing.assert_allclose(np.asarray(together), one_by_one, rtol=1e-12)
    gradient = jax.vmap(jax.grad(lambda s: jnp.sum(jnp.asarray(problem.cost) * build(s, allowed).matrix)))(batch)
    assert np.all(np.isfinite(np.asarray(gradient)))


def test_finite_gradients_where_everything_ties(problem):
    allowed = jnp.asarray(problem.limits.allowed)
    cost = jnp.asarray(problem.cost)
    for build in (lipschitz_channel, enveloped_channel):
        gradient = jax.grad(lambda s, build=build: jnp.sum(cost * build(s, allowed).matrix))(jnp.zeros((8, 8)))
        assert np.all(np.isfinite(np.asarray(gradient)))


def test_single_precision_is_kept(rng, problem):
    scores = jnp.asarray(rng.normal(size=(8, 8)), jnp.float32)
    allowed = jnp.asarray(problem.limits.allowed, jnp.float32)
    for build in (lipschitz_channel, enveloped_channel):
        assert build(scores, allowed).log_matrix.dtype == jnp.float32


def test_shapes_must_fit():
    with pytest.raises(InputError, match="need limits"):
        enveloped_channel(np.zeros((3, 2)), np.zeros((2, 2)))
    with pytest.raises(InputError, match="need limits"):
        lipschitz_channel(np.zeros(3), np.zeros((3, 3)))
