"""The one-secret programs against their closed forms, scalar searches, and another solver."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from jaxpriv.convex.block import block_budget, block_target
from jaxpriv.convex.joint import joint_budget, joint_target


# An interior-point method stops at a relative gap of 1e-8; its matrix then meets its constraints to about 1e-7.
SOLVER = 1e-6

KNOWN = json.loads((Path(__file__).parents[1] / "known_answers" / "exact_designs.json").read_text())


def rbf(n: int, lengthscale: float, nugget: float = 0.0) -> np.ndarray:
    lags = np.subtract.outer(np.arange(n), np.arange(n))
    return np.exp(-(lags**2) / (2 * lengthscale**2)) + nugget * np.eye(n)


def matern12(n: int, lengthscale: float) -> np.ndarray:
    return np.exp(-np.abs(np.subtract.outer(np.arange(n), np.arange(n))) / lengthscale)


def periodic(n: int, lengthscale: float, period: int) -> np.ndarray:
    lags = np.subtract.outer(np.arange(n), np.arange(n))
    return np.exp(-2 * np.sin(np.pi * lags / period) ** 2 / lengthscale**2)


def split(covariance: np.ndarray, secret: list[int]) -> tuple[np.ndarray, np.ndarray]:
    regression = np.linalg.solve(covariance[np.ix_(secret, secret)], covariance[secret]).T
    return regression, covariance - regression @ covariance[secret]


def least_trace(covariance: np.ndarray, secret: list[int], loss: float, root: np.ndarray, floor: float = 0.0) -> float:
    """tr W G for G - floor I the positive part of the floor H H^T/t - C - floor I, in the metric of root = W^(1/2)."""
    regression, rest = split(covariance, secret)
    gap = root @ (regression @ regression.T / loss - rest - floor * np.eye(len(rest))) @ root
    return float(np.sum(np.maximum(np.linalg.eigvalsh(gap), 0.0)) + floor * np.trace(root @ root))


def least_loss(
    covariance: np.ndarray, secret: list[int], budget: float, root: np.ndarray | None = None, floor: float = 0.0
) -> float:
    root = np.eye(len(covariance)) if root is None else root
    return np.exp(
        brentq(lambda x: least_trace(covariance, secret, np.exp(x), root, floor) - budget, -12.0, 18.0, xtol=1e-13)
    )


def block_loss(covariance: np.ndarray, secret: list[int], budget: float, weights: np.ndarray | None = None) -> float:
    """min over the variance of the secret of 1/variance + the least loss of the rest with what is left."""
    weights = np.ones(len(covariance)) if weights is None else weights
    rest = [i for i in range(len(covariance)) if i not in secret]
    regression, residual = split(covariance, secret)
    inner, onto = residual[np.ix_(rest, rest)], regression[rest]
    root = np.diag(np.sqrt(weights[rest]))

    def inferred(left: float) -> float:
        def excess(log_loss: float) -> float:
            gap = root @ (onto @ onto.T / np.exp(log_loss) - inner) @ root
            return np.sum(np.maximum(np.linalg.eigvalsh(gap), 0.0)) - left

        return np.exp(brentq(excess, -20.0, 25.0, xtol=1e-13))

    def loss(share: float) -> float:
        return np.sum(weights[secret]) / (share * budget) + inferred((1 - share) * budget)

    inside = minimize_scalar(loss, bounds=(1e-4, 1 - 1e-9), method="bounded", options={"xatol": 1e-11}).fun
    # A rough prior is best served by noise on the secret alone.
    alone = np.sum(weights[secret]) / budget + np.linalg.norm(onto.T @ np.linalg.solve(inner, onto), 2)
    return float(min(inside, alone))


CASES = [
    pytest.param(matern12(8, 3.0), [4], 2.0, id="one"),
    pytest.param(rbf(10, 2.0), [4, 5], 1.0, id="adjacent pair"),
    pytest.param(rbf(9, 1.5, 1e-3), [1, 4, 6], 0.05, id="three, small budget"),
    pytest.param(400.0 * rbf(8, 2.0), [3], 800.0, id="large units"),
]


@pytest.mark.parametrize(("covariance", "secret", "budget"), CASES)
def test_joint_budget_is_the_closed_form(covariance, secret, budget):
    exact = least_loss(covariance, secret, budget)
    found = joint_budget(covariance, secret, budget)
    assert found.objective == pytest.approx(exact, rel=SOLVER)
    # The matrix is nearly feasible and nearly optimal together: its two figures trade against each other.
    assert found.loss == pytest.approx(exact, rel=SOLVER)
    assert found.cost == pytest.approx(budget, rel=1e-5)
    assert found.loss >= least_loss(covariance, secret, found.cost) * (1 - 1e-9)


@pytest.mark.parametrize(("covariance", "secret", "budget"), CASES)
def test_joint_target_is_the_closed_form(covariance, secret, budget):
    loss = least_loss(covariance, secret, budget)
    found = joint_target(covariance, secret, loss)
    assert found.objective == pytest.approx(budget, rel=SOLVER)
    assert found.loss == pytest.approx(loss, rel=SOLVER)


@pytest.mark.parametrize(("covariance", "secret", "budget"), CASES)
def test_block_budget_is_a_scalar_search(covariance, secret, budget):
    exact = block_loss(covariance, secret, budget)
    found = block_budget(covariance, secret, budget)
    assert found.objective == pytest.approx(exact, rel=SOLVER)
    assert found.loss == pytest.approx(exact, rel=SOLVER)
    rest = np.setdiff1d(np.arange(len(covariance)), secret)
    assert np.all(found.covariance[np.ix_(secret, rest)] == 0)
    on_secret = found.covariance[np.ix_(secret, secret)]
    assert np.array_equal(on_secret, on_secret[0, 0] * np.eye(len(secret)))


def test_block_target_inverts_block_budget():
    covariance, secret = rbf(9, 2.0), [3, 4]
    loss = block_loss(covariance, secret, 1.5)
    assert block_target(covariance, secret, loss).objective == pytest.approx(1.5, rel=SOLVER)


def test_block_of_an_uncorrelated_trace_is_noise_on_the_secret_alone():
    found = block_budget(np.eye(5), [1, 2], 3.0)
    assert found.loss == pytest.approx(2 / 3, rel=SOLVER)
    # What the solver leaves elsewhere is its own inaccuracy.
    assert np.diag(found.covariance) == pytest.approx([0, 1.5, 1.5, 0, 0], abs=1e-5)


def test_diagonal_and_full_weights(rng):
    covariance, secret, budget = matern12(8, 3.0), [2, 5], 2.0
    diagonal = np.linspace(0.5, 3.0, 8)
    exact = least_loss(covariance, secret, budget, np.diag(np.sqrt(diagonal)))
    assert joint_budget(covariance, secret, budget, weights=diagonal).objective == pytest.approx(exact, rel=SOLVER)
    assert joint_target(covariance, secret, exact, weights=diagonal).objective == pytest.approx(budget, rel=SOLVER)
    exact = block_loss(covariance, secret, budget, diagonal)
    assert block_budget(covariance, secret, budget, weights=diagonal).objective == pytest.approx(exact, rel=SOLVER)

    square = rng.standard_normal((8, 8))
    full = square @ square.T + np.eye(8)
    values, vectors = np.linalg.eigh(full)
    root = (vectors * np.sqrt(values)) @ vectors.T
    exact = least_loss(covariance, secret, budget, root)
    found = joint_budget(covariance, secret, budget, weights=full)
    assert found.objective == pytest.approx(exact, rel=SOLVER)
    assert found.cost == pytest.approx(np.trace(full @ found.covariance), rel=1e-12)


def test_noise_floor():
    covariance, secret, budget, floor_sd = rbf(9, 2.0), [4], 1.0, 0.15
    exact = least_loss(covariance, secret, budget, floor=floor_sd**2)
    found = joint_budget(covariance, secret, budget, floor_sd=floor_sd)
    assert found.objective == pytest.approx(exact, rel=SOLVER)
    assert np.linalg.eigvalsh(found.covariance)[0] >= floor_sd**2 * (1 - 1e-12)
    assert joint_target(covariance, secret, exact, floor_sd=floor_sd).objective == pytest.approx(budget, rel=SOLVER)
    block = block_budget(covariance, secret, budget, floor_sd=floor_sd)
    assert block.loss > found.loss
    assert np.linalg.eigvalsh(block.covariance)[0] >= floor_sd**2 * (1 - 1e-12)
    again = block_target(covariance, secret, block.loss, floor_sd=floor_sd)
    assert again.objective == pytest.approx(budget, rel=2 * SOLVER)


def test_a_secret_given_by_its_joint_covariance():
    """A mean over a window and the same secret seen through one more, nearly noiseless, coordinate of the trace."""
    covariance = matern12(7, 3.0)
    window = np.array([[0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0]]) / 3
    cross, variance = covariance @ window.T, window @ covariance @ window.T
    found = joint_budget(covariance, (cross, variance), 1.0)
    regression = cross / variance
    rest = covariance - regression @ cross.T
    exact = (regression.T @ np.linalg.solve(rest + np.eye(7), regression)).item()
    assert found.objective == pytest.approx(exact, rel=SOLVER)
    by_position = joint_budget(covariance, (covariance[:, [2]], covariance[[2]][:, [2]]), 1.0)
    assert by_position.objective == pytest.approx(joint_budget(covariance, [2], 1.0).objective, rel=SOLVER)


@pytest.mark.parametrize(("solver", "tolerance"), [("CVXOPT", 1e-6), ("SCS", 1e-3)])
def test_other_solvers_agree(solver, tolerance):
    """SCS is a first-order method at its default accuracy of 1e-4."""
    covariance, secret, budget = rbf(6, 2.0), [2], 0.5
    exact = least_loss(covariance, secret, budget)
    found = joint_budget(covariance, secret, budget, solver=solver)
    assert found.solver == solver
    assert found.objective == pytest.approx(exact, rel=tolerance)
    # Whatever the solver claims, the loss is that of its matrix and so never below the least for its cost.
    assert found.loss >= least_loss(covariance, secret, found.cost) * (1 - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("case", KNOWN["interior_point"], ids=lambda case: f"{case['kernel']} {case['secret']}")
def test_interior_point_answers_of_24_points(case):
    lengthscale, secret = case["lengthscale"], case["secret"]
    covariance = rbf(24, lengthscale) if case["kernel"] == "rbf" else periodic(24, lengthscale, case["period"])
    assert joint_budget(covariance, secret, 4.8).loss == pytest.approx(case["joint"], rel=SOLVER)
    assert block_budget(covariance, secret, 4.8).loss == pytest.approx(case["block"], rel=SOLVER)
