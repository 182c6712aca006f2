"""Discrete Lyapunov and Riccati equations against SciPy, their residuals, and their derivatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import solve_discrete_are, solve_discrete_lyapunov

from jaxpriv.linalg.lyapunov import discrete_lyapunov, is_stable
from jaxpriv.linalg.riccati import discrete_riccati, updated


def system(n, seed, radius=0.9, rank=None):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    A *= radius / np.max(np.abs(np.linalg.eigvals(A)))
    root = rng.standard_normal((n, rank or n))
    C = rng.standard_normal((max(1, n // 2), n))
    return A, root @ root.T, C


def relative(found, expected):
    return np.max(np.abs(np.asarray(found) - expected)) / np.max(np.abs(expected))


@pytest.mark.parametrize(("n", "radius", "rank"), [(1, 0.5, 1), (3, 0.99, 1), (6, 0.9, 6), (12, 0.95, 3)])
def test_agree_with_scipy(n, radius, rank):
    A, Q, C = system(n, n, radius, rank)
    # SciPy's own residual is about 1e-13 at a spectral radius of 0.99.
    assert relative(discrete_lyapunov(A, Q), solve_discrete_lyapunov(A, Q)) < 1e-11
    found = discrete_riccati(A, C.T @ C / 0.3, Q)
    assert relative(found, solve_discrete_are(A.T, C.T, Q, 0.3 * np.eye(len(C)))) < 1e-10


def test_slowest_system_that_double_precision_can_tell_from_unstable():
    a = 1.0 - 1e-12
    # 1 − a² is known to 2^-53, that is to 1e-4 of itself.
    assert float(discrete_lyapunov(jnp.array([[a]]), jnp.array([[1.0]]))[0, 0]) == pytest.approx(
        1.0 / ((1.0 - a) * (1.0 + a)), rel=1e-3
    )
    assert bool(is_stable(jnp.array([[a]]))) and not bool(is_stable(jnp.array([[1.0]])))


@pytest.mark.parametrize("radius", [1.0, 1.0001, 3.0])
def test_unstable_is_infinite_and_has_no_nan_in_its_derivative(radius):
    A = radius * jnp.eye(2)
    assert np.array_equal(discrete_lyapunov(A, jnp.eye(2)), np.diag([np.inf, np.inf]))

    def safe(A):
        return jnp.where(is_stable(A), jnp.sum(discrete_lyapunov(A, jnp.eye(2))), 0.0)

    assert np.all(np.isfinite(jax.grad(safe)(A)))


def test_riccati_of_an_unstable_system_that_is_observed():
    A, C, Q = np.array([[1.2, 0.1], [0.0, 0.8]]), np.array([[1.0, 0.5]]), np.eye(2)
    found = discrete_riccati(A, C.T @ C, Q)
    assert relative(found, solve_discrete_are(A.T, C.T, Q, np.eye(1))) < 1e-12
    # Unobserved and unstable: no solution.
    assert np.array_equal(discrete_riccati(A, np.zeros((2, 2)), Q), np.diag([np.inf, np.inf]))


def test_update_allows_singular_covariances():
    P, G = np.diag([2.0, 0.0]), np.array([[1.0, 1.0], [1.0, 1.0]])
    assert np.allclose(updated(P, G), np.diag([2.0 / 3.0, 0.0]), atol=1e-15)


def differences(function, arguments, tangents, step=1e-6):
    plus = function(*(a + step * t for a, t in zip(arguments, tangents, strict=True)))
    minus = function(*(a - step * t for a, t in zip(arguments, tangents, strict=True)))
    return (plus - minus) / (2 * step)


@pytest.mark.slow
def test_derivatives_forward_reverse_and_second():
    A, Q, C = system(3, 7, 0.9, 2)
    rng = np.random.default_rng(1)
    weight = rng.standard_normal((3, 3))
    directions = tuple(rng.standard_normal(one.shape) for one in (A, C, Q))

    @jax.jit
    def scalar(A, C, Q):
        return jnp.sum(weight * (discrete_riccati(A, C.T @ C, Q) + discrete_lyapunov(A, Q)))

    value = differences(scalar, (A, C, Q), directions)
    _, forward = jax.jit(lambda *a: jax.jvp(scalar, a, directions))(A, C, Q)
    gradient = jax.jit(jax.grad(scalar, argnums=(0, 1, 2)))
    reverse = sum(float(jnp.sum(g * d)) for g, d in zip(gradient(A, C, Q), directions, strict=True))
    # Central differences of step 1e-6 on values of about 50: truncation and rounding about 1e-8.
    assert float(forward) == pytest.approx(float(value), rel=1e-6)
    assert reverse == pytest.approx(float(forward), rel=1e-12)
    # The derivative of a directional derivative.
    along = jax.jit(lambda *a: jax.jvp(scalar, a, directions)[1])
    _, second = jax.jit(lambda *a: jax.jvp(along, a, directions))(A, C, Q)
    assert float(second) == pytest.approx(float(differences(along, (A, C, Q), directions)), rel=1e-5)


def test_batched_equals_one_by_one():
    scales = jnp.linspace(0.05, 0.99, 40)
    A, Q, C = system(3, 5, 1.0)
    solve = jax.jit(lambda s: (discrete_riccati(s * A, C.T @ C, Q), discrete_lyapunov(s * A, Q)))
    both = jax.jit(jax.vmap(solve))(scales)
    for i in (0, 17, 39):
        for found, expected in zip(both, solve(scales[i]), strict=True):
            # The batch may take a doubling more than one member needs.
            assert relative(found[i], np.asarray(expected)) < 1e-13


def test_single_precision_stays_single():
    A, Q, C = (jnp.asarray(one, jnp.float32) for one in system(3, 3))
    assert discrete_lyapunov(A, Q).dtype == jnp.float32
    found = discrete_riccati(A, C.T @ C, Q)
    assert found.dtype == jnp.float32
    exact = discrete_riccati(*(np.asarray(one, np.float64) for one in (A, C.T @ C, Q)))
    assert relative(found, np.asarray(exact)) < 1e-5
