"""Optimal channels against tabulated optima, closed forms and a second solver."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from small_maps import EIGHT, KNOWN, eight_places, grid, line, slow_excess

from jaxpriv.channels.inference import conditional_error, quality_loss
from jaxpriv.channels.lower_bound import certified_lower_bound
from jaxpriv.channels.obfuscation import UnattainableError
from jaxpriv.channels.optimal import optimal_channel, solve_program
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.channels.problem import channel_problem
from jaxpriv.errors import InputError


# The limits are met with one part in 10⁹ to spare, which costs about as much of the loss.
MARGIN = 4e-9


def clarabel(problem) -> float:
    """The same program stated pair by pair, without row scaling or spanner, for another solver."""
    n, m = problem.cost.shape
    channel = cp.Variable((n, m), nonneg=True)
    constraints = [cp.sum(channel, axis=1) == 1]
    for x in range(n):
        for y in range(n):
            if x != y and np.isfinite(problem.limits.allowed[x, y]):
                constraints.append(channel[x] <= np.exp(problem.limits.allowed[x, y]) * channel[y])
    if problem.errors is not None:
        constraints.append(problem.errors @ channel >= 0)
    program = cp.Problem(cp.Minimize(cp.sum(cp.multiply(problem.cost, channel))), constraints)
    return float(program.solve(solver=cp.CLARABEL))


def check(design, value, requirement=0.0):
    """The design is within its limits, costs the tabulated optimum, and knows that it cannot be beaten."""
    assert design.quality_loss == pytest.approx(value, rel=MARGIN + 1e-10)
    assert design.lower_bound <= value * (1 + 1e-10)
    assert design.gap <= 2 * MARGIN
    assert design.excess <= 0.0
    assert slow_excess(np.asarray(design.channel.matrix), design.limits.allowed) <= 1e-13
    assert float(quality_loss(design.channel, design.prior)) == pytest.approx(design.quality_loss, rel=1e-12)
    errors = np.asarray(conditional_error(design.channel, design.prior))
    assert np.min(errors) == pytest.approx(design.min_error, rel=1e-9)
    assert design.min_error >= requirement * (1 - 1e-9)


def test_eight_places():
    check(optimal_channel(eight_places(), 1.0 / EIGHT["range"]), EIGHT["optimum"])


@pytest.mark.parametrize("epsilon", ["0.5", "1.0", "2.0"])
def test_unit_square(epsilon):
    square = KNOWN["unit_square"]
    prior = DiscretePrior(np.array(square["locations"], float), np.array(square["probabilities"]))
    check(optimal_channel(prior, float(epsilon)), square["optima"][epsilon])


@pytest.mark.parametrize("length", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_two_places_have_a_closed_form(p, length):
    prior = DiscretePrior(np.array([[0.0, 0.0], [length, 0.0]]), np.array([p, 1.0 - p]))
    check(optimal_channel(prior, 1.0), length * min(p, 1.0 - p, 1.0 / (1.0 + np.exp(length))))


@pytest.mark.parametrize(("n", "value"), [(3, 5 / 9), (5, 49 / 60)])
def test_on_a_line_the_truncated_geometric_mechanism_is_optimal(n, value):
    check(optimal_channel(line(n), np.log(2.0)), value)


@pytest.mark.parametrize("min_error", ["0.2", "0.5", "1.0", "1.3"])
@pytest.mark.parametrize("which", ["partition", "overlapping"])
def test_both_knobs(which, min_error):
    design = optimal_channel(eight_places(), 1.0, sets=EIGHT[which], min_error=float(min_error))
    check(design, EIGHT[f"{which}_values"][min_error], float(min_error))


def test_the_prior_error_itself_is_attained_and_no_more():
    design = optimal_channel(eight_places(), 1.0, sets=EIGHT["partition"], min_error=EIGHT["prior_error"])
    check(design, EIGHT["prior_error"], EIGHT["prior_error"])
    assert design.published == 1
    with pytest.raises(UnattainableError, match=r"place 0 errs by only 3\.51617") as raised:
        optimal_channel(eight_places(), 1.0, sets=EIGHT["partition"], min_error=3.6)
    assert raised.value.largest_error == pytest.approx(EIGHT["prior_error"], rel=1e-14)
    assert raised.value.location == 0


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": 0.4},
        {"epsilon": 0.4, "min_error": 0.4},
        {"epsilon": [0.5, 1.0], "sets": [[0, 1, 2], [2, 3, 4]], "min_error": 0.5},
    ],
)
def test_a_second_solver_agrees(arguments):
    prior = grid(2, 3, seed=4)
    problem = channel_problem(prior, **arguments)
    # CLARABEL's default tolerance is 1e-8, absolute and relative.
    assert solve_program(problem).value == pytest.approx(clarabel(problem), abs=2e-7)
    assert optimal_channel(prior, **arguments).quality_loss == pytest.approx(clarabel(problem), abs=2e-7)


@pytest.mark.parametrize(("stretch", "edges", "dilation", "value"), EIGHT["spanners"])
def test_spanners_are_feasible_for_the_whole_map_and_bounded_from_below(stretch, edges, dilation, value):
    design = optimal_channel(eight_places(), 1.0 / EIGHT["range"], stretch=stretch)
    assert len(design.limits.pairs) == edges
    assert design.limits.dilation == pytest.approx(dilation, abs=5e-6)
    assert design.quality_loss == pytest.approx(value, abs=5e-6)
    assert design.excess <= 0.0
    assert slow_excess(np.asarray(design.channel.matrix), design.limits.allowed) <= 1e-13
    assert design.lower_bound < EIGHT["optimum"] < design.quality_loss


def test_other_outputs_losses_and_beliefs():
    prior = grid(2, 3, seed=5)
    outputs = np.array([[0.5, 0.5], [0.5, 1.5]])
    belief = np.full(6, 1 / 6)
    design = optimal_channel(prior, 0.7, outputs=outputs, min_error=0.8, adversary_prior=belief)
    assert design.channel.n_outputs == 2
    problem = channel_problem(prior, 0.7, outputs=outputs, min_error=0.8, adversary_prior=belief)
    assert design.quality_loss == pytest.approx(clarabel(problem), abs=2e-7)
    seen = np.asarray(conditional_error(design.channel, prior, adversary_prior=belief))
    assert np.min(seen) >= 0.8 * (1 - 1e-9)
    squared = np.asarray(prior.distances) ** 2
    problem = channel_problem(prior, 0.7, loss=squared)
    assert optimal_channel(prior, 0.7, loss=squared).quality_loss == pytest.approx(clarabel(problem), abs=2e-7)


def test_a_place_without_visits_is_protected_too():
    places = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    design = optimal_channel(DiscretePrior(places, np.array([0.5, 0.0, 0.5, 0.0])), 1.0)
    assert slow_excess(np.asarray(design.channel.matrix), design.limits.allowed) <= 1e-13


@pytest.mark.parametrize("seed", range(3))
def test_any_multipliers_give_a_lower_bound(seed):
    rng = np.random.default_rng(seed)
    prior = grid(2, 3, seed=6)
    problem = channel_problem(prior, 0.5, min_error=0.4)
    best = solve_program(problem)
    directed = np.concatenate([problem.limits.pairs, problem.limits.pairs[:, ::-1]])
    levels = np.concatenate([problem.limits.levels] * 2)
    assert best.lower_bound <= best.value + 1e-12
    assert best.lower_bound == pytest.approx(best.value, rel=1e-9)
    for scale in (1e-3, 1e-2, 1.0):
        prices = scale * rng.exponential(size=(len(directed), 6))
        error_prices = scale * rng.exponential(size=(6, 6))
        bound = certified_lower_bound(problem.cost, directed, levels, prices, problem.errors, error_prices)
        assert bound <= best.value


def test_too_large_a_program_is_refused_with_its_size():
    prior = grid(4, 4, seed=0)
    rows = channel_problem(prior, 1.0).rows
    with pytest.raises(InputError, match=f"{rows:,} rows"):
        optimal_channel(prior, 1.0, max_rows=rows - 1)
    assert optimal_channel(prior, 3.0, max_rows=rows - 1, force=True).rows == rows


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"epsilon": -1.0}, "epsilon is -1"),
        ({"epsilon": [1.0, 2.0]}, "several need sets"),
        ({"epsilon": 1.0, "min_error": -0.1}, "-0.1"),
        ({"epsilon": 1.0, "loss": np.ones((3, 4))}, "loss has shape"),
        ({"epsilon": 1.0, "sets": [[0, 9]]}, "set 0"),
        ({"epsilon": 1.0, "sets": [[0, 1]], "stretch": 1.1}, "Drop one"),
        ({"epsilon": 1.0, "stretch": 0.5}, "stretch is 0.5"),
        ({"epsilon": 1.0, "min_error": 0.1, "adversary_prior": np.ones(4)}, "sum"),
    ],
)
def test_bad_input_is_named(arguments, words):
    with pytest.raises(InputError, match=words):
        optimal_channel(grid(2, 2, 0), **arguments)


def test_coincident_places_are_refused():
    twice = DiscretePrior(np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]]), np.array([0.2, 0.3, 0.5]))
    with pytest.raises(InputError, match="Merge them"):
        optimal_channel(twice, 1.0)
