"""Several releases about one person: the joint formula in rational arithmetic, and what never to conclude from one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

import jaxpriv as jp


def _mechanism(rng, n, rank, floor):
    return jp.GaussianMechanism(rng.standard_normal((n, rank)), floor)


def _exact(matrix):
    values = [fmpq(*float(value).as_integer_ratio()) for value in np.ravel(matrix)]
    return fmpq_mat(*np.shape(matrix), values)


def _noise(mechanism):
    """G in rational numbers."""
    size, rank = mechanism.factor.shape
    floor = fmpq(*float(mechanism.floor_sd).as_integer_ratio()) ** 2
    total = fmpq_mat(size, size, [floor if i == j else fmpq(0) for i in range(size) for j in range(size)])
    factor = _exact(np.asarray(mechanism.factor)) if rank else None
    return total if factor is None else total + factor * factor.transpose()


def _joint(covariance, secret, mechanisms, draws, positions):
    """Loss of one fix from everything that is seen, and whether the distinct draws have a regular covariance.

    The stacked covariance ACAᵀ + R with every cross-covariance of draws that are used again, which makes it singular:
    the system is solved all the same, exactly, by elimination.
    """
    rows = np.concatenate(positions)
    total = _exact(covariance[np.ix_(rows, rows)]).tolist()
    starts = np.cumsum([0, *(len(at) for at in positions)])
    for i, (first, mechanism) in enumerate(zip(draws, mechanisms, strict=True)):
        noise = _noise(mechanism).tolist()
        for j, second in enumerate(draws):
            if first == second:
                for a, row in enumerate(noise):
                    for b, value in enumerate(row):
                        total[starts[i] + a][starts[j] + b] += value
    size = len(rows)
    cross = _exact(covariance[np.ix_(rows, [secret])]).tolist()
    both = fmpq_mat(size, size + 1, [value for row, last in zip(total, cross, strict=True) for value in (*row, *last)])
    reduced, rank = both.rref()
    known = fmpq(0)
    for row in reduced.tolist()[:rank]:
        pivot = next(i for i, value in enumerate(row) if value != 0)
        assert pivot < size  # the system has a solution
        known += cross[pivot][0] * row[size]
    distinct = {name: len(at) for name, at in zip(draws, positions, strict=True)}
    own = fmpq(*float(covariance[secret, secret]).as_integer_ratio())
    left = own - known
    loss = math.inf if left == 0 else known / (own * left)
    return loss, rank == sum(distinct.values())


def _check(seed, count):
    rng = np.random.default_rng(seed)
    regular = singular = repeated = 0
    for _ in range(count):
        n, releases = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        root = rng.standard_normal((n, n))
        covariance = root @ root.T + 0.1 * np.eye(n)
        positions = [rng.permutation(n)[: rng.integers(1, n + 1)] for _ in range(releases)]
        mechanisms = [
            _mechanism(rng, len(at), int(rng.integers(0, len(at) + 1)), rng.choice([0.0, 10 ** rng.uniform(-3, 0)]))
            for at in positions
        ]
        # Some of the releases are seen twice.
        seen = [*range(releases), *rng.integers(releases, size=int(rng.integers(0, 3)))]
        repeated += len(seen) > releases
        secret = int(rng.integers(n))
        chosen = [[items[i] for i in seen] for items in (mechanisms, range(releases), positions)]
        prior, asked = jp.GaussianPrior(covariance), jp.Secret([secret], 1.0)
        certificate = jp.certify_releases(prior, asked, chosen[0], draws=chosen[1], positions=chosen[2])
        truth, is_regular = _joint(covariance, secret, *chosen)
        found = float(certificate.losses[0, 0])
        if not is_regular or truth == math.inf:
            # Some direction was published exactly twice, or the secret itself: no finite bound is claimed.
            assert found == math.inf
            singular += 1
            continue
        regular += 1
        assert truth <= fmpq(*found.as_integer_ratio())
        assert found == pytest.approx(int(truth.numer()) / int(truth.denom()), rel=1e-12)
        shuffled = rng.permutation(len(seen))
        again = jp.certify_releases(
            prior, asked, [chosen[0][i] for i in shuffled], draws=[chosen[1][i] for i in shuffled],
            positions=[chosen[2][i] for i in shuffled],
        )  # fmt: skip
        assert again.epsilon == pytest.approx(certificate.epsilon, rel=1e-12)
    # Each kind occurs.
    assert min(regular, singular, repeated) > count // 10


def test_two_hundred_random_ledgers_are_the_joint_formula():
    _check(11, 200)


def test_releases_of_different_fixes(rng):
    """What is seen of one trace, once as two releases and once as one with the noises of both."""
    covariance = np.exp(-np.abs(np.subtract.outer(np.arange(7), np.arange(7))) / 3.0)
    prior, secret = jp.GaussianPrior(covariance), jp.Secret([3, 4], 1.0)
    first, second = _mechanism(rng, 4, 2, 0.3), _mechanism(rng, 3, 1, 0.3)
    at = [[6, 0, 3, 1], [5, 4, 2]]
    factor = np.zeros((7, 3))
    factor[at[0], :2], factor[at[1], 2:] = first.factor, second.factor
    together = jp.certify_releases(prior, secret, [first, second], positions=at)
    assert together.epsilon == pytest.approx(
        jp.certify(prior, secret, jp.GaussianMechanism(factor, 0.3)).epsilon, rel=1e-9
    )
    # Fixes far away in time tell nothing more; a mechanism of the secret's own fixes does.
    alone = jp.certify_releases(prior, secret, [first], positions=at[:1])
    assert alone.epsilon < together.epsilon


def test_equal_releases_are_one_with_the_mean_noise(rng):
    covariance = np.exp(-np.abs(np.subtract.outer(np.arange(5), np.arange(5))) / 2.0)
    one = jp.GaussianMechanism(np.linalg.cholesky(covariance), 0.1)
    third = jp.GaussianMechanism(np.linalg.cholesky(covariance) / np.sqrt(3), 0.1 / np.sqrt(3))
    prior, secret = jp.GaussianPrior(covariance), jp.Secret([2, 3], 1.0)
    together = jp.certify_releases(prior, secret, [one, one, one])
    assert together.epsilon == pytest.approx(jp.certify(prior, secret, third).epsilon, rel=1e-9)


def test_two_least_noise_designs_reveal_what_each_hides():
    """Two designs of one trace, each certified for its own secret: together they publish nearly everything."""
    i = np.arange(50)
    prior = jp.GaussianPrior(np.exp(-((i[:, None] - i) ** 2) / (2 * 6.1**2)) + 1e-6 * np.eye(50))
    secret = jp.Secret([24], 1.0)
    designs = [jp.design(prior, jp.Secret([at], 1.0), budget=1.0, floor_sd=1e-4) for at in (24, 30)]
    losses = [jp.certify(prior, secret, d.mechanism).epsilon for d in designs]
    together = jp.certify_releases(prior, secret, [d.mechanism for d in designs])
    assert together.epsilon > 1e3 * sum(losses)
    assert together.epsilon_lower[0, 0] > 1e3 * sum(losses)


def test_ledgers_that_are_none(rng):
    prior, secret = jp.GaussianPrior(np.eye(3)), jp.Secret([0], 1.0)
    a, b = _mechanism(rng, 3, 1, 1.0), _mechanism(rng, 3, 1, 1.0)
    for mechanisms, draws, positions, words in (
        ([], None, None, "at least one"),
        ([a, b], ["x", "x"], None, "never be used again"),
        ([a, a], ["x", "x"], [[0, 1, 2], [2, 1, 0]], "never be used again"),
        ([_mechanism(rng, 4, 1, 1.0)], None, None, "coordinates"),
        ([a], ["x", "y"], None, "draws"),
        ([a, b], None, [[0, 1, 2]], "1 lists of positions"),
        ([a], None, [[0, 1]], "release 0: its mechanism is for 3"),
        ([a], None, [[0.0, 1.0, 2.0]], "whole numbers"),
        ([a], None, [[0, 1, 3]], "distinct, from 0 to 2"),
        ([a], None, [[0, 1, 1]], "distinct"),
    ):
        with pytest.raises(jp.InputError, match=words):
            jp.certify_releases(prior, secret, mechanisms, draws=draws, positions=positions)
