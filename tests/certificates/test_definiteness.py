"""Verified semidefiniteness and eigenvalues against 900-bit ball arithmetic."""

from __future__ import annotations

import math

import exact_loss as oracle
import flint
import numpy as np
import pytest

from jaxpriv.certificates import (
    definiteness,
    dominates,
    eigenvalue_bounds,
    is_semidefinite,
    largest_eigenvalue_upper,
    log_determinant_bounds,
    smallest_eigenvalue_lower,
)
from jaxpriv.errors import InputError


def matrices(count: int, seed: int = 12) -> list[np.ndarray]:
    """Squared-exponential, Hilbert, Wishart and badly scaled matrices, some shifted to just above or below singular."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        size = int(rng.integers(2, 41))
        kind = number % 4
        if kind == 0:
            times = np.arange(size) / np.exp(rng.uniform(0, 3))
            matrix = np.exp(-((times[:, None] - times) ** 2)) + float(rng.choice([0, 1e-14, 1e-8])) * np.eye(size)
        elif kind == 1:
            index = np.arange(min(size, 12))
            matrix = 1.0 / (index[:, None] + index + 1)
        else:
            root = rng.standard_normal((size, int(rng.integers(1, size + 4))))
            matrix = root @ root.T
            if kind == 3:
                scale = 10.0 ** rng.uniform(-8, 8, size)
                matrix = matrix * np.outer(scale, scale)
        matrix = (matrix + matrix.T) / 2
        if number % 3 == 0:
            shift = float(np.linalg.eigvalsh(matrix)[0]) * (1 + float(rng.choice([-1e-14, 1e-14, -1e-2, 1e-2])))
            matrix = matrix - shift * np.eye(len(matrix))
        found.append(matrix)
    return found


def exactly_definite(matrix: np.ndarray) -> bool | None:
    previous, flint.ctx.prec = flint.ctx.prec, oracle.BITS
    try:
        return oracle.positive_definite(oracle.ball_matrix(matrix))
    finally:
        flint.ctx.prec = previous


def check_test(given: list[np.ndarray]) -> None:
    accepted = 0
    for matrix in given:
        proven = is_semidefinite(matrix)
        if proven:
            accepted += 1
            assert exactly_definite(matrix) is not False
        size = len(matrix)
        needed = 4 * (size + 8) * 2.0**-53 * float(np.trace(matrix))
        if exactly_definite(matrix - needed * np.eye(size)) is True:
            assert proven
    assert len(given) / 5 < accepted < len(given)  # both answers occur


def test_no_indefinite_matrix_is_accepted_and_no_clearly_definite_one_refused() -> None:
    check_test(matrices(60))


@pytest.mark.slow
def test_semidefiniteness_of_three_hundred_matrices() -> None:
    check_test(matrices(300, seed=13))


def test_double_double_decides_where_float64_cannot() -> None:
    times = np.arange(12.0)
    smooth = np.exp(-((times[:, None] - times) ** 2) / (2 * 5.5**2))  # smallest eigenvalue about 2e-15
    assert definiteness.margin(smooth, definiteness.propose(smooth)) < 0
    assert exactly_definite(smooth) is True
    assert is_semidefinite(smooth)


def test_a_radius_covers_every_perturbation_within_it() -> None:
    rng = np.random.default_rng(3)
    for matrix in matrices(40, seed=5):
        lowest = smallest_eigenvalue_lower(matrix)
        if lowest <= 0:
            continue
        for radius in (0.5 * lowest, 2 * float(np.linalg.eigvalsh(matrix)[0])):
            if is_semidefinite(matrix, radius):
                direction = np.linalg.eigh(matrix)[1][:, :1]
                moved = matrix - radius * 0.999 * direction @ direction.T
                moved = (moved + moved.T) / 2
                assert exactly_definite(moved + 1e-15 * np.trace(matrix) * np.eye(len(matrix))) is not False
        entries = np.full(matrix.shape, 10 * lowest) * (1 + rng.random())
        assert not is_semidefinite(matrix, (entries + entries.T) / 2 + np.diag(np.diagonal(matrix)))


def test_edge_cases_of_the_semidefinite_test() -> None:
    assert is_semidefinite(np.array([[2.0]]))
    assert not is_semidefinite(np.array([[-2.0]]))
    assert is_semidefinite(np.zeros((3, 3)))
    assert is_semidefinite(np.diag([1.0, 0.0, 2.0]))  # a row of zeros
    assert not is_semidefinite(np.array([[1.0, 1e-9], [1e-9, 0.0]]))
    assert not is_semidefinite(np.array([[5e-324]]))  # outside the range where scaling is exact
    assert not is_semidefinite(np.eye(2), radius=1.5)
    assert is_semidefinite(np.eye(2), radius=0.5)
    assert is_semidefinite(np.diag([1e-8, 1e8]))
    for bad in (np.array([[math.nan]]), np.array([[math.inf]]), np.ones((2, 3)), np.array([[1.0, 2.0], [0.0, 1.0]])):
        with pytest.raises(InputError):
            is_semidefinite(bad)


def test_eigenvalues_lie_within_their_bounds() -> None:
    tight = []
    for matrix in matrices(40, seed=21):
        if len(matrix) > 20:
            continue
        lower, upper = eigenvalue_bounds(matrix)
        previous, flint.ctx.prec = flint.ctx.prec, 400
        try:
            exact = flint.acb_mat(oracle.ball_matrix(matrix)).eig(algorithm="approx")
            exact = sorted((value.real for value in exact), key=lambda value: float(value))
            # the approximate algorithm is accurate to far more digits than a double holds
            for low, value, high in zip(lower, exact, upper, strict=True):
                assert flint.arb(float(low)) <= value <= flint.arb(float(high))
            assert flint.arb(smallest_eigenvalue_lower(matrix)) <= exact[0]
            assert flint.arb(largest_eigenvalue_upper(matrix)) >= exact[-1]
            tight.append(oracle.relative(largest_eigenvalue_upper(matrix), exact[-1]))
        finally:
            flint.ctx.prec = previous
    assert max(tight) < 1e-12


def test_smallest_eigenvalue_of_an_ill_conditioned_matrix_is_within_a_small_factor() -> None:
    times = np.arange(12.0)
    smooth = np.exp(-((times[:, None] - times) ** 2) / (2 * 5.5**2))
    previous, flint.ctx.prec = flint.ctx.prec, 400
    try:
        exact = min(float(value.real) for value in flint.acb_mat(oracle.ball_matrix(smooth)).eig(algorithm="approx"))
    finally:
        flint.ctx.prec = previous
    bound = smallest_eigenvalue_lower(smooth)
    assert 0 < bound <= exact
    assert bound > exact / 100


def test_loewner_order_is_proven_or_not_claimed() -> None:
    rng = np.random.default_rng(2)
    root = rng.standard_normal((9, 9))
    base = root @ root.T
    base = (base + base.T) / 2
    assert dominates(base + np.eye(9), base)
    assert not dominates(base, base + np.eye(9))
    assert dominates(base, base)
    direction = rng.standard_normal((9, 1))
    assert not dominates(base - 1e-12 * (direction @ direction.T + direction @ direction.T).T / 2, base)
    with pytest.raises(InputError):
        dominates(base, base[:3, :3])


def test_log_determinant_lies_within_its_bounds() -> None:
    widths = []
    for matrix in matrices(60, seed=31):
        lower, upper = log_determinant_bounds(matrix)
        previous, flint.ctx.prec = flint.ctx.prec, oracle.BITS
        try:
            if oracle.positive_definite(oracle.ball_matrix(matrix)) is not True:
                assert (lower, upper) == (-math.inf, math.inf)
                continue
            exact = oracle.ball_matrix(matrix).det().log()
            assert flint.arb(lower) <= exact <= flint.arb(upper)
        finally:
            flint.ctx.prec = previous
        scale = np.sqrt(np.diagonal(matrix))
        if np.linalg.cond(matrix / np.outer(scale, scale)) <= 1e12:
            widths.append(upper - lower)
    assert max(widths) <= 1e-6
    assert len(widths) >= 10


def test_log_determinant_allows_for_a_radius() -> None:
    matrix = np.array([[2.0, 0.5], [0.5, 1.0]])
    lower, upper = log_determinant_bounds(matrix, radius=0.01)
    for sign in (-1, 1):
        assert lower <= math.log(np.linalg.det(matrix + sign * 0.01 * np.eye(2))) <= upper
    assert log_determinant_bounds(matrix, radius=5.0) == (-math.inf, math.inf)
