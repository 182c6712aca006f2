"""The interior-point method against known answers, a conic solver, the ascent, and its own variants."""

from __future__ import annotations

import cvxpy as cp
import jax.numpy as jnp
import numpy as np
import pytest

from jaxpriv.designs.majorant.clip import clip_majorant
from jaxpriv.designs.majorant.primal_dual import solve_primal_dual, solve_primal_dual_cg
from jaxpriv.designs.majorant.reduction import invariant_basis, padded, reduced
from jaxpriv.errors import InputError


def test_six_known_answers_and_exact_gaps(known_answers):
    for name, stack, trace in known_answers:
        floors = np.asarray(stack.dense())
        result = solve_primal_dual(floors, tolerance=1e-9)
        assert float(result.value) == pytest.approx(trace, rel=2e-9), name
        assert float(result.gap) <= 1e-9, name
        noise, duals = np.asarray(result.noise), np.asarray(result.duals)
        assert np.linalg.eigvalsh(noise - floors).min() > 0, name
        assert np.linalg.eigvalsh(duals).min() > 0, name
        # The duals' sum keeps the accuracy of the linear solves, which are ill-conditioned near the end.
        np.testing.assert_allclose(duals.sum(0), np.eye(12), atol=1e-9)
        assert np.sum(floors * duals[1:]) == pytest.approx(float(result.dual_value), rel=1e-12)


def test_agrees_with_a_conic_solver_and_the_ascent_under_several_priors(known_answers):
    name, stack, _ = known_answers[5]
    assert name == "three secrets, three priors"
    floors = np.asarray(stack.dense())
    noise = cp.Variable((12, 12), symmetric=True)
    program = cp.Problem(cp.Minimize(cp.trace(noise)), [noise - f >> 0 for f in floors[:9]] + [noise >> 0])
    program.solve(solver=cp.CLARABEL)
    ours = solve_primal_dual(floors, tolerance=1e-9)
    # CLARABEL's own tolerance is 1e-8.
    assert float(ours.value) == pytest.approx(program.value, rel=2e-8)
    np.testing.assert_allclose(ours.noise, noise.value, atol=1e-3)
    ascent = clip_majorant(stack, tolerance=1e-9, max_steps=8000)
    assert float(ascent.dual_value) <= float(ours.value)
    assert float(ours.dual_value) <= float(ascent.value)
    assert float(ascent.value) == pytest.approx(float(ours.value), rel=3e-9)


@pytest.mark.slow
def test_noise_floor_and_warm_start(known_answers):
    _, stack, _ = known_answers[0]
    floors = stack.dense()
    built_in = solve_primal_dual(floors, noise_floor=0.05, tolerance=1e-9)
    as_floor = solve_primal_dual(floors.at[-1].set(0.05 * jnp.eye(12)), tolerance=1e-9)
    assert float(built_in.value) == pytest.approx(float(as_floor.value), rel=3e-9)
    stricter = floors + 0.02 * (floors - stack.dense(0.0))
    # From a rough solution, as a sweep over targets would have.
    rough = solve_primal_dual(floors, tolerance=1e-3)
    warm = solve_primal_dual(stricter, tolerance=1e-6, start=rough)
    cold = solve_primal_dual(stricter, tolerance=1e-6)
    assert int(warm.steps) < int(cold.steps)
    assert float(warm.value) == pytest.approx(float(cold.value), rel=2e-6)


def test_reduction_is_exact_and_padding_harmless(rbf_stack, common):
    # A smooth prior with a uniform nugget: about eight of twelve coordinates matter.
    stack = rbf_stack(12, [8.0], [[3], [8]], 3.0, pad=common)
    basis = invariant_basis(stack)
    m = basis.shape[1]
    assert m < 12
    np.testing.assert_allclose(basis.T @ basis, np.eye(m), atol=1e-13)
    small = padded(np.asarray(reduced(stack, basis).dense()), multiple=12)
    assert small.shape == (11, 12, 12)
    result = solve_primal_dual(small, tolerance=1e-9)
    whole = solve_primal_dual(np.asarray(stack.dense()), tolerance=1e-9)
    assert float(result.value) == pytest.approx(float(whole.value), rel=3e-9)
    noise = np.asarray(result.noise)
    assert np.abs(noise[m:, m:]).max() < 1e-8
    lifted = basis @ noise[:m, :m] @ basis.T
    # The basis is invariant to about 1e-11 relative.
    assert np.linalg.eigvalsh(np.asarray(stack.dense()) - lifted).max() < 1e-7
    with pytest.raises(InputError, match="12 rows"):
        reduced(stack, basis[:4])


@pytest.mark.slow
def test_conjugate_gradients_agree(rbf_stack):
    cases = (
        (12, [2.0], [[3], [4], [7, 8]], [2.0, 2.0, 5.0], 1e-3, 4.160088361842),
        (50, [6.0], [[10], [25], [40]], 3.0, 1e-4, 8.457709933),
        (50, [3.0, 4.5, 6.0, 9.0, 12.0], [[24]], 3.0, 1e-4, 5.82963326),
    )
    for n, lengthscales, secrets, targets, nugget, trace in cases:
        stack = rbf_stack(n, lengthscales, secrets, targets, nugget)
        small = reduced(stack, invariant_basis(stack))
        result = solve_primal_dual_cg(small)
        assert float(result.gap) <= 5e-7
        assert float(result.value) == pytest.approx(trace, rel=1e-6)
        np.testing.assert_allclose(np.asarray(result.duals).sum(0), np.eye(small.size), atol=1e-12)


@pytest.mark.slow
def test_every_point_of_fifty(rbf_stack):
    stack = rbf_stack(50, [6.0], [[i] for i in range(50)], 3.0, nugget=1e-4)
    result = solve_primal_dual(padded(np.asarray(stack.dense())), tolerance=1e-7)
    assert float(result.value) == pytest.approx(50 / 3, rel=2e-7)
