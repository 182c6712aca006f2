"""Couplings and Wasserstein distances against other solvers and closed forms."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, stats

from jaxpriv.distribution.flow import shipped, transportable, whole_masses
from jaxpriv.distribution.transport import (
    check_metric,
    is_monge,
    minimax_coupling,
    north_west,
    optimal_coupling,
    wasserstein,
)
from jaxpriv.errors import InputError


LINE = np.abs(np.arange(3.0)[:, None] - np.arange(3.0))


def test_known_answer_on_a_line():
    first, second = [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]
    found = optimal_coupling(first, second, LINE)
    assert found.method == "north-west corner" and found.cost == pytest.approx(0.3, abs=1e-15)
    np.testing.assert_allclose(found.plan, [[0.2, 0, 0], [0.1, 0.2, 0.2], [0, 0, 0.3]], atol=1e-15)
    assert wasserstein(first, second, LINE, 2.0) == pytest.approx(0.5477225575, abs=5e-11)
    assert wasserstein(first, second, LINE, np.inf) == 1.0


def test_costs_that_are_not_monge():
    points = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
    plane = np.linalg.norm(points[:, None] - points[None], axis=-1)
    first, second = np.full(4, 0.25), np.array([0.1, 0.5, 0.3, 0.1])
    assert not is_monge(plane)
    found = optimal_coupling(first, second, plane)
    assert found.method == "linear program" and found.cost == pytest.approx(0.4, abs=1e-12)
    assert np.sum(north_west(first, second) * plane) == pytest.approx(0.8236067977, abs=5e-11)
    assert wasserstein(first, second, plane, np.inf) == 2.0
    with pytest.raises(InputError, match="not Monge"):
        optimal_coupling(first, second, plane, method="north-west corner")
    root = np.sqrt(np.abs(np.arange(4.0)[:, None] - np.arange(4.0)))
    a, b = np.array([0.5, 0.5, 0.0, 0.0]), np.array([0.0, 0.5, 0.5, 0.0])
    assert optimal_coupling(a, b, root).cost == pytest.approx(0.7071067812, abs=5e-11)
    assert np.sum(north_west(a, b) * root) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_corner_is_the_linear_program_on_monge_costs(power):
    rng = np.random.default_rng(int(power))
    for _ in range(200):
        n, m = rng.integers(2, 8, size=2)
        first, second = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
        cost = np.abs(np.sort(rng.normal(size=n))[:, None] - np.sort(rng.normal(size=m))) ** power
        corner = optimal_coupling(first, second, cost, method="north-west corner")
        np.testing.assert_allclose(corner.plan.sum(axis=1), first, atol=1e-15)
        np.testing.assert_allclose(corner.plan.sum(axis=0), second, atol=1e-15)
        assert np.count_nonzero(corner.plan) <= n + m - 1
        exact = optimal_coupling(first, second, cost, method="linear program")
        # HiGHS stops at a feasibility of 1e-7 of its own scale, and is far better on problems of this size.
        assert corner.cost == pytest.approx(exact.cost, abs=1e-9)


def test_one_dimension_against_the_distribution_functions():
    rng = np.random.default_rng(9)
    points = np.sort(rng.normal(size=7))
    first, second = rng.dirichlet(np.ones(7)), rng.dirichlet(np.ones(7))
    expected = stats.wasserstein_distance(points, points, first, second)
    assert wasserstein(first, second, np.abs(points[:, None] - points)) == pytest.approx(expected, abs=1e-13)


def test_potentials_are_feasible_and_tight():
    rng = np.random.default_rng(3)
    cost = rng.uniform(size=(6, 5))
    first, second = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(5))
    found = optimal_coupling(first, second, cost)
    u, v = found.potentials
    assert np.all(u[:, None] + v[None] <= cost + 1e-15)
    assert first @ u + second @ v == pytest.approx(found.cost, abs=1e-12)


def brute_force_minimax(first, second, cost):
    """The least height at which a linear program that is charged only above it costs nothing."""
    n, m = cost.shape
    equations = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    for height in np.unique(cost):
        solved = optimize.linprog(
            (cost > height).ravel().astype(float), A_eq=equations, b_eq=np.concatenate([first, second])
        )
        if solved.fun < 1e-9:
            return height
    raise AssertionError


def test_minimax_against_linear_programs():
    rng = np.random.default_rng(6)
    for _ in range(25):
        n, m = rng.integers(2, 6, size=2)
        first, second = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
        cost = rng.integers(0, 6, size=(n, m)).astype(float)
        found = minimax_coupling(first, second, cost)
        assert found.cost == brute_force_minimax(first, second, cost)
        np.testing.assert_allclose(found.plan.sum(axis=1), first, atol=1e-15)
        np.testing.assert_allclose(found.plan.sum(axis=0), second, atol=1e-15)
        assert np.max(cost[found.plan > 0]) == found.cost


def test_rounding_does_not_invent_or_hide_a_journey():
    # In float64 0.1 + 0.2 is not 0.3; on the exact values a mass of 3e-17 does have 99 to go, and that is what is said.
    points = np.array([0.0, 1.0, 100.0])
    cost = np.abs(points[:, None] - points)
    halves = minimax_coupling([0.25, 0.25, 0.5], [0.0, 0.5, 0.5], cost)
    assert halves.cost == 1.0
    far = minimax_coupling([1.0, 0.0], [1.0 - 1e-13, 1e-13], np.array([[0.0, 100.0], [100.0, 0.0]]))
    assert far.cost == 100.0
    near = minimax_coupling([1.0, 0.0], [1.0 - 1e-13, 1e-13], np.array([[0.0, 100.0], [100.0, 0.0]]), ignoring=1e-12)
    assert near.cost == 0.0
    plan = north_west(np.array([0.25, 0.25, 0.5]), np.array([0.0, 0.5, 0.5]))
    assert np.count_nonzero(plan) == 3


def test_whole_masses_are_exact():
    rng = np.random.default_rng(0)
    first, second = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(4))
    left, right = whole_masses(first, second)
    assert sum(left) == sum(right)
    for value, mass in zip(first, left, strict=True):
        assert Fraction(mass, sum(left)) == Fraction(value) / sum(map(Fraction, first.tolist()))


def test_flow_against_networks():
    rng = np.random.default_rng(2)
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    for _ in range(40):
        n, m = rng.integers(1, 8, size=2)
        supply, demand = rng.integers(0, 20, size=n), rng.integers(0, 20, size=m)
        allowed = rng.random((n, m)) < 0.4
        graph = np.zeros((n + m + 2, n + m + 2), dtype=np.int32)
        graph[0, 1 : n + 1], graph[n + 1 : n + m + 1, -1] = supply, demand
        graph[1 : n + 1, n + 1 : n + m + 1] = np.where(allowed, 1000, 0)
        expected = maximum_flow(csr_array(graph), 0, n + m + 1).flow_value
        amount, plan = shipped(supply.tolist(), demand.tolist(), allowed)
        assert amount == expected == sum(plan.values())
        for (i, j), used in plan.items():
            assert allowed[i, j] and used > 0
        for i in range(n):
            assert sum(used for (a, _), used in plan.items() if a == i) <= supply[i]
        for j in range(m):
            assert sum(used for (_, b), used in plan.items() if b == j) <= demand[j]
        assert transportable(supply.tolist(), demand.tolist(), allowed) == (expected == supply.sum())


def test_metrics_are_checked():
    check_metric(LINE)
    with pytest.raises(InputError, match="triangle"):
        check_metric([[0.0, 1.0, 5.0], [1.0, 0.0, 1.0], [5.0, 1.0, 0.0]])
    with pytest.raises(InputError, match="symmetric"):
        check_metric([[0.0, 1.0], [2.0, 0.0]])
    with pytest.raises(InputError, match="itself"):
        check_metric([[1.0, 1.0], [1.0, 0.0]])
    with pytest.raises(InputError, match="negative"):
        optimal_coupling([1.0], [1.0], [[-1.0]])
    with pytest.raises(InputError, match="power"):
        wasserstein([1.0], [1.0], [[0.0]], 0.5)
