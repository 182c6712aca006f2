"""The least total error as a differentiable function."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxpriv.designs.matrix_mechanism.dual import dual_weights, least_total_error
from jaxpriv.designs.matrix_mechanism.participations import Participations


def slope(function, at, direction, step=1e-5):
    return (function(at + step * direction) - function(at - step * direction)) / (2 * step)


@pytest.mark.parametrize("shape", [(4, 5), pytest.param((6, 5), marks=pytest.mark.slow)], ids=["wide", "tall"])
def test_gradient_in_the_workload_and_in_mu(rng, shape):
    workload, direction = rng.standard_normal((2, *shape))
    solve = jax.jit(jax.value_and_grad(least_total_error, argnums=(0, 1)))
    value = lambda a, mu: solve(a, mu)[0]  # noqa: E731
    by_workload, by_mu = solve(workload, 1.3)[1]
    # Differences of step 1e-5 are good to 1e-8 or so of a value solved to 1e-9.
    assert np.sum(by_workload * direction) == pytest.approx(
        float(slope(lambda a: value(a, 1.3), workload, direction)), rel=1e-5
    )
    assert by_mu == pytest.approx(-2 * float(value(workload, 1.3)) / 1.3, rel=1e-12)


def test_gradient_with_several_participations(rng):
    changes = jnp.asarray(Participations(2, 2).changes(4))
    workload, direction = np.tri(4), rng.standard_normal((4, 4))
    value = jax.jit(lambda a: least_total_error(a, changes=changes))
    gradient = jax.jit(jax.grad(value))(workload)
    assert np.sum(gradient * direction) == pytest.approx(float(slope(value, workload, direction)), rel=1e-5)


def test_gradient_is_finite_where_all_singular_values_agree():
    gradient = jax.grad(lambda a: least_total_error(a))(jnp.eye(3))
    # p(A) = 3 at A = I; p is homogeneous of degree 2 and invariant to rotations of the queries.
    assert np.allclose(gradient, 2 * np.eye(3), atol=1e-7)


def test_batches_and_recompilation(rng):
    workloads = jnp.asarray(rng.standard_normal((3, 4, 4)))
    traces = 0

    @jax.jit
    def values(batch):
        nonlocal traces
        traces += 1
        return jax.vmap(lambda a: least_total_error(a))(batch)

    together = values(workloads)
    alone = [float(least_total_error(one)) for one in workloads]
    assert np.allclose(together, alone, rtol=1e-8)
    assert np.allclose(values(2.0 * workloads), 4.0 * together, rtol=1e-8)
    assert traces == 1


def test_single_precision_states_a_value_of_its_own_precision():
    value = least_total_error(jnp.tri(12, dtype=jnp.float32))
    assert value.dtype == jnp.float32
    # Gram matrices: about the rounding unit of float32 times the squared condition of the workload, 64.
    assert float(value) == pytest.approx(31.0030412644, rel=1e-4)


@pytest.mark.slow
def test_singular_value_decompositions_give_the_same_weights(rng):
    workload = jnp.asarray(rng.standard_normal((5, 5)))
    plain, accurate = dual_weights(workload), dual_weights(workload, accurate=True)
    assert np.allclose(plain.weights, accurate.weights, rtol=1e-5)
    assert float(plain.lower) == pytest.approx(float(accurate.lower), rel=1e-8)
