"""Every function under jit, vmap and grad, against finite differences, also where singular values repeat."""

from __future__ import annotations

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv import pml


N, M = 4, 3
MATRIX = np.random.default_rng(21).standard_normal((M, N))
NOISE = np.diag([0.6, 1.1, 0.4])
OUTPUT = np.array([0.7, -0.3, 1.2])
LEFT, RIGHT = np.random.default_rng(22).standard_normal((N, 2)), np.random.default_rng(23).standard_normal((2, M))


def _spd(seed, n=N):
    root = np.random.default_rng(seed).standard_normal((n, n))
    return jnp.asarray(root @ root.T / n + 0.4 * np.eye(n))


def _parts(s):
    return s, s @ MATRIX.T, MATRIX @ s @ MATRIX.T + NOISE


def _low_rank(s):
    low = RIGHT.T @ LEFT.T
    return s, s @ low.T, low @ s @ low.T + NOISE


def _quantiles(s):
    """The functions that add to a χ² quantile, together: each compilation of it takes a second."""
    level, delta = 9 * s[0, 0], 0.1 * s[1, 1]
    return (
        pml.chi2_isf(delta, 2)
        + 2 * pml.leakage_epsilon(level, delta, 2)
        + 3 * pml.smallest_epsilon(delta, 2)
        + 5 * pml.information_budget(level, delta, 2)
        + 7 * pml.kappa(level, delta, 2)
        + 11 * pml.leakage_to_information(level, delta, 2)
        + 13 * pml.compose_releases([s[0, 0], s[2, 2]], [1, 1], delta)
        + 17 * pml.compose_same([s[0, 0], s[2, 2]], 2, delta)
    )


def _tails(s):
    level = 3 + s[1, 1]
    return (
        pml.chi2_sf(3 * s[0, 0], 2)
        + 2 * pml.leakage_delta(s[0, 0], level, 2)
        + 3 * pml.chi2_log_sf(3 * s[0, 0], 2)
        + 5 * pml.leakage_log_delta(s[0, 0], level, 2)
        + 7 * pml.expected_leakage(s[0, 0], 2)
        + 11 * pml.conditional_failure(s[0, 0], 2 + s[1, 1], s[2, 2])
        + 13 * sum(pml.compose_guarantees([s[0, 0], 1.0], [0.1 * s[1, 1], 0.1]))
    )


def _bounds(s):
    return (
        pml.leakage_to_sensitivity(8.0, 0.1, M, s, s[0, 0], matrix=MATRIX)
        + 3 * pml.sensitivity_to_leakage(s[0, 0], s[1, 1], s, 2, 0.1)
        + 5 * pml.gain_to_leakage(s[0, 0], s, 0.1)
        + 0.01 * jnp.sum(pml.leakage_to_gain(12.0 * s[0, 0], 0.1, s))
    )


def _finite(s):
    channel, prior = jax.nn.softmax(s, axis=1), jnp.full(N, 1 / N)
    return (
        jnp.sum(pml.finite_leakage(prior, channel))
        + 3 * pml.finite_epsilon(prior, channel, 0.3)
        + 5 * pml.finite_delta(prior, channel, 0.3)
    )


# public names: a scalar function of one positive definite (N, N) matrix through all of them, with distinct weights.
FUNCTIONS = {
    ("chi2_isf", "leakage_epsilon", "smallest_epsilon", "information_budget", "kappa", "leakage_to_information",
     "compose_releases", "compose_same"): _quantiles,
    ("chi2_sf", "chi2_log_sf", "leakage_delta", "leakage_log_delta", "expected_leakage", "conditional_failure",
     "compose_guarantees"): _tails,
    ("mutual_information", "canonical_correlations", "posterior_covariance"): lambda s: (
        pml.mutual_information(*_parts(s))
        + 3 * jnp.sum(pml.canonical_correlations(*_parts(s)) ** 3)
        + 5 * jnp.sum(pml.posterior_covariance(*_parts(s)))
    ),
    ("pointwise_leakage", "factored_leakage"): lambda s: (
        pml.pointwise_leakage(OUTPUT, *_low_rank(s), rank=2)
        + 3 * pml.factored_leakage(OUTPUT, s, s @ LEFT, RIGHT, _low_rank(s)[2])
    ),
    ("additive_information", "additive_leakage"): lambda s: (
        pml.additive_information(MATRIX @ s @ MATRIX.T, NOISE * s[0, 0])
        + 3 * pml.additive_leakage(OUTPUT, MATRIX @ s @ MATRIX.T, NOISE * s[0, 0])
    ),
    ("secret_information", "trace_information"): lambda s: (
        pml.secret_information(jp.GaussianPrior(s), jp.Secret([0, 2], 1.0), jnp.eye(N))
        + 3 * pml.trace_information(jp.GaussianPrior(_spd(9)), s)
    ),
    ("analytic_gaussian_delta", "analytic_gaussian_sensitivity", "mahalanobis_sensitivity"): lambda s: (
        pml.analytic_gaussian_delta(s[0, 0], s[1, 1])
        + 3 * pml.analytic_gaussian_sensitivity(s[0, 0], 0.1 * s[1, 1])
        + 5 * pml.mahalanobis_sensitivity(np.eye(N)[:, :3], s, s[0, 0])
    ),
    ("leakage_to_sensitivity", "sensitivity_to_leakage", "gain_to_leakage", "leakage_to_gain"): _bounds,
    ("finite_leakage", "finite_epsilon", "finite_delta"): _finite,
}  # fmt: skip


def test_every_differentiable_function_is_here():
    public = {name for name, value in vars(pml).items() if inspect.isfunction(value) and not name.startswith("_")}
    assert public - {"require_feasible"} == {name for names in FUNCTIONS for name in names}


# These compile within seconds; the others take up to ten.
SHORT = ("chi2_isf", "additive_information", "finite_leakage")


@pytest.mark.parametrize(
    "names",
    [pytest.param(names, marks=[pytest.mark.slow] * (names[0] not in SHORT)) for names in FUNCTIONS],
    ids=lambda names: names[0],
)
def test_jit_vmap_and_grad(names):
    """The gradient is the finite difference, vmap is the loop, and new values do not recompile."""
    function = jax.jit(eqx.debug.assert_max_traces(FUNCTIONS[names], max_traces=1))
    matrix, rng, step = _spd(2), np.random.default_rng(7), 1e-5
    direction = rng.standard_normal((N, N))
    direction = jnp.asarray(direction + direction.T)
    stack = jnp.stack([matrix, matrix + step * direction, matrix - step * direction, _spd(5), _spd(6)])
    values, gradients = jax.jit(jax.vmap(jax.value_and_grad(FUNCTIONS[names])))(stack)
    # Central differences err by step² and by rounding/step.
    slope = jnp.sum(gradients[0] * direction)
    np.testing.assert_allclose(slope, (values[1] - values[2]) / (2 * step), rtol=3e-6, atol=1e-8)
    np.testing.assert_allclose(values, jnp.stack([function(one) for one in stack]), rtol=1e-10)


REPEATED = {
    "additive_leakage": lambda k: pml.additive_leakage(jnp.ones(3), k, jnp.eye(3)),
    "pointwise_leakage": lambda k: pml.pointwise_leakage(jnp.ones(3), jnp.eye(3), k, 2 * jnp.eye(3)),
    "pointwise_leakage of known rank": lambda k: pml.pointwise_leakage(
        jnp.ones(3), jnp.eye(3), k[:, :2] @ k[:2], 2 * jnp.eye(3), rank=2
    ),
    "factored_leakage": lambda k: pml.factored_leakage(jnp.ones(3), 2 * jnp.eye(3), k, jnp.eye(3), 2 * jnp.eye(3)),
    "mutual_information": lambda k: pml.mutual_information(2 * jnp.eye(3), k, jnp.eye(3)),
    "gain_to_leakage": lambda k: pml.gain_to_leakage(0.7, k, 0.1),
    "mahalanobis_sensitivity": lambda k: pml.mahalanobis_sensitivity(jnp.eye(3), k + jnp.eye(3), 1.0),
}


@pytest.mark.parametrize("name", REPEATED)
def test_gradients_are_finite_where_singular_values_repeat(name):
    """At the identity every eigenvalue is repeated, where derivatives of eigenvectors do not exist."""
    function, rng = REPEATED[name], np.random.default_rng(8)
    direction = rng.standard_normal((3, 3))
    direction = jnp.asarray(direction + direction.T)
    step = 1e-6
    stack = jnp.eye(3) + jnp.array([0.0, step, -step])[:, None, None] * direction
    values, gradients = jax.jit(jax.vmap(jax.value_and_grad(function)))(stack)
    gradient, difference = gradients[0], (values[1] - values[2]) / (2 * step)
    assert jnp.all(jnp.isfinite(gradient))
    # At a tie the largest eigenvalue has one-sided derivatives, whose mean need not be the mean over the eigenspace.
    if name != "mahalanobis_sensitivity":
        np.testing.assert_allclose(jnp.sum(gradient * direction), difference, rtol=1e-6, atol=1e-8)


def test_boundary_values_have_finite_gradients():
    def edges(x):
        return jnp.stack(
            [
                pml.additive_leakage(jnp.ones(2), x * jnp.eye(2), jnp.eye(2)),
                pml.mahalanobis_sensitivity(x * jnp.eye(2), jnp.eye(2), 1.0),
                pml.conditional_failure(x, 2.0, 1.0),
                pml.leakage_delta(2.0, 2.0 + x, 1),
                pml.leakage_to_sensitivity(2.0 + x, 0.05, 2, jnp.eye(2), 1.0),
            ]
        )

    assert jnp.all(jnp.isfinite(jax.jit(jax.jacobian(edges))(0.0)))


def test_information_keeps_the_dtype_of_the_caller():
    small = [jnp.asarray(one, jnp.float32) for one in _parts(_spd(2))]
    found = pml.mutual_information(*small)
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, pml.mutual_information(*_parts(_spd(2))), rtol=1e-4)
