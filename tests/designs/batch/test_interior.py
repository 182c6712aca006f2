"""Robust designs of many traces: the interior-point method against dense formulas and single designs."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from jaxpriv import ProcessPrior, Secret, certify, design, kernels
from jaxpriv.designs.batch import robust
from jaxpriv.designs.batch.certifying import certify_chunk, lower_bounds
from jaxpriv.designs.batch.chunk import Chunk
from jaxpriv.designs.batch.devices import compilations
from jaxpriv.designs.batch.duals import ascended_vectors, clipped, clipped_vectors
from jaxpriv.designs.batch.interior_step import Model, curvature, outlook, packed_map, packing
from jaxpriv.designs.batch.problems import Problem
from jaxpriv.designs.batch.verb import design_batch
from jaxpriv.designs.result import DesignResult


def sets_of(rng: np.random.Generator, count: int) -> list[list[ProcessPrior]]:
    """Three Matérn priors (metres, seconds) on nine irregular times each."""
    sets = []
    for _ in range(count):
        times = np.sort(rng.uniform(0.0, 120.0, 9))
        sets.append([ProcessPrior(kernels.matern32(20.0 * f, 30.0 * f), times, noise_sd=1.0) for f in (0.5, 1.0, 2.0)])
    return sets


SECRET = Secret([4], radius=20.0)


def small_model(rng: np.random.Generator, n: int = 6, r: int = 3):
    """Three covariances, a floor, directions, and what the method makes of them."""
    roots = rng.standard_normal((3, n, n))
    covariance = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(n)
    floor, secret = 0.3, np.eye(n)[2]
    basis = np.linalg.qr(rng.standard_normal((n, r)))[0]
    inverse = np.linalg.inv(covariance + floor * np.eye(n))
    f = secret - floor * inverse[:, :, 2]
    gram = basis.T @ inverse @ basis
    reduced, weight = np.linalg.inv(gram), f @ basis
    offset = np.einsum("pij,pj->pi", reduced, weight)
    constant = floor - floor**2 * inverse[:, 2, 2]
    model = Model(*map(jnp.asarray, (gram, reduced, weight, offset, constant, 1.0 / covariance[:, 2, 2])))
    return covariance, floor, basis, model


def test_posterior_variances_in_few_directions_are_the_dense_ones(rng):
    covariance, floor, basis, model = small_model(rng)
    root = rng.standard_normal((3, 3))
    noise = root @ root.T
    a, posterior = outlook(model, jnp.asarray(noise))
    total = covariance + floor * np.eye(6) + basis @ noise @ basis.T
    weights = np.linalg.solve(total, covariance[:, :, 2][..., None])[..., 0]
    # Matrices of condition up to about 1e4: rounding of 1e-12, with room.
    dense = covariance[:, 2, 2] - np.einsum("pi,pi->p", covariance[:, :, 2], weights)
    np.testing.assert_allclose(posterior, dense, rtol=1e-10)
    np.testing.assert_allclose(a, weights @ basis, rtol=1e-9, atol=1e-11)


def test_the_curvature_is_the_second_derivative_of_the_reaches(rng):
    covariance, floor, basis, model = small_model(rng)
    root = rng.standard_normal((3, 3))
    noise, shares = jnp.asarray(root @ root.T), jnp.asarray([0.2, 0.5, 1.1])
    i, j, weight = packing(3)

    def dense(vector):
        change = np.zeros((3, 3))
        change[i, j] = change[j, i] = vector / weight
        total = covariance + floor * np.eye(6) + basis @ (np.asarray(noise) + change) @ basis.T
        cross, own = covariance[:, :, 2], covariance[:, 2, 2]
        known = np.einsum("pi,pi->p", cross, np.linalg.solve(total, cross[..., None])[..., 0])
        return own * (own - known) / known  # 1 / (1 / P - 1 / s)

    inner = np.linalg.inv(np.asarray(model.reduced + noise))
    reach, packed, bent_by, bent_less = map(np.asarray, curvature(model, noise, jnp.asarray(inner), shares))
    # Two orders of evaluation at condition numbers up to about 1e4.
    np.testing.assert_allclose(reach, dense(np.zeros(6)), rtol=1e-9)
    # Central differences at h = 1e-3 of noise of about one: h² = 1e-6 of the next derivative, and rounding of
    # 1e-15 / h and 1e-15 / h².
    h = 1e-3
    steps = h * np.eye(6)
    slopes = np.stack([(dense(one) - dense(-one)) / (2 * h) for one in steps], axis=1)
    np.testing.assert_allclose(packed, slopes, rtol=1e-4, atol=1e-4 * np.max(np.abs(slopes)))
    wanted = np.array(
        [[-shares @ (dense(x + y) - dense(x - y) - dense(y - x) + dense(-x - y)) / (4 * h * h) for y in steps]
         for x in steps]
    )  # fmt: skip
    bent = np.asarray(packed_map(jnp.asarray(bent_by), jnp.asarray(inner))) - (packed * bent_less[:, None]).T @ packed
    np.testing.assert_allclose(bent, wanted, atol=1e-4 * np.max(np.abs(wanted)))
    # The reaches are concave, which all of it rests on.
    assert np.linalg.eigvalsh(bent)[0] >= -1e-9 * np.max(np.abs(bent))


def test_the_packed_map_does_what_the_matrices_do(rng):
    left, right = (one + one.transpose(0, 2, 1) for one in rng.standard_normal((2, 2, 4, 4)))
    change = rng.standard_normal((4, 4))
    change = change + change.T
    i, j, weight = packing(4)
    image = np.sum(left @ change @ right, axis=0)
    image = 0.5 * (image + image.T)
    mapped = packed_map(jnp.asarray(left), jnp.asarray(right)) @ (change[i, j] * weight)
    # Sums of a few dozen products of numbers of about one.
    np.testing.assert_allclose(mapped, image[i, j] * weight, rtol=1e-12, atol=1e-12)


def test_duals_are_improved_from_a_noise_that_is_not_optimal(rng):
    (priors,) = sets_of(rng, 1)
    chunk = Chunk.of([Problem(0, tuple(priors), SECRET, 900.0, 9)], 16, 1, 2.0)
    # White noise: no design at all.
    factor = np.zeros((1, 16, 9))
    factor[0, :9] = np.eye(9) * np.sqrt(95.0) * chunk.unit[0]
    weights, floor_sd = np.full((1, 3), 1.0 / 3.0), np.array([1.0])
    certified = certify_chunk(chunk, factor, floor_sd)
    before = lower_bounds(chunk, certified, clipped_vectors(chunk, certified, weights), "budget")
    vectors, after = ascended_vectors(chunk, certified, weights, "budget")
    best = design(priors, SECRET, budget=900.0, floor_sd=1.0)
    assert np.linalg.norm(vectors[0], 2) <= 1.0 + 1e-12  # rounding of a projection on the unit ball
    assert after[0] <= best.epsilon and before[0] < after[0]
    np.testing.assert_array_equal(after, lower_bounds(chunk, certified, vectors, "budget"))
    # The weights are those of three equal priors, which is far from right, so only a part of the gap is closed.
    assert best.epsilon - after[0] <= 0.7 * (best.epsilon - before[0])


def test_clipping_is_the_projection_on_matrices_of_norm_one(rng):
    vectors = rng.standard_normal((2, 3, 7))
    for one, found in zip(vectors, clipped(vectors), strict=True):
        u, values, v = np.linalg.svd(one, full_matrices=False)
        # Through the eigenvalues of the Gram matrix: half the digits of a singular value near zero, which is kept.
        np.testing.assert_allclose(found, u @ np.diag(np.minimum(values, 1.0)) @ v, atol=1e-12)


@pytest.mark.slow
def test_both_forms_reach_what_single_designs_reach_and_meet_at_one_point(rng):
    sets = sets_of(rng, 3)
    batch = design_batch(sets, SECRET, budget=900.0, floor_sd=1.0)
    before = compilations()
    again = design_batch(sets[::-1], SECRET, budget=400.0, floor_sd=1.0)
    assert compilations() == before
    assert np.all(again.epsilon > batch.epsilon[::-1])
    back = design_batch(sets, SECRET, epsilon=[float(one) for one in batch.epsilon], floor_sd=1.0)
    for i, priors in enumerate(sets):
        alone = design(priors, SECRET, budget=900.0, floor_sd=1.0)
        # Each is within its certified gap of the optimum, which is one number.
        assert batch.lower_bound[i] <= alone.epsilon and alone.lower_bound <= batch.epsilon[i]
        # What is aimed at; nothing is claimed about it, but these problems are easy.
        assert batch.gap[i] <= 1e-6 and back.gap[i] <= 1e-6
        assert batch.cost[i] <= 900.0 and back.epsilon[i] <= batch.epsilon[i]
        # The optimum rises with a slope of at most one in relative terms, so both gaps and the shading of a target
        # (1e-9) are all that may lie between.
        assert back.cost[i] == pytest.approx(900.0, rel=1e-5)
        # The batch's bound covers kernels that differ in the last digits.
        assert certify(priors, SECRET, batch[i].mechanism).epsilon == pytest.approx(batch.epsilon[i], rel=1e-9)


@pytest.mark.slow
def test_a_design_does_not_depend_on_its_neighbours(rng):
    sets = sets_of(rng, 4)
    whole = design_batch(sets, SECRET, budget=900.0, floor_sd=1.0)
    alone = design_batch([sets[2]] * 4, SECRET, budget=900.0, floor_sd=1.0)
    for k in range(4):
        np.testing.assert_array_equal(alone.factors[k], whole.factors[2])
        assert alone.epsilon[k] == whole.epsilon[2] and alone.lower_bound[k] == whole.lower_bound[2]


@pytest.mark.slow
@pytest.mark.parametrize("goal", [{"epsilon": 0.7}, {"budget": 900.0}])
def test_where_the_solver_fails_a_trace_is_designed_alone(rng, monkeypatch, goal):
    sets = sets_of(rng, 2)
    usual = design_batch(sets, SECRET, floor_sd=1.0, **goal)
    solved = robust._solved

    def broken(chunk, *rest):
        factor, weights = solved(chunk, *rest)
        ours = chunk.covariance[:, 0, 0, 1] == victim
        return np.where(ours[:, None, None], np.nan, factor), weights

    problems = [Problem(k, tuple(priors), SECRET, 1.0, 9) for k, priors in enumerate(sets)]
    victim = Chunk.of(problems, 16, 2, 2.0).covariance[0, 0, 0, 1]
    monkeypatch.setattr(robust, "_solved", broken)
    batch = design_batch(sets, SECRET, floor_sd=1.0, **goal)
    assert usual.stats["designed one by one"] == 0 and batch.stats["designed one by one"] == 1
    alone = design(sets[0], SECRET, floor_sd=1.0, effort="high", **goal)
    assert batch.epsilon[0] == alone.epsilon and batch.cost[0] == alone.cost
    np.testing.assert_array_equal(batch.factors[0], alone.mechanism.factor)
    assert batch.losses[0].shape == (1, 3) and 0.0 <= batch.gap[0] <= 1e-2
    assert batch[0].certificate.epsilon == alone.epsilon
    np.testing.assert_array_equal(batch.factors[1], usual.factors[1])
    assert batch.lower_bound[1] == usual.lower_bound[1]


@pytest.mark.slow
@pytest.mark.parametrize("goal", [{"epsilon": 1.0}, {"budget": [1.0, 900.0, 900.0]}])
def test_what_cannot_be_solved_or_afforded_is_said_and_touches_no_other_trace(rng, goal):
    sets = sets_of(rng, 2)
    # Without a floor, a point that the others determine cannot be certified by any method here.
    singular = [np.full((9, 9), 400.0), np.full((9, 9), 900.0)]
    floor_sd = 0.0 if "epsilon" in goal else 1.0
    batch = design_batch([sets[0], singular, sets[1]], SECRET, floor_sd=floor_sd, **goal)
    assert np.all((batch.gap >= 0.0) & (batch.gap <= 1.0))
    assert not any(
        np.isnan(np.asarray(one)).any() for one in (batch.epsilon, batch.cost, batch.lower_bound, *batch.factors)
    )
    if "budget" in goal:
        assert batch.results[0] is DesignResult.budget_infeasible and batch.gap[0] == 1.0
        assert batch.lower_bound[1] <= batch.epsilon[1]
    else:
        assert batch.results[1] is DesignResult.target_not_certified
        assert batch.stats["designed one by one"] == 1
    assert batch.gap[2] <= 1e-5
