"""What the convex programs refuse, before any work, and how they report what a solver did."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from jaxpriv.convex.block import block_budget
from jaxpriv.convex.conditional import conditional
from jaxpriv.convex.joint import joint_budget, joint_target
from jaxpriv.convex.majorant import least_majorant
from jaxpriv.convex.published import algorithm_1, sdp_a_coded
from jaxpriv.convex.solving import ConvexSolution, lifted, predicted_size, run
from jaxpriv.errors import CertificateError, InfeasibleError, InputError


@pytest.mark.parametrize(
    "program",
    [
        lambda prior: joint_budget(prior, [0], 1.0),
        lambda prior: joint_target(prior, [0], 1.0),
        lambda prior: block_budget(prior, [0], 1.0),
        lambda prior: least_majorant([prior]),
        lambda prior: sdp_a_coded(prior, [0], 1.0),
    ],
    ids=["joint budget", "joint target", "block", "majorant", "SDP_A"],
)
def test_200_points_are_refused_with_advice(program, monkeypatch):
    def solve(*_, **__):
        raise AssertionError("the solver was called")

    monkeypatch.setattr("jaxpriv.convex.solving.cvxpy", solve)
    with pytest.raises(InputError, match=r"rows .* GB, .* n_max=60.*jaxpriv.design"):
        program(np.eye(200))


def test_many_secrets_count_towards_the_size():
    secrets = [[i] for i in range(40)]
    with pytest.raises(InputError, match="41 semidefinite cones"):
        algorithm_1(np.eye(40), secrets, 1.0)


def test_predicted_size():
    """Rows of a cone of order m: m (m + 1)/2. Memory: 0.2 and 2.9 GB measured for two cones of order 50 and 100."""
    rows, size = predicted_size([50, 51])
    assert rows == 1275 + 1326
    assert size == pytest.approx(0.2e9, rel=0.2)
    assert predicted_size([100, 101])[1] == pytest.approx(2.9e9, rel=0.2)


def test_n_max_is_the_largest_size_that_passes():
    assert joint_budget(np.eye(5), [0], 1.0, n_max=5).loss == pytest.approx(1.0, rel=1e-6)
    with pytest.raises(InputError, match="n_max=4"):
        joint_budget(np.eye(5), [0], 1.0, n_max=4)


def test_without_cvxpy_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(InputError, match=r'pip install "jaxpriv\[convex\]"'):
        joint_budget(np.eye(3), [0], 1.0)


def test_unknown_solver():
    with pytest.raises(InputError, match=r"'NONE' is not installed; cvxpy sees .*CLARABEL"):
        joint_budget(np.eye(3), [0], 1.0, solver="NONE")


def test_a_solver_that_stops_early_claims_nothing():
    with pytest.raises(CertificateError, match="nothing is claimed"):
        joint_budget(np.eye(3) + 0.5, [0], 1.0, options={"max_iter": 1})


def test_infeasible_program():
    import cvxpy as cp

    x = cp.Variable()
    with pytest.raises(InfeasibleError, match="found the test program infeasible"):
        run(cp.Problem(cp.Minimize(x), [x >= 1, x <= 0]), "CLARABEL", None, "test program")


def test_floor_that_costs_the_budget():
    with pytest.raises(InfeasibleError, match=r"alone costs 3; the budget is 2") as error:
        joint_budget(np.eye(3), [0], 2.0, floor_sd=1.0)
    assert error.value.smallest_feasible == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("prior", "secret", "words"),
    [
        (np.ones((2, 3)), [0], "square"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), [0], "not positive semidefinite"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), [0], "not symmetric"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), [0], r"not finite at \(0, 1\)"),
        (np.eye(3), [], "non-empty"),
        (np.eye(3), [3], "position 3 is outside 0..2"),
        (np.eye(3), [-1], "position -1 is outside"),
        (np.eye(3), [1, 1], "twice"),
        (np.eye(3), [0.5], "whole positions"),
        (np.ones((3, 3)), [0, 1], "singular"),
        (np.eye(3), (np.ones((2, 1)), np.eye(1)), r"shape \(2, 1\); expected \(3, 1\)"),
        (np.eye(3), (np.full((3, 1), np.inf), np.eye(1)), "not finite"),
    ],
)
def test_bad_priors_and_secrets(prior, secret, words):
    with pytest.raises(InputError, match=words):
        joint_budget(prior, secret, 1.0)


@pytest.mark.parametrize("budget", [0.0, -1.0, np.nan, np.inf])
def test_bad_budgets(budget):
    with pytest.raises(InputError, match="budget must be a positive"):
        joint_budget(np.eye(3), [0], budget)


@pytest.mark.parametrize("weights", [np.ones(2), np.zeros(3), np.diag([1.0, 1.0, 0.0])])
def test_bad_weights(weights):
    with pytest.raises(InputError, match="weights"):
        joint_target(np.eye(3), [0], 1.0, weights=weights)


def test_block_needs_positions_and_a_rest():
    with pytest.raises(InputError, match="fills the trace"):
        block_budget(np.eye(2), [0, 1], 1.0)
    with pytest.raises(InputError, match="positions"):
        block_budget(np.eye(2), (np.ones((2, 1)), 3 * np.eye(1)), 1.0)


def test_loss_is_infinite_where_a_direction_has_no_noise():
    """Three perfectly correlated points: noise on one of them hides nothing."""
    given = conditional(np.ones((3, 3)), [0])
    assert given.loss(np.diag([5.0, 0.0, 0.0])) == np.inf
    # Noise that rounding alone makes positive does not count.
    assert given.loss(np.diag([5.0, 1e-17, 1e-17])) == np.inf
    # Independent noise v on three copies of one value: the precisions add up.
    assert given.loss(0.5 * np.eye(3)) == pytest.approx(6.0, rel=1e-12)


def test_a_matrix_that_is_not_psd_is_lifted():
    raised, lift = lifted(np.diag([1.0, -1e-6]))
    assert lift == pytest.approx(1e-6)
    assert np.linalg.eigvalsh(raised)[0] >= 0
    assert np.all(lifted(np.eye(2))[0] == np.eye(2))


def test_result_is_frozen():
    found = joint_budget(np.eye(3), [0], 1.0)
    assert isinstance(found, ConvexSolution)
    assert found.seconds > 0
    with pytest.raises(AttributeError):
        found.loss = 0.0
