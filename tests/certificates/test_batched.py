"""The certificates of many designs at once, against the one-by-one certificate and against ball arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from jaxpriv.certificates.batched import basic_loss_bounds, batched_cost_upper, square_bounds_of, verified_definite
from jaxpriv.certificates.batched_lower_bounds import batch_trials, batched_cost_lower, batched_loss_lower
from jaxpriv.certificates.cost import cost_upper
from jaxpriv.certificates.loss import loss_bounds


def problems(rng: np.random.Generator, m: int = 12, p: int = 3, n: int = 14, nugget: float = 1e-2):
    """Matérn-3/2 covariances in squared metres, the middle secret, and the optimal noise of the first prior."""
    times = np.sort(rng.uniform(0.0, 100.0, (m, n)), axis=1)
    scaled = np.sqrt(3.0) * np.abs(times[:, :, None] - times[:, None, :])[:, None] / rng.uniform(5, 60, (m, p, 1, 1))
    covariance = 400.0 * ((1.0 + scaled) * np.exp(-scaled)) + nugget * np.eye(n)
    covariance = np.tril(covariance) + np.swapaxes(np.tril(covariance, -1), 2, 3)
    position = np.full(m, n // 2)
    power = rng.uniform(10.0, 2000.0, m)
    direction = np.linalg.solve(covariance[:, 0] + power[:, None, None] * np.eye(n), covariance[:, 0, :, n // 2, None])
    factor = direction / np.linalg.norm(direction, axis=1, keepdims=True) * np.sqrt(power)[:, None, None]
    return covariance, position, factor, 1e-6 * power, np.full((m, p), nugget), power


def one_by_one(covariance: np.ndarray, at: int, factor: np.ndarray, floor: float):
    joint = (covariance[:, at : at + 1], covariance[at : at + 1, at : at + 1])
    return loss_bounds(covariance, [joint], factor, floor)[0]


@pytest.mark.parametrize("scale", [1.0, 2.0**-80, 3e7])
def test_the_bounds_enclose_those_of_the_one_by_one_certificate_and_agree_to_1e_9(rng, scale):
    covariance, position, factor, floor, nugget, _ = problems(rng)
    bounds = basic_loss_bounds(covariance * scale, position, factor * np.sqrt(scale), floor * scale, nugget * scale)
    # What is loose is said to be, and is then certified one by one.
    assert np.mean(bounds.loose) <= 0.1
    for i in range(len(covariance)):
        for j in range(covariance.shape[1]):
            exact = one_by_one(
                covariance[i, j] * scale, int(position[i]), factor[i] * np.sqrt(scale), float(floor[i] * scale)
            )
            # The true loss lies in [exact.lower, exact.upper], so a valid bound cannot be beyond its other end.
            assert bounds.upper[i, j] >= exact.lower
            assert bounds.lower[i, j] <= exact.upper
            if not bounds.loose[i, j]:
                assert bounds.upper[i, j] == pytest.approx(exact.upper, rel=1e-9)
                assert bounds.lower[i, j] == pytest.approx(exact.lower, rel=1e-9)


def test_padding_changes_nothing(rng):
    covariance, position, factor, floor, nugget, _ = problems(rng)
    m, p, n, _ = covariance.shape
    padded = np.zeros((m, p, n + 5, n + 5))
    padded[:, :, :n, :n] = covariance
    padded[:, :, range(n, n + 5), range(n, n + 5)] = 400.0
    longer = np.concatenate([factor, np.zeros((m, 5, 1))], axis=1)
    bounds = basic_loss_bounds(covariance, position, factor, floor, nugget)
    other = basic_loss_bounds(padded, position, longer, floor, nugget)
    # The bounds are of norms, which the padded points enlarge a little.
    np.testing.assert_allclose(other.upper, bounds.upper, rtol=1e-9)


def test_a_relative_radius_covers_every_covariance_within_it(rng):
    covariance, position, factor, floor, nugget, _ = problems(rng, m=4, p=1)
    radius = 1e-7
    bounds = basic_loss_bounds(covariance, position, factor, floor, nugget, radius)
    moved = covariance * (1.0 + radius * np.sign(rng.standard_normal(covariance.shape)))
    moved = np.tril(moved) + np.swapaxes(np.tril(moved, -1), 2, 3)
    for i in range(4):
        assert bounds.upper[i, 0] >= one_by_one(moved[i, 0], int(position[i]), factor[i], float(floor[i])).upper


def test_what_cannot_be_verified_is_infinite_and_leaves_the_others_alone(rng):
    covariance, position, factor, floor, nugget, _ = problems(rng)
    alone = basic_loss_bounds(covariance, position, factor, floor, nugget)
    covariance[1, 0] = np.nan
    covariance[2] = 0.0
    factor[3] = 0.0
    floor[3] = 0.0
    covariance[3] = 400.0  # all points equal, no noise: everything is revealed
    bounds = basic_loss_bounds(covariance, position, factor, floor, np.where(np.arange(12)[:, None] == 3, 0.0, nugget))
    assert np.all(np.isinf(bounds.upper[[1, 2, 3]]))
    np.testing.assert_array_equal(bounds.upper[4:], alone.upper[4:])


def test_costs_and_squares_are_upper_bounds(rng):
    _, _, factor, floor, _, _ = problems(rng)
    found = batched_cost_upper(factor, floor, np.full(len(factor), 14))
    for i in range(len(factor)):
        exact = cost_upper(factor[i], float(floor[i]))
        assert exact * (1 - 1e-15) <= found[i] <= exact * (1 + 1e-13)
    below, above = square_bounds_of(np.array([0.0, 0.1, 3.0]))
    assert below[0] == above[0] == 0.0
    assert below[1] < 0.1**2 < above[1]


def test_verified_eigenvalues_are_lower_bounds(rng):
    square = rng.standard_normal((5, 8, 8))
    matrix = square @ np.swapaxes(square, 1, 2) + 0.5 * np.eye(8)
    least = np.linalg.eigvalsh(matrix)[:, 0]
    found = verified_definite(matrix, 0.9 * least)
    assert np.all(found <= least * (1 + 1e-12))
    assert np.all(found >= 0.89 * least)
    assert np.all(verified_definite(matrix, 1.1 * least) <= least * (1 + 1e-12))


def test_lower_bounds_are_tight_at_the_optimum_and_hold_for_any_vectors(rng):
    covariance, position, factor, floor, nugget, power = problems(rng, p=1)
    bounds = basic_loss_bounds(covariance, position, factor, floor, nugget)
    size = np.full(len(power), 14)
    cost = batched_cost_upper(factor, floor, size)
    trials = batch_trials(covariance, position, bounds.trial)
    losses = batched_loss_lower(trials, cost, floor, size)
    assert np.all(losses <= bounds.upper[:, 0])
    # The noise is optimal for the prior plus its floor but for the floor's own share of 1e-6 of the power.
    assert np.all(losses >= bounds.upper[:, 0] * (1 - 1e-4))
    costs = batched_cost_lower(trials, bounds.upper[:, 0], floor, size)
    assert np.all(costs <= cost)
    assert np.all(costs >= cost * (1 - 1e-4))
    for _ in range(20):
        others = batch_trials(covariance, position, rng.standard_normal(bounds.trial.shape) + bounds.trial)
        assert np.all(batched_loss_lower(others, cost, floor, size) <= losses * (1 + 1e-4))
        assert np.all(batched_cost_lower(others, bounds.upper[:, 0], floor, size) <= cost)
