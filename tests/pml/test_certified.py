"""Certified leakage and sensitivity against ball arithmetic: never below the truth, and close to it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_mat, ctx, fmpq
from scipy.stats import chi2

import jaxpriv as jp
from jaxpriv.certificates.leakage import LeakageBound, secret_leakage, trace_leakage
from jaxpriv.certificates.sensitivity import squared_sensitivity
from jaxpriv.designs.certified_leakage import certify_leakage, certify_trace_leakage


@pytest.fixture(autouse=True)
def _digits():
    before, ctx.prec = ctx.prec, 600
    yield
    ctx.prec = before


def _exact(values):
    """A float64 matrix as rational numbers."""
    return [[Fraction(one) for one in row] for row in np.atleast_2d(values).tolist()]


def _balls(rows):
    return arb_mat([[arb(fmpq(one.numerator, one.denominator)) for one in row] for row in rows])


def _product(first, second):
    return [
        [sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*second, strict=True)] for row in first
    ]


def _noise(mechanism):
    floor = Fraction(float(mechanism.floor_sd)) ** 2
    factor = _exact(np.concatenate([mechanism.factor, np.zeros((mechanism.size, 1))], axis=1))
    square = _product(factor, [list(row) for row in zip(*factor, strict=True)])
    return [[one + (floor if i == j else 0) for j, one in enumerate(row)] for i, row in enumerate(square)]


def _sum(first, second):
    return [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(first, second, strict=True)]


def _log_det(rows):
    return _balls(rows).det().log()


def _information_of(prior, mechanism, weights=None):
    """½ log det ratios in ball arithmetic; `weights` (k, n) of the secret, None for the whole trace."""
    covariance, noise = _exact(prior.covariance), _noise(mechanism)
    seen = _sum(covariance, noise)
    if weights is None:
        return (_log_det(seen) - _log_det(noise)) / 2
    weights = _exact(weights)
    turned = [list(row) for row in zip(*weights, strict=True)]
    cross = _product(weights, covariance)
    own = _product(cross, turned)
    joint = [[*a, *b] for a, b in zip(own, cross, strict=True)]
    joint += [[*(cross[i][j] for i in range(len(own))), *seen[j]] for j in range(len(seen))]
    return (_log_det(own) + _log_det(seen) - _log_det(joint)) / 2


def _smooth(n, nugget):
    times = np.arange(n)
    matrix = np.exp(-0.5 * (times[:, None] - times) ** 2 / 6.1**2) + nugget * np.eye(n)
    return jp.GaussianPrior(matrix)


CASES = [
    (_smooth(8, 1e-2), jp.GaussianMechanism(np.random.default_rng(1).standard_normal((8, 8)), 0.3)),
    (_smooth(12, 1e-4), jp.GaussianMechanism(np.random.default_rng(2).standard_normal((12, 2)), 1e-4)),
    (_smooth(12, 0.0), jp.GaussianMechanism(1e3 * np.random.default_rng(3).standard_normal((12, 1)), 0.02)),
    (_smooth(6, 1e-3), jp.GaussianMechanism(np.zeros((6, 0)), 5.0)),
]


@pytest.mark.parametrize(("prior", "mechanism"), CASES)
def test_information_is_an_upper_bound_and_close(prior, mechanism):
    n = prior.size
    secrets = [
        (jp.Secret([2], 1.0), np.eye(n)[[2]]),
        (jp.Secret([1, 4], 1.0), np.eye(n)[[1, 4]]),
        (jp.LinearSecret(np.linspace(-1, 1, n)[None], 1.0), np.linspace(-1, 1, n)[None]),
    ]
    found = [
        (one, weights)
        for (_, weights), one in zip(secrets, secret_leakage(prior, [s for s, _ in secrets], mechanism), strict=True)
    ]
    found.append((trace_leakage(prior, mechanism), None))
    for bound, weights in found:
        exact = _information_of(prior, mechanism, weights)
        assert arb(bound.information) > exact
        # Rounding of noise whose variance is up to 2.5e9 times the floor's.
        assert bound.information <= float(exact.mid()) * (1 + 1e-4) + 1e-12
        assert bound.rank == (n if weights is None else len(weights))


def test_levels_are_rounded_outward():
    bound = LeakageBound(1.25, 3)
    for delta in (1e-12, 0.01, 0.5):
        level = bound.epsilon(delta)
        assert level >= 1.25 + chi2.isf(delta, 3) / 2 * (1 - 1e-13)
        np.testing.assert_allclose(level, 1.25 + chi2.isf(delta, 3) / 2, rtol=1e-12)
        assert bound.delta(level) <= delta
        np.testing.assert_allclose(bound.delta(level), delta, rtol=1e-9)
    assert bound.delta(1.0) == 1.0 and bound.delta(math.inf) == 0.0
    assert LeakageBound(math.inf, 1).epsilon(0.1) == math.inf and LeakageBound(math.inf, 1).delta(1e300) == 1.0


def test_noise_that_leaves_a_direction_exact_is_infinite():
    prior = _smooth(5, 0.1)
    mechanism = jp.GaussianMechanism(np.ones((5, 2)), 0.0)
    assert trace_leakage(prior, mechanism).information == math.inf
    assert squared_sensitivity(mechanism, 1.0) == math.inf
    with pytest.raises(jp.InputError, match="4 coordinates"):
        trace_leakage(prior, jp.GaussianMechanism(np.ones((4, 1)), 1.0))


def _above(gram, level):
    """Whether t I is at least a symmetric matrix of balls: every leading minor of the difference is positive."""
    size = gram.nrows()
    shifted = [[(arb(level) if i == j else arb(0)) - gram[i, j] for j in range(size)] for i in range(size)]
    minors = [arb_mat([row[:k] for row in shifted[:k]]).det() for k in range(1, size + 1)]
    return all(minor > -(arb(10) ** -60) for minor in minors)


@pytest.mark.parametrize(("prior", "mechanism"), CASES)
def test_sensitivity_is_an_upper_bound_and_close(prior, mechanism):
    n = prior.size
    rng = np.random.default_rng(5)
    for shape in (0.7, rng.standard_normal((n, 2))):
        moves = _exact(shape * np.eye(n) if np.ndim(shape) == 0 else shape)
        bound = squared_sensitivity(mechanism, shape)
        turned = [list(row) for row in zip(*moves, strict=True)]
        gram = _balls(turned) * _balls(_noise(mechanism)).inv() * _balls(moves)
        assert _above(gram, bound)
        # Noise of a million times the floor hides the floor's last digits.
        assert not _above(gram, bound * (1 - 1e-4))
    with pytest.raises(jp.InputError, match="sensitivity"):
        squared_sensitivity(mechanism, np.ones((n + 1, 1)))


def test_verbs_take_the_worst_prior():
    mechanism = CASES[0][1]
    priors = [_smooth(8, 1e-2), _smooth(8, 1.0)]
    secret = jp.Secret([3], 1.0)
    each = [certify_leakage(one, secret, mechanism)[0].information for one in priors]
    assert certify_leakage(priors, secret, mechanism)[0].information == max(each)
    whole = [trace_leakage(one, mechanism).information for one in priors]
    assert certify_trace_leakage(priors, mechanism).information == max(whole)
    assert len(certify_leakage(priors, jp.EveryPoint(1.0), mechanism)) == 8
    with pytest.raises(jp.InputError, match="no prior"):
        certify_trace_leakage([], mechanism)
