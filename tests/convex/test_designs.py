"""The package's closed forms against the exact programs, without a noise floor."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from jaxpriv.convex.block import block_budget, block_target
from jaxpriv.convex.joint import joint_budget, joint_target
from jaxpriv.designs.block import least_loss_block, least_trace_block
from jaxpriv.designs.spectral import least_loss, least_trace
from jaxpriv.priors.gaussian import GaussianPrior
from jaxpriv.secrets.linear import LinearSecret
from jaxpriv.secrets.secret import Secret


N = 9
# The interior-point solver stops at a relative gap of 1e-8 in scaled variables.
SOLVER = 1e-6
SECRETS = [[4], [3, 4], [1, 4, 7]]
SLOWER = [*SECRETS[:2], pytest.param(SECRETS[2], marks=pytest.mark.slow)]
KINDS = ["matern12", "rbf", "rbf, large units"]


def covariance(kind: str) -> np.ndarray:
    lags = np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
    if kind == "matern12":
        return np.exp(-lags / 3.0)
    scale = 900.0 if "large" in kind else 1.0
    return scale * np.exp(-(lags**2) / 8.0)


@pytest.fixture(scope="module")
def solved():
    """Loss at a budget and trace at that loss, compiled once for each secret (its positions are static)."""

    def joint(prior, secret, budget, weights):
        loss = least_loss(prior, secret, budget, weights=weights)
        return loss, least_trace(prior, secret, loss, weights=weights)

    def block(prior, secret, budget):
        loss = least_loss_block(prior, secret, budget)
        return loss, least_trace_block(prior, secret, loss)

    return jax.jit(joint), jax.jit(block)


@pytest.mark.parametrize("secret", SECRETS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_joint(kind, secret, solved):
    prior = covariance(kind)
    for share in (0.02, 2.0):
        budget = float(share * prior[0, 0])
        loss, trace = solved[0](GaussianPrior(prior), Secret(secret, 1.0), budget, np.ones(N))
        assert float(loss) == pytest.approx(joint_budget(prior, secret, budget).objective, rel=SOLVER)
        assert float(trace) == pytest.approx(joint_target(prior, secret, float(loss)).objective, rel=SOLVER)


@pytest.mark.parametrize("secret", SLOWER, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_block(kind, secret, solved):
    prior = covariance(kind)
    for share in (0.02, 2.0):
        budget = float(share * prior[0, 0])
        loss, trace = solved[1](GaussianPrior(prior), Secret(secret, 1.0), budget)
        # An ill-conditioned rest (the smooth priors at the small budget) costs the solver another digit.
        assert float(loss) == pytest.approx(block_budget(prior, secret, budget).objective, rel=5 * SOLVER)
        assert float(trace) == pytest.approx(block_target(prior, secret, float(loss)).objective, rel=5 * SOLVER)


@pytest.mark.parametrize("secret", SECRETS, ids=str)
def test_joint_with_weights(secret, solved, rng):
    prior = covariance("matern12")
    weights = rng.uniform(0.3, 3.0, N)
    loss, trace = solved[0](GaussianPrior(prior), Secret(secret, 1.0), 1.5, weights)
    assert float(loss) == pytest.approx(joint_budget(prior, secret, 1.5, weights=weights).objective, rel=SOLVER)
    target = joint_target(prior, secret, float(loss), weights=weights)
    assert float(trace) == pytest.approx(target.objective, rel=SOLVER)


def test_joint_with_a_matrix_of_weights(solved, rng):
    prior = covariance("matern12")
    square = rng.standard_normal((N, N))
    weights = square @ square.T + np.eye(N)
    loss, _ = solved[0](GaussianPrior(prior), Secret([3, 4], 1.0), 5.0, weights)
    assert float(loss) == pytest.approx(joint_budget(prior, [3, 4], 5.0, weights=weights).objective, rel=SOLVER)


def test_joint_of_a_linear_secret(solved):
    prior = covariance("matern12")
    weights = np.zeros((2, N))
    weights[0, 2:5], weights[1, 6:8] = 1 / 3, 1 / 2
    program = joint_budget(prior, (prior @ weights.T, weights @ prior @ weights.T), 0.5)
    loss, _ = solved[0](GaussianPrior(prior), LinearSecret(weights, 1.0), 0.5, np.ones(N))
    assert float(loss) == pytest.approx(program.objective, rel=SOLVER)
