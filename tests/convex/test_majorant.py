"""The least matrix above several floors, and the least common scale, against certified answers and closed forms."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from jaxpriv.convex.majorant import least_majorant, least_scale
from jaxpriv.errors import InputError


KNOWN = json.loads((Path(__file__).parents[1] / "known_answers" / "majorants.json").read_text())
# The solver stops at a relative gap of 1e-8.
SOLVER = 1e-7


def requirements(case: dict) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each prior and secret, -C and H H^T / t."""
    lags = np.subtract.outer(np.arange(case["n"]), np.arange(case["n"]))
    pairs = []
    for lengthscale in case["lengthscales"]:
        covariance = np.exp(-(lags**2) / (2 * lengthscale**2)) + 1e-3 * np.eye(case["n"])
        for secret, target in case["requirements"]:
            variance = covariance[np.ix_(secret, secret)]
            regression = np.linalg.solve(variance, covariance[secret]).T
            constant = regression @ variance @ regression.T - covariance
            pairs.append(((constant + constant.T) / 2, regression @ regression.T / target))
    return pairs


def floors(case: dict) -> list[np.ndarray]:
    return [constant + slope for constant, slope in requirements(case)]


def positive_part(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


@pytest.mark.parametrize("case", KNOWN["designs"], ids=lambda case: case["name"])
def test_certified_designs(case):
    found = least_majorant(floors(case))
    assert found.objective == pytest.approx(case["trace"], rel=SOLVER)
    assert found.cost == pytest.approx(case["trace"], rel=1e-6)
    for floor in floors(case):
        assert np.linalg.eigvalsh(found.covariance - floor)[0] >= -1e-12


@pytest.mark.parametrize("case", KNOWN["common_scales"], ids=lambda case: case["name"])
def test_certified_common_scales(case):
    pairs = requirements(case)
    found = least_scale([pair[0] for pair in pairs], [pair[1] for pair in pairs], case["budget"])
    assert found.objective == pytest.approx(case["scale"], rel=SOLVER)
    assert found.loss == pytest.approx(case["scale"], rel=1e-6)
    assert found.cost <= case["budget"] * (1 + 1e-12)
    for constant, slope in pairs:
        assert np.linalg.eigvalsh(found.covariance - constant - slope / found.loss)[0] >= -1e-11


def test_common_scale_with_a_noise_floor_is_the_scaled_design():
    """At the scale found, the least noise above the scaled floors and the noise floor costs exactly the budget."""
    case = KNOWN["common_scales"][0]
    pairs = requirements(case)
    found = least_scale([pair[0] for pair in pairs], [pair[1] for pair in pairs], 1.0, floor_sd=0.05)
    assert np.linalg.eigvalsh(found.covariance)[0] >= 0.05**2 * (1 - 1e-9)
    back = least_majorant([constant + slope / found.objective for constant, slope in pairs], floor_sd=0.05)
    assert back.objective == pytest.approx(1.0, rel=SOLVER)


def test_one_floor_is_its_positive_part(rng):
    square = rng.standard_normal((6, 6))
    floor = (square + square.T) / 2
    assert least_majorant([floor]).covariance == pytest.approx(positive_part(floor), abs=1e-5)
    floor_sd = 0.3
    exact = floor_sd**2 * 6 + np.trace(positive_part(floor - floor_sd**2 * np.eye(6)))
    assert least_majorant([floor], floor_sd=floor_sd).objective == pytest.approx(exact, rel=SOLVER)


def test_two_semidefinite_floors_have_a_closed_form(rng):
    """F1 + (F2 - F1)+ where both are above zero already."""
    left, right = rng.standard_normal((2, 6, 3))
    first, second = left @ left.T, right @ right.T
    exact = np.trace(first + positive_part(second - first))
    assert least_majorant([first, second]).objective == pytest.approx(exact, rel=SOLVER)


def test_floors_below_zero_need_no_noise():
    found = least_majorant([-np.eye(3), -2 * np.eye(3)], floor_sd=0.1)
    assert found.covariance == pytest.approx(0.01 * np.eye(3))
    assert np.all(least_majorant([-np.eye(3)]).covariance == 0)


def test_matrix_mechanism_of_prefix_sums():
    """The best correlated noise for prefix sums in differential privacy (Li et al. 2010, Denisov et al. 2022)."""
    known = KNOWN["mechanism_of_prefix_sums"]
    n = known["n"]
    workload = np.tril(np.ones((n, n)))
    changes = [np.outer(row, row) for row in np.eye(n)]
    found = least_majorant(changes, weights=workload.T @ workload)
    assert found.objective == pytest.approx(known["least_error"], rel=SOLVER)
    # One value moving by 1 moves the noise by at most one standard deviation.
    assert np.max(np.diag(np.linalg.inv(found.covariance))) <= 1 + 1e-9


def test_bad_input():
    with pytest.raises(InputError, match="empty"):
        least_majorant([])
    with pytest.raises(InputError, match="different orders"):
        least_majorant([np.eye(2), np.eye(3)])
    with pytest.raises(InputError, match="floor 1 is not symmetric"):
        least_majorant([np.eye(2), np.array([[1.0, 2.0], [0.0, 1.0]])])
    with pytest.raises(InputError, match="constant 0 is not negative semidefinite"):
        least_scale([np.eye(2)], [np.eye(2)], 1.0)
    with pytest.raises(InputError, match="slope 0 is not positive semidefinite and different from zero"):
        least_scale([-np.eye(2)], [np.zeros((2, 2))], 1.0)
    with pytest.raises(InputError, match="2 constants and 1 slopes"):
        least_scale([-np.eye(2)] * 2, [np.eye(2)], 1.0)
