"""The least common scale within a budget against known answers, closed forms, Newton and the interior point."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from jaxpriv.designs.majorant.budget import clip_budget, scale_bound
from jaxpriv.designs.majorant.clip import clip_majorant
from jaxpriv.designs.majorant.primal_dual_budget import solve_primal_dual_budget
from jaxpriv.designs.majorant.stack import FloorStack, low_rank_stack
from jaxpriv.errors import InputError


TIGHT = {"tolerance": 1e-9, "max_steps": 8000}
# (known answer, budget, scale): certified by an interior-point method, the last two in closed form.
SCALES = ((0, 1.0, 2.681301380), (1, 1.0, 1.731399427), (3, 5.0, 1.0))


def at_scale(stack: FloorStack, scale: float) -> FloorStack:
    return FloorStack(
        stack.covariances,
        stack.directions,
        stack.base,
        stack.slope / scale,
        stack.shift,
        stack.prior_index,
        stack.covariance_index,
        (),
    )


def with_fixed(stack: FloorStack, column: np.ndarray | None = None) -> FloorStack:
    """The last floor, empty in the known answers, as a fixed floor u u^T with prior covariance zero."""
    column = np.zeros(stack.size) if column is None else column
    last = stack.count - 1
    return FloorStack(
        stack.covariances.at[last].multiply(0.0),
        stack.directions.at[last, :, 0].set(column),
        stack.base.at[last, 0, 0].set(1.0),
        stack.slope.at[last].set(0.0),
        stack.shift,
        stack.prior_index,
        stack.covariance_index,
        (last,),
    )


def test_known_scales_and_feasibility(known_answers):
    for case, budget, scale in SCALES:
        name, stack, _ = known_answers[case]
        stack = with_fixed(stack)
        result = clip_budget(stack, budget, **TIGHT)
        assert float(result.scale) == pytest.approx(scale, rel=2e-9), name
        assert float(result.scale_bound) <= scale * (1 + 1e-9), name
        noise = result.factor @ result.factor.T
        assert float(jnp.trace(noise)) <= budget * (1 + 1e-14)
        floors = at_scale(stack, float(result.scale)).dense()
        assert np.linalg.eigvalsh(floors - noise).max() < 1e-14
        assert float(scale_bound(stack, result.columns, budget)) == pytest.approx(float(result.scale_bound), rel=1e-13)


def test_single_secret_is_the_loss_of_independent_noise(rbf_stack, common):
    stack = rbf_stack(12, [2.0], [[5]], 1.0, pad=common)
    covariance = np.asarray(stack.covariances[0])
    h = covariance[:, 5] / covariance[5, 5]
    conditional = covariance - np.outer(h, h) * covariance[5, 5]
    closed = h @ np.linalg.solve(conditional + np.eye(12), h)
    assert closed == pytest.approx(2.8518336575, rel=1e-10)
    assert float(clip_budget(with_fixed(stack), 1.0, **TIGHT).scale) == pytest.approx(closed, rel=2e-9)


def test_newton_on_the_least_trace_agrees(known_answers):
    _, stack, _ = known_answers[0]
    budget, beta = 1.0, 1.0
    for _ in range(6):
        found = clip_majorant(at_scale(stack, 1 / beta), **TIGHT)
        slope = float(jnp.sum(found.columns * stack.apply(found.columns)[1]))
        beta -= (float(found.dual_value) - budget) / slope
    assert float(clip_budget(with_fixed(stack), budget, **TIGHT).scale) == pytest.approx(1 / beta, rel=1e-8)


def test_interior_point_agrees_noise_floor_included(known_answers):
    _, stack, _ = known_answers[5]
    fixed, scaled = stack.dense(0.0), stack.dense(1.0) - stack.dense(0.0)
    for budget, eta in ((30.0, 0.0), (30.0, 0.3)):
        ours = clip_budget(with_fixed(stack), budget, noise_floor=eta, **TIGHT)
        theirs = solve_primal_dual_budget(fixed, scaled, budget, noise_floor=eta)
        assert float(theirs.scale_bound) * (1 - 1e-12) <= float(ours.scale)
        assert float(ours.scale) == pytest.approx(float(theirs.scale), rel=3e-8)
        assert float(jnp.trace(theirs.noise)) == pytest.approx(budget, rel=1e-12)


def test_fixed_floors_stay_and_an_empty_budget_is_infinite(known_answers):
    _, stack, _ = known_answers[0]
    column = np.zeros(12)
    column[:2] = 0.6, 0.5
    both = with_fixed(stack, column)
    result = clip_budget(both, 1.5, **TIGHT)
    noise = result.factor @ result.factor.T
    assert float(result.gap) <= 1e-9
    assert float(jnp.trace(noise)) <= 1.5 * (1 + 1e-14)
    assert np.linalg.eigvalsh(at_scale(both, float(result.scale)).dense() - noise).max() < 1e-13
    assert float(result.scale) > float(clip_budget(with_fixed(stack), 1.5, **TIGHT).scale)
    # The fixed floor alone costs 0.61.
    poor = clip_budget(both, 0.6, **TIGHT)
    assert np.isinf(poor.scale)
    assert np.isinf(poor.scale_bound)


def test_nothing_to_scale_is_refused():
    stack = low_rank_stack(np.zeros((1, 3, 3)), [0], np.eye(3)[None])
    with pytest.raises(InputError, match="no floor scales"):
        clip_budget(stack, 1.0)
