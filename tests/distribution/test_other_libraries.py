"""Couplings against POT and OTT-JAX, where they are installed, and against the linear program in the limit."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxpriv.distribution.sinkhorn import entropic_coupling
from jaxpriv.distribution.transport import optimal_coupling


def cases(count, shape=None):
    rng = np.random.default_rng(11)
    for _ in range(count):
        n, m = rng.integers(3, 12, size=2) if shape is None else shape
        rows, columns = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
        cost = np.linalg.norm(rows[:, None] - columns[None], axis=-1)
        yield rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m)), cost


@pytest.fixture(scope="module")
def pot():
    # It looks for every array library that is installed, some of which warn.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("ot", reason="POT is not installed")


def test_exact_couplings_against_pot(pot):
    for first, second, cost in cases(20):
        found = optimal_coupling(first, second, cost, method="linear program")
        assert found.cost == pytest.approx(float(pot.emd2(first, second, cost)), abs=1e-12)
        plan, log = pot.emd(first, second, cost, log=True)
        assert np.sum(plan * cost) == pytest.approx(found.cost, abs=1e-12)
        # Both are dual solutions: feasible, and with the same value.
        u, v = np.asarray(log["u"]), np.asarray(log["v"])
        assert first @ u + second @ v == pytest.approx(
            first @ found.potentials[0] + second @ found.potentials[1], abs=1e-12
        )


def test_potentials_against_pot_where_they_are_unique(pot):
    # Generic masses make the basis unique, and with it the potentials up to one constant.
    rng = np.random.default_rng(3)
    first, second = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    cost = rng.uniform(size=(6, 6))
    found = optimal_coupling(first, second, cost).potentials[0]
    _, log = pot.emd(first, second, cost, log=True)
    difference = np.asarray(log["u"]) - found
    assert np.ptp(difference) < 1e-12
    # The derivative of W_1: a small move of mass changes it by the potential.
    shift = 1e-4 * (np.eye(6)[0] - np.eye(6)[1])
    slope = (pot.emd2(first + shift, second, cost) - pot.emd2(first - shift, second, cost)) / 2e-4
    assert slope == pytest.approx(found[0] - found[1], abs=1e-9)


@pytest.mark.parametrize("scale", [0.05, pytest.param(0.3, marks=pytest.mark.slow), 2.0])
def test_entropic_couplings_against_pot(pot, scale):
    # At the small scale, where both take thousands of steps, one case.
    for first, second, cost in cases(1 if scale < 0.1 else 3, (7, 5)):
        found = entropic_coupling(cost, first, second, scale)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # small scales end at the limit of steps, beyond 1e-9 all the same
            plan = pot.sinkhorn(first, second, cost, scale, method="sinkhorn_log", stopThr=1e-13, numItermax=20_000)
        assert float(found.cost) == pytest.approx(float(np.sum(plan * cost)), abs=1e-9)
        np.testing.assert_allclose(found.plan, plan, atol=1e-9)
        value = np.sum(plan * cost) + scale * np.sum(plan * np.log(np.maximum(plan, 1e-300) / np.outer(first, second)))
        assert float(found.value) == pytest.approx(float(value), abs=1e-9)


def test_entropic_couplings_against_ott():
    pytest.importorskip("ott", reason="OTT-JAX is not installed")
    from ott.geometry import geometry
    from ott.problems.linear import linear_problem
    from ott.solvers.linear import sinkhorn

    for first, second, cost in cases(3, (7, 5)):
        found = entropic_coupling(cost, first, second, 0.3)
        problem = linear_problem.LinearProblem(
            geometry.Geometry(cost_matrix=jnp.asarray(cost), epsilon=0.3), a=jnp.asarray(first), b=jnp.asarray(second)
        )
        other = sinkhorn.Sinkhorn(threshold=1e-13, max_iterations=20_000)(problem)
        assert float(found.cost) == pytest.approx(float(jnp.sum(other.matrix * cost)), abs=1e-9)


def test_small_scales_approach_the_linear_program():
    for first, second, cost in cases(3, (7, 5)):
        exact = optimal_coupling(first, second, cost).cost
        found = [entropic_coupling(cost, first, second, scale, tolerance=1e-9) for scale in (0.2, 0.05, 0.0125)]
        excess = [float(one.cost) - exact for one in found]
        assert excess[0] > excess[1] > excess[2] > -1e-7
        # The cost is at most η log(min(n, m)) above; it falls faster than that once the scale is below the cost's gaps.
        assert excess[2] <= 0.0125 * np.log(min(cost.shape))
        # Below by the optimality of the entropic plan for the value, above by the exact plan's divergence.
        value = float(found[-1].value)
        assert exact - 1e-7 <= value <= exact + 0.0125 * np.log(min(cost.shape))


def test_value_bounds_the_exact_cost_in_jit_and_vmap():
    (first, second, cost) = next(iter(cases(1, (7, 5))))
    scales = jnp.array([0.1, 0.5])
    batched = jax.jit(jax.vmap(lambda eta: entropic_coupling(cost, first, second, eta).value))(scales)
    exact = optimal_coupling(first, second, cost).cost
    assert np.all(np.asarray(batched) >= exact - 1e-12) and batched[1] > batched[0]
