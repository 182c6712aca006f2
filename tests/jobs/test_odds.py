"""What ε says about odds, against ball arithmetic and the definition."""

from __future__ import annotations

import math

import pytest
from flint import arb, ctx

from jaxpriv.jobs.odds import curve_epsilon, odds_record, tail_epsilon


@pytest.fixture(autouse=True)
def many_digits():
    before, ctx.prec = ctx.prec, 200
    yield
    ctx.prec = before


def _phi(x):
    return (-x / arb(2).sqrt()).erfc() / 2


MUS = [1e-3, 0.1, 0.2, 1.0, 3.0, 30.0]
DELTAS = [0.3, 0.01, 1e-6, 1e-15]


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("delta", DELTAS)
def test_tail_is_kept_and_not_wasted(mu, delta):
    def tail(value):
        m, e = arb(mu), arb(value)
        return _phi(m / 2 - e / m) + _phi(-m / 2 - e / m)

    value = tail_epsilon(mu, delta)
    assert tail(value) <= delta
    # The outward step is 1e-9; a millionth less no longer keeps δ.
    assert tail(value * (1 - 1e-6)) > delta


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("delta", DELTAS)
def test_curve_is_kept_and_not_wasted(mu, delta):
    def curve(value):
        m, e = arb(mu), arb(value)
        return _phi(m / 2 - e / m) - e.exp() * _phi(-m / 2 - e / m)

    value = curve_epsilon(mu, delta)
    if value == 0.0:
        assert curve(0.0) <= delta
        return
    assert curve(value) <= delta
    assert curve(value * (1 - 1e-6)) > delta


def test_published_example():
    # Order 5, ε = 0.1: odds double with probability at most 9.3 % by Markov's inequality, 0.038 % in truth.
    theorem = odds_record(0.1, 5.0, 0.0933)
    assert theorem.theorem_factor == pytest.approx(2.0, rel=1e-3)
    # Besides, odds are halved with probability 0.018 %: either direction counts here.
    assert odds_record(0.1, 5.0, 0.00038 + 0.00018).exact_factor == pytest.approx(2.0, rel=2e-3)


def test_a_useless_promise_has_no_factor():
    odds = odds_record(2000.0, 2.0, 0.01)
    assert odds.exact_factor is None
    assert math.isfinite(odds.exact)
