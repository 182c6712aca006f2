"""Repairs against loops over all triples: what they return is within the limits, and little is moved."""

from __future__ import annotations

import numpy as np
import pytest
from small_maps import eight_places, slow_excess

from jaxpriv.channels.channel_design import least_error, within_limits
from jaxpriv.channels.limits import largest_excess
from jaxpriv.channels.problem import channel_problem
from jaxpriv.channels.repair import (
    envelope,
    errors_met,
    inner_limits,
    mix,
    mixing_weight,
    remapped,
    settled,
    top_up,
    without_small_outputs,
)
from jaxpriv.errors import InputError


EPSILON = 0.3


@pytest.fixture(scope="module")
def problem():
    return channel_problem(eight_places(), EPSILON, min_error=0.5)


@pytest.fixture
def noisy(rng):
    """Rows of a channel that break many limits."""
    return rng.dirichlet(np.ones(8), size=8)


def test_mixing_weight_is_the_least_that_works(problem, noisy):
    allowed = problem.limits.allowed
    uniform = np.full(8, 1 / 8)
    weight = mixing_weight(noisy, uniform, allowed)
    assert 0.0 < weight < 1.0
    assert slow_excess(mix(noisy, uniform, weight), allowed) <= 1e-12
    assert slow_excess(mix(noisy, uniform, 0.999 * weight), allowed) > 0.0
    # A second use finds nothing to do beyond rounding: t itself is rounded up.
    assert mixing_weight(mix(noisy, uniform, weight), uniform, allowed) == 0.0


def test_mixing_with_an_output_that_is_never_published_cannot_mend_it(problem, noisy):
    with pytest.raises(InputError, match="probability zero"):
        mixing_weight(noisy, np.eye(8)[0], problem.limits.allowed)


def test_envelope_is_the_least_column_above(problem, noisy):
    allowed = problem.limits.allowed
    raised = envelope(noisy, allowed)
    loop = np.array([[max(np.exp(-allowed[x, y]) * noisy[y, z] for y in range(8)) for z in range(8)] for x in range(8)])
    np.testing.assert_allclose(raised, loop, rtol=1e-14)
    assert np.all(raised >= noisy)
    assert slow_excess(raised, allowed) <= 1e-13
    np.testing.assert_allclose(envelope(raised, allowed), raised, rtol=1e-14)


def test_top_up_keeps_the_limits_and_fills_every_row(problem, noisy):
    allowed = problem.limits.allowed
    channel, moved = top_up(envelope(noisy, allowed), allowed, problem.cost)
    np.testing.assert_allclose(channel.sum(axis=1), 1.0, rtol=1e-14)
    assert slow_excess(channel, allowed) <= 1e-12
    assert 0.0 < moved <= 1.0


def test_turns_of_envelope_and_rescaling_move_less_than_one(problem, noisy):
    allowed = problem.limits.allowed
    once = top_up(envelope(noisy, allowed), allowed, problem.cost)[1]
    settled_columns = settled(noisy, allowed, rounds=60)
    assert np.all(settled_columns.sum(axis=1) >= 1.0 - 1e-12)
    assert top_up(settled_columns, allowed, problem.cost)[1] < 0.01 * once


@pytest.mark.parametrize("sets", [None, [[1, 2], [5, 7], [6, 0], [4, 3]], [[0, 4], [4, 3], [1, 2, 5]]])
@pytest.mark.parametrize("min_error", [0.0, 0.5, 2.0, 3.5161773310355344])
def test_whatever_comes_in_a_channel_within_all_requirements_goes_out(rng, sets, min_error):
    problem = channel_problem(eight_places(), EPSILON, sets=sets, min_error=min_error)
    for scale in (1.0, 0.05):
        raw = rng.dirichlet(np.full(8, scale), size=8) + 1e-3 * rng.normal(size=(8, 8))
        matrix, _ = within_limits(problem, raw, 1e-9)
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-13)
        with np.errstate(divide="ignore"):
            assert largest_excess(np.log(matrix), problem.limits.allowed) <= 0.0
        assert slow_excess(matrix, problem.limits.allowed) <= 0.0
        assert least_error(problem, matrix) >= min_error * (1 - 1e-9)


def test_a_channel_within_the_limits_is_left_alone(problem):
    half = np.exp(-0.5 * EPSILON * np.asarray(problem.prior.distances))
    fine = half / half.sum(axis=1, keepdims=True)
    columns = settled(fine, inner_limits(problem.limits.allowed))
    np.testing.assert_allclose(columns, fine, rtol=1e-14)


def test_columns_of_almost_no_mass_are_merged_not_rescaled(problem):
    """A solver's output of mass 1e-10 that gives its input away must not decide the audited error."""
    matrix = np.full((8, 8), 1e-13)
    matrix[:, 0] = 1.0
    matrix[3, 5] = 1e-10
    matrix[:, 0] -= matrix[:, 1:].sum(axis=1)
    assert least_error(problem, matrix) < 0.5
    merged = without_small_outputs(matrix, problem.cost, 1e-9)
    np.testing.assert_allclose(merged.sum(axis=1), 1.0, rtol=1e-15)
    assert np.count_nonzero(merged.sum(axis=0)) == 1
    assert least_error(problem, merged) == pytest.approx(problem.prior_error, rel=1e-9)


def test_a_small_error_deficit_is_mended_by_the_least_constant_share(problem):
    errors = problem.errors
    assert errors is not None
    telling = 0.95 * np.eye(8) + 0.05 / 8
    assert np.min(errors @ telling) < 0.0
    mended = errors_met(telling, errors, problem.cost)
    assert np.min(errors @ mended) >= -1e-15
    np.testing.assert_allclose(mended.sum(axis=1), 1.0, rtol=1e-14)


def test_remapping_never_costs_and_never_raises_a_level(problem, noisy):
    renamed = remapped(noisy, problem.cost)
    assert np.sum(problem.cost * renamed) <= np.sum(problem.cost * noisy) + 1e-15
    assert slow_excess(renamed, problem.limits.allowed) <= slow_excess(noisy, problem.limits.allowed) + 1e-12


def test_limits_beyond_the_range_of_doubles_still_give_positive_entries():
    problem = channel_problem(eight_places(), 400.0)
    matrix, _ = within_limits(problem, np.eye(8), 1e-9)
    assert np.min(matrix) > 0.0
    assert largest_excess(np.log(matrix), problem.limits.allowed) <= 0.0
