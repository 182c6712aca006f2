"""The ascent on the low-rank dual against known answers, closed forms and the properties of the least majorant."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxpriv.designs.majorant.clip import Majorant, clip_majorant, clip_to_ball, flat
from jaxpriv.designs.majorant.primal_dual import solve_primal_dual
from jaxpriv.designs.majorant.stack import FloorStack, dense_stack


TIGHT = {"tolerance": 1e-9, "max_steps": 8000}


def excess(stack: FloorStack, result: Majorant) -> float:
    """The largest eigenvalue of any F_j - G, in units of the trace."""
    noise = result.factor @ result.factor.T + result.noise_floor * jnp.eye(stack.size)
    return float(np.max(np.linalg.eigvalsh(stack.dense() - noise)) / max(float(result.value), 1.0))


def test_six_known_answers(known_answers):
    for name, stack, trace in known_answers:
        result = clip_majorant(stack, **TIGHT)
        # The answers carry 11 digits; the solver is asked for 1e-9.
        assert float(result.value) == pytest.approx(trace, rel=2e-9), name
        assert float(result.dual_value) <= trace * (1 + 1e-10), name
        assert excess(stack, result) < 1e-14, name
        assert np.linalg.norm(flat(result.columns), 2) <= 1 + 1e-14
        assert float(result.gap) == pytest.approx(1 - float(result.dual_value / result.value), abs=1e-15)


def test_one_floor_is_the_positive_part(rbf_stack, common):
    stack = rbf_stack(12, [2.0], [[5]], 3.0, pad=common)
    values, vectors = np.linalg.eigh(stack.dense()[0])
    result = clip_majorant(stack, **TIGHT)
    assert float(result.value) == pytest.approx(0.9449237262519, rel=1e-9)
    expected = (vectors * np.maximum(values, 0)) @ vectors.T
    # The minimiser is accurate to the square root of the gap.
    np.testing.assert_allclose(result.factor @ result.factor.T, expected, atol=3e-5)


@pytest.mark.slow
def test_few_columns_batched_against_padded_single(known_answers, rbf_stack, common):
    # Padded, K = 22 columns in 12 coordinates and one covariance a floor; here K = 3 and one for all, two at a time.
    scales, goal = (1.0, 3.0), np.array([2.0, 3.0, 4.0])
    batch = [rbf_stack(12, [2.0], [[2], [5], [9]], s * goal) for s in scales]
    together = jax.vmap(lambda s: clip_majorant(s, **TIGHT))(jax.tree.map(lambda *x: jnp.stack(x), *batch))
    assert together.factor.shape == (2, 12, 6)
    assert float(together.value[0]) == pytest.approx(known_answers[0][2], rel=1e-9)
    for i, scale in enumerate(scales):
        single = clip_majorant(rbf_stack(12, [2.0], [[2], [5], [9]], scale * goal, pad=common), **TIGHT)
        assert float(together.value[i]) == pytest.approx(float(single.value), rel=2e-9)


@pytest.mark.slow
def test_every_point_under_one_prior_is_prior_shaped(rbf_stack):
    n, t = 50, 3.0
    stack = rbf_stack(n, [6.0], [[i] for i in range(n)], t, nugget=1e-4)
    result = clip_majorant(stack, tolerance=1e-6)
    variance = 1 + 1e-4
    assert float(result.value) == pytest.approx(n / t, rel=1e-6)
    shaped = np.asarray(stack.covariances[0]) / (t * variance)
    # Square root of the gap again.
    np.testing.assert_allclose(result.factor @ result.factor.T, shaped, atol=2e-3)


def test_monotone_in_targets_and_floors(known_answers):
    _, stack, trace = known_answers[0]
    stricter = FloorStack(
        stack.covariances,
        stack.directions,
        stack.base,
        stack.slope / 0.9,
        stack.shift,
        stack.prior_index,
        stack.covariance_index,
        stack.fixed,
    )
    assert float(clip_majorant(stricter, **TIGHT).dual_value) > trace
    fewer = FloorStack(
        stack.covariances,
        stack.directions.at[0].set(0.0),
        stack.base,
        stack.slope,
        stack.shift,
        stack.prior_index,
        stack.covariance_index,
        stack.fixed,
    )
    assert float(clip_majorant(fewer, **TIGHT).value) < trace


def test_duplicates_change_nothing_though_orthonormal_columns_would(rbf_stack, common):
    # Orthonormal Z in place of the ball would halve what each copy can contribute.
    floor = np.asarray(rbf_stack(6, [2.0], [[2]], 1.0, pad=common).dense()[0])
    closed = np.maximum(np.linalg.eigvalsh(floor), 0).sum()
    for copies in (1, 2, 5):
        result = clip_majorant(rbf_stack(6, [2.0], [[2]] * copies, 1.0, pad=common), **TIGHT)
        assert float(result.value) == pytest.approx(closed, rel=1e-9)
        assert float(result.dual_value) <= closed * (1 + 1e-12)


def test_mixed_targets_and_scaling(known_answers):
    _, stack, _ = known_answers[4]
    targets = 10.0 ** np.linspace(-3, 3, stack.count)
    mixed = FloorStack(
        stack.covariances,
        stack.directions,
        stack.base,
        jnp.eye(stack.rank) / targets[:, None, None],
        stack.shift,
        stack.prior_index,
        stack.covariance_index,
        stack.fixed,
    )
    result = clip_majorant(mixed, **TIGHT)
    # Targets over six decades: rounding in the value ends the ascent a little above 1e-9.
    assert float(result.gap) <= 2e-8
    scaled = FloorStack(
        7 * stack.covariances,
        stack.directions,
        7 * mixed.base,
        7 * mixed.slope,
        7 * stack.shift,
        stack.prior_index,
        stack.covariance_index,
        stack.fixed,
    )
    assert float(clip_majorant(scaled, **TIGHT).value) == pytest.approx(7 * float(result.value), rel=4e-8)


def test_orthogonal_congruence_and_dense_floors(known_answers, rng):
    _, stack, trace = known_answers[2]
    q, _ = np.linalg.qr(rng.normal(size=(stack.size, stack.size)))
    turned = dense_stack(q @ np.asarray(stack.dense()) @ q.T, rank=2)
    assert turned.fixed == tuple(range(stack.count))
    # As the known answers' static shape, so that nothing is compiled anew.
    turned = FloorStack(
        turned.covariances,
        turned.directions,
        turned.base,
        turned.slope,
        turned.shift,
        stack.prior_index,
        stack.covariance_index,
        (),
    )
    np.testing.assert_allclose(turned.dense(), q @ np.asarray(stack.dense()) @ q.T, atol=1e-13)
    assert float(clip_majorant(turned, **TIGHT).value) == pytest.approx(trace, rel=3e-9)


def test_noise_floor_is_part_of_the_problem(known_answers):
    _, stack, _ = known_answers[0]
    eta = 0.05
    direct = clip_majorant(stack, noise_floor=eta, **TIGHT)
    assert excess(stack, direct) < 1e-14
    # The same problem with eta I as one of the floors (the last is empty), by another method.
    floors = stack.dense().at[-1].set(eta * jnp.eye(12))
    assert float(direct.value) == pytest.approx(float(solve_primal_dual(floors, tolerance=1e-9).value), rel=3e-9)


def test_zero_where_no_noise_is_needed(known_answers):
    _, stack, _ = known_answers[0]
    stack = FloorStack(
        stack.covariances,
        1e-3 * stack.directions,
        stack.base,
        0 * stack.slope,
        stack.shift,
        stack.prior_index,
        stack.covariance_index,
        stack.fixed,
    )
    result = clip_majorant(stack, **TIGHT)
    assert float(result.value) == pytest.approx(0.0, abs=1e-12)
    assert np.isfinite(result.gap)
    assert np.all(np.isfinite(result.history))


@pytest.mark.slow
def test_vmap_is_the_loop(known_answers):
    chosen = [known_answers[i][1] for i in (0, 2)]
    batch = jax.tree.map(lambda *x: jnp.stack(x), *chosen)
    together = jax.vmap(lambda s: clip_majorant(s, **TIGHT))(batch)
    for i, stack in enumerate(chosen):
        alone = clip_majorant(stack, **TIGHT)
        assert int(alone.steps) == int(together.steps[i])
        assert float(alone.value) == pytest.approx(float(together.value[i]), rel=1e-10)


def test_warm_start_saves_steps_and_history_rises(known_answers):
    _, stack, _ = known_answers[1]
    cold = clip_majorant(stack, **TIGHT)
    warm = clip_majorant(stack, start=cold.columns, **TIGHT)
    assert int(warm.steps) < int(cold.steps)
    history = np.asarray(cold.history)
    assert np.all(np.diff(history) >= 0)
    assert history[-1] == pytest.approx(float(cold.dual_value), rel=1e-12)


def test_step_limit_is_kept_and_still_feasible(known_answers):
    _, stack, trace = known_answers[5]
    result = clip_majorant(stack, tolerance=1e-12, max_steps=40)
    assert int(result.steps) == 40
    assert float(result.dual_value) <= trace <= float(result.value)
    assert float(result.gap) > 1e-6
    assert excess(stack, result) < 1e-14


def test_clip_to_ball_is_the_projection(rng):
    for shape in ((3, 7, 2), (5, 4, 2)):
        columns = 0.45 * rng.normal(size=shape)
        wide = np.asarray(flat(jnp.asarray(columns)))
        u, s, vt = np.linalg.svd(wide, full_matrices=False)
        assert s[0] > 1 > s[-1]
        expected = (u * np.minimum(s, 1)) @ vt
        np.testing.assert_allclose(flat(jax.jit(clip_to_ball)(jnp.asarray(columns))), expected, atol=1e-13)


@pytest.mark.slow
def test_fifty_instances(rbf_stack):
    cases = {
        "three secrets": (50, [6.0], [[10], [25], [40]]),
        "one secret, five priors": (50, [3.0, 4.5, 6.0, 9.0, 12.0], [[24]]),
        "three secrets, five priors": (50, [3.0, 4.5, 6.0, 9.0, 12.0], [[10], [25], [40]]),
        "ten secrets": (100, [6.0], [[i] for i in (10, 20, 30, 50, 52, 54, 80, 85, 90, 95)]),
        "compound": (100, [6.0], [[10], [20, 21], [30], [50, 51, 52], [54], [80, 90], [95]]),
    }
    # Values at t = 3, nugget 1e-4, from a primal-dual interior-point method to 1e-7.
    at_three = dict(zip(cases, (8.457709933, 5.82963326, 15.39361906, 19.53185958, 2817.244786), strict=True))
    for name, (n, lengthscales, secrets) in cases.items():
        for nugget in (1e-4, 1e-6):
            for t in (0.01, 0.1, 1.0, 10.0, 100.0):
                stack = rbf_stack(n, lengthscales, secrets, t, nugget=nugget)
                result = clip_majorant(stack, tolerance=1e-5, max_steps=20000)
                assert float(result.gap) <= 1e-5, (name, nugget, t)
                assert excess(stack, result) < 1e-12, (name, nugget, t)
        result = clip_majorant(rbf_stack(n, lengthscales, secrets, 3.0, nugget=1e-4), tolerance=1e-7, max_steps=20000)
        assert float(result.value) == pytest.approx(at_three[name], rel=2e-7), name


@pytest.mark.slow
def test_default_matern_set(matern_stack):
    for n, secrets in ((50, [[10], [25], [40]]), (200, [[40], [100], [160]])):
        result = clip_majorant(matern_stack(n, secrets, 2.0), tolerance=1e-6)
        assert float(result.gap) <= 1e-6
