"""The comparison mechanisms: what they cost, what they hide, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from jaxpriv.baselines import concentrated, prior_shaped, smallest_uniform, surrogate, uniform
from jaxpriv.convex.joint import joint_target
from jaxpriv.convex.published import sdp_a_coded
from jaxpriv.errors import InputError
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.priors.gaussian import GaussianPrior
from jaxpriv.secrets.linear import LinearSecret
from jaxpriv.secrets.secret import EveryPoint, Secret


def rbf(n: int, lengthscale: float, nugget: float = 1e-4, sd: float = 1.0) -> GaussianPrior:
    lags = np.subtract.outer(np.arange(n), np.arange(n))
    return GaussianPrior(sd**2 * np.exp(-(lags**2) / (2 * lengthscale**2)) + nugget * np.eye(n))


def loss(prior: GaussianPrior, secret: list[int], noise: np.ndarray) -> float:
    """Posterior minus prior precision, by plain inverses."""
    covariance = prior.covariance
    left = covariance - covariance @ np.linalg.solve(covariance + noise, covariance)
    block = np.ix_(secret, secret)
    return float(np.linalg.eigvalsh(np.linalg.inv(left[block]) - np.linalg.inv(covariance[block]))[-1])


def test_uniform():
    noise = uniform(4, 10.0)
    assert isinstance(noise, GaussianMechanism)
    assert noise.floor_sd**2 == pytest.approx(2.5, rel=1e-15)
    assert noise.covariance == pytest.approx(2.5 * np.eye(4), rel=1e-15)


def test_concentrated_is_singular():
    noise = concentrated(5, Secret([3, 1], 1.0), 6.0)
    assert noise.floor_sd == 0
    assert noise.covariance == pytest.approx(np.diag([0.0, 3.0, 0.0, 3.0, 0.0]), rel=1e-15)


def test_prior_shaped():
    prior = rbf(8, 2.0, sd=3.0)
    noise = prior_shaped(prior, 2.0)
    assert noise.covariance == pytest.approx(prior.covariance * 2.0 / np.trace(prior.covariance), abs=1e-13)
    # Every posterior variance shrinks by the same factor, so every loss is 1 / (ratio * variance).
    assert loss(prior, [3], noise.covariance) == pytest.approx(8 / 2.0, rel=1e-8)
    assert loss(prior, [0], noise.covariance) == pytest.approx(8 / 2.0, rel=1e-8)


def test_prior_shaped_of_a_singular_prior():
    noise = prior_shaped(GaussianPrior(np.ones((3, 3))), 3.0)
    assert noise.covariance == pytest.approx(np.ones((3, 3)), abs=1e-14)


def test_surrogate_is_sdp_a_of_the_published_code():
    prior = rbf(9, 2.0, sd=2.0)
    noise = surrogate(prior, Secret([4], 1.0), 3.0)
    program = sdp_a_coded(prior.covariance, [4], 3.0)
    # Entries of an interior-point answer are correct to about the square root of its gap, 1e-8.
    assert noise.covariance == pytest.approx(program.covariance, abs=3e-4)
    assert np.trace(noise.covariance) == pytest.approx(3.0, rel=1e-14)
    assert np.all(noise.covariance[4, [0, 1, 2, 3, 5, 6, 7, 8]] == 0)


def test_surrogate_of_an_uncorrelated_trace_is_concentrated():
    secret = Secret([2], 1.0)
    assert np.all(
        surrogate(GaussianPrior(np.eye(4)), secret, 2.0).covariance == concentrated(4, secret, 2.0).covariance
    )


def test_smallest_uniform_of_uncorrelated_points_is_the_gaussian_mechanism():
    """Nothing but the point itself speaks of it: epsilon = order r^2 / (2 c)."""
    noise = smallest_uniform(GaussianPrior(5.0 * np.eye(3)), Secret([1], 2.0), epsilon=0.5, order=4.0)
    assert noise.floor_sd**2 == pytest.approx(4.0 * 2.0**2 / (2 * 0.5), rel=2e-9)


@pytest.mark.parametrize(
    "secrets",
    [Secret([4], 1.5), Secret([2, 3], 1.5), [Secret([1], 1.0), Secret([5, 6, 7], 0.5)], EveryPoint(1.0)],
    ids=["one", "pair", "two secrets", "every point"],
)
def test_smallest_uniform_meets_the_target_and_no_less_noise_does(secrets):
    priors = [rbf(10, 1.0), rbf(10, 2.0), rbf(10, 4.0)]
    epsilon, order = 0.7, 3.0
    noise = smallest_uniform(priors, secrets, epsilon, order)
    listed = [Secret([i], 1.0) for i in range(10)] if isinstance(secrets, EveryPoint) else np.atleast_1d(secrets)

    def worst(covariance):
        return max(
            order / 2 * one.n_times * float(one.radius) ** 2 * loss(prior, list(one.indices), covariance)
            for prior in priors
            for one in listed
        )

    # The difference of precisions loses a few digits; the search asks for 1e-9.
    assert worst(noise.covariance) <= epsilon * (1 + 1e-10)
    assert worst(noise.covariance * (1 - 1e-6)) > epsilon
    assert noise.factor.shape == (10, 0)


def test_smallest_uniform_is_dearer_than_the_design():
    prior, secret = rbf(10, 2.0), Secret([5], 1.0)
    noise = smallest_uniform(prior, secret, epsilon=2.0)
    target = 2.0  # 2 epsilon / (order s r^2)
    least = joint_target(prior.covariance, [5], target).objective
    assert np.trace(noise.covariance) > 3 * least
    assert loss(prior, [5], noise.covariance) == pytest.approx(2.0, rel=1e-8)


def test_smallest_uniform_for_a_mean_over_a_window():
    prior = rbf(8, 2.0)
    window = np.array([[0.0, 0.0, 0.25, 0.25, 0.25, 0.25, 0.0, 0.0]])
    noise = smallest_uniform(prior, LinearSecret(window, 1.0), epsilon=1.0)
    covariance = prior.covariance
    left = covariance - covariance @ np.linalg.solve(covariance + noise.covariance, covariance)
    gain = 1 / (window @ left @ window.T) - 1 / (window @ covariance @ window.T)
    # At order 2 and radius 1 epsilon is the precision gain.
    assert gain.item() == pytest.approx(1.0, rel=1e-8)


def test_smallest_uniform_scales_with_the_units():
    """In units a thousand times smaller, radius and noise are a thousand times larger."""
    metres, kilometres = rbf(8, 2.0, nugget=1e2, sd=1e3), rbf(8, 2.0)
    fine = smallest_uniform(metres, Secret([3], 50.0), 0.3)
    coarse = smallest_uniform(kilometres, Secret([3], 0.05), 0.3)
    assert fine.floor_sd == pytest.approx(1e3 * coarse.floor_sd, rel=1e-8)


@pytest.mark.parametrize("budget", [0.0, -1.0, np.nan, np.inf, True])
def test_bad_budgets(budget):
    prior, secret = GaussianPrior(np.eye(3)), Secret([0], 1.0)
    for call in (
        lambda: uniform(3, budget),
        lambda: concentrated(3, secret, budget),
        lambda: prior_shaped(prior, budget),
        lambda: surrogate(prior, secret, budget),
        lambda: smallest_uniform(prior, secret, budget),
    ):
        with pytest.raises(InputError, match="expected a positive, finite number"):
            call()


def test_bad_input():
    prior, secret = GaussianPrior(np.eye(3)), Secret([0], 1.0)
    mean = LinearSecret(np.ones((1, 3)), 1.0)
    with pytest.raises(InputError, match="n is 0"):
        uniform(0, 1.0)
    with pytest.raises(InputError, match="outside the trace of 3"):
        concentrated(3, Secret([3], 1.0), 1.0)
    with pytest.raises(InputError, match="LinearSecret is not made of fixes"):
        concentrated(3, mean, 1.0)
    with pytest.raises(InputError, match="LinearSecret is not made of fixes"):
        surrogate(prior, mean, 1.0)
    with pytest.raises(InputError, match="one coordinate, not 2"):
        surrogate(prior, Secret([0, 1], 1.0), 1.0)
    with pytest.raises(InputError, match="not positive semidefinite"):
        prior_shaped(GaussianPrior(np.array([[1.0, 2.0], [2.0, 1.0]])), 1.0)
    with pytest.raises(InputError, match="no prior"):
        smallest_uniform([], secret, 1.0)
    with pytest.raises(InputError, match="different sizes"):
        smallest_uniform([prior, GaussianPrior(np.eye(4))], secret, 1.0)
    with pytest.raises(InputError, match="order is 1"):
        smallest_uniform(prior, secret, 1.0, order=1.0)
    with pytest.raises(InputError, match="secret 0 has a singular prior covariance"):
        smallest_uniform(GaussianPrior(np.ones((3, 3))), Secret([0, 1], 1.0), 1.0)
