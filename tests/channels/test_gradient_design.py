"""First-order designs against exact optima, and always within their limits."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from small_maps import EIGHT, eight_places, grid, slow_excess

from jaxpriv.channels.gradient import gradient_channel, starting_matrix
from jaxpriv.channels.inference import conditional_error, quality_loss
from jaxpriv.channels.lower_bound import least_reduced_costs, sum_of_minima
from jaxpriv.channels.mixtures import best_mixture
from jaxpriv.channels.obfuscation import UnattainableError
from jaxpriv.channels.optimal import optimal_channel, solve_program
from jaxpriv.channels.primal_dual import _reduced_cost, _simplex, start
from jaxpriv.channels.problem import channel_problem
from jaxpriv.channels.program_blocks import build_program, from_columns, multipliers, to_columns
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_projection_onto_the_simplex(rng, share):
    values = rng.normal(size=(6, 9)) * 10.0 ** rng.integers(-2, 3, size=(6, 1))
    # Whichever entries are thought likely to end positive.
    projected = np.asarray(_simplex(jnp.asarray(values), jnp.asarray(rng.random((6, 9)) < share)))
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
    used = layout.used[0]
    for x, y, own in zip(layout.first[0][used], layout.second[0][used], layout.own[0][used], strict=True):
        row = np.zeros(12)
        row[x], row[y] = own, -np.sqrt(1.0 - own**2)
        rows.append(np.sqrt(min(weight[x], weight[y])) * row)
    matrix = np.concatenate([np.array(rows), np.asarray(program.errors)]) / np.sqrt(weight)
    exact = np.linalg.norm(matrix, 2)
    assert exact <= layout.norm <= 1.02 * exact


def laid_out(problem, horizon, width):
    """Reduced costs of multipliers λ(x, y, z) = 1 + x + 2 y + 3 z on the pairs of a layout, by hand and by the code."""
    program, layout = build_program(problem, np.dtype(np.float64), horizon, width)
    n, m = problem.cost.shape
    count = len(layout.columns) // len(layout.used)
    outputs = np.where(layout.columns >= 0, layout.columns, 0).reshape(len(layout.used), 1, 1, count)
    prices = (1.0 + layout.first + 2.0 * layout.second)[..., None] + 3.0 * outputs
    prices = np.where(layout.used[..., None], prices, 0.0)
    iterate = start(program, to_columns(layout, np.full((n, m), 1.0 / m)))._replace(limits=jnp.asarray(prices))
    found = from_columns(layout, _reduced_cost(program, iterate))
    expected, pairs = np.array(problem.cost), set()
    for block in multipliers(layout, iterate.limits, iterate.tails, iterate.errors):
        for (x, y), level, row in zip(block.pairs, block.levels, block.limits, strict=True):
            pairs |= {(int(x), int(y), int(z)) for z in block.columns}
            expected[x, block.columns] += row
            expected[y, block.columns] -= np.exp(level) * row
    return found, expected, pairs


@pytest.mark.parametrize(("horizon", "width"), [(None, 5), pytest.param(2.0, 5, marks=pytest.mark.slow), (1.0, 1)])
def test_blocks_of_outputs_lay_out_the_same_program(horizon, width):
    problem = channel_problem(grid(4, 5, seed=3), 0.7)
    found, expected, pairs = laid_out(problem, horizon, width)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    asked = {(int(x), int(y)) for x, y in problem.limits.pairs} | {(int(y), int(x)) for x, y in problem.limits.pairs}
    if horizon is None:
        assert pairs == {(x, y, z) for x, y in asked for z in range(20)}
    else:
        near = problem.limits.allowed <= horizon
        needed = {(x, y, z) for x, y in asked for z in range(20) if near[x, z] and near[y, z]}
        assert needed <= pairs < {(x, y, z) for x, y in asked for z in range(20)}
        assert width > 1 or needed == pairs


def test_tails_are_rows_of_the_program_like_any_other():
    """Reduced costs and certified bound with tails, against the rows e^{−c} K[a, z] <= K[x, z] written out."""
    problem = channel_problem(grid(4, 5, seed=3), 0.7)
    program, layout = build_program(problem, np.dtype(np.float64), 1.5, 5)
    iterate = start(program, to_columns(layout, np.full((20, 20), 0.05)))
    rng = np.random.default_rng(0)
    tails = np.where(layout.tail > 0.0, rng.random(layout.tail.shape), 0.0)
    found = from_columns(layout, _reduced_cost(program, iterate._replace(tails=jnp.asarray(tails))))
    expected, far = np.array(problem.cost), 0
    for column, z in enumerate(layout.columns):
        for x in np.flatnonzero(tails[:, column]):
            assert problem.limits.allowed[x, z] > 1.5
            expected[x, z] -= tails[x, column]
            expected[z, z] += np.exp(-problem.limits.allowed[x, z]) * tails[x, column]
            far += 1
    assert far > 50
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    lowest = np.full(20, np.inf)
    for prices in multipliers(layout, iterate.limits, jnp.asarray(tails), iterate.errors):
        cost = problem.cost[:, prices.columns]
        lowest = np.minimum(
            lowest,
            least_reduced_costs(cost, prices.pairs, prices.levels, prices.limits, None, None, prices.tails),
        )
    np.testing.assert_allclose(lowest, np.min(expected, axis=1), rtol=1e-9)
    assert sum_of_minima(lowest) <= np.sum(np.min(expected, axis=1))


def test_the_best_mixture_of_columns_beats_any_other_and_stays_within_the_limits():
    problem = channel_problem(grid(3, 4, seed=2), 1.0)
    tents = np.exp(-problem.limits.allowed)
    found = best_mixture(np.concatenate([tents, np.ones((12, 1))], axis=1), problem.cost)
    np.testing.assert_allclose(found.matrix.sum(axis=1), 1.0, atol=1e-7)
    assert slow_excess(found.matrix, problem.limits.allowed) <= 1e-12
    loss = float(np.sum(np.min(problem.cost.T @ found.matrix, axis=0)))
    assert solve_program(problem).value * (1 - 1e-6) <= loss
    assert loss <= float(np.sum(problem.cost * starting_matrix(problem))) * (1 + 1e-6)
    # With the optimum's own columns among the given ones, the optimum.
    exact = solve_program(problem)
    columns = np.concatenate([tents, np.maximum(exact.matrix, 0.0)], axis=1)
    best = best_mixture(columns, problem.cost)
    assert float(np.sum(np.min(problem.cost.T @ best.matrix, axis=0))) == pytest.approx(exact.value, rel=1e-6)
    assert best_mixture(np.eye(12)[:, :3], problem.cost) is None


def test_pairs_far_from_an_output_may_be_left_out_and_the_bound_stays_valid(monkeypatch):
    monkeypatch.setattr("jaxpriv.channels.gradient._MANY", 10)
    monkeypatch.setattr("jaxpriv.channels.gradient._HORIZON", 2.0)
    prior = grid(3, 4, seed=2)
    exact = solve_program(channel_problem(prior, 1.0)).value
    design = gradient_channel(prior, 1.0, max_steps=600, tolerance=1e-4)
    check(design)
    assert design.lower_bound <= exact * (1 + 1e-12) <= design.quality_loss * (1 + 1e-12)
    assert design.quality_loss <= 1.1 * exact


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
    assert jnp.zeros(()).dtype == jnp.float64
