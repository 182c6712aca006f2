"""Lifts, starts and the sweep: every floor is met, at about the least cost."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxpriv.designs.majorant.clip import clip_majorant
from jaxpriv.designs.majorant.repair import compress, lift_grouped, lift_spectral
from jaxpriv.designs.majorant.stack import FloorStack, inference_stack
from jaxpriv.designs.majorant.sweep import prior_shaped_starts, scaled_start, sweep_majorant
from jaxpriv.errors import InputError


def excess(stack: FloorStack, noise) -> float:
    return float(np.linalg.eigvalsh(np.asarray(stack.dense()) - np.asarray(noise)).max())


def test_both_lifts_meet_every_floor_from_anywhere(known_answers, rng):
    spectral, grouped = jax.jit(lift_spectral), jax.jit(lift_grouped)
    for case in (2, 5):
        _, stack, trace = known_answers[case]
        root = 0.3 * rng.normal(size=(12, 2))
        for noise in (np.zeros((12, 12)), root @ root.T, 0.5 * np.eye(12)):
            for lift in (spectral, grouped):
                lifted, columns = lift(stack, jnp.asarray(noise))
                assert excess(stack, lifted) < 1e-10
                np.testing.assert_allclose(noise + columns @ columns.T, lifted, atol=1e-12)
                assert float(jnp.trace(lifted)) >= trace * (1 - 1e-12)


def test_lifts_cost_the_excess_to_first_order(known_answers):
    _, stack, trace = known_answers[0]
    best = clip_majorant(stack, tolerance=1e-9, max_steps=8000)
    noise = best.factor @ best.factor.T
    for share in (1e-3, 1e-5):
        short = (1 - share) * noise
        gaps = np.linalg.eigvalsh(np.asarray(stack.dense()) - np.asarray(short))
        penalty = float(np.trace(short)) + np.maximum(gaps, 0).sum()
        one, _ = jax.jit(lift_spectral)(stack, short)
        many, _ = jax.jit(lift_grouped)(stack, short)
        # tr G + sum tr (F_j - G)_+ bounds the sequential lift; the grouped one meets it to second order.
        assert trace * (1 - 1e-9) <= float(jnp.trace(one)) <= penalty + 1e-12
        assert float(jnp.trace(many)) <= penalty + 200 * share**2 * trace


def test_a_shared_covariance_is_one_covariance_a_prior(rbf_stack, rng):
    n, secrets = 12, [2, 7]
    covariance = np.asarray(rbf_stack(n, [2.0], [[2]], 1.0, nugget=0.0).covariances[0])
    nuggets = np.array([1e-3, 0.1])
    cross, variance, each, index = [], [], [], []
    for p, nugget in enumerate(nuggets):
        full = covariance + nugget * np.eye(n)
        each.append(full)
        for s in secrets:
            cross.append(full[:, [s]])
            variance.append(full[np.ix_([s], [s])])
            index.append(p)
    apart = inference_stack(np.array(each), index, np.array(cross), np.array(variance), 2.0)
    shared = inference_stack(
        covariance[None], index, np.array(cross), np.array(variance), 2.0, shift=nuggets, covariance_index=[0, 0]
    )
    columns = rng.normal(size=(4, n, 1))
    use = jax.jit(lambda stack, z: (stack.dense(), sum(stack.apply(z)), stack.curvature()))
    floors = []
    for j, p in enumerate(index):
        h = cross[j] / variance[j]
        floors.append(h @ h.T * (variance[j] + 0.5) - each[p])
    for stack in (apart, shared):
        dense, product, curvature = use(stack, columns)
        np.testing.assert_allclose(dense, floors, atol=1e-13)
        np.testing.assert_allclose(product, np.array(floors) @ columns, atol=1e-12)
        assert np.linalg.eigvalsh(-np.array(floors)).max() <= float(curvature) <= 1.3 * np.linalg.eigvalsh(each[1])[-1]


def test_compress_keeps_the_sum(rng):
    for width in (4, 20):
        a, b = rng.normal(size=(9, width)), rng.normal(size=(9, 3))
        factor = np.asarray(compress(jnp.asarray(a), jnp.asarray(b)))
        assert factor.shape == (9, min(9, width + 3))
        np.testing.assert_allclose(factor @ factor.T, a @ a.T + b @ b.T, atol=1e-12)
        powers = np.sum(factor**2, axis=0)
        assert np.all(np.diff(powers) <= 1e-12)


def test_prior_shaped_start_is_the_theorem(rbf_stack):
    stack = rbf_stack(10, [2.0], [[i] for i in range(10)], 2.0)
    start = jax.jit(lambda s: scaled_start(s, s.covariances[0]))(stack)
    np.testing.assert_allclose(start, np.asarray(stack.covariances[0]) / (2 * (1 + 1e-3)), rtol=1e-9)


def test_sweep_meets_the_floors_and_bounds_the_cost(known_answers):
    for case in (1, 5):
        _, stack, trace = known_answers[case]
        result = sweep_majorant(stack, starts=0.1 * jnp.eye(12)[None], dual_steps=40)
        noise = np.asarray(result.factor) @ np.asarray(result.factor).T
        assert excess(stack, noise) < 1e-13
        assert float(result.dual_value) <= trace <= float(result.value) * (1 + 1e-12)
        assert float(result.value) <= 1.02 * trace
        assert float(result.gap) == pytest.approx(1 - float(result.dual_value / result.value), abs=1e-14)


@pytest.mark.slow
def test_every_point_under_the_default_set(matern_stack):
    stack = matern_stack(50, [[i] for i in range(50)], 2.0)
    starts = prior_shaped_starts(stack)
    for p in range(6):
        np.testing.assert_allclose(starts[p], np.asarray(stack.prior(p)) / (2 * (1 + 1e-6)), rtol=1e-8)
    result = sweep_majorant(stack, starts=starts)
    assert excess(stack, result.factor @ result.factor.T) < 1e-12
    assert 0 < float(result.gap) < 0.02


def test_bad_shapes_are_named():
    covariances = np.eye(4)[None]
    with pytest.raises(InputError, match=r"stack \(C, n, n\)"):
        inference_stack(np.eye(4), [0], np.ones((1, 4, 1)), np.ones((1, 1, 1)), 1.0)
    with pytest.raises(InputError, match=r"\(J, 4, k\)"):
        inference_stack(covariances, [0], np.ones((1, 5, 1)), np.ones((1, 1, 1)), 1.0)
    with pytest.raises(InputError, match="one prior index"):
        inference_stack(covariances, [0, 0], np.ones((1, 4, 1)), np.ones((1, 1, 1)), 1.0)
    with pytest.raises(InputError, match=r"must lie in 0\.\.0"):
        inference_stack(covariances, [1], np.ones((1, 4, 1)), np.ones((1, 1, 1)), 1.0)
