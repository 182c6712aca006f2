"""The matrix mechanism: known answers, a cone program, and the privacy of what it returns."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from jaxpriv.designs.matrix_mechanism.participations import Participations
from jaxpriv.designs.matrix_mechanism.verb import matrix_mechanism
from jaxpriv.designs.result import DesignResult
from jaxpriv.errors import InputError


KNOWN = json.loads((Path(__file__).parents[1] / "known_answers" / "matrix_mechanisms.json").read_text())
# The designs stop at a gap of 1e-6, 1e-8 of it from the noise floor.
GAP = 1e-6


@pytest.fixture(scope="module")
def prefix():
    return matrix_mechanism(np.tri(12))


def test_prefix_sums(prefix):
    exact = KNOWN["dense"][0]["total_error"]
    # The known answer has ten digits after the point.
    assert prefix.lower_bound <= exact + 1e-10
    assert exact - 1e-10 <= prefix.total_error <= exact * (1 + GAP)
    assert prefix.result is DesignResult.optimal and prefix.gap <= GAP
    assert "gap" in str(prefix)


def test_factorisation_and_errors_are_those_of_the_noise(prefix):
    assert np.allclose(prefix.decoder @ prefix.strategy, prefix.workload, atol=1e-13)
    assert np.array_equal(prefix.strategy, np.tril(prefix.strategy))
    covariance = prefix.workload @ prefix.covariance @ prefix.workload.T
    # The floor is 1e-8 of the error.
    assert np.allclose(np.diagonal(covariance), prefix.variances, rtol=1e-7)
    assert np.trace(covariance) == pytest.approx(prefix.total_error, rel=1e-12)
    assert prefix.rms_error == pytest.approx(math.sqrt(np.mean(prefix.variances)))
    assert prefix.max_error == pytest.approx(math.sqrt(np.max(prefix.variances)))
    released = prefix.mechanism.release(np.zeros(12))
    assert released is not None


def test_one_contribution_is_exactly_as_private_as_claimed(prefix):
    precision = np.linalg.inv(prefix.noising @ prefix.noising.T)
    shift = math.sqrt(np.max(np.diagonal(precision)))
    assert shift <= prefix.mu * (1 + 1e-12) and prefix.mu <= 1.0
    assert shift == pytest.approx(1.0, abs=1e-6)


def test_epsilon_is_that_of_an_independent_accountant(prefix):
    from dp_accounting import dp_event
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant()
    accountant.compose(dp_event.GaussianDpEvent(1.0 / prefix.mu))
    delta = 1e-5
    theirs = accountant.get_epsilon(delta)
    ours = prefix.epsilon(delta)
    # The accountant rounds losses up to a grid of 1e-4.
    assert ours == pytest.approx(theirs, rel=2e-3)
    at = stats.norm.cdf(0.5 * prefix.mu - ours / prefix.mu) - math.exp(ours) * stats.norm.cdf(
        -0.5 * prefix.mu - ours / prefix.mu
    )
    assert at <= delta * (1 + 1e-9)


def test_noise_is_proportional_to_one_over_mu():
    half = matrix_mechanism(np.tri(12), mu=0.5)
    exact = 4 * KNOWN["dense"][0]["total_error"]
    # The known answer has ten digits after the point.
    assert half.lower_bound <= exact + 4e-10 and exact - 4e-10 <= half.total_error
    assert half.gap <= GAP and half.mu <= 0.5


def cone_program(workload, changes):
    """min tr(AᵀA G) with G ⪰ u uᵀ, as [[G, u], [uᵀ, 1]] ⪰ 0."""
    import cvxpy as cp

    size = workload.shape[1]
    noise = cp.Variable((size, size), PSD=True)
    constraints = [cp.bmat([[noise, change[:, None]], [change[None, :], np.ones((1, 1))]]) >> 0 for change in changes.T]
    problem = cp.Problem(cp.Minimize(cp.trace(workload.T @ workload @ noise)), constraints)
    problem.solve(solver="CLARABEL")
    return float(problem.value)


@pytest.mark.parametrize(
    ("shape", "participations"),
    [
        pytest.param((6, 4), None, marks=pytest.mark.slow),
        ((3, 5), None),
        ((4, 4), Participations(2, 2)),
        pytest.param((4, 4), Participations(2, 2, "exact"), marks=pytest.mark.slow),
    ],
    ids=["tall", "wide", "two participations", "two exactly spaced"],
)
def test_against_a_cone_program(rng, shape, participations):
    workload = rng.standard_normal(shape)
    changes = np.eye(shape[1]) if participations is None else participations.changes(shape[1])
    found = matrix_mechanism(workload, participations=participations)
    # The solver's own relative gap is 1e-8 and its error about a hundred times that.
    exact = cone_program(workload, changes)
    assert found.lower_bound <= exact * (1 + 1e-6)
    assert found.total_error == pytest.approx(exact, rel=3e-6)
    assert found.gap <= GAP
    assert np.allclose(found.decoder @ found.strategy, workload, atol=1e-12)
    assert np.max(np.linalg.norm(found.strategy @ changes, axis=0)) <= 1 + 1e-12


def test_queries_that_do_not_determine_the_data():
    workload = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]])
    found = matrix_mechanism(workload)
    # Two groups that are only asked for together: the two sums with weights 1, 1 and √2 of the total, 2 + √3.
    assert found.total_error == pytest.approx(2 + math.sqrt(3), rel=1e-9)
    assert found.mechanism is None and found.strategy.shape == (2, 4)
    assert np.allclose(found.decoder @ found.strategy, workload, atol=1e-12)
    with pytest.raises(InputError, match="strategy and decoder"):
        _ = found.covariance


def test_a_workload_whose_columns_have_very_different_sizes(rng):
    workload = np.tri(12) * 10.0 ** np.linspace(-2, 2, 12)[rng.permutation(12)]
    found = matrix_mechanism(workload)
    assert found.gap <= GAP


def test_exact_spacing_agrees_with_another_optimiser():
    (case,) = KNOWN["exact_spacing"]
    sharing = Participations(case["count"], case["separation"], "exact")
    found = matrix_mechanism(np.tri(case["size"]), participations=sharing)
    # Their strategies do not let steps of one person overlap; here that is no restriction.
    assert found.lower_bound <= case["total_error"] + 1e-6
    assert found.total_error == pytest.approx(case["total_error"], rel=GAP)


def test_banded_agrees_with_another_optimiser_and_is_never_better_than_dense():
    (case,) = KNOWN["banded"]
    sharing = Participations(case["count"], case["separation"])
    found = matrix_mechanism(
        np.tri(case["size"]), participations=sharing, structure="banded", bandwidth=case["bandwidth"]
    )
    assert found.total_error == pytest.approx(case["total_error"], rel=1e-6)
    assert found.gap <= GAP and found.mu <= 1.0 and found.vector_mu <= 1.0 + 1e-9
    lag = np.subtract.outer(np.arange(12), np.arange(12))
    assert not np.any(found.strategy[(lag < 0) | (lag >= case["bandwidth"])])
    dense = matrix_mechanism(np.tri(case["size"]), participations=sharing)
    assert dense.lower_bound < found.total_error and dense.total_error < found.total_error


@pytest.mark.parametrize(
    "case",
    [KNOWN["toeplitz"][0], pytest.param(KNOWN["toeplitz"][1], marks=pytest.mark.slow)],
    ids=["12", "64"],
)
def test_toeplitz_agrees_with_another_optimiser(case):
    found = matrix_mechanism(np.tri(case["size"]), structure="toeplitz")
    assert found.total_error == pytest.approx(case["total_error"], rel=1e-6)
    assert found.lower_bound < found.total_error and found.mu <= 1.0
    first = found.strategy[:, 0]
    for j in range(case["size"]):
        assert np.array_equal(found.strategy[j:, j], first[: case["size"] - j])


@pytest.mark.slow
def test_toeplitz_for_several_participations():
    sharing = Participations(3, 4)
    found = matrix_mechanism(np.tri(12), structure="toeplitz", participations=sharing, bandwidth=4)
    shift = np.max(np.linalg.norm(found.strategy @ sharing.changes(12), axis=0))
    assert shift <= found.mu * (1 + 1e-12) <= 1.0 + 1e-12
    dense = matrix_mechanism(np.tri(12), participations=sharing)
    assert found.lower_bound <= dense.total_error < found.total_error


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workload": np.zeros((3, 2))}, "column 0 of workload is zero"),
        ({"workload": np.ones(3)}, "dimension"),
        ({"workload": np.array([[np.nan]])}, "not finite"),
        ({"mu": 0.0}, "mu is 0.0"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"structure": "diagonal"}, "structure is 'diagonal'"),
        ({"bandwidth": 3}, "bandwidth is for"),
        ({"structure": "banded"}, "bandwidth is None"),
        ({"structure": "banded", "bandwidth": 3, "participations": Participations(2, 2)}, "closed sensitivity"),
        ({"participations": np.ones((2, 2))}, "2 rows"),
        ({"participations": np.ones((4, 1))}, "do not span"),
        ({"structure": "toeplitz", "participations": np.eye(4)}, "needs Participations"),
    ],
)
def test_what_is_refused(changes, words):
    with pytest.raises(InputError, match=words):
        matrix_mechanism(**{"workload": np.tri(4), **changes})
