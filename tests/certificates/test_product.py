"""The product bound as certified: above every pair, below the ball, and equal to known answers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.designs.certified import certify


ROUNDING = 1e-11  # of float64 formulas on these matrices, whose condition numbers are below 1e4


def independent(gain: np.ndarray, variance: float = 4.0) -> tuple[jp.GaussianPrior, jp.GaussianMechanism]:
    """A prior of independent points and noise G = M⁻¹, all points the secret: then C = 0 and the gain is M."""
    n = len(gain)
    return jp.GaussianPrior(variance * np.eye(n)), jp.GaussianMechanism(
        np.linalg.cholesky(np.linalg.inv(gain)), 0.0, 0.0
    )


def smooth(n: int) -> np.ndarray:
    i = np.arange(n)
    return np.exp(-((i[:, None] - i) ** 2) / 8.0) + 1e-2 * np.eye(n)


def gain_of(covariance: np.ndarray, noise: np.ndarray, positions: list[int]) -> np.ndarray:
    cross, own = covariance[:, positions], covariance[np.ix_(positions, positions)]
    return np.linalg.inv(own - cross.T @ np.linalg.solve(covariance + noise, cross)) - np.linalg.inv(own)


def test_three_times_of_which_no_pair_reaches_the_bound():
    """M = 1.6 I − ½ 11ᵀ: D = 1.6 I by symmetry, 4.8; the best of the sign vectors has sum ±1, 4.8 − ½ = 4.3."""
    prior, mechanism = independent(1.6 * np.eye(3) - 0.5)
    found = certify(prior, jp.Secret([0, 1, 2], 1.0), mechanism, bound="product")
    assert found.bound == "product"
    # ε = (λ/2) r² Σ d at order 2.
    assert 4.8 * (1 - ROUNDING) <= found.epsilon <= 4.8 * (1 + ROUNDING)
    assert 4.3 * (1 - ROUNDING) <= found.epsilon_lower[0, 0] <= 4.3 * (1 + ROUNDING)
    assert found.warnings == ()


def test_coordinates_of_a_time_share_one_number():
    """Gains diag(1, δ) in x and diag(δ, 1) in y: 1 each, but 2 jointly, since one step serves both coordinates."""
    prior, mechanism = independent(np.diag([1.0, 1e-3, 1e-3, 1.0]))
    both = certify(prior, jp.Secret.at_times([0, 1], 1.0, dims=2), mechanism, bound="product")
    assert both.epsilon == pytest.approx(2.0, rel=ROUNDING)
    assert both.epsilon_lower[0, 0] == pytest.approx(2.0, rel=ROUNDING)
    # The order of the positions does not decide which of them belong together.
    shuffled = certify(prior, jp.Secret([2, 1, 0, 3], 1.0, dims=2), mechanism, bound="product")
    assert shuffled.epsilon == pytest.approx(both.epsilon, rel=ROUNDING)


@pytest.mark.parametrize("positions", [[4, 5], [3, 4, 9], [2, 3, 4, 8, 11]])
def test_between_the_farthest_pair_and_the_ball(positions, rng):
    covariance = smooth(14)
    secret = jp.Secret(positions, 0.7)
    for _ in range(4):
        mechanism = jp.GaussianMechanism(0.3 * rng.standard_normal((14, 6)), 0.1, 0.0)
        ball = certify(jp.GaussianPrior(covariance), secret, mechanism)
        found = certify(jp.GaussianPrior(covariance), secret, mechanism, bound="product")
        gain = gain_of(covariance, np.asarray(mechanism.covariance), positions)
        signs = np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=len(positions) - 1)])
        exact = 0.7**2 * np.max(np.einsum("pi,ij,pj->p", signs, gain, signs))
        # The certificate is one of rounding up; the comparison formula inverts twice.
        assert exact * (1 - 1e-9) <= found.epsilon <= min(np.pi / 2 * exact, ball.epsilon) * (1 + 1e-9)
        assert found.epsilon_lower[0, 0] == pytest.approx(exact, rel=1e-9)
        if len(positions) == 2:
            assert found.epsilon == pytest.approx(exact, rel=1e-9)


def test_one_time_is_the_ball_and_uncertain_priors_are_covered():
    covariance = smooth(8)
    mechanism = jp.GaussianMechanism(0.2 * np.eye(8)[:, :5], 0.2, 0.0)
    prior = jp.GaussianPrior(covariance)
    one = jp.Secret([3], 1.0)
    assert certify(prior, one, mechanism, bound="product").epsilon == certify(prior, one, mechanism).epsilon
    pair = jp.Secret([3, 6], 1.0)
    plain = certify(prior, pair, mechanism, bound="product")
    wide = certify(prior, pair, mechanism, bound="product", prior_rtol=1e-6)
    assert plain.epsilon < wide.epsilon < plain.epsilon * 1.01
    moved = jp.GaussianPrior(covariance * (1 + 1e-6))
    assert certify(moved, pair, mechanism, bound="product").epsilon_lower[0, 0] <= wide.epsilon


def test_bad_bound():
    with pytest.raises(jp.InputError, match="expected 'ball' or 'product'"):
        certify(jp.GaussianPrior(np.eye(2)), jp.Secret([0], 1.0), jp.GaussianMechanism(np.eye(2)), bound="exact")  # type: ignore
