"""Several releases of one trace: the joint formula with many digits, and what never to conclude from single losses."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb_mat, ctx

import jaxpriv as jp


def _mechanism(rng, n, rank, floor):
    return jp.GaussianMechanism(rng.standard_normal((n, rank)), floor)


def _joint_loss(covariance, position, mechanisms):
    """The loss of one fix from the stacked observation, in 400-bit arithmetic."""
    ctx.prec = 400
    n, count = covariance.shape[0], len(mechanisms)
    total = arb_mat(np.tile(covariance, (count, count)).tolist())
    rows = total.tolist()
    for i, one in enumerate(mechanisms):
        factor = arb_mat(np.asarray(one.factor).tolist()) if one.factor.shape[1] else None
        noise = (factor * factor.transpose()).tolist() if factor is not None else None
        for a in range(n):
            for b in range(n):
                if noise is not None:
                    rows[i * n + a][i * n + b] += noise[a][b]
            rows[i * n + a][i * n + a] += arb_mat([[float(one.floor_sd)]])[0, 0] ** 2
    cross = arb_mat(np.tile(covariance[:, [position]], (count, 1)).tolist())
    known = (cross.transpose() * arb_mat(rows).solve(cross))[0, 0]
    own = arb_mat([[float(covariance[position, position])]])[0, 0]
    return known / (own * (own - known))


def test_random_ledgers_are_the_joint_formula():
    rng = np.random.default_rng(11)
    for _ in range(200):
        n, count = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        root = rng.standard_normal((n, n))
        covariance = root @ root.T + 0.1 * np.eye(n)
        mechanisms = [_mechanism(rng, n, int(rng.integers(0, n)), 10 ** rng.uniform(-3, 0)) for _ in range(count)]
        position = int(rng.integers(n))
        # Some of the releases are seen twice.
        seen = [*range(count), *rng.integers(count, size=int(rng.integers(0, 3)))]
        prior, secret = jp.GaussianPrior(covariance), jp.Secret([position], 1.0)
        certificate = jp.certify_releases(prior, secret, [mechanisms[i] for i in seen], draws=[int(i) for i in seen])
        truth = _joint_loss(covariance, position, mechanisms)
        assert bool(truth <= certificate.losses[0, 0])
        assert float(truth) == pytest.approx(certificate.losses[0, 0], rel=1e-12)
        shuffled = rng.permutation(count)
        again = jp.certify_releases(prior, secret, [mechanisms[i] for i in shuffled])
        assert again.epsilon == pytest.approx(certificate.epsilon, rel=1e-12)


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
    for mechanisms, draws, words in (
        ([], None, "at least one"),
        ([a, b], ["x", "x"], "never be used again"),
        ([_mechanism(rng, 4, 1, 1.0)], None, "coordinates"),
        ([a], ["x", "y"], "draws"),
    ):
        with pytest.raises(jp.InputError, match=words):
            jp.certify_releases(prior, secret, mechanisms, draws=draws)
