"""The certificates of many designs on hard problems: against ball arithmetic, and how wide they are."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from exact_loss import below, true_loss

from jaxpriv.certificates.batched import basic_loss_bounds, batched_cost_upper
from jaxpriv.certificates.batched_lower_bounds import batch_trials, batched_cost_lower, batched_loss_lower


def windows(
    rng: np.random.Generator,
    m: int,
    n: int,
    p: int = 1,
    sd: tuple[float, float] = (1e3, 1e4),
    nugget_sd: tuple[float, float] = (0.1, 3.0),
    floor_sd: float = 1.0,
    repeated: bool = False,
) -> dict[str, Any]:
    """Five-minute windows, Matérn-3/2, variances in square metres; noise of 25 m a point, best for the first prior."""

    def between(low: float, high: float, *shape: int) -> np.ndarray:
        return np.exp(rng.uniform(np.log(low), np.log(high), shape))

    times = np.sort(rng.uniform(0.0, 300.0, (m, n)), axis=1)
    if repeated:
        times[:, n // 2 + 1] = times[:, n // 2]
    scaled = np.abs(times[:, :, None] - times[:, None, :])[:, None] * np.sqrt(3.0) / between(50.0, 2000.0, m, p, 1, 1)
    covariance = between(*sd, m, p, 1, 1) ** 2 * ((1.0 + scaled) * np.exp(-scaled))
    covariance = np.tril(covariance) + np.swapaxes(np.tril(covariance, -1), 2, 3)
    nugget = between(*nugget_sd, m, p) ** 2
    covariance[:, :, np.arange(n), np.arange(n)] += nugget[..., None]
    power = n * (25.0**2 - floor_sd**2)
    shifted = covariance[:, 0] + (power + floor_sd**2) * np.eye(n)
    direction = np.linalg.solve(shifted, covariance[:, 0, :, n // 2, None])
    return {
        "covariance": covariance,
        "position": np.full(m, n // 2),
        "factor": direction / np.linalg.norm(direction, axis=1, keepdims=True) * np.sqrt(power),
        "floor_variance": np.full(m, floor_sd**2),
        "definite": nugget,
    }


def assert_enclosed(problem: dict[str, Any], radius: float = 0.0, moved: np.ndarray | None = None) -> None:
    """The true loss of every problem, of other covariances `moved` if given, lies within the bounds."""
    bounds = basic_loss_bounds(**problem, relative_radius=radius)
    covariance = problem["covariance"] if moved is None else moved
    for i, at in enumerate(problem["position"]):
        for j in range(covariance.shape[1]):
            one = covariance[i, j]
            exact = true_loss(
                one,
                one[:, at : at + 1],
                one[at : at + 1, at : at + 1],
                problem["factor"][i],
                problem["floor_variance"][i],
            )
            if exact is None:
                assert np.isinf(bounds.upper[i, j])
                continue
            assert below(bounds.lower[i, j], exact)
            assert exact <= flint.arb(float(bounds.upper[i, j]))


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize(
    ("sd", "nugget_sd", "floor_sd"),
    [((1e3, 1e4), (0.1, 3.0), 1.0), ((1e6, 1e8), (1e-3, 1e-2), 1e-2), ((1.0, 30.0), (1e-9, 1e-6), 1e-7)],
)
def test_the_true_loss_is_enclosed(rng, sd, nugget_sd, floor_sd, repeated):
    problem = windows(rng, 4, 9, 2, sd=sd, nugget_sd=nugget_sd, floor_sd=floor_sd, repeated=repeated)
    assert_enclosed(problem)
    if not repeated and nugget_sd[0] > 0.01:
        assert np.all(np.isfinite(basic_loss_bounds(**problem).upper))
    problem["factor"] = 25.0 * rng.standard_normal((4, 9, 3))
    assert_enclosed(problem)


def test_a_coordinate_of_another_size_is_enclosed(rng):
    for scale in (1e-40, 1e-12, 1e12, 1e40):
        problem = windows(rng, 2, 6)
        problem["covariance"][:, :, 1, :] *= scale
        problem["covariance"][:, :, :, 1] *= scale
        problem["factor"][:, 1] *= scale
        assert_enclosed(problem)


def test_every_covariance_within_the_radius_is_enclosed(rng):
    radius = 1e-9
    problem = windows(rng, 4, 8)
    bounds = basic_loss_bounds(**problem, relative_radius=radius)
    v = -bounds.trial
    v[:, :, 4] += 1.0
    # The worst signs for the quadratic form of v, both ways: nothing within the radius moves the loss further.
    signs = np.sign(v[..., :, None] * v[..., None, :])
    for direction in (signs, -signs):
        assert_enclosed(problem, radius, problem["covariance"] * (1.0 + 0.999 * radius * direction))
    # With a radius that matters to first order alone, what is said to be due to it is how far apart those two are.
    radius = 1e-12
    bounds = basic_loss_bounds(**problem, relative_radius=radius)
    ends = [problem["covariance"] * (1.0 + radius * direction) for direction in (signs, -signs)]
    reached = basic_loss_bounds(**problem | {"covariance": ends[0]}).upper
    reached = np.abs(reached - basic_loss_bounds(**problem | {"covariance": ends[1]}).upper)
    np.testing.assert_allclose(bounds.spread, reached, rtol=0.05)
    assert not np.any(bounds.loose)


@pytest.mark.parametrize("n", [5, 32, 100])
def test_certificates_of_kilometres_are_tight(rng, n):
    problem = windows(rng, 40, n)
    bounds = basic_loss_bounds(**problem)
    # A posterior variance of some hundred square metres beside a prior one of up to 1e8.
    assert np.all(bounds.width <= 1e-12)
    uncertain = basic_loss_bounds(**problem, relative_radius=2.0**-50)
    assert np.mean(uncertain.loose) <= 0.05
    size = np.full(40, n)
    cost = batched_cost_upper(problem["factor"], problem["floor_variance"], size)
    trials = batch_trials(problem["covariance"], problem["position"], bounds.trial)
    # The noise is the best there is for its floor, and the two bounds prove it.
    lowest = batched_loss_lower(trials, cost, problem["floor_variance"], size)
    assert np.all((lowest <= bounds.upper[:, 0]) & (lowest >= bounds.upper[:, 0] * (1 - 1e-10)))
    least = batched_cost_lower(trials, bounds.upper[:, 0], problem["floor_variance"], size)
    assert np.all((least <= cost) & (least >= cost * (1 - 1e-10)))


def test_curvatures_are_upper_bounds_of_exact_ones(rng):
    problem = windows(rng, 3, 6, 2)
    vectors = basic_loss_bounds(**problem).trial + 1e-6 * rng.standard_normal((3, 2, 6))
    for radius in (0.0, 1e-10):
        found = batch_trials(problem["covariance"], problem["position"], vectors, radius).curvature
        for i in range(3):
            total = Fraction(0)
            for j in range(2):
                u = [Fraction(float(x)) for x in vectors[i, j]]
                v = np.append(vectors[i, j][:3], vectors[i, j][4:])
                others = problem["covariance"][i, j, 3, [0, 1, 2, 4, 5]]
                v = np.insert(v, 3, -(v @ others) / problem["covariance"][i, j, 3, 3])
                moved = problem["covariance"][i, j] * (1.0 + 0.999 * radius * np.sign(np.outer(v, v)))
                prior = [[Fraction(float(x)) for x in row] for row in moved]
                applied = [sum((a * x for a, x in zip(row, u, strict=True)), Fraction(0)) for row in prior]
                total += sum((x * y for x, y in zip(u, applied, strict=True)), Fraction(0))
                total -= applied[3] ** 2 / prior[3][3]
            assert total <= Fraction(float(found[i]))
            # As tight as the radius allows: v'|Sigma|v is about four times the prior's variance.
            slack = 1e-12 * float(total) + 40 * radius * np.sum(problem["covariance"][i, :, 3, 3])
            assert float(found[i]) <= float(total) + slack


@pytest.mark.parametrize("power", [-300, -60, 60, 300])
def test_powers_of_two_scale_the_bounds_exactly(rng, power):
    problem = windows(rng, 3, 7)
    bounds = basic_loss_bounds(**problem)
    scale = 2.0**power
    scaled = {name: value * scale for name, value in problem.items() if name not in ("position", "factor")}
    scaled |= {"position": problem["position"], "factor": problem["factor"] * 2.0 ** (power // 2)}
    other = basic_loss_bounds(**scaled)
    np.testing.assert_array_equal(other.upper * scale, bounds.upper)
    np.testing.assert_array_equal(other.lower * scale, bounds.lower)


@pytest.mark.parametrize("scale", [1e-120, 1e120, 1e-310, 1e290])
def test_beyond_the_safe_range_nothing_is_claimed(rng, scale):
    problem = windows(rng, 2, 5)
    problem["covariance"] *= scale
    problem["factor"] *= np.sqrt(scale)
    problem["floor_variance"] *= scale
    bounds = basic_loss_bounds(**problem)
    assert np.all(np.isinf(bounds.upper) & (bounds.lower == 0.0) & bounds.loose)
    trials = batch_trials(problem["covariance"], problem["position"], np.full((2, 1, 5), 1e300))
    assert np.all(batched_loss_lower(trials, np.ones(2), np.zeros(2), np.full(2, 5)) == 0.0)
