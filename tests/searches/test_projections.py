"""Projections against a convex solver: nearest, idempotent, inside the set."""

from __future__ import annotations

import cvxpy as cp
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.searches.factors import LowRankFactor
from jaxpriv.searches.projections import (
    Ball,
    Box,
    L1Ball,
    NonNegative,
    Part,
    Parts,
    Simplex,
    Spectrahedron,
    TraceBudget,
)


SETS = {
    "trace budget": (TraceBudget(1.5), lambda x: [cp.sum_squares(x) <= 1.5]),
    "ball": (Ball(1.3), lambda x: [cp.norm(x, "fro") <= 1.3]),
    "box": (Box(-0.3, 0.4), lambda x: [x >= -0.3, x <= 0.4]),
    "half-infinite box": (Box(0.1), lambda x: [x >= 0.1]),
    "nonnegative": (NonNegative(), lambda x: [x >= 0.0]),
    "simplex": (Simplex(0.7), lambda x: [x >= 0.0, cp.sum(x, axis=1) == 0.7]),
    "l1 ball": (L1Ball(0.9), lambda x: [cp.sum(cp.abs(x), axis=1) <= 0.9]),
    "cone": (Spectrahedron(), lambda x: [x >> 0]),
    "spectrahedron": (Spectrahedron(1.1), lambda x: [x >> 0, cp.trace(x) <= 1.1]),
}


@pytest.mark.parametrize("name", SETS)
def test_nearest_point(name, rng):
    projection, constraints = SETS[name]
    point = rng.standard_normal((4, 4))
    if "cone" in name or "spectra" in name:
        point = point + point.T
    variable = cp.Variable((4, 4), symmetric="cone" in name or "spectra" in name)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(variable - point)), constraints(variable))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    nearest = np.asarray(projection(jnp.asarray(point)))
    # The solver's own accuracy: a squared distance to 1e-10 is a point to about 1e-5.
    np.testing.assert_allclose(nearest, variable.value, atol=2e-5)
    np.testing.assert_allclose(projection(jnp.asarray(nearest)), nearest, atol=1e-14 * 8)
    # What is inside stays.
    inside = np.asarray(projection(jnp.asarray(0.5 * nearest + 0.5 * np.asarray(projection(jnp.eye(4))))))
    np.testing.assert_allclose(projection(jnp.asarray(inside)), inside, atol=1e-14 * 8)
    np.testing.assert_allclose(eqx.filter_jit(projection)(jnp.asarray(point)), nearest, atol=1e-14)


def test_spectrahedron_at_a_repeated_eigenvalue():
    np.testing.assert_allclose(Spectrahedron(1.0)(jnp.eye(3)), np.eye(3) / 3, atol=1e-15)
    np.testing.assert_allclose(Spectrahedron(4.0)(jnp.eye(3)), np.eye(3), atol=1e-15)


@pytest.mark.parametrize("weights", [np.array([1.0, 2.0, 0.5]), np.diag([1.0, 2.0, 0.5]) + 0.3])
def test_weighted_budget_is_nearest_in_its_own_norm(weights, rng):
    matrix = np.diag(weights) if weights.ndim == 1 else weights
    point = 2.0 + rng.standard_normal((3, 2))
    start = LowRankFactor(point, 0.1)
    nearest = TraceBudget(2.0, weights)(start)
    np.testing.assert_allclose(np.trace(matrix @ np.asarray(nearest.covariance)), 2.0, rtol=1e-12)
    root = np.linalg.cholesky(matrix).T
    variable = cp.Variable((3, 2))
    room = 2.0 - 0.1 * np.trace(matrix)
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(root @ (variable - point))), [cp.sum_squares(root @ variable) <= room]
    )
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    np.testing.assert_allclose(nearest.entries, variable.value, atol=2e-5)


def test_budget_of_every_kind_of_noise():
    columns = np.arange(1.0, 7.0).reshape(3, 2)
    mechanism = TraceBudget(4.0)(jp.GaussianMechanism(columns, 0.5))
    np.testing.assert_allclose(np.trace(mechanism.covariance), 4.0, rtol=1e-12)
    small = LowRankFactor(1e-3 * columns)
    assert eqx.tree_equal(TraceBudget(4.0)(small), small)
    np.testing.assert_allclose(np.trace(TraceBudget(4.0, equality=True)(small).covariance), 4.0, rtol=1e-12)
    zero = TraceBudget(4.0, equality=True)(LowRankFactor(0.0 * columns))
    assert not np.any(np.asarray(zero.entries))
    with pytest.raises(jp.InfeasibleError, match="noise floor alone") as caught:
        TraceBudget(0.5).check(LowRankFactor(columns, 0.25))
    assert caught.value.smallest_feasible == 0.75
    with pytest.raises(jp.InputError, match="neither a factor"):
        TraceBudget(1.0)({"factor": jnp.ones((2, 2))})


def test_parts_of_a_mechanism():
    tree = {"weights": jnp.array([3.0, -1.0]), "noise": LowRankFactor(10.0 * np.ones((2, 2))), "label": 7}
    both = Parts(
        Part(lambda one: one["weights"], Simplex()),
        Part(lambda one: one["noise"], TraceBudget(1.0)),
    )
    found = both(tree)
    np.testing.assert_allclose(found["weights"], [1.0, 0.0])
    np.testing.assert_allclose(found["noise"].entries, 0.5)
    assert found["label"] == 7
    with pytest.raises(jp.InfeasibleError):
        both.check(tree | {"noise": LowRankFactor(np.ones((2, 2)), 1.0)})


@pytest.mark.slow
def test_single_precision_stays_single():
    half = LowRankFactor(jnp.ones((3, 2), jnp.float32))
    assert TraceBudget(1.0)(half).entries.dtype == jnp.float32
    for projection in (Simplex(), L1Ball(), Spectrahedron(1.0)):
        assert projection(2.0 * jnp.eye(4, dtype=jnp.float32)).dtype == jnp.float32


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TraceBudget(-1.0), "budget is -1"),
        (lambda: Ball(np.nan), "radius is nan"),
        (lambda: Box(1.0, 0.0), "lower is not at most upper"),
        (lambda: Simplex(0.0), "total is 0"),
        (lambda: Spectrahedron(np.inf), "trace is inf"),
        (lambda: Spectrahedron()(jnp.ones((2, 3))), "not a square matrix"),
        (lambda: Simplex()(jnp.ones(())), "no axis"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(jp.InputError, match=message):
        call()
