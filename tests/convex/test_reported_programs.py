"""Programs on which other solvers' answers broke their own constraints: what is returned is verified and lifted."""

from __future__ import annotations

import numpy as np
import pytest

from jaxpriv.convex.joint import joint_target
from jaxpriv.convex.majorant import least_majorant
from jaxpriv.convex.solving import lifted


def _arrow():
    matrix = np.eye(4)
    matrix[:3, 3] = matrix[3, :3] = (0.25, 0.75, 0.75)
    return matrix


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_what_a_solver_calls_optimal_is_made_positive(solver):
    # https://github.com/cvxpy/cvxpy/issues/262: an "optimal" matrix with negative eigenvalues
    import cvxpy as cp

    data, x, a = _arrow(), cp.Variable((4, 4), PSD=True), cp.Variable()
    problem = cp.Problem(cp.Minimize(a), [x >= data, x <= a * data])
    problem.solve(solver=solver)
    returned = np.asarray(x.value)
    repaired, lift = lifted(returned)
    assert np.linalg.eigvalsh(repaired)[0] >= -1e-15
    assert lift == pytest.approx(max(0.0, -np.linalg.eigvalsh(0.5 * (returned + returned.T))[0]), abs=1e-15)
    assert lift < 1e-3


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_a_bound_that_the_solver_breaks_is_swept_back(solver):
    # https://github.com/cvxpy/cvxpy/issues/1603: P - X has the eigenvalue -2.9e-5, "optimal"
    state = np.random.RandomState(42)
    floors = [a @ a.T for a in (state.randn(3, 3), state.randn(3, 3))]
    loose = {"eps_abs": 1e-3, "eps_rel": 1e-3} if solver == "SCS" else {}
    found = least_majorant(floors, solver=solver, options=loose)
    scale = max(np.linalg.eigvalsh(floor)[-1] for floor in floors)
    for floor in floors:
        # Rounding of two eigendecompositions.
        assert np.linalg.eigvalsh(found.covariance - floor)[0] >= -1e-13 * scale
    if solver == "SCS":
        assert found.repair > 0


def test_the_answer_in_kilometres_is_the_answer_in_metres():
    # https://github.com/cvxpy/cvxpy/issues/681: wrong when the data are times 1e-5, without a warning
    distance = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
    covariance = 1e6 * np.exp(-distance / 3.0) + 4.0 * np.eye(6)
    metres = joint_target(covariance, [2], 1e-4)
    for unit in (1e-3, 1e-5, 1e5):
        other = joint_target(unit**2 * covariance, [2], 1e-4 / unit**2)
        # The program is put into its own units first, so that the solver sees the same numbers but for rounding.
        assert other.cost / unit**2 == pytest.approx(metres.cost, rel=1e-7)
        np.testing.assert_allclose(other.covariance / unit**2, metres.covariance, rtol=0, atol=1e-6 * metres.cost)


def test_the_loss_is_recomputed_and_not_read_off_a_small_residual():
    # https://github.com/oxfordcontrol/Clarabel.cpp/issues/36: (0.999967, 3.3e-5) for (1, 0), residuals of 1e-12
    distance = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    covariance = np.exp(-distance / 2.0) + 0.01 * np.eye(5)
    found = joint_target(covariance, [2], 0.5)
    # The precision gain, by its definition: H^T (C + G)^-1 H of the others and the point itself, given the point.
    mean_map = covariance[:, 2] / covariance[2, 2]
    given = covariance - np.outer(mean_map, covariance[:, 2])
    gain = mean_map @ np.linalg.solve(given + found.covariance, mean_map)
    assert found.loss is not None and found.loss >= gain * (1 - 1e-12)
    assert found.loss == pytest.approx(gain, rel=1e-9)
