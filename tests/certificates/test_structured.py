"""Structured certificates against ball arithmetic on the exact kernel, and the proof that this comparison can fail."""

from __future__ import annotations

import math
from dataclasses import dataclass

import exact_loss as oracle
import exact_markov as exact
import flint
import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.certificates.loss import LossBound
from jaxpriv.certificates.structured import structured_loss_bounds
from jaxpriv.certificates.structured_sums import inner
from jaxpriv.designs.long.curves import Curves
from jaxpriv.designs.long.one_secret import separated
from jaxpriv.designs.long.roots import roots_for_loss
from jaxpriv.priors.quasiseparable import QuasiseparablePrior


SIZE = 24
CASES = 30
BITS = 400


@dataclass
class Solved:
    problem: exact.MarkovProblem
    prior: QuasiseparablePrior
    covariance: flint.arb_mat
    factor: np.ndarray
    floor: float
    truth: flint.arb
    bound: LossBound


@pytest.fixture(scope="module", autouse=True)
def many_digits():
    previous, flint.ctx.prec = flint.ctx.prec, BITS
    yield
    flint.ctx.prec = previous


def noise_for(prior: QuasiseparablePrior, secret: list[int], kind: int, rng: np.random.Generator):
    """Near the least noise for some target, at random, or a floor alone."""
    curves = Curves(prior, secret)
    variance = float(np.mean(np.diagonal(curves.variance)))
    if kind == 2:
        return np.zeros((prior.size, 0)), 1e-3 * variance
    if kind == 1:
        return np.sqrt(variance) * rng.standard_normal((prior.size, 2)), 1e-6 * variance
    target = float(10 ** rng.uniform(-1, 2)) / variance
    directions, powers = separated(curves, roots_for_loss(curves, target))
    floor = 1e-8 * float(np.sum(powers)) / prior.size
    return directions * np.sqrt(np.maximum(powers - floor, 0.0)), floor


@pytest.fixture(scope="module")
def solved(many_digits) -> list[Solved]:
    rng, found = np.random.default_rng(5), []
    for number, problem in enumerate(exact.problems(CASES, SIZE)):
        prior = QuasiseparablePrior(problem.kernel, problem.times, problem.noise_sd)
        factor, floor = noise_for(prior, problem.secret, (0, 0, 0, 1, 2)[number % 7 % 5], rng)
        covariance = exact.exact_covariance(problem)
        truth = exact.true_loss(covariance, problem.secret, factor, floor)
        bound = structured_loss_bounds(prior, [problem.secret], factor, floor)[0]
        found.append(Solved(problem, prior, covariance, factor, floor, truth, bound))
    return found


def test_the_loss_lies_between_its_bounds(solved):
    slack = []
    for case in solved:
        assert flint.arb(case.bound.lower) <= case.truth <= flint.arb(case.bound.upper)
        slack.append(oracle.relative(case.bound.upper, case.truth))
    # Measured: median 1e-10, one coordinate at most 6e-9, all 9e-4 (three coordinates a few hundredths of a length
    # scale apart with a nugget of 1e-8 of the variance: the rounding of the kernel itself).
    alone = [one for one, case in zip(slack, solved, strict=True) if len(case.problem.secret) == 1]
    assert np.median(slack) < 1e-9 and max(alone) < 1e-7 and max(slack) < 1e-2


def test_solving_without_bounds_is_sometimes_below_the_loss(solved):
    """The comparison above has teeth: the formula in float64 fails it."""
    below = 0
    for case in solved:
        matrix = np.array([[float(case.covariance[i, j].mid()) for j in range(SIZE)] for i in range(SIZE)])
        cross, secret = matrix[:, case.problem.secret], case.problem.secret
        total = matrix + case.factor @ case.factor.T + case.floor * np.eye(SIZE)
        posterior = cross[secret] - cross.T @ np.linalg.solve(total, cross)
        gain = np.linalg.inv(posterior) - np.linalg.inv(cross[secret])
        below += flint.arb(float(np.linalg.eigvalsh((gain + gain.T) / 2)[-1])) < case.truth
    assert below >= 5


def test_products_columns_and_blocks_are_within_their_bounds(solved):
    rng = np.random.default_rng(3)
    largest = 0.0
    for case in solved:
        vectors = rng.standard_normal((SIZE, 2)) * np.exp(rng.uniform(-20, 20, (SIZE, 2)))
        product = case.prior.bounded_product(vectors)
        true = case.covariance * oracle.ball_matrix(vectors)
        columns = case.prior.columns(case.problem.secret)
        error = case.prior.columns_error(case.problem.secret)
        block, radius = case.prior.exact_block(case.problem.secret)
        for i in range(SIZE):
            for j in range(2):
                away = abs(true[i, j] - flint.arb(product.values[i, j]))
                assert away <= flint.arb(product.entries[i, j])
                largest = max(largest, float(away.mid()) / product.entries[i, j])
            for j, s in enumerate(case.problem.secret):
                assert abs(case.covariance[i, s] - flint.arb(columns[i, j])) <= flint.arb(error[i, j])
        for i, s in enumerate(case.problem.secret):
            for j, t in enumerate(case.problem.secret):
                rounded = flint.arb(flint.fmpq(block[i][j].numerator, block[i][j].denominator))
                assert abs(case.covariance[s, t] - rounded) <= flint.arb(
                    flint.fmpq(radius.numerator, radius.denominator)
                )
        assert np.all(product.norms >= np.linalg.norm(product.entries, axis=0) * (1 - 1e-12))
    assert largest > 1e-3  # the bounds are not so wide that they could not fail


def test_states_that_are_wrong_are_noticed(solved, monkeypatch):
    """The recursion is not trusted: a wrong one widens the bound to where the truth is."""
    from jaxpriv.priors import quasiseparable

    honest = quasiseparable._states

    def wrong(transitions, vector):
        forward, backward = honest(transitions, vector)
        return forward * (1.0 + 1e-6), backward

    monkeypatch.setattr(quasiseparable, "_states", wrong)
    case = solved[1]
    vectors = np.ones((SIZE, 1))
    product = case.prior.bounded_product(vectors)
    true = case.covariance * oracle.ball_matrix(vectors)
    away = [abs(true[i, 0] - flint.arb(product.values[i, 0])) for i in range(SIZE)]
    assert all(away[i] <= flint.arb(product.entries[i, 0]) for i in range(SIZE))
    assert max(float(one.mid()) for one in away) > 1e-9


def test_lower_bounds_are_below_what_is_attained(many_digits):
    """The cost at a target against the exact positive part of the floor; the loss within a budget against a design."""
    for problem in list(exact.problems(10, SIZE))[::2]:
        prior = QuasiseparablePrior(problem.kernel, problem.times, problem.noise_sd)
        secret = jp.Secret(problem.secret, 1.0)
        covariance, k = exact.exact_covariance(problem), len(problem.secret)
        variance = float(covariance[0, 0].mid())
        # At order 2 and radius 1 the target of the loss is epsilon over the number of times.
        found = jp.design(prior, secret, epsilon=3.0 * k / variance, throw=False)
        target = flint.arb(3.0 * k / variance) / k
        size = range(SIZE)
        cross = flint.arb_mat([[covariance[i, j] for j in problem.secret] for i in size])
        own = flint.arb_mat([[covariance[i, j] for j in problem.secret] for i in problem.secret])
        regression = cross * own.inv()
        reached = flint.arb_mat([[own[i, j] + ((1 / target) if i == j else 0) for j in range(k)] for i in range(k)])
        floor = regression * reached * regression.transpose() - covariance
        values = [value.real.mid() for value in flint.acb_mat(floor).eig(algorithm="approx")]
        variance_of_floor = flint.arb(float(found.mechanism.floor_sd)) ** 2
        least = SIZE * variance_of_floor + sum(
            (value - variance_of_floor for value in sorted(values, key=float)[-k:]), flint.arb(0)
        )
        assert flint.arb(found.lower_bound) <= least * (1 + flint.arb(2) ** -200)
        assert oracle.relative(found.lower_bound, least) > -1e-7  # and it says something
        within = jp.design(prior, secret, budget=variance, throw=False)
        attained = exact.true_loss(
            covariance, problem.secret, np.asarray(within.mechanism.factor), float(within.mechanism.floor_sd) ** 2
        )
        assert flint.arb(within.lower_bound) <= attained * k * (1 + flint.arb(2) ** -50)


def test_nothing_is_claimed_without_nugget_and_floor():
    problem = next(exact.problems(1, SIZE))
    prior = QuasiseparablePrior(problem.kernel, np.arange(SIZE, dtype=float), 0.0)
    (bound,) = structured_loss_bounds(prior, [[3]], np.ones((SIZE, 1)), 0.0)
    assert bound == LossBound(math.inf, 0.0)


def test_inner_products_of_long_columns(rng):
    left = rng.standard_normal((200_003, 2)) * np.exp(rng.uniform(-30, 30, (200_003, 1)))
    right = rng.standard_normal((200_003, 3)) / np.exp(rng.uniform(-30, 30, (200_003, 1)))
    found = inner(left, right, np.abs(right) * 1e-9)
    for i in range(2):
        for j in range(3):
            true = math.fsum((left[:, i] * right[:, j]).tolist())
            rounding = 2.0**-52 * float(np.abs(left[:, i]) @ np.abs(right[:, j]))
            assert abs(found.hi[i, j] - true) <= rounding + 1e-14 * abs(true)
            moved = math.fsum((left[:, i] * right[:, j] * (1 + 1e-9 * np.sign(left[:, i] * right[:, j]))).tolist())
            assert abs(found.hi[i, j] + found.lo[i, j] - moved) <= found.radius[i, j] + rounding
