"""First-order designs against exact optima, and always within their limits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_maps import EIGHT, eight_places, grid, slow_excess

from jaxpriv.channels.gradient import gradient_channel, starting_matrix
from jaxpriv.channels.inference import conditional_error, quality_loss
from jaxpriv.channels.obfuscation import UnattainableError
from jaxpriv.channels.optimal import optimal_channel, solve_program
from jaxpriv.channels.primal_dual import _simplex
from jaxpriv.channels.problem import channel_problem
from jaxpriv.channels.program_blocks import build_program
from jaxpriv.channels.softmax import softmax_search
from jaxpriv.errors import InputError


def check(design):
    assert design.excess <= 0.0
    assert slow_excess(np.asarray(design.channel.matrix), design.limits.allowed) <= 1e-12
    assert float(quality_loss(design.channel, design.prior)) == pytest.approx(design.quality_loss, rel=1e-12)
    assert design.lower_bound <= design.quality_loss


def test_eight_places():
    design = gradient_channel(eight_places(), 1.0 / EIGHT["range"], tolerance=1e-4)
    check(design)
    assert design.gap <= 1e-4
    assert EIGHT["optimum"] <= design.quality_loss <= EIGHT["optimum"] * (1 + 1e-4)
    assert EIGHT["optimum"] * (1 - 1e-4) <= design.lower_bound <= EIGHT["optimum"]


@pytest.mark.parametrize("min_error", ["0.2", "1.0", "1.3"])
def test_both_knobs(min_error):
    design = gradient_channel(eight_places(), 1.0, sets=EIGHT["partition"], min_error=float(min_error), tolerance=1e-3)
    check(design)
    value = EIGHT["partition_values"][min_error]
    assert design.gap <= 1e-3
    assert value * (1 - 1e-9) <= design.quality_loss <= value * 1.001
    assert np.min(np.asarray(conditional_error(design.channel, design.prior))) >= float(min_error) * (1 - 1e-9)


def test_an_unattainable_error_names_the_place_and_the_limit():
    with pytest.raises(UnattainableError, match=r"place 0 .* 3\.516177331"):
        gradient_channel(eight_places(), 1.0, min_error=4.0)


def test_fifty_cells_to_one_percent_certified():
    design = gradient_channel(grid(5, 10, seed=1), 1.0, tolerance=0.01)
    check(design)
    assert design.gap <= 0.01
    assert design.status == "tolerance reached"


@pytest.mark.slow
def test_fifty_cells_beside_the_linear_program():
    prior = grid(5, 10, seed=1)
    design = gradient_channel(prior, 1.0, tolerance=0.005)
    exact = optimal_channel(prior, 1.0)
    assert exact.quality_loss * (1 - 1e-8) <= design.quality_loss <= exact.quality_loss * 1.005
    assert design.lower_bound <= exact.lower_bound * (1 + 1e-9)


def test_a_spanner_and_single_precision_keep_every_limit_and_a_valid_bound():
    prior = grid(4, 6, seed=2)
    exact = solve_program(channel_problem(prior, 0.8)).value
    design = gradient_channel(prior, 0.8, stretch=1.1, dtype=np.float32, max_steps=800, tolerance=1e-4)
    check(design)
    assert len(design.limits.pairs) < 24 * 23 / 4
    assert design.lower_bound <= exact * (1 + 1e-12) <= design.quality_loss * (1 + 1e-12)
    # The relaxation of a spanner of dilation 1.08 lies a few percent below.
    assert design.quality_loss <= 1.05 * exact
    assert design.lower_bound >= 0.93 * exact


def test_one_step_is_enough_for_a_valid_if_poor_answer():
    design = gradient_channel(eight_places(), 1.0 / EIGHT["range"], max_steps=1)
    check(design)
    assert design.status == "step or time limit"
    assert design.lower_bound <= EIGHT["optimum"] <= design.quality_loss


def test_the_start_is_within_its_limits_and_better_than_the_exponential_mechanism():
    problem = channel_problem(grid(3, 4, seed=3), 0.9)
    start = starting_matrix(problem)
    np.testing.assert_allclose(start.sum(axis=1), 1.0, rtol=1e-12)
    assert slow_excess(start, problem.limits.allowed) <= 1e-10
    half = np.exp(-0.5 * problem.limits.allowed)
    exponential = half / half.sum(axis=1, keepdims=True)
    assert np.sum(problem.cost * start) < np.sum(problem.cost * exponential)


def test_callback_stops_the_search():
    seen = []

    def stop(progress):
        seen.append(progress)
        return True

    design = gradient_channel(eight_places(), 0.1, callback=stop, tolerance=1e-9)
    assert len(seen) == 1 and design.steps == seen[0].steps


def test_projection_onto_the_simplex(rng):
    values = rng.normal(size=(6, 9)) * 10.0 ** rng.integers(-2, 3, size=(6, 1))
    projected = np.asarray(_simplex(jnp.asarray(values)))
    for row, found in zip(values, projected, strict=True):
        ordered = np.sort(row)[::-1]
        thresholds = (np.cumsum(ordered) - 1.0) / np.arange(1, 10)
        count = np.flatnonzero(ordered > thresholds)[-1]
        np.testing.assert_allclose(found, np.maximum(0.0, row - thresholds[count]), atol=1e-12)


def test_step_size_is_below_the_inverse_norm_of_the_weighted_constraints():
    problem = channel_problem(grid(3, 4, seed=3), 0.9, min_error=0.5)
    program, layout = build_program(problem, np.dtype(np.float64))
    rows = []
    weight = np.asarray(program.weight)
    gain = np.sqrt(1.0 - layout.own**2)
    for (x, y), own, other in zip(layout.pairs, layout.own, gain, strict=True):
        row = np.zeros(12)
        row[x], row[y] = own, -other
        rows.append(np.sqrt(min(weight[x], weight[y])) * row)
    matrix = np.concatenate([np.array(rows), np.asarray(program.errors)]) / np.sqrt(weight)
    exact = np.linalg.norm(matrix, 2)
    assert exact <= operator_norm(program) <= 1.04 * exact


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"tolerance": 0.0}, "tolerance"),
        ({"max_steps": 0}, "max_steps"),
        ({"initial": np.ones((2, 2))}, "initial channel has shape"),
        ({"initial": np.ones((8, 8))}, "do not sum to 1"),
    ],
)
def test_bad_input_is_named(arguments, words):
    with pytest.raises(InputError, match=words):
        gradient_channel(eight_places(), 0.1, **arguments)


@pytest.mark.parametrize(("batch", "stretch", "within"), [(10, 1.05, 0.01)])
def test_softmax_channels_by_augmented_lagrangian(batch, stretch, within):
    problem = channel_problem(eight_places(), 1.0 / EIGHT["range"], stretch=stretch)
    cost = jnp.asarray(problem.cost)
    channel, value = softmax_search(
        problem, lambda channel: jnp.sum(cost * channel.matrix), steps=1000, batch=batch, penalty=10.0
    )
    assert slow_excess(np.asarray(channel.matrix), problem.limits.allowed) <= 1e-12
    assert EIGHT["optimum"] <= value <= EIGHT["optimum"] * (1 + within)


@pytest.mark.slow
def test_softmax_search_takes_objectives_that_are_not_linear():
    """Loss plus mutual information: more indistinguishable than the loss alone, within the same limits."""
    prior = grid(2, 3, seed=4)
    problem = channel_problem(prior, 2.0)
    belief, cost = jnp.asarray(prior.probabilities), jnp.asarray(problem.cost)

    def information(channel):
        joint = belief[:, None] * channel.matrix
        marginal = jnp.sum(joint, axis=0)
        safe = jnp.where(joint > 0, joint, 1.0)
        ratio = safe / jnp.where(joint > 0, belief[:, None] * marginal, 1.0)
        return jnp.sum(jnp.where(joint > 0, joint * jnp.log(ratio), 0.0))

    def loss(channel):
        return jnp.sum(cost * channel.matrix)

    plain, _ = softmax_search(problem, loss, steps=400, penalty=10.0)
    mixed, value = softmax_search(problem, lambda c: loss(c) + 0.5 * information(c), steps=400, penalty=10.0)
    assert float(information(mixed)) < float(information(plain))
    assert value < float(loss(plain) + 0.5 * information(plain))
    assert slow_excess(np.asarray(mixed.matrix), problem.limits.allowed) <= 1e-12
    assert jax.config.jax_enable_x64
