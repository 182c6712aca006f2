"""Scalars rounded outward, against ball arithmetic of 400 bits and more."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest

from jaxpriv.certificates import (
    chi_square_quantile,
    chi_square_tail,
    exp_upper,
    gaussian_delta,
    gaussian_epsilon,
    log_bounds,
    odds_bound,
    renyi_epsilon,
)
from jaxpriv.certificates.arithmetic import norm_up
from jaxpriv.errors import InputError


WIDTH = 1e-14  # relative; a bound is a few units in the last place (1.1e-16) away


@pytest.fixture(autouse=True)
def many_bits():
    previous, flint.ctx.prec = flint.ctx.prec, 1200
    yield
    flint.ctx.prec = previous


def ball(value: float) -> flint.arb:
    return flint.arb(value)


def exact_tail(quantile: float, degrees: int) -> flint.arb:
    """Regularised upper incomplete gamma function."""
    return (ball(quantile) / 2).gamma_upper(ball(degrees) / 2, regularized=1)


def exact_delta(squared: float, epsilon: float) -> flint.arb:
    ratio = ball(squared).sqrt()
    e = ball(epsilon)
    root = flint.arb(2).sqrt()

    def below(x: flint.arb) -> flint.arb:
        return (-x / root).erfc() / 2

    return below(ratio / 2 - e / ratio) - e.exp() * below(-ratio / 2 - e / ratio)


def test_logarithm_and_exponential() -> None:
    rng = np.random.default_rng(1)
    for value in [*(10.0 ** rng.uniform(-300, 300, 100)), 1.0, 1 - 1e-16, 5e-324, 1.7e308]:
        lower, upper = log_bounds(float(value))
        assert ball(lower) <= ball(float(value)).log() <= ball(upper)
        assert upper - lower <= 4e-16 * max(abs(upper), 1e-300) + 1e-320
    for value in [*rng.uniform(-700, 700, 100), 0.0, -800.0, 1e-300]:
        assert ball(exp_upper(float(value))) >= ball(float(value)).exp()
        if value > -700:
            assert exp_upper(float(value)) <= math.exp(value) * (1 + WIDTH)
    assert exp_upper(800.0) == math.inf


def test_the_renyi_level_is_rounded_up() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        loss, radius, order = rng.uniform(0.01, 9, 3) + np.array([0, 0, 1.0])
        times = int(rng.integers(1, 5))
        exact = Fraction(order) / 2 * times * Fraction(radius) ** 2 * Fraction(loss)
        value = renyi_epsilon(loss, times, radius, order)
        assert Fraction(value) >= exact
        assert Fraction(math.nextafter(value, 0.0)) < exact
    assert renyi_epsilon(math.inf, 1, 1.0, 2.0) == math.inf
    with pytest.raises(InputError, match="order"):
        renyi_epsilon(1.0, 1, 1.0, 1.0)
    with pytest.raises(InputError):
        renyi_epsilon(math.nan, 1, 1.0, 2.0)


def test_the_markov_bound_of_the_odds() -> None:
    for epsilon, delta, order in ((0.1, 0.0931, 5.0), (7.7, 0.01, 2.0), (1e-9, 1e-300, 1.0000001), (3.0, 0.999, 1e6)):
        value = odds_bound(epsilon, delta, order)
        exact = ball(epsilon) - ball(delta).log() / (ball(order) - 1)
        assert ball(value) >= exact
        assert value <= float(exact) * (1 + WIDTH)
    # order 5, level 0.1: odds of 2 are exceeded with probability at most exp(-4 (log 2 - 0.1)) = 9.32 %
    assert odds_bound(0.1, math.exp(-4 * (math.log(2) - 0.1)), 5.0) == pytest.approx(math.log(2), rel=1e-14)


def test_the_gaussian_curve_is_rounded_up_in_both_directions() -> None:
    rng = np.random.default_rng(3)
    widest = 0.0
    points = [(float(10 ** rng.uniform(-6, 3)), float(10 ** rng.uniform(-4, 2.5))) for _ in range(120)]
    points += [(4.0, 0.0), (1e-30, 0.0), (1e-30, 1e-20), (1e4, 1.0), (1e-4, 40.0), (2.0, 700.0)]
    for squared, epsilon in points:
        value, exact = gaussian_delta(squared, epsilon), exact_delta(squared, epsilon)
        if not exact.rel_accuracy_bits() > 60:
            continue  # cancellation beyond 1200 bits: nothing to compare with
        assert not ball(value) < exact, (squared, epsilon)  # the ball of a value near 1 contains 1 itself
        if exact > 1e-290:
            widest = max(widest, float((ball(value) - exact) / exact))
    assert widest <= WIDTH


def test_the_level_of_the_gaussian_curve() -> None:
    rng = np.random.default_rng(4)
    cases = [(float(10 ** rng.uniform(-4, 3)), float(10 ** rng.uniform(-12, -0.1))) for _ in range(25)]
    for squared, delta in [*cases, (1.0, 1e-300), (9.0, 1 - 1e-16), (1e-8, 1e-5)]:
        epsilon = gaussian_epsilon(squared, delta)
        assert exact_delta(squared, epsilon) <= ball(delta)
        if epsilon > 0:
            # the level is minimal up to a few units in the last place
            assert exact_delta(squared, epsilon * (1 - WIDTH)) > ball(delta)
    assert gaussian_epsilon(1e-8, 0.5) == 0.0
    assert gaussian_epsilon(0.0, 0.5) == 0.0
    assert gaussian_epsilon(math.inf, 0.5) == gaussian_epsilon(Fraction(10) ** 400, 0.5) == math.inf
    assert gaussian_delta(Fraction(10) ** 400, 1.0) == 1.0
    # m = 1, delta = 1e-5: 4.377..., as in the numerical tables of the analytic Gaussian mechanism
    assert gaussian_epsilon(1.0, 1e-5) == pytest.approx(4.3771, abs=1e-3)


def test_chi_square_tail_is_rounded_up() -> None:
    rng = np.random.default_rng(5)
    widest = 0.0
    for _ in range(80):
        degrees = int(rng.integers(1, 121))
        quantile = float(degrees * 10 ** rng.uniform(-1.5, 1))
        value, exact = chi_square_tail(quantile, degrees), exact_tail(quantile, degrees)
        assert ball(value) >= exact
        widest = max(widest, float((ball(value) - exact) / exact))
    assert widest <= WIDTH
    assert chi_square_tail(0.0, 3) == pytest.approx(1.0)
    assert chi_square_tail(math.inf, 3) == 0.0


@pytest.mark.parametrize("degrees", [1, 2, 3, 10, 121, 1000])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 0.05, 0.8, 1 - 1e-16])
def test_chi_square_quantile_is_rounded_up(degrees: int, delta: float) -> None:
    quantile = chi_square_quantile(degrees, delta)
    assert exact_tail(quantile, degrees) <= ball(delta)
    assert exact_tail(quantile * (1 - WIDTH), degrees) > ball(delta)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_probabilities_must_lie_between_zero_and_one(delta: float) -> None:
    for call in (
        lambda: odds_bound(1.0, delta, 2.0),
        lambda: gaussian_epsilon(1.0, delta),
        lambda: chi_square_quantile(2, delta),
    ):
        with pytest.raises(InputError, match="delta"):
            call()


def test_norms_of_tiny_and_huge_entries_are_bounds():
    for scale in (2.0**-600, 2.0**-300, 1.0, 2.0**500):
        values = scale * np.array([3.0, -4.0, 12.0])
        assert 13 * scale <= norm_up(values) <= 13 * scale * (1 + 1e-14) + 1e-290
    assert norm_up(np.zeros(0)) <= 1e-290 and norm_up(np.array([1.0, np.inf])) == np.inf
    assert np.isnan(norm_up(np.array([1.0, np.nan])))
